//! A series for other tools.

use super::columns::Names;
use super::csv;
use crate::columns::{Column, Compression, ParquetFile};
use crate::error::ReportError;
use crate::folder::Run;
use crate::series::{self, Series};
use lockstep_counters::COUNTERS;

/// The series of a run, or why there is none.
fn of(run: &Run) -> Result<Series, ReportError> {
    Series::open(&run.path).ok_or_else(|| ReportError::NoSeries {
        path: run.path.clone(),
    })
}

/// A head and a row a part and interval.
///
/// # Errors
/// There is no series, or it cannot be read.
pub fn series_csv(run: &Run, names: Names) -> Result<Vec<u8>, ReportError> {
    let mut text = Vec::new();
    series::write(&of(run)?, |columns| {
        let columns = renamed(columns, names);
        csv::rows(&mut text, &columns)
    })?;
    Ok(text)
}

/// The same as a Parquet file.
///
/// # Errors
/// There is no series, or it cannot be read.
pub fn series_parquet(run: &Run, names: Names) -> Result<Vec<u8>, ReportError> {
    let mut file: Option<ParquetFile<Vec<u8>>> = None;
    series::write(&of(run)?, |columns| {
        let columns = renamed(columns, names);
        let file = match &mut file {
            Some(file) => file,
            None => file.insert(ParquetFile::begin(
                "series",
                Vec::new(),
                &columns,
                Compression::Zstd,
            )?),
        };
        file.group(&columns)
    })?;
    match file {
        Some(file) => file.finish(),
        None => Err(ReportError::NoSeries {
            path: run.path.clone(),
        }),
    }
}

/// Columns under the names that were asked for.
fn renamed(columns: &[Column], names: Names) -> Vec<Column> {
    let mut columns = columns.to_vec();
    for column in &mut columns {
        if let Some(metric) = COUNTERS.iter().find(|one| one.name == column.name) {
            column.name = names.of(metric).into();
        }
    }
    columns
}
