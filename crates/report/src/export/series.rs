//! A series for other tools.

use super::columns::Names;
use super::csv;
use crate::columns::{Column, Compression, ParquetFile, Values};
use crate::error::ReportError;
use lockstep_run_folder::series::{Keys, Part, Series, SeriesBlock, each_group};
use lockstep_run_folder::{ReadError, Run};

/// The series of a run, or why there is none.
fn of(run: &Run) -> Result<Series, ReadError> {
    Series::open(&run.path).ok_or_else(|| ReadError::NoSeries {
        path: run.path.clone(),
    })
}

/// A head and a row a part and interval.
///
/// # Errors
/// There is no series, or it cannot be read.
pub fn series_csv(run: &Run, names: Names) -> Result<Vec<u8>, ReportError> {
    let mut text = Vec::new();
    each_group(&of(run)?, |part, blocks| {
        let columns = columns(part, blocks, names);
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
    each_group(&of(run)?, |part, blocks| {
        let columns = columns(part, blocks, names);
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
        None => Err(ReadError::NoSeries {
            path: run.path.clone(),
        }
        .into()),
    }
}

/// Columns of a group of rows, counters under the names that were asked for. What a part does not count is absent.
fn columns(part: Part, blocks: &[SeriesBlock], names: Names) -> Vec<Column> {
    let rows = blocks.iter().map(|block| block.time_ns.len()).sum();
    let keys = || blocks.iter().map(|block| &block.keys);
    let decimals = |of: fn(&SeriesBlock) -> &[f64]| {
        let values = blocks.iter().flat_map(of).copied().map(Some);
        Values::Decimal(values.collect())
    };
    let numbers = |of: fn(&SeriesBlock) -> &[u32]| {
        let values = blocks.iter().flat_map(of).copied().map(u64::from);
        Values::Counted(values.collect())
    };
    let options =
        |of: fn(&Keys) -> &[Option<u64>]| Values::Whole(keys().flat_map(of).copied().collect());
    let kernels = keys().flat_map(|keys| &keys.kernel).cloned();
    let mut columns = vec![
        ("time_ns", decimals(|block| &block.time_ns)),
        ("interval_ns", decimals(|block| &block.interval_ns)),
        ("gpu", numbers(|block| &block.keys.gpu)),
        ("stream", options(|keys| &keys.stream)),
        ("launch", options(|keys| &keys.launch)),
        ("kernel", Values::Text(kernels.collect())),
        ("part", Values::Text(vec![Some(part.name().into()); rows])),
        ("number", numbers(|block| &block.number)),
    ];
    let own: Vec<usize> = part.counters().map(|(place, _)| place).collect();
    for (place, metric) in Part::Gpu.counters() {
        let values = match own.iter().position(|known| *known == place) {
            Some(index) => {
                let values = blocks.iter().flat_map(|block| &block.counters[index]);
                Values::Counted(values.copied().collect())
            }
            None => Values::Whole(vec![None; rows]),
        };
        columns.push((names.of(metric), values));
    }
    let column = |(name, values): (&str, Values)| Column {
        name: name.into(),
        values,
    };
    columns.into_iter().map(column).collect()
}
