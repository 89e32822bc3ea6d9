//! Room on the disk for what is written at the end, taken while there is some.
//!
//! A run of days must not find at its end that others have filled the disk meanwhile. The file
//! `.room` grows with what the tables will need, and is given up just before they are written;
//! `summary.json` has room of its own, in the file that it is exchanged with.

use super::directory::{Directory, draft, reserve};
use std::fs::File;
use std::io::{self, Seek, Write};

/// The file that takes the room.
const NAME: &str = ".room";
/// What tables need at least: the statistics of the largest GPU there is.
const LEAST: u64 = 8 << 20;
/// What the row of a launch needs.
const LAUNCH: u64 = 2 << 10;
/// By how much it grows at least: not at every launch.
const STEP: u64 = 1 << 20;
/// Room of `summary.json`, which lists a configuration and what went wrong.
const SUMMARY: u64 = 128 << 10;

/// Names that this file gives.
pub(super) const NAMES: &[&str] = &[NAME];

/// Room for tables.
#[derive(Debug)]
pub struct Room {
    directory: Directory,
    file: File,
    bytes: u64,
}

impl Room {
    /// Takes room for the tables of a run without launches.
    ///
    /// # Errors
    /// There is none.
    pub fn take(directory: &Directory) -> io::Result<Self> {
        let mut room = Self {
            directory: directory.clone(),
            file: directory.new_file(NAME)?,
            bytes: 0,
        };
        room.grow(0)?;
        Ok(room)
    }

    /// Makes room for so many launches.
    ///
    /// # Errors
    /// There is none any more.
    pub fn grow(&mut self, launches: u64) -> io::Result<()> {
        let needed = LEAST + launches.saturating_mul(LAUNCH);
        if needed <= self.bytes {
            return Ok(());
        }
        let bytes = needed.next_multiple_of(STEP);
        // Where nothing can be promised, what is free now has to do.
        if !reserve(&self.file, bytes)? && self.directory.free()? < bytes {
            return Err(rustix::io::Errno::NOSPC.into());
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // Left behind, it is removed with the folder.
        let _ = self.directory.remove_file(NAME);
    }
}

/// A file that is written again and again, and never fails for want of room: two files of equal
/// room take turns.
#[derive(Debug)]
pub struct Rewritten {
    directory: Directory,
    name: &'static str,
}

impl Rewritten {
    /// A file of this name, which is not there yet.
    pub fn new(directory: &Directory, name: &'static str) -> Self {
        Self {
            directory: directory.clone(),
            name,
        }
    }

    /// Writes it whole or not at all.
    ///
    /// # Errors
    /// The folder is gone, or there never was any room.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let draft = draft(self.name);
        let mut file = self.open(&draft)?;
        // What was reserved stays: the new contents take the place of the old.
        file.rewind()?;
        file.write_all(bytes)?;
        if file.metadata()?.len() > bytes.len() as u64 {
            file.set_len(bytes.len() as u64)?;
        }
        // Promised again for the time when this file is the draft; without, there may be room then.
        let _ = reserve(&file, SUMMARY);
        self.directory.exchange(&draft, self.name)?;
        // So that the next one finds its room even if this was the first.
        let _ = self.open(&draft);
        Ok(())
    }

    /// Removes it, and what was to replace it.
    pub fn remove(&self) -> io::Result<()> {
        self.directory.remove_file(self.name)?;
        self.directory.remove_file(&draft(self.name))
    }

    /// Gives up what is reserved, when it was written for the last time.
    pub fn settle(&self) -> io::Result<()> {
        self.directory.remove_file(&draft(self.name))
    }

    /// The file in which the next contents are written.
    fn open(&self, draft: &str) -> io::Result<File> {
        match self.directory.existing_file(draft) {
            Ok(file) => Ok(file),
            Err(_) => {
                self.directory.remove_file(draft)?;
                let file = self.directory.new_file(draft)?;
                reserve(&file, SUMMARY)?;
                Ok(file)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Existing;

    #[test]
    fn a_file_is_written_again_and_again_with_what_it_had() {
        let path = std::env::temp_dir().join(format!("lockstep-room-{}", std::process::id()));
        let folder = Directory::create(&path, Existing::MustBeEmpty, &[]).unwrap();
        let summary = Rewritten::new(&folder, "summary.json");
        for text in ["{}", "{ \"longer\": 1 }", "[]"] {
            summary.write(text.as_bytes()).unwrap();
            assert_eq!(
                std::fs::read_to_string(path.join("summary.json")).unwrap(),
                text
            );
        }
        let room = Room::take(&folder).unwrap();
        assert!(path.join(".room").exists());
        drop(room);
        summary.settle().unwrap();
        assert_eq!(folder.names().unwrap(), ["summary.json"]);
        std::fs::remove_dir_all(path).unwrap();
    }
}
