//! Why a folder could not be read, or an export not be written.

use lockstep_run_folder::ReadError;
use std::path::Path;
use thiserror::Error;

/// Why a folder could not be read, or an export not be written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A folder that could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An export that could not be made.
    #[error("cannot write {what}: {because}")]
    Export {
        /// The format.
        what: &'static str,
        /// What went wrong.
        because: String,
    },
}

impl ReportError {
    pub(crate) fn system(path: &Path, error: std::io::Error) -> Self {
        ReadError::system(path, error).into()
    }

    pub(crate) fn malformed(path: &Path, because: impl Into<String>) -> Self {
        ReadError::malformed(path, because).into()
    }
}
