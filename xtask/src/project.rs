//! Where things are.

use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    // The manifest's folder is known when this is compiled; a moved checkout builds it again.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_else(|| PathBuf::from("."))
}

/// What is made on this machine and never committed.
pub fn local() -> PathBuf {
    root().join(".lockstep")
}

/// Cargo's target folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Where a release build leaves the `lockstep` command and the libraries beside it.
pub fn release() -> PathBuf {
    target().join("release")
}

/// The `cargo` that started us.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// A path as the reader would type it: relative to the repository where it lies inside.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}
