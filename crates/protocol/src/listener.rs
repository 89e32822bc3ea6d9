//! The socket that a simulator listens on, inside a directory of its own.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The environment variable that tells a CUDA program where its simulator listens.
pub const SOCKET_VARIABLE: &str = "LOCKSTEP_SOCKET";

/// What the socket is called in its directory.
const SOCKET: &str = "socket";

/// What the description of the links is called there, which NCCL reads.
const LINKS: &str = "links.xml";

/// The description of the links beside a socket.
pub fn links_beside(socket: &Path) -> PathBuf {
    socket.with_file_name(LINKS)
}

/// Longest path that a Unix socket may have, in bytes.
const MAXIMUM_PATH: usize = 107;

/// Why a simulator cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// The directory cannot be made.
    #[error("cannot create a private directory under {parent}: {error}")]
    Directory {
        /// Where it should have been.
        parent: String,
        /// What the operating system says.
        error: io::Error,
    },
    /// The path does not fit a socket's address.
    #[error(
        "the socket path {path} is longer than {MAXIMUM_PATH} bytes; set TMPDIR to a shorter one"
    )]
    PathTooLong {
        /// The path.
        path: String,
    },
    /// The socket cannot be made.
    #[error("cannot listen at {path}: {error}")]
    Bind {
        /// The path.
        path: String,
        /// What the operating system says.
        error: io::Error,
    },
}

/// A listening socket in a directory that only its owner may enter. Dropping it removes
/// both.
#[derive(Debug)]
pub struct Listener {
    directory: PathBuf,
    path: PathBuf,
    socket: UnixListener,
}

impl Listener {
    /// Listens in a new directory under `parent` (the temporary directory, say). `prepare` is told the
    /// path of the socket before anything of it is there.
    pub fn bind_under(
        parent: &Path,
        prepare: impl FnMut(&Path) -> io::Result<()>,
    ) -> Result<Self, ListenError> {
        let directory = private_directory(parent, prepare)?;
        let path = directory.join(SOCKET);
        let bound = if path.as_os_str().len() > MAXIMUM_PATH {
            Err(ListenError::PathTooLong {
                path: path.display().to_string(),
            })
        } else {
            UnixListener::bind(&path).map_err(|error| ListenError::Bind {
                path: path.display().to_string(),
                error,
            })
        };
        match bound {
            Ok(socket) => Ok(Self {
                directory,
                path,
                socket,
            }),
            Err(error) => {
                let _ = std::fs::remove_dir(&directory);
                Err(error)
            }
        }
    }

    /// The socket, for [`SOCKET_VARIABLE`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The listening socket itself, to poll it or to make it non-blocking.
    pub fn socket(&self) -> &UnixListener {
        &self.socket
    }

    /// Waits for the next client.
    pub fn accept(&self) -> io::Result<UnixStream> {
        loop {
            match self.socket.accept() {
                Ok((stream, _)) => return Ok(stream),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(links_beside(&self.path));
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// Creates `lockstep-<process>-<n>` with the first free `n`. Creation is atomic and
/// refuses what exists, so nobody can put a directory of theirs in its place.
fn private_directory(
    parent: &Path,
    mut prepare: impl FnMut(&Path) -> io::Result<()>,
) -> Result<PathBuf, ListenError> {
    let failure = |error| ListenError::Directory {
        parent: parent.display().to_string(),
        error,
    };
    let process = std::process::id();
    for attempt in 0..10_000 {
        let directory = parent.join(format!("lockstep-{process}-{attempt}"));
        if directory.symlink_metadata().is_ok() {
            continue;
        }
        prepare(&directory.join(SOCKET)).map_err(failure)?;
        match std::fs::DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failure(error)),
        }
    }
    Err(failure(io::ErrorKind::AlreadyExists.into()))
}
