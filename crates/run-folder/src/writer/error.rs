//! Why a run folder could not be made or written.

use std::io;
use std::path::Path;
use thiserror::Error;

/// Exit code of a command whose disk is full (BSD's "input/output error").
pub const DISK_FULL: i32 = 74;

/// Why a run folder could not be made or written.
#[derive(Debug, Error)]
pub enum RunFolderError {
    /// What the system says.
    #[error("{path}: {error}")]
    System {
        /// The file or folder.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// There is no room.
    #[error("{path}: the disk is full; make room, or give another folder with --out")]
    Full {
        /// The file or folder.
        path: String,
    },
    /// Something is there.
    #[error(
        "{path}: the folder is not empty (it holds {found}); give another one, or --overwrite to \
         replace what an earlier run left there"
    )]
    NotEmpty {
        /// The folder.
        path: String,
        /// Something in it.
        found: String,
    },
    /// A link is there.
    #[error(
        "{path}: it is a symbolic link, and results are not written through one; give the folder itself"
    )]
    Link {
        /// The link.
        path: String,
    },
    /// Something else is there.
    #[error("{path}: it is not a folder; give another name")]
    NotAFolder {
        /// What it is called.
        path: String,
    },
}

impl RunFolderError {
    /// What went wrong at a path.
    pub fn of(path: &Path, error: io::Error) -> Self {
        let path = path.display().to_string();
        if is_full(&error) {
            return Self::Full { path };
        }
        Self::System { path, error }
    }

    /// Whether a full disk is why.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }

    /// The exit code of the command.
    pub fn exit_code(&self) -> i32 {
        if self.is_full() { DISK_FULL } else { 2 }
    }
}

/// Whether a write failed because there is no room: on the disk, within a quota, or within the
/// size that files may have (`ulimit -f`).
pub fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
