//! Writes a run folder.

pub mod checkpoint;
mod checks;
mod directory;
mod error;
mod kernels;
mod lines;
mod managed;
mod managed_tables;
mod ongoing;
pub mod room;
mod running;
mod statistics;
mod summary;

pub use checks::CheckRow;
pub use directory::{Directory, Existing};
pub use error::{DISK_FULL, RunFolderError, is_full};
pub use kernels::{InstructionMix, KernelRow, kernel_columns};
pub use lines::LineRow;
pub use managed::{FaultRow, ManagedTrace, MigrationRow};
pub use ongoing::{CopyRow, Growing};
pub use running::{Running, RunningHost, RunningTotals};
pub use summary::{
    CounterTotals, Ending, HostSpeed, HostWork, RunState, SamplingSummary, Summary, Totals,
    UnsupportedRow,
};

use lockstep_stats::Table;
use room::{Rewritten, Room};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// Where runs go unless the user says otherwise.
const PARENT: &str = "lockstep-out";
const SUMMARY: &str = "summary.json";
/// What becomes `summary.json` if the simulator is killed without warning.
const KILLED: &str = ".killed.json";
/// The record of calls.
pub const RECORD: &str = "calls.record";

/// Every name that a run may leave: what `--overwrite` removes.
const NAMES: &[&str] = &[
    SUMMARY,
    KILLED,
    RECORD,
    ongoing::KERNELS,
    ongoing::COPIES,
    "stats.csv",
    "lines.csv",
    crate::series::SERIES,
    // Of earlier versions.
    "series.parquet",
    "series_gpu.arrows",
    "series_sm.arrows",
    "series_slice.arrows",
    "managed_allocations.csv",
    "managed_kernels.csv",
    "managed_series.csv",
    "migrations.csv",
    "faults.csv",
    "managed.trace.json",
    "heat_map.svg",
    "debug.txt",
    "checks.csv",
    "series.csv",
];

/// The folder of one run.
#[derive(Debug)]
pub struct RunFolder {
    directory: Directory,
    summary: Rewritten,
    killed: Rewritten,
}

impl RunFolder {
    /// Makes `given`, or `lockstep-out/<program>-<n>` with the first `n` that is free.
    ///
    /// # Errors
    /// The folder cannot be made, or holds something.
    pub fn create(
        given: Option<&Path>,
        existing: Existing,
        program: &str,
    ) -> Result<Self, RunFolderError> {
        if let Some(path) = given {
            let ours = [NAMES, room::NAMES, checkpoint::NAMES].concat();
            return Ok(Self::within(Directory::create(path, existing, &ours)?));
        }
        let parent = Path::new(PARENT);
        if parent.is_symlink() {
            let path = PARENT.to_string();
            return Err(RunFolderError::Link { path });
        }
        let name = safe_name(program);
        let mut number = 1u32;
        loop {
            let path = parent.join(format!("{name}-{number}"));
            match Directory::create_new(&path) {
                Ok(directory) => return Ok(Self::within(directory)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {
                    number += 1
                }
                Err(error) => return Err(RunFolderError::of(&path, error)),
            }
        }
    }

    fn within(directory: Directory) -> Self {
        Self {
            summary: Rewritten::new(&directory, SUMMARY),
            killed: Rewritten::new(&directory, KILLED),
            directory,
        }
    }

    /// The folder itself, held open.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The names of what becomes the summary when the simulator is killed, and of the summary.
    pub fn testament() -> (&'static str, &'static str) {
        (KILLED, SUMMARY)
    }

    /// Takes room for the tables at the end.
    ///
    /// # Errors
    /// There is none.
    pub fn take_room(&self) -> Result<Room, RunFolderError> {
        Room::take(&self.directory).map_err(|error| self.at("", error))
    }

    /// The file for the record of calls.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn record(&self) -> Result<std::fs::File, RunFolderError> {
        let made = self.directory.new_file(RECORD);
        made.map_err(|error| self.at(RECORD, error))
    }

