//! Reads a series in either form.

use super::{Part, STORED, pieces, stored};
use crate::error::ReportError;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of one kind of part, in the order of time. All columns are equally long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Ends of intervals, in nanoseconds of simulated time.
    pub time_ns: Vec<f64>,
    /// Their lengths.
    pub interval_ns: Vec<f64>,
    /// Numbers of the parts.
    pub number: Vec<u32>,
    /// The counters that were asked for, in that order.
    pub counters: Vec<Vec<u64>>,
    /// What else says whose a row is, if it was asked for.
    pub keys: Keys,
}

/// What else says whose a row is.
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

/// Names of rows, of which those below each other are mostly the same.
pub(super) fn shared<'names>(
    names: impl Iterator<Item = Option<Cow<'names, str>>>,
) -> Vec<Option<Arc<str>>> {
    let mut last: Option<Arc<str>> = None;
    let share = |name: Option<Cow<'names, str>>| {
        let name = name?;
        if last.as_deref() != Some(&*name) {
            last = Some(name.into());
        }
        last.clone()
    };
    names.map(share).collect()
}

/// Which columns are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'names> {
    pub counters: &'names [&'names str],
    pub keys: bool,
}

/// The series of a run.
#[derive(Clone, Debug)]
pub struct Series {
    form: Form,
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Stored,
    Pieces,
}

impl Series {
    /// The series of a folder, if it has one: that of the end, or the pieces of a run that goes on or was cut
    /// short.
    pub fn open(folder: &Path) -> Option<Self> {
        let form = if folder.join(STORED).is_file() {
            Form::Stored
        } else if folder.join(Part::Gpu.pieces()).is_file() {
            Form::Pieces
        } else {
            return None;
        };
        Some(Self {
            form,
            folder: folder.to_owned(),
        })
    }

    /// Whether the run wrote its last sample.
    pub fn is_complete(&self) -> bool {
        self.form == Form::Stored
    }

    /// Hands out the rows of a kind of part, block by block, with these counters. Whoever keeps a block takes it.
    ///
    /// # Errors
    /// A file is not what its name says, or lacks a counter.
    pub fn each(
        &self,
        part: Part,
        counters: &[&str],
        found: impl FnMut(&mut Block) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        let keys = false;
        self.read(part, Wanted { counters, keys }, found)
    }

    /// The same with all that says whose a row is.
    ///
    /// # Errors
    /// As [`Series::each`].
    pub fn each_with_keys(
        &self,
        part: Part,
        counters: &[&str],
        found: impl FnMut(&mut Block) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        let keys = true;
        self.read(part, Wanted { counters, keys }, found)
    }

    fn read(
        &self,
        part: Part,
        wanted: Wanted<'_>,
        found: impl FnMut(&mut Block) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        match self.form {
            Form::Stored => stored::each(&self.folder.join(STORED), part, wanted, found),
            Form::Pieces => pieces::each(&self.folder.join(part.pieces()), wanted, found),
        }
    }
}
