//! Makes what the tables of `api/` stand for: stubs for every entry point that has no
//! function of ours, the tables that the core searches, and the thin libraries that carry
//! the sonames and symbol versions of CUDA and NVML.

mod entries;
mod shims;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The core library's soname, which the shims need.
const CORE: &str = "liblockstep_interpose.so";

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=api/runtime.txt");
    println!("cargo::rerun-if-changed=api/driver.txt");
    println!("cargo::rerun-if-changed=api/nvml.txt");
    println!("cargo::rerun-if-env-changed=CC");
    if let Err(message) = make() {
        panic!("{message}");
    }
}

fn make() -> Result<(), String> {
    let architecture = environment("CARGO_CFG_TARGET_ARCH")?;
    let system = environment("CARGO_CFG_TARGET_OS")?;
    if architecture != "x86_64" || system != "linux" {
        return Err(format!(
            "the entry points are written for x86-64 Linux, not for {architecture} {system}; \
             build/entries.rs, build/shims.rs and src/hook/patch.rs are what to port"
        ));
    }
    let output = PathBuf::from(environment("OUT_DIR")?);
    let [runtime, driver, nvml] =
        ["runtime", "driver", "nvml"].map(|name| PathBuf::from(format!("api/{name}.txt")));
    let table = table::Table::read(&runtime, &driver, &nvml)?;

    write(&output.join("table.rs"), &table.rust())?;
    let object = entries::build(&table, &output)?;
    println!("cargo::rustc-link-arg={}", object.display());
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{CORE}");
    // Our constructor comes before those of the libraries that the program is linked with.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");

    for file in shims::build(&table, &output, &profile_directory(&output)?)? {
        // Whoever deletes a shim gets it back with the next build.
        println!("cargo::rerun-if-changed={}", file.display());
    }
    Ok(())
}

/// `target/<profile>`: where the core library and the `lockstep` command are put too. Cargo
/// gives build scripts `target/<profile>/build/<package>/out`.
fn profile_directory(output: &Path) -> Result<PathBuf, String> {
    match output.ancestors().nth(3) {
        Some(directory) => Ok(directory.to_path_buf()),
        None => Err(format!(
            "{}: expected target/<profile>/build/<package>/out",
            output.display()
        )),
    }
}

fn environment(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs the C compiler, which assembles and links.
fn compile(arguments: &[&str]) -> Result<(), String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(&compiler)
        .args(arguments)
        .output()
        .map_err(|error| {
            format!("cannot run the C compiler `{compiler}` ({error}); install one or set CC")
        })?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "`{compiler} {}` failed:\n{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    ))
}