    /// Writes `summary.json` of a run that goes on, and what becomes of it should the simulator be
    /// killed.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_running(&self, running: &Running, killed: &Running) -> Result<(), RunFolderError> {
        // In this order: there is never one that goes on for ever.
        self.rewrite(&self.killed, KILLED, killed)?;
        self.rewrite(&self.summary, SUMMARY, running)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes `summary.json` for the last time.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), RunFolderError> {
        self.rewrite(&self.summary, SUMMARY, summary)?;
        self.settle()
    }

    /// Writes `summary.json` of a run that ended without more to say.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_ended(&self, ended: &Running) -> Result<(), RunFolderError> {
        self.rewrite(&self.summary, SUMMARY, ended)?;
        self.settle()
    }

    /// What is over cannot be killed any more.
    fn settle(&self) -> Result<(), RunFolderError> {
        let settled = self.killed.remove().and_then(|()| self.summary.settle());
        settled.map_err(|error| self.at(SUMMARY, error))
    }

    fn rewrite(
        &self,
        file: &Rewritten,
        name: &str,
        summary: &impl Serialize,
    ) -> Result<(), RunFolderError> {
        let text = serde_json::to_string_pretty(summary);
        let written = text
            .map_err(io::Error::from)
            .and_then(|text| file.write(format!("{text}\n").as_bytes()));
        written.map_err(|error| self.at(name, error))
    }

    /// Writes `kernels.csv`, in place of the one that grew.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_kernels<'row>(
        &self,
        rows: impl IntoIterator<Item = &'row KernelRow>,
    ) -> Result<(), RunFolderError> {
        let bytes = kernels::to_csv(rows).map_err(|error| self.at(ongoing::KERNELS, error))?;
        self.replace(ongoing::KERNELS, &bytes)
    }

    /// Writes `stats.csv`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_statistics(&self, table: &Table) -> Result<(), RunFolderError> {
        let bytes = statistics::to_csv(table);
        self.replace("stats.csv", &bytes)
    }

    /// Writes what happened to managed memory: tables, time line, heat map.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_managed(
        &self,
        trace: &ManagedTrace,
        launches: &[KernelRow],
    ) -> Result<(), RunFolderError> {
        let allocations = managed_tables::allocations(trace);
        self.replace("managed_allocations.csv", allocations.as_bytes())?;
        let kernels = managed_tables::kernels(trace, launches);
        self.replace("managed_kernels.csv", kernels.as_bytes())?;
        self.replace(
            "managed_series.csv",
            managed_tables::series(trace).as_bytes(),
        )?;
        self.replace("migrations.csv", managed::migrations(trace).as_bytes())?;
        self.replace("faults.csv", managed::faults(trace).as_bytes())?;
        self.replace("managed.trace.json", managed::time_line(trace).as_bytes())?;
        self.replace("heat_map.svg", managed::heat_map(trace).as_bytes())
    }

    /// Writes `debug.txt`: what watched parts did.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_watched(&self, text: &str) -> Result<(), RunFolderError> {
        self.replace("debug.txt", text.as_bytes())
    }

    /// Writes `checks.csv`: what checks found.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_checks(&self, rows: &[CheckRow]) -> Result<(), RunFolderError> {
        self.replace("checks.csv", checks::table(rows).as_bytes())
    }

    /// Writes `lines.csv`: what was issued and waited for by instruction.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_lines(&self, rows: &[LineRow]) -> Result<(), RunFolderError> {
        let bytes = lines::to_csv(rows).map_err(|error| self.at("lines.csv", error))?;
        self.replace("lines.csv", &bytes)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), RunFolderError> {
        let written = self.directory.replace(name, bytes);
        written.map_err(|error| self.at(name, error))
    }

    fn at(&self, name: &str, error: io::Error) -> RunFolderError {
        RunFolderError::of(&self.file(name), error)
    }
}

/// The name of the program, as part of the name of a folder.
fn safe_name(program: &str) -> String {
    let name = Path::new(program)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let name: String = name
        .chars()
        .map(|letter| {
            if letter.is_alphanumeric() || "._-+".contains(letter) {
                letter
            } else {
                '_'
            }
        })
        .take(80)
        .collect();
    let name = name.trim_matches('.');
    if name.is_empty() {
        "run".into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_become_names_of_folders() {
        for (program, name) in [
            ("./vector_add", "vector_add"),
            ("/a/b c", "b_c"),
            ("", "run"),
            ("..", "run"),
            ("a/../x;rm", "x_rm"),
        ] {
            assert_eq!(safe_name(program), name);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let error = RunFolder::create(
            Some(Path::new("/proc/nothing/here")),
            Existing::MustBeEmpty,
            "x",
        )
        .unwrap_err();
        assert!(
            error.to_string().starts_with("/proc/nothing/here: "),
            "{error}"
        );
    }
}
