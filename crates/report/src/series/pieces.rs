//! Reads pieces: an Arrow IPC stream that may end in the middle of one.

use super::read::{Block, Keys, Wanted, shared};
use super::{GPU, INTERVAL, KERNEL, LAUNCH, NUMBER, STREAM, TIME};
use crate::error::ReportError;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_ipc::reader::StreamReader;
use std::borrow::Cow;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Hands out all pieces that are whole.
pub(super) fn each(
    path: &Path,
    wanted: Wanted<'_>,
    mut found: impl FnMut(&mut Block) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let file = File::open(path).map_err(|error| ReportError::system(path, error))?;
    // A run that was killed at once has not even written the head.
    let Ok(all) = StreamReader::try_new(BufReader::new(file), None) else {
        return Ok(());
    };
    let head = all.schema();
    let mut names = vec![TIME, INTERVAL, NUMBER];
    if wanted.keys {
        names.extend([GPU, LAUNCH, STREAM, KERNEL]);
    }
    names.extend(wanted.counters);
    let mut places = Vec::new();
    for name in &names {
        let place = head.index_of(name);
        let because = || format!("it has no column `{name}`");
        places.push(place.map_err(|_| ReportError::malformed(path, because()))?);
    }
    drop(all);
    let file = File::open(path).map_err(|error| ReportError::system(path, error))?;
    let Ok(some) = StreamReader::try_new(BufReader::new(file), Some(places)) else {
        return Ok(());
    };
    for batch in some {
        // What killed the run may have cut the last piece.
        let Ok(batch) = batch else {
            return Ok(());
        };
        found(&mut block(path, &batch, wanted)?)?;
    }
    Ok(())
}

/// The columns of a piece, by name: a projection keeps the order of the file.
fn block(path: &Path, batch: &RecordBatch, wanted: Wanted<'_>) -> Result<Block, ReportError> {
    let column = |name: &str| {
        let found = batch.column_by_name(name);
        found.ok_or_else(|| ReportError::malformed(path, format!("it lacks `{name}`")))
    };
    let wrong = |name: &str| ReportError::malformed(path, format!("`{name}` has another type"));
    let decimals = |name: &str| -> Result<Vec<f64>, ReportError> {
        let values = column(name)?.as_primitive_opt::<Float64Type>();
        Ok(values.ok_or_else(|| wrong(name))?.values().to_vec())
    };
    let numbers = |name: &str| -> Result<Vec<u32>, ReportError> {
        let values = column(name)?.as_primitive_opt::<UInt32Type>();
        Ok(values.ok_or_else(|| wrong(name))?.values().to_vec())
    };
    let counts = |name: &str| -> Result<Vec<u64>, ReportError> {
        let values = column(name)?.as_primitive_opt::<UInt64Type>();
        Ok(values.ok_or_else(|| wrong(name))?.values().to_vec())
    };
    let options = |name: &str| -> Result<Vec<Option<u64>>, ReportError> {
        let values = column(name)?.as_primitive_opt::<UInt64Type>();
        Ok(values.ok_or_else(|| wrong(name))?.iter().collect())
    };
    let mut keys = Keys::default();
    if wanted.keys {
        let names = column(KERNEL)?.as_string_opt::<i32>();
        let names = names.ok_or_else(|| wrong(KERNEL))?;
        keys = Keys {
            gpu: numbers(GPU)?,
            launch: options(LAUNCH)?,
            stream: options(STREAM)?,
            kernel: shared(names.iter().map(|name| name.map(Cow::Borrowed))),
        };
    }
    let counters = wanted.counters.iter().map(|name| counts(name));
    Ok(Block {
        time_ns: decimals(TIME)?,
        interval_ns: decimals(INTERVAL)?,
        number: numbers(NUMBER)?,
        counters: counters.collect::<Result<_, _>>()?,
        keys,
    })
}
