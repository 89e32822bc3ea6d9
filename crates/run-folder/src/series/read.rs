//! Reads a series, of a run that has ended or that still goes on.

use super::columns::{GPU, INTERVAL, KERNEL, LAUNCH, NUMBER, STREAM, TIME};
use super::encoding::{BLOCK_HEAD, PackedBlock, block_head, read_head};
use super::{Part, SERIES};
use crate::error::ReadError;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of one kind of part, in the order of time. All columns are equally long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesBlock {
    /// Ends of intervals, in nanoseconds of simulated time.
    pub time_ns: Vec<f64>,
    /// Their lengths.
    pub interval_ns: Vec<f64>,
    /// Numbers of the parts.
    pub number: Vec<u32>,
    /// The counters that were asked for, in that order.
    pub counters: Vec<Vec<u64>>,
    /// Launch, stream, kernel and GPU of each row, if they are wanted.
    pub keys: Keys,
}

/// Launch, stream, kernel and GPU of each row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys {
    /// The device.
    pub gpu: Vec<u32>,
    /// The launch, where only one ran.
    pub launch: Vec<Option<u64>>,
    /// The stream, where only one kernel ran.
    pub stream: Vec<Option<u64>>,
    /// The kernel; rows below each other share its name.
    pub kernel: Vec<Option<Arc<str>>>,
}

/// Which columns are read.
#[derive(Clone, Copy, Debug)]
struct Wanted<'names> {
    counters: &'names [&'names str],
    keys: bool,
}

/// The series of a run.
#[derive(Clone, Debug)]
pub struct Series {
    path: PathBuf,
}

impl Series {
    /// The series of a folder, if it has one.
    pub fn open(folder: &Path) -> Option<Self> {
        let path = folder.join(SERIES);
        path.is_file().then_some(Self { path })
    }

    /// Whether the run wrote its last sample.
    pub fn is_complete(&self) -> bool {
        let head = File::open(&self.path).map(|mut file| read_head(&mut file));
        matches!(head, Ok(Ok(Some(true))))
    }

    /// Hands out the rows of a kind of part, block by block, with these counters. `found` may take the block.
    ///
    /// # Errors
    /// The file is not what its name says, or lacks a counter.
    pub fn each(
        &self,
        part: Part,
        counters: &[&str],
        found: impl FnMut(&mut SeriesBlock) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let keys = false;
        self.read(part, Wanted { counters, keys }, found)
    }

    /// [`Series::each`] with launch, stream, kernel and GPU of each row.
    ///
    /// # Errors
    /// As [`Series::each`].
    pub fn each_with_keys(
        &self,
        part: Part,
        counters: &[&str],
        found: impl FnMut(&mut SeriesBlock) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let keys = true;
        self.read(part, Wanted { counters, keys }, found)
    }

    fn read(
        &self,
        part: Part,
        wanted: Wanted<'_>,
        mut found: impl FnMut(&mut SeriesBlock) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let malformed = |because: String| ReadError::malformed(&self.path, because);
        let system = |error| ReadError::system(&self.path, error);
        let mut file = BufReader::new(File::open(&self.path).map_err(system)?);
        let Some(complete) = read_head(&mut file).map_err(malformed)? else {
            return Ok(());
        };
        // What kills a run may cut the last block; a whole file has none that is cut.
        let cut = || match complete {
            true => Err(malformed("it ends within a block".into())),
            false => Ok(()),
        };
        let (mut packed, mut block) = (PackedBlock::default(), SeriesBlock::default());
        loop {
            let mut head = Vec::with_capacity(BLOCK_HEAD);
            let read = Read::by_ref(&mut file)
                .take(BLOCK_HEAD as u64)
                .read_to_end(&mut head);
            read.map_err(system)?;
            let Ok(head) = <[u8; BLOCK_HEAD]>::try_from(&head[..]) else {
                return if head.is_empty() { Ok(()) } else { cut() };
            };
            let (rest, of) = block_head(head).map_err(malformed)?;
            if usize::from(of) != part as usize {
                let rest = i64::try_from(rest).unwrap_or(i64::MAX);
                file.seek_relative(rest).map_err(system)?;
                continue;
            }
            if !packed.read(&mut file, rest).map_err(malformed)? {
                return cut();
            }
            unpack(&packed, wanted, &mut block).map_err(malformed)?;
            found(&mut block)?;
        }
    }
}

/// Unpacks the columns that are wanted in the place of what a block had before.
fn unpack(packed: &PackedBlock, wanted: Wanted<'_>, block: &mut SeriesBlock) -> Result<(), String> {
    let numbers = |name: &str| -> Result<Vec<u32>, String> {
        let mut values = Vec::new();
        packed.numbers(name, &mut values)?;
        let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Ok(values.into_iter().map(number).collect())
    };
    block.keys = match wanted.keys {
        false => Keys::default(),
        true => Keys {
            gpu: numbers(GPU)?,
            launch: packed.options(LAUNCH)?,
            stream: packed.options(STREAM)?,
            kernel: packed.names(KERNEL)?,
        },
    };
    packed.times(TIME, &mut block.time_ns)?;
    packed.times(INTERVAL, &mut block.interval_ns)?;
    block.number = numbers(NUMBER)?;
    block.counters.resize(wanted.counters.len(), Vec::new());
    for (name, counter) in wanted.counters.iter().zip(&mut block.counters) {
        packed.numbers(name, counter)?;
    }
    Ok(())
}
