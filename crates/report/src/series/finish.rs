//! A series as one table: kind by kind of part, row groups of equal length, so that its bytes are a function of
//! the samples alone and not of when pieces were written.

use super::read::{Block, Series};
use super::{GPU, INTERVAL, KERNEL, LAUNCH, NUMBER, PART, Part, STREAM, TIME};
use crate::columns::{Column, Compression, ParquetFile, Values};
use crate::error::ReportError;
use lockstep_counters::COUNTERS;
use std::io::Write;
use std::path::Path;

/// Rows of a row group.
const GROUP: usize = 65_536;

/// Writes the pieces in a folder as `series.parquet`, into `sink`. False if there are none.
///
/// # Errors
/// Pieces cannot be read, or the file cannot be written.
pub fn finish<W: Write + Send>(folder: &Path, sink: W) -> Result<bool, ReportError> {
    let Some(series) = Series::open(folder) else {
        return Ok(false);
    };
    let mut file = ParquetFile::begin("series", sink, &columns(Part::Gpu, &[]), Compression::Zstd)?;
    write(&series, |columns| file.group(columns))?;
    file.finish()?;
    Ok(true)
}

/// Hands out a series in parts of the table of all columns.
///
/// # Errors
/// It cannot be read, or the receiver fails.
pub fn write(
    series: &Series,
    mut group: impl FnMut(&[Column]) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    for part in Part::ALL {
        let names: Vec<&str> = part.counters().map(|(_, one)| one.name).collect();
        let mut held: Vec<Block> = Vec::new();
        let mut rows = 0;
        series.each_with_keys(part, &names, |block| {
            rows += block.time_ns.len();
            held.push(block);
            while rows >= GROUP {
                let (first, rest) = split(std::mem::take(&mut held), GROUP);
                group(&columns(part, &first))?;
                rows -= GROUP;
                held = rest;
            }
            Ok(())
        })?;
        if rows > 0 {
            group(&columns(part, &held))?;
        }
    }
    Ok(())
}

/// So many rows of some blocks, and the others.
fn split(blocks: Vec<Block>, mut rows: usize) -> (Vec<Block>, Vec<Block>) {
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for mut block in blocks {
        let length = block.time_ns.len();
        if rows >= length {
            rows -= length;
            first.push(block);
        } else if rows == 0 {
            rest.push(block);
        } else {
            let mut after = Block {
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

/// The table of some blocks of a kind of part; what it does not count is absent.
fn columns(part: Part, blocks: &[Block]) -> Vec<Column> {
    let rows: usize = blocks.iter().map(|block| block.time_ns.len()).sum();
    let decimal = |name: &str, values: fn(&Block) -> &[f64]| Column {
        name: name.into(),
        values: Values::Decimal(
            blocks
                .iter()
                .flat_map(|block| values(block).iter().copied().map(Some))
                .collect(),
        ),
    };
    let whole = |name: &str, values: fn(&Block) -> Vec<Option<u64>>| Column {
        name: name.into(),
        values: Values::Whole(blocks.iter().flat_map(values).collect()),
    };
    let numbers = |values: &[u32]| values.iter().map(|one| Some(u64::from(*one))).collect();
    let mut all = vec![
        decimal(TIME, |block| &block.time_ns),
        decimal(INTERVAL, |block| &block.interval_ns),
        Column {
            name: GPU.into(),
            values: Values::Whole(
                blocks
                    .iter()
                    .flat_map(|block| -> Vec<Option<u64>> { numbers(&block.keys.gpu) })
                    .collect(),
            ),
        },
        whole(STREAM, |block| block.keys.stream.clone()),
        whole(LAUNCH, |block| block.keys.launch.clone()),
        Column {
            name: KERNEL.into(),
            values: Values::Text(
                blocks
                    .iter()
                    .flat_map(|block| block.keys.kernel.iter().cloned())
                    .collect(),
            ),
        },
        Column {
            name: PART.into(),
            values: Values::Text(vec![Some(part.name().into()); rows]),
        },
        Column {
            name: NUMBER.into(),
            values: Values::Whole(
                blocks
                    .iter()
                    .flat_map(|block| -> Vec<Option<u64>> { numbers(&block.number) })
                    .collect(),
            ),
        },
    ];
    let own: Vec<usize> = part.counters().map(|(place, _)| place).collect();
    let shown = Part::Gpu.counters();
    for (place, metric) in shown {
        let values = match own.iter().position(|known| *known == place) {
            Some(index) => {
                let values = blocks
                    .iter()
                    .flat_map(|block| block.counters[index].iter().copied().map(Some));
                values.collect()
            }
            None => vec![None; rows],
        };
        all.push(Column {
            name: metric.name.into(),
            values: Values::Whole(values),
        });
    }
    debug_assert!(all.len() <= COUNTERS.len() + 8);
    all
}
