//! Why a checkpoint cannot be used.

use std::io;
use std::path::Path;
use thiserror::Error;

/// Why a checkpoint cannot be used.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// A file of it is not as it was written, or not for this run.
    #[error("{file}: {place}: {reason}")]
    Refused {
        /// The file.
        file: String,
        /// Where in it.
        place: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// A file of it cannot be read or written.
    #[error("{file}: {error}{}", if .error.kind() == io::ErrorKind::NotFound { ": there is no checkpoint; `lockstep run --checkpoint-every` writes them, and a run that ends well removes them; --checkpoint-before writes one that stays" } else { "" })]
    System {
        /// The file.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// Somebody else has it.
    #[error("{file}: a run is still using it; wait for its end, or end it")]
    Busy {
        /// The file.
        file: String,
    },
    /// What cannot be saved is asked for.
    #[error("checkpoints: {reason}")]
    Unsaved {
        /// What, and what to do.
        reason: String,
    },
}

impl CheckpointError {
    pub(super) fn system(file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.display().to_string();
        move |error| Self::System { file, error }
    }

    pub(super) fn refused(
        file: &Path,
        place: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self::Refused {
            file: file.display().to_string(),
            place: place.into(),
            reason: reason.into(),
        }
    }
}
