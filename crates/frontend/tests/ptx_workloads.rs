//! Every workload, compiled by nvcc, parses and links.

use crate::harness;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
}

/// The compiler of the project's environment, if it is there.
fn nvcc() -> Option<PathBuf> {
    let libraries = repository().join(".lockstep/venv/lib");
    let python = std::fs::read_dir(libraries).ok()?.next()?.ok()?.path();
    let packages = std::fs::read_dir(python.join("site-packages/nvidia")).ok()?;
    let mut compilers = packages.filter_map(|entry| {
        let compiler = entry.ok()?.path().join("bin/nvcc");
        compiler.exists().then_some(compiler)
    });
    compilers.next()
}

fn check(path: &Path) {
    let text = std::fs::read_to_string(path).expect("a text");
    match harness::link(&text) {
        Ok(module) => {
            assert_eq!(module.code.len(), module.listing.len());
            for kernel in &module.kernels {
                assert!((kernel.entry as usize) < module.code.len());
                assert!(
                    kernel.warp_registers < 512,
                    "{}: {} rows",
                    kernel.name,
                    kernel.warp_registers
                );
            }
        }
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

#[test]
fn committed_texts_link() {
    let mut texts = Vec::new();
    files(&repository().join("workloads"), "ptx", &mut texts);
    assert!(!texts.is_empty());
    texts.iter().for_each(|path| check(path));
}

/// Needs the project's compiler; without it, says so and checks nothing.
#[test]
fn compiled_workloads_link() {
    let Some(nvcc) = nvcc() else {
        println!("no nvcc under .lockstep/venv: `cargo xtask demo` installs it");
        return;
    };
    let mut sources = Vec::new();
    files(&repository().join("workloads"), "cu", &mut sources);
    // Two compilers at a time: each takes seconds.
    let half = sources.len().div_ceil(2).max(1);
    std::thread::scope(|scope| {
        for part in sources.chunks(half) {
            let nvcc = &nvcc;
            scope.spawn(move || {
                part.iter()
                    .for_each(|source| compile_and_check(nvcc, source))
            });
        }
    });
}

fn compile_and_check(nvcc: &Path, source: &Path) {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = source.file_stem().expect("a file has a name");
    let text = output.join(name).with_extension("ptx");
    let age = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    if age(&text) < age(source) {
        let status = Command::new(nvcc)
            .args(["-ptx", "-gencode", "arch=compute_90a,code=compute_90a"])
            // Kernels that launch kernels call functions of a library.
            .args(["-rdc=true", "-I"])
            .arg(repository().join("workloads/common"))
            .arg(source)
            .arg("-o")
            .arg(&text)
            .status()
            .expect("nvcc runs");
        assert!(status.success(), "nvcc refuses {}", source.display());
    }
    check(&text);
}
