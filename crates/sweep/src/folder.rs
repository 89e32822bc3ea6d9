//! The folder of a sweep.
//!
//! | name | what is in it |
//! |---|---|
//! | `points/ID` | the run folder of every point that simulates the same |
//! | `logs/ID.txt` | what that run said |
//! | `sweep.csv`, `sweep.parquet`, `sweep.svg`, `pareto.svg` | the results |
//! | `slurm.sh` | the script that was submitted, with `--slurm` |

use crate::{Point, SweepError};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const LOCK: &str = ".lock";

/// An open folder that no other sweep works in.
#[derive(Debug)]
pub struct SweepFolder {
    path: PathBuf,
    /// Held until this is dropped; children do not inherit it.
    _lock: File,
}

impl SweepFolder {
    /// Makes a folder, or takes that of an earlier sweep if `resume` is set.
    ///
    /// # Errors
    /// It cannot be made, holds something, or another sweep works in it.
    pub fn open(path: &Path, resume: bool) -> Result<Self, SweepError> {
        make(path)?;
        if !resume {
            let mut entries = std::fs::read_dir(path).map_err(SweepError::at(path))?;
            if let Some(Ok(entry)) = entries.next() {
                return Err(SweepError::NotEmpty {
                    path: path.display().to_string(),
                    found: entry.file_name().to_string_lossy().into_owned(),
                });
            }
        }
        // Commands name folders whatever folder they start in.
        let path = path.canonicalize().map_err(SweepError::at(path))?;
        let lock = private()
            .open(path.join(LOCK))
            .map_err(SweepError::at(&path))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let path = path.display().to_string();
            return Err(SweepError::Busy { path });
        }
        for name in ["points", "logs"] {
            make(&path.join(name))?;
        }
        Ok(Self { path, _lock: lock })
    }

    /// Where it is, from the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run folder of a point.
    pub fn run(&self, point: &Point) -> PathBuf {
        self.path.join("points").join(&point.id)
    }

    /// What the run of a point says goes here.
    pub fn log(&self, point: &Point) -> PathBuf {
        self.path.join("logs").join(format!("{}.txt", point.id))
    }

    /// An empty log of a point.
    pub(crate) fn new_log(&self, point: &Point) -> Result<File, SweepError> {
        let path = self.log(point);
        private()
            .truncate(true)
            .open(&path)
            .map_err(SweepError::at(&path))
    }

    /// Replaces a file at once: readers see the old one or the new one.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), SweepError> {
        let (path, draft) = (self.path.join(name), self.path.join(format!(".{name}")));
        let written = private().truncate(true).open(&draft).and_then(|mut file| {
            std::io::Write::write_all(&mut file, bytes)?;
            std::fs::rename(&draft, &path)
        });
        written.map_err(SweepError::at(&path))
    }
}

/// Only the owner reads results, as in run folders.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true).mode(0o600);
    options
}

fn make(path: &Path) -> Result<(), SweepError> {
    let mut builder = std::fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(SweepError::at(path))
}
