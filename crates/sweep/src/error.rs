//! What can be wrong with a sweep, and how it is said.

use std::path::Path;
use thiserror::Error;

/// Why a sweep was refused or stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A file or folder that the system would not give.
    #[error("{path}: {source}")]
    System {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The sweep file says something that is not understood.
    #[error("{path}: {message}")]
    Malformed {
        /// The file.
        path: String,
        /// What was found and what to write.
        message: String,
    },
    /// A point whose configuration is none.
    #[error("{path}: point {point}: {source}")]
    Configuration {
        /// The sweep file.
        path: String,
        /// Which point, from 1, with what it sets.
        point: String,
        /// What is wrong.
        source: Box<lockstep_config::ConfigError>,
    },
    /// A folder that holds something.
    #[error(
        "{path} holds `{found}`; --resume continues a sweep, or name another folder with --out"
    )]
    NotEmpty {
        /// The folder.
        path: String,
        /// Something in it.
        found: String,
    },
    /// Two sweeps in one folder.
    #[error(
        "{path}: another sweep is at work in it; wait for it or name another folder with --out"
    )]
    Busy {
        /// The folder.
        path: String,
    },
    /// A launcher that could not start anything.
    #[error("--launcher `{template}`: {because}")]
    Launcher {
        /// The template.
        template: String,
        /// What is missing.
        because: &'static str,
    },
    /// The checkpoint that points share.
    #[error("point {point}: the run up to its `warm-start` failed; what it said is in {log}")]
    Checkpoint {
        /// The point.
        point: usize,
        /// Its log.
        log: String,
    },
    /// Slurm refused a job.
    #[error("sbatch: {message}")]
    Slurm {
        /// What it said, or why it could not be asked.
        message: String,
    },
    /// The Parquet file could not be made.
    #[error("sweep.parquet: {source}")]
    Parquet {
        /// What the writer said.
        #[from]
        source: lockstep_report::ReportError,
    },
}

impl SweepError {
    /// What the system said about a file.
    pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System {
            path: path.display().to_string(),
            source,
        }
    }

    /// Something in the sweep file.
    pub(crate) fn malformed(path: &str, message: impl Into<String>) -> Self {
        Self::Malformed {
            path: path.into(),
            message: message.into(),
        }
    }
}
