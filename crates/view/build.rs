//! Takes the charting library that `cargo xtask viewer` has fetched, if it has; a page without it says so.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The files of the library that the page needs, and its licence.
const FILES: [&str; 3] = ["uPlot.iife.min.js", "uPlot.min.css", "LICENSE"];

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let fetched = root.join("../../.lockstep/viewer/uplot");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for name in FILES {
        let file = fetched.join(name);
        println!("cargo::rerun-if-changed={}", shown(&file));
        fs::write(out.join(name), fs::read(&file).unwrap_or_default())?;
    }
    // Made later, it is found as well.
    println!("cargo::rerun-if-changed={}", shown(&fetched));
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
