//! The files of a checkpoint in a run folder.
//!
//! `checkpoint.log` and the file of pages only grow; `checkpoint.state` says how far they count and is
//! replaced whole, so whenever a run is killed, the last state that was written and all that it needs are there.

use super::RunFolder;
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io::{self, Write};

/// What stands for everything else.
pub const STATE: &str = "checkpoint.state";
/// What the program asked and what it was answered.
pub const LOG: &str = "checkpoint.log";
/// Pages of memory: one file, and another that takes its place when most of it is out of date.
pub const PAGES: [&str; 2] = ["checkpoint.pages", "checkpoint.more_pages"];

/// Every name that a checkpoint may leave.
pub(super) const NAMES: &[&str] = &[STATE, LOG, PAGES[0], PAGES[1]];

impl RunFolder {
    /// Makes a file of a checkpoint anew.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new_checkpoint_file(&self, name: &str) -> io::Result<File> {
        self.directory.remove_file(name)?;
        self.directory.new_file(name)
    }

    /// Opens a file of a checkpoint that is there, to read and write it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn checkpoint_file(&self, name: &str) -> io::Result<File> {
        self.directory.existing_file(name)
    }

    /// Replaces the state, once everything that it stands for is on the disk.
    ///
    /// # Errors
    /// It cannot be written; the one before is still there then.
    pub fn write_checkpoint(&self, bytes: &[u8]) -> io::Result<()> {
        self.directory.replace_with(STATE, |file| {
            file.write_all(bytes)?;
            file.sync_all()
        })?;
        Ok(rustix::fs::fsync(&self.directory)?)
    }

    /// Removes a file of a checkpoint.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove_checkpoint_file(&self, name: &str) -> io::Result<()> {
        self.directory.remove_file(name)
    }

    /// Removes the whole checkpoint: the state first, so that nothing stands for files that are gone.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove_checkpoint(&self) -> io::Result<()> {
        NAMES
            .iter()
            .try_for_each(|name| self.directory.remove_file(name))
    }
}

/// Keeps others from using a file as long as it is open; false if somebody has it.
///
/// # Errors
/// The file system cannot say.
pub fn lock(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
