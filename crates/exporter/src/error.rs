//! What can keep an exporter from serving.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why figures cannot be served.
#[derive(Debug, Error)]
pub enum ExporterError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Other machines would reach the address, and what they read would not be protected.
    #[error("{address} is reachable from other machines, and {because}")]
    Unprotected {
        /// The address.
        address: String,
        /// What is missing, and what to do.
        because: &'static str,
    },
    /// A file with a secret or a certificate that cannot be used.
    #[error("{}: {because}", path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        because: String,
    },
    /// What an exporter leaves for the next one cannot be kept.
    #[error("{}: cannot keep what was counted: {source}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another exporter serves the same segments.
    #[error(
        "{}: another exporter of this user serves these segments; read that one, or end it",
        path.display()
    )]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// A segment folder or the sampler's own state cannot be read.
    #[error("cannot read the segments: {0}")]
    Segments(io::Error),
    /// A run folder that cannot be served.
    #[error("{}: {because}", path.display())]
    Recording {
        /// The file.
        path: PathBuf,
        /// What was found, and what is expected.
        because: String,
    },
    /// An endpoint that figures cannot be pushed to.
    #[error("--otlp {endpoint}: {because}")]
    Endpoint {
        /// The endpoint.
        endpoint: String,
        /// What is wrong, and what to do.
        because: String,
    },
}

impl ExporterError {
    pub(crate) fn state(path: &Path, source: io::Error) -> Self {
        Self::State {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn recording(path: &Path, because: impl Into<String>) -> Self {
        Self::Recording {
            path: path.to_owned(),
            because: because.into(),
        }
    }
}
