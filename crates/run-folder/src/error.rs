//! Why a folder could not be read.

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a folder could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system does not give the file.
    #[error("{}: {error}", path.display())]
    System {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// A folder that no run left.
    #[error(
        "{}: no run left this folder (it has neither summary.json nor kernels.csv); give a folder \
         that `lockstep run` or `lockstep sample` wrote", path.display()
    )]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// A file that is not what its name says.
    #[error("{}: {because}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The value that was found, and the expected one.
        because: String,
    },
    /// A folder without a series, where one is needed.
    #[error("{}: it has no series; run the program with `--series INTERVAL` to have one", path.display())]
    NoSeries {
        /// The folder.
        path: PathBuf,
    },
    /// A folder without launches, where they are needed.
    #[error("{}: it has no launches to {what}; its run ended before kernels.csv was written", path.display())]
    NoLaunches {
        /// The folder.
        path: PathBuf,
        /// The use that needs launches.
        what: &'static str,
    },
}

impl ReadError {
    /// A file that the system does not give.
    pub fn system(path: &Path, error: std::io::Error) -> Self {
        Self::System {
            path: path.to_owned(),
            error,
        }
    }

    /// A file that is not what its name says.
    pub fn malformed(path: &Path, because: impl Into<String>) -> Self {
        Self::Malformed {
            path: path.to_owned(),
            because: because.into(),
        }
    }
}
