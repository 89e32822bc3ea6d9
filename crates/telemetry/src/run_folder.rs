//! The folder that every run leaves: what was run, and what came of it.
//!
//! | file | content |
//! |---|---|
//! | `summary.json` | versions, command, configuration, totals, digest, speed, how it ended |
//! | `kernels.csv` | a row a launch |
//! | `stats.csv` | every statistic of every component |
//! | `migrations.csv`, `faults.csv`, `managed.trace.json`, `heat_map.svg` | managed memory over time, if there was any |
//! | `managed_allocations.csv`, `managed_kernels.csv`, `managed_series.csv` | the same in sums |
//!
//! The folder is made before the run, so that a run that fails leaves what it has.
//!
//! Start reading at [`RunFolder::create`].

mod kernels;
mod managed;
mod managed_tables;
mod statistics;
mod summary;

pub use kernels::{InstructionMix, KernelRow, kernel_columns};
pub use managed::{FaultRow, ManagedTrace, MigrationRow};
pub use summary::{CounterTotals, Ending, HostSpeed, HostWork, Summary, Totals, UnsupportedRow};

use lockstep_stats::Table;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Where runs go unless the user says otherwise.
const PARENT: &str = "lockstep-out";

/// Why a run folder could not be made or written.
#[derive(Debug, Error)]
#[error("{path}: {error}")]
pub struct RunFolderError {
    /// The file or folder.
    pub path: String,
    /// What the system says.
    pub error: io::Error,
}

/// The folder of one run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes `given`, or `lockstep-out/<program>-<n>` with the first `n` that is free.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn create(given: Option<&Path>, program: &str) -> Result<Self, RunFolderError> {
        if let Some(path) = given {
            std::fs::create_dir_all(path).map_err(|error| at(path, error))?;
            return Ok(Self {
                path: path.to_path_buf(),
            });
        }
        let parent = Path::new(PARENT);
        std::fs::create_dir_all(parent).map_err(|error| at(parent, error))?;
        let name = safe_name(program);
        let mut number = 1u32;
        loop {
            let path = parent.join(format!("{name}-{number}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {
                    number += 1
                }
                Err(error) => return Err(at(&path, error)),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), RunFolderError> {
        let mut text =
            serde_json::to_string_pretty(summary).map_err(|error| at(&self.path, error.into()))?;
        text.push('\n');
        self.replace("summary.json", text.as_bytes())
    }

    /// Writes `kernels.csv`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_kernels<'row>(
        &self,
        rows: impl IntoIterator<Item = &'row KernelRow>,
    ) -> Result<(), RunFolderError> {
        let bytes = kernels::to_csv(rows).map_err(|error| at(&self.file("kernels.csv"), error))?;
        self.replace("kernels.csv", &bytes)
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

    /// Writes a file whole or not at all: readers never see half of it.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), RunFolderError> {
        let (path, draft) = (self.file(name), self.file(&format!(".{name}.part")));
        std::fs::write(&draft, bytes).map_err(|error| at(&draft, error))?;
        std::fs::rename(&draft, &path).map_err(|error| at(&path, error))
    }
}

fn at(path: &Path, error: io::Error) -> RunFolderError {
    RunFolderError {
        path: path.display().to_string(),
        error,
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
        let error = RunFolder::create(Some(Path::new("/proc/nothing/here")), "x").unwrap_err();
        assert!(
            error.to_string().starts_with("/proc/nothing/here: "),
            "{error}"
        );
    }
}
