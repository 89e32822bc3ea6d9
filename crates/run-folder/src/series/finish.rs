//! A series in long blocks: kind by kind of part, of equal length, so that its bytes are a function of the samples
//! alone and not of when blocks were written.

use super::columns::{GPU, INTERVAL, KERNEL, LAUNCH, NUMBER, STREAM, TIME};
use super::encoding::{BlockBuilder, write_head};
use super::{Part, Series, SeriesBlock};
use crate::error::ReadError;
use std::io::Write;
use std::path::Path;

/// Rows of a long block.
const GROUP: usize = 65_536;

/// Writes the blocks of a folder as long ones into `sink`. False if there are none.
///
/// # Errors
/// Blocks cannot be read, or the sink takes none.
pub fn finish(folder: &Path, sink: &mut impl Write) -> Result<bool, ReadError> {
    let Some(series) = Series::open(folder) else {
        return Ok(false);
    };
    let failed = |error| ReadError::system(folder, error);
    write_head(sink, true).map_err(failed)?;
    each_group(&series, |part, blocks| {
        let rows = blocks.iter().map(|block| block.time_ns.len()).sum();
        let mut long = BlockBuilder::new(part as u8, rows);
        let keys = || blocks.iter().map(|block| &block.keys);
        long.times(TIME, blocks.iter().flat_map(|one| &one.time_ns).copied());
        let intervals = blocks.iter().flat_map(|one| &one.interval_ns);
        long.times(INTERVAL, intervals.copied());
        long.numbers(
            GPU,
            keys().flat_map(|one| &one.gpu).map(|gpu| (*gpu).into()),
        );
        long.options(STREAM, keys().flat_map(|one| &one.stream).copied());
        long.options(LAUNCH, keys().flat_map(|one| &one.launch).copied());
        let kernels = keys().flat_map(|one| &one.kernel);
        long.names(KERNEL, kernels.map(Option::as_deref));
        let numbers = blocks.iter().flat_map(|one| &one.number);
        long.numbers(NUMBER, numbers.map(|number| (*number).into()));
        for (index, (_, metric)) in part.counters().enumerate() {
            let values = blocks.iter().flat_map(|one| &one.counters[index]);
            long.numbers(metric.name, values.copied());
        }
        long.write(sink).map_err(failed)
    })?;
    Ok(true)
}

/// Hands out a series in groups of rows of one kind of part, with all of its counters in the order of the table.
///
/// # Errors
/// It cannot be read, or the receiver fails.
pub fn each_group<E: From<ReadError>>(
    series: &Series,
    mut found: impl FnMut(Part, &[SeriesBlock]) -> Result<(), E>,
) -> Result<(), E> {
    for part in Part::ALL {
        let names: Vec<&str> = part.counters().map(|(_, one)| one.name).collect();
        let mut held: Vec<SeriesBlock> = Vec::new();
        let mut rows = 0;
        let mut failed = None;
        series.each_with_keys(part, &names, |block| {
            rows += block.time_ns.len();
            held.push(std::mem::take(block));
            while rows >= GROUP && failed.is_none() {
                let (first, rest) = split(std::mem::take(&mut held), GROUP);
                failed = found(part, &first).err();
                rows -= GROUP;
                held = rest;
            }
            Ok(())
        })?;
        match failed {
            Some(error) => return Err(error),
            None if rows > 0 => found(part, &held)?,
            None => {}
        }
    }
    Ok(())
}

/// Splits blocks after `rows` rows.
fn split(blocks: Vec<SeriesBlock>, mut rows: usize) -> (Vec<SeriesBlock>, Vec<SeriesBlock>) {
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for mut block in blocks {
        let length = block.time_ns.len();
        if rows >= length {
            rows -= length;
            first.push(block);
        } else if rows == 0 {
            rest.push(block);
        } else {
            let mut after = SeriesBlock {
                time_ns: block.time_ns.split_off(rows),
                interval_ns: block.interval_ns.split_off(rows),
                number: block.number.split_off(rows),
                counters: Vec::new(),
                keys: Default::default(),
            };
            let counters = block.counters.iter_mut();
            after.counters = counters.map(|values| values.split_off(rows)).collect();
            after.keys.gpu = block.keys.gpu.split_off(rows);
            after.keys.launch = block.keys.launch.split_off(rows);
            after.keys.stream = block.keys.stream.split_off(rows);
            after.keys.kernel = block.keys.kernel.split_off(rows);
            rows = 0;
            first.push(block);
            rest.push(after);
        }
    }
    (first, rest)
}
