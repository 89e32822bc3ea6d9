//! What can be wrong with a trace.

use thiserror::Error;

/// Why a trace cannot be read or written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The system, or the compression.
    #[error("{file}: {error}")]
    System {
        /// The file.
        file: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// A line that is no part of a trace.
    #[error("{file}:{line}: {problem}")]
    Malformed {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What was found, and what belongs there.
        problem: String,
    },
    /// Code that cannot be replayed.
    #[error("{file}: {problem}")]
    Code {
        /// The file.
        file: String,
        /// What was found, and what to do.
        problem: String,
    },
}

/// What the system said about a file.
pub(crate) fn system(file: &str) -> impl FnOnce(std::io::Error) -> TraceError {
    let file = file.to_string();
    move |error| TraceError::System { file, error }
}
