//! The thin libraries: the sonames and symbol versions of CUDA and NVML over the core's entries.
//!
//! Each symbol is a jump through the core's table of entries. A Rust library cannot carry
//! symbol versions, and one library cannot carry five sonames; hence these. The core is a
//! dependency of each, found in the directory above; when it is linked, a stand-in with the
//! core's soname takes its place, because the core is built later.

use crate::table::{MAJORS, Table};
use crate::{CORE, compile, write};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Bytes of one entry in the core's table.
const ENTRY_BYTES: usize = 24;

/// Builds all shims into `<profile>/lockstep-shims` and answers their paths.
pub fn build(table: &Table, output: &Path, profile: &Path) -> Result<Vec<PathBuf>, String> {
    let directory = profile.join("lockstep-shims");
    std::fs::create_dir_all(&directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    stand_in(table, output)?;

    let mut files = Vec::new();
    for (soname, names) in [
        ("libcuda.so.1", &table.driver),
        ("libnvidia-ml.so.1", &table.nvml),
    ] {
        let numbered: Vec<(String, usize)> = names
            .iter()
            .map(|name| (name.clone(), table.number(name)))
            .collect();
        files.push(link(table, output, &directory, soname, &numbered, false)?);
        let plain = soname.trim_end_matches(".1");
        files.push(symbolic_link(&directory, plain, soname)?);
    }
    for (column, major) in MAJORS.iter().enumerate() {
        let soname = match major {
            11 => "libcudart.so.11.0".to_string(),
            _ => format!("libcudart.so.{major}"),
        };
        let names: Vec<(String, usize)> = table
            .runtime
            .keys()
            .filter_map(|name| Some((name.clone(), table.runtime_number(name, column)?)))
            .collect();
        files.push(link(table, output, &directory, &soname, &names, true)?);
    }
    // Programs can be linked against the newest (`nvcc -cudart shared -L…`).
    files.push(symbolic_link(
        &directory,
        "libcudart.so",
        "libcudart.so.13",
    )?);
    Ok(files)
}

/// A library with the core's soname and the one symbol that shims need.
fn stand_in(table: &Table, output: &Path) -> Result<(), String> {
    let source = output.join("stand_in.s");
    let symbol = table.entries_symbol();
    write(
        &source,
        &format!(
            ".data\n.globl {symbol}\n.type {symbol},@object\n.size {symbol},8\n{symbol}: .quad 0\n\
             .section .note.GNU-stack,\"\",@progbits\n"
        ),
    )?;
    compile(&[
        "-shared",
        "-nostdlib",
        &format!("-Wl,-soname,{CORE}"),
        &source.display().to_string(),
        "-o",
        &output.join(CORE).display().to_string(),
    ])
}

fn link(
    table: &Table,
    output: &Path,
    directory: &Path,
    soname: &str,
    names: &[(String, usize)],
    versioned: bool,
) -> Result<PathBuf, String> {
    let source = output.join(format!("{soname}.s"));
    let script = output.join(format!("{soname}.map"));
    let library = directory.join(soname);
    let temporary = output.join(soname);
    write(&source, &assembly(&table.entries_symbol(), names))?;
    let version = if versioned { soname } else { "" };
    write(
        &script,
        &format!("{version} {{ global: cu*; __cuda*; nvml*; local: *; }};\n"),
    )?;
    compile(&[
        "-shared",
        "-nostdlib",
        &format!("-Wl,-soname,{soname}"),
        &format!("-Wl,--version-script={}", script.display()),
        "-Wl,-rpath,$ORIGIN/..",
        "-Wl,--no-as-needed",
        "-L",
        &output.display().to_string(),
        &source.display().to_string(),
        &format!("-l:{CORE}"),
        "-o",
        &temporary.display().to_string(),
    ])?;
    // What is already there stays: a newer file would make cargo run this script again.
    let equal = |path: &Path| std::fs::read(path).ok() == std::fs::read(&temporary).ok();
    if equal(&library) {
        return Ok(library);
    }
    // Renamed into place, so that a program that runs keeps the library it has mapped.
    let staged = directory.join(format!(".{soname}.new"));
    std::fs::copy(&temporary, &staged)
        .and_then(|_| set_back(&staged))
        .and_then(|()| std::fs::rename(&staged, &library))
        .map_err(|error| format!("{}: {error}", library.display()))?;
    Ok(library)
}

/// Dates a file back to before this run: cargo runs the script again when a file that it
/// watches is newer than the run.
fn set_back(path: &Path) -> std::io::Result<()> {
    let before = std::env::current_exe()?.metadata()?.modified()?;
    std::fs::File::open(path)?.set_modified(before)
}

fn assembly(entries: &str, names: &[(String, usize)]) -> String {
    let mut text = String::from(".text\n");
    for (name, number) in names {
        let offset = number * ENTRY_BYTES;
        let _ = write!(
            text,
            ".balign 16\n.globl {name}\n.type {name},@function\n{name}:\n  endbr64\n  \
             movq {entries}@GOTPCREL(%rip), %r11\n  movq (%r11), %r11\n  jmp *{offset}(%r11)\n\
             .size {name}, .-{name}\n"
        );
    }
    text.push_str(".section .note.GNU-stack,\"\",@progbits\n");
    text
}

fn symbolic_link(directory: &Path, name: &str, target: &str) -> Result<PathBuf, String> {
    let path = directory.join(name);
    if std::fs::read_link(&path).is_ok_and(|found| found == Path::new(target)) {
        return Ok(path);
    }
    let staged = directory.join(format!(".{name}.new"));
    let _ = std::fs::remove_file(&staged);
    std::os::unix::fs::symlink(target, &staged)
        .and_then(|()| std::fs::rename(&staged, &path))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}
