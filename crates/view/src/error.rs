//! Why a page could not be served.

use thiserror::Error;

/// Why a page could not be served.
#[derive(Debug, Error)]
pub enum ViewError {
    /// A folder.
    #[error(transparent)]
    Run(#[from] lockstep_run_folder::ReadError),
    /// The address.
    #[error("{address}: cannot serve there: {error}; leave --port out for a free one")]
    Bind {
        /// The address.
        address: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// No number that nobody can guess.
    #[error("no token for the address of the page: {0}")]
    Token(std::io::Error),
}
