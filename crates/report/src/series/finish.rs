//! A series as one table: kind by kind of part, row groups of equal length, so that its bytes are a function of
//! the samples alone and not of when pieces were written.

use super::read::{Block, Series};
use super::{GPU, INTERVAL, KERNEL, LAUNCH, NUMBER, PART, Part, STREAM, TIME};
use crate::columns::{Column, Compression, ParquetFile, Values};
use crate::error::ReportError;
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
    let head = Group::new(Part::Gpu, &[]).columns();
    let mut file = ParquetFile::begin("series", sink, &head, Compression::Zstd)?;
    // Columns are made one after the other: a group of all of them would be far larger than a cache.
    each_group(&series, |group| {
        file.group_of(head.len(), |place, values| group.fill(place, values))
    })?;
    file.finish()?;
    Ok(true)
}

/// Hands out a series in parts of the table of all columns.
///
/// # Errors
/// It cannot be read, or the receiver fails.
pub fn write(
    series: &Series,
    mut found: impl FnMut(&[Column]) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    each_group(series, |group| found(&group.columns()))
}

fn each_group(
    series: &Series,
    mut found: impl FnMut(&Group<'_>) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    for part in Part::ALL {
        let names: Vec<&str> = part.counters().map(|(_, one)| one.name).collect();
        let mut held: Vec<Block> = Vec::new();
        let mut rows = 0;
        series.each_with_keys(part, &names, |block| {
            rows += block.time_ns.len();
            held.push(std::mem::take(block));
            while rows >= GROUP {
                let (first, rest) = split(std::mem::take(&mut held), GROUP);
                found(&Group::new(part, &first))?;
                rows -= GROUP;
                held = rest;
            }
            Ok(())
        })?;
        if rows > 0 {
            found(&Group::new(part, &held))?;
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

/// Columns before the counters, in the order of the table.
const KEYS: [&str; 8] = [TIME, INTERVAL, GPU, STREAM, LAUNCH, KERNEL, PART, NUMBER];

/// A row group: some blocks of a kind of part.
struct Group<'blocks> {
    part: Part,
    blocks: &'blocks [Block],
    rows: usize,
    /// For every counter of the table its place among those of the part; what it does not count is absent.
    counters: Vec<(&'static str, Option<usize>)>,
}

impl<'blocks> Group<'blocks> {
    fn new(part: Part, blocks: &'blocks [Block]) -> Self {
        let own: Vec<usize> = part.counters().map(|(place, _)| place).collect();
        let counters = Part::Gpu.counters().map(|(place, metric)| {
            let index = own.iter().position(|known| *known == place);
            (metric.name, index)
        });
        Self {
            part,
            blocks,
            rows: blocks.iter().map(|block| block.time_ns.len()).sum(),
            counters: counters.collect(),
        }
    }

    /// All columns.
    fn columns(&self) -> Vec<Column> {
        let counters = self.counters.iter().map(|(name, _)| *name);
        let names = KEYS.into_iter().chain(counters).enumerate();
        let column = |(place, name): (usize, &str)| Column {
            name: name.into(),
            values: self.values(place),
        };
        names.map(column).collect()
    }

    /// The values of the column at a place.
    fn values(&self, place: usize) -> Values {
        let mut values = Values::Counted(Vec::new());
        self.fill(place, &mut values);
        values
    }

    /// The same in the place of other values, whose memory serves again.
    fn fill(&self, place: usize, values: &mut Values) {
        *values = match KEYS.get(place).copied() {
            Some(TIME) => Values::Decimal(self.all(|block| known(&block.time_ns))),
            Some(INTERVAL) => Values::Decimal(self.all(|block| known(&block.interval_ns))),
            Some(GPU) => Values::Counted(self.all(|block| whole(&block.keys.gpu))),
            Some(STREAM) => Values::Whole(self.all(|block| block.keys.stream.iter().copied())),
            Some(LAUNCH) => Values::Whole(self.all(|block| block.keys.launch.iter().copied())),
            Some(KERNEL) => Values::Text(self.all(|block| block.keys.kernel.iter().cloned())),
            Some(PART) => Values::Text(vec![Some(self.part.name().into()); self.rows]),
            Some(_) => Values::Counted(self.all(|block| whole(&block.number))),
            None => match (self.counters.get(place - KEYS.len()), &mut *values) {
                (Some((_, Some(index))), Values::Counted(all)) => {
                    all.clear();
                    let blocks = self.blocks.iter();
                    blocks.for_each(|block| all.extend_from_slice(&block.counters[*index]));
                    return;
                }
                (Some((_, Some(index))), _) => {
                    Values::Counted(self.all(|block| block.counters[*index].iter().copied()))
                }
                _ => Values::Whole(vec![None; self.rows]),
            },
        };
    }

    /// What all blocks have, in memory of that length.
    fn all<V, I: Iterator<Item = V>>(&self, of: impl FnMut(&'blocks Block) -> I) -> Vec<V> {
        let mut all = Vec::with_capacity(self.rows);
        self.blocks.iter().map(of).for_each(|some| all.extend(some));
        all
    }
}

fn known(values: &[f64]) -> impl Iterator<Item = Option<f64>> {
    values.iter().copied().map(Some)
}

fn whole(values: &[u32]) -> impl Iterator<Item = u64> {
    values.iter().copied().map(u64::from)
}
