//! The libraries that are loaded into a CUDA program, and the environment that loads them.
//!
//! The core library ([`CORE_LIBRARY`]) and the shims ([`SHIM_DIRECTORY`]) lie beside the
//! `lockstep` command, where cargo puts all three. [`LIBRARY_DIRECTORY_VARIABLE`] names
//! another directory that holds them.

use crate::SOCKET_VARIABLE;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The library with all the code, which is preloaded.
pub const CORE_LIBRARY: &str = "liblockstep_interpose.so";

/// The directory of the thin libraries with CUDA's names.
pub const SHIM_DIRECTORY: &str = "lockstep-shims";

/// The environment variable that names the directory of both.
pub const LIBRARY_DIRECTORY_VARIABLE: &str = "LOCKSTEP_LIBRARY_DIR";

/// Variable whose presence makes a program print its CUDA calls.
pub const CALLS_VARIABLE: &str = "LOCKSTEP_CALLS";

/// Variable by which NVTX, which is part of the program, finds the library that is told of ranges.
pub const NVTX_VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// Variable by which NCCL finds the description of the links.
pub const NCCL_TOPOLOGY_VARIABLE: &str = "NCCL_TOPO_FILE";

/// Libraries that the shims stand in for.
pub const SHIMS: &[&str] = &[
    "libcuda.so.1",
    "libcudart.so.11.0",
    "libcudart.so.12",
    "libcudart.so.13",
    "libnvidia-ml.so.1",
];

/// Why the libraries cannot be used.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// One is not there.
    #[error(
        "{missing} is missing; build the whole workspace (`cargo build --release`) or set \
         {LIBRARY_DIRECTORY_VARIABLE} to the directory that holds {CORE_LIBRARY}"
    )]
    Missing {
        /// Path that was looked at.
        missing: String,
    },
    /// The loader splits lists of libraries at these.
    #[error(
        "{path} has a space or a colon in it, which the loader takes for the end of a path; move \
         Lockstep to another directory"
    )]
    Separator {
        /// The path.
        path: String,
    },
    /// We do not know where we are.
    #[error("cannot find the path of this command: {0}")]
    Executable(std::io::Error),
}

/// Where the libraries are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Libraries {
    /// The core library.
    pub core: PathBuf,
    /// The directory of the shims.
    pub shims: PathBuf,
}

impl Libraries {
    /// Finds the libraries by the environment or beside the running command.
    pub fn find() -> Result<Self, LibraryError> {
        match std::env::var_os(LIBRARY_DIRECTORY_VARIABLE) {
            Some(directory) => Self::in_directory(Path::new(&directory)),
            None => {
                let command = std::env::current_exe().map_err(LibraryError::Executable)?;
                let command = command.canonicalize().unwrap_or(command);
                Self::in_directory(command.parent().unwrap_or(Path::new("/")))
            }
        }
    }

    /// Finds the libraries in a directory.
    pub fn in_directory(directory: &Path) -> Result<Self, LibraryError> {
        let directory = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_path_buf());
        let libraries = Self {
            core: directory.join(CORE_LIBRARY),
            shims: directory.join(SHIM_DIRECTORY),
        };
        let needed = SHIMS.iter().map(|name| libraries.shims.join(name));
        for path in needed.chain([libraries.core.clone()]) {
            if !path.exists() {
                return Err(LibraryError::Missing {
                    missing: path.display().to_string(),
                });
            }
        }
        if directory.to_string_lossy().contains([' ', ':', ';']) {
            return Err(LibraryError::Separator {
                path: directory.display().to_string(),
            });
        }
        Ok(libraries)
    }

    /// The variables with which a CUDA program must be started; what `current` finds in
    /// them already is kept behind ours.
    pub fn environment(
        &self,
        socket: &Path,
        current: impl Fn(&str) -> Option<OsString>,
    ) -> [(&'static str, OsString); 3] {
        let before = |name, ours: &Path| {
            let mut value = ours.as_os_str().to_owned();
            if let Some(theirs) = current(name).filter(|theirs| !theirs.is_empty()) {
                value.push(OsStr::new(":"));
                value.push(theirs);
            }
            value
        };
        [
            ("LD_PRELOAD", before("LD_PRELOAD", &self.core)),
            ("LD_LIBRARY_PATH", before("LD_LIBRARY_PATH", &self.shims)),
            (SOCKET_VARIABLE, socket.as_os_str().to_owned()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_preloads_stays_behind_ours() {
        let libraries = Libraries {
            core: "/l/core.so".into(),
            shims: "/l/shims".into(),
        };
        let current = |name: &str| match name {
            "LD_PRELOAD" => Some("mine.so".into()),
            _ => Some("".into()),
        };
        let [preload, path, socket] = libraries.environment(Path::new("/t/socket"), current);
        assert_eq!(preload.1, "/l/core.so:mine.so");
        assert_eq!(path.1, "/l/shims");
        assert_eq!(socket, ("LOCKSTEP_SOCKET", "/t/socket".into()));
    }

    #[test]
    fn a_directory_without_the_libraries_is_named() {
        let error = Libraries::in_directory(Path::new("/nowhere")).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("/nowhere/lockstep-shims/libcuda.so.1 is missing"));
        assert!(text.contains("cargo build --release"));
    }
}
