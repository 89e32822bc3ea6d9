//! What can go wrong with a segment.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A segment or its folder that cannot be used, and why.
#[derive(Debug, Error)]
pub enum SegmentError {
    /// A system call failed.
    #[error("{}: cannot {doing}: {source}", path.display())]
    System {
        /// The file or folder.
        path: PathBuf,
        /// The step that failed, as a verb.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The folder belongs to somebody else, or others may write to it.
    #[error("{}: not used for samples: {because}", path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// The reason.
        because: String,
    },
    /// The configured group does not exist.
    #[error("no group is called `{0}`; leave segment.group empty, or name a group of this node")]
    UnknownGroup(String),
    /// The bytes are not a segment of this version.
    #[error("{}: not a segment that this version reads: {because}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The reason, with what was found.
        because: String,
    },
}

impl SegmentError {
    pub(super) fn system(
        path: &std::path::Path,
        doing: &'static str,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::System {
            path: path.to_owned(),
            doing,
            source: source.into(),
        }
    }

    /// Whether the file or folder is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the cause is a file system without room.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}
