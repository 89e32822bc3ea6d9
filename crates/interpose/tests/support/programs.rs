//! Compiles CUDA programs with nvcc and runs them under interposition.

use super::{Kernel, Knowledge, Simulator};
use lockstep_protocol::SOCKET_VARIABLE;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

/// `target/<profile>`, where the shims are. This test is `target/<profile>/deps/<test>`.
fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().to_path_buf()
}

/// The core library of this very build: cargo puts it beside the tests, and copies it to the
/// profile directory only when it is built for its own sake.
pub fn core_library() -> PathBuf {
    let name = "liblockstep_interpose.so";
    let beside = profile_directory().join("deps").join(name);
    assert!(beside.exists(), "{} is missing", beside.display());
    beside
}

/// The directory of the shims.
pub fn shims() -> PathBuf {
    profile_directory().join("lockstep-shims")
}

/// The CUDA compiler of the project's virtual environment, if it is there.
pub fn nvcc() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let environment = root.join(".lockstep/venv/lib");
    for python in std::fs::read_dir(environment).ok()?.flatten() {
        let compiler = python.path().join("site-packages/nvidia/cu13/bin/nvcc");
        if compiler.exists() {
            return Some(compiler);
        }
    }
    None
}

/// Compiles a source of `tests/programs`; `None`, with a sentence, where nvcc is missing.
pub fn compile(source: &str, name: &str, options: &[&str]) -> Option<PathBuf> {
    let Some(compiler) = nvcc() else {
        println!("skipped: no nvcc in .lockstep/venv");
        return None;
    };
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let output = directory.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(source);
    let core = core_library();
    let search = format!("-rpath-link={}", core.parent().unwrap().display());
    let result = Command::new(compiler)
        .arg(&source)
        .args(["-o".as_ref(), output.as_os_str()])
        .args(["-L".as_ref(), shims().as_os_str()])
        .args(["-Xlinker", &search])
        .args(options)
        .output()
        .unwrap();
    assert!(
        result.status.success(),
        "nvcc: {}",
        String::from_utf8_lossy(&result.stderr)
    );
    Some(output)
}

/// A command with everything that `lockstep run` sets.
pub fn command(program: &Path, simulator: &Simulator) -> Command {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", core_library())
        .env("LD_LIBRARY_PATH", shims())
        .env(SOCKET_VARIABLE, simulator.path());
    command
}

/// Runs a program to its end.
pub fn run(program: &Path, simulator: &Simulator) -> Output {
    command(program, simulator).output().unwrap()
}

/// What it printed.
pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Checks the exit status and shows all output if it is another.
pub fn check_status(output: &Output, expected: i32) {
    assert_eq!(
        output.status.code(),
        Some(expected),
        "{:?}\nstdout: {}\nstderr: {}",
        output.status,
        text(output),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// `c[i] = a[i] + b[i]`, as `tests/programs/vector_add.cu` has it.
pub fn vector_add() -> Kernel {
    Kernel {
        parameters: vec![8, 8, 8, 4],
        body: Arc::new(|memory, launch| {
            let word = |offset: usize| {
                u64::from_le_bytes(launch.parameters[offset..offset + 8].try_into().unwrap())
            };
            let count = u32::from_le_bytes(launch.parameters[24..28].try_into().unwrap());
            for index in 0..u64::from(count) {
                let a: f32 = memory.read(word(0) + index * 4);
                let b: f32 = memory.read(word(8) + index * 4);
                memory.write(word(16) + index * 4, a + b);
            }
            Ok(String::new())
        }),
    }
}

/// A simulator that can add vectors.
pub fn adder() -> Simulator {
    let mut knowledge = Knowledge::default();
    knowledge.kernels.insert("add", vector_add());
    Simulator::start(knowledge)
}
