//! The libraries that a CUDA program is given, and the variables that make it take them.

use lockstep_protocol::SOCKET_VARIABLE;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The library with all state: it is preloaded and hooks runtimes inside the program.
const CORE: &str = "liblockstep_interpose.so";
/// Thin libraries under CUDA's own names, in a directory beside the core.
const SHIMS: &str = "lockstep-shims";
/// One of them, which stands for all.
const SHIM: &str = "libcuda.so.1";
/// Says where the core is when it is not beside the program.
const VARIABLE: &str = "LOCKSTEP_LIBRARY_DIR";

/// The interposition libraries are not where they should be.
#[derive(Debug, Error)]
#[error(
    "the libraries for CUDA programs are missing: no {CORE} with {SHIMS}/{SHIM} in {}; \
     build them with `cargo build --release -p lockstep-interpose`, or name their directory in {VARIABLE}",
    .searched.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
)]
pub struct MissingLibraries {
    /// Where they were looked for.
    pub searched: Vec<PathBuf>,
}

/// The interposition libraries.
#[derive(Clone, Debug)]
pub struct Libraries {
    /// The library to preload.
    pub core: PathBuf,
    /// The directory of the shims.
    pub shims: PathBuf,
}

impl Libraries {
    /// Finds them: where the variable says, beside this program, or installed under its prefix.
    ///
    /// # Errors
    /// They are nowhere.
    pub fn find() -> Result<Self, MissingLibraries> {
        let searched = places();
        for place in &searched {
            let (core, shims) = (place.join(CORE), place.join(SHIMS));
            if core.is_file() && shims.join(SHIM).exists() {
                return Ok(Self { core, shims });
            }
        }
        Err(MissingLibraries { searched })
    }

    /// Variables for a program that attaches to the simulator at `socket`.
    pub fn variables(&self, socket: &Path) -> Vec<(String, OsString)> {
        vec![
            (SOCKET_VARIABLE.into(), socket.into()),
            ("LD_PRELOAD".into(), before(&self.core, "LD_PRELOAD")),
            ("LD_LIBRARY_PATH".into(), before(&self.shims, "LD_LIBRARY_PATH")),
        ]
    }
}

fn places() -> Vec<PathBuf> {
    if let Some(given) = std::env::var_os(VARIABLE).filter(|given| !given.is_empty()) {
        return vec![given.into()];
    }
    let Some(folder) = std::env::current_exe().ok().and_then(|path| path.parent().map(Path::to_path_buf)) else {
        return Vec::new();
    };
    let mut places = vec![folder.clone()];
    if let Some(above) = folder.parent() {
        places.push(above.join("lib/lockstep"));
        // Tests run one directory below what cargo builds.
        places.push(above.to_path_buf());
    }
    places
}

/// `path` before whatever the variable holds already.
fn before(path: &Path, variable: &str) -> OsString {
    let mut value = path.as_os_str().to_os_string();
    if let Some(rest) = std::env::var_os(variable).filter(|rest| !rest.is_empty()) {
        value.push(":");
        value.push(rest);
    }
    value
}
