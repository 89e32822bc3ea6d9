//! Starts the `lockstep` command in a folder of its own.

#![allow(dead_code, reason = "each test file uses its own part")]

pub mod runs;

use lockstep_protocol::library::{CORE_LIBRARY, SHIM_DIRECTORY, SHIMS};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A kernel that multiplies an array by a factor.
pub const SCALE: &str = "\
.version 8.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .u32 count)
{
    .reg .b32 %r<6>;
    .reg .b64 %d<4>;
    .reg .f32 %f<4>;
    .reg .pred %p;
    ld.param.u64 %d0, [data];
    ld.param.f32 %f0, [factor];
    ld.param.u32 %r0, [count];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    setp.ge.u32 %p, %r4, %r0;
    @%p bra DONE;
    cvta.to.global.u64 %d1, %d0;
    mul.wide.u32 %d2, %r4, 4;
    add.s64 %d3, %d1, %d2;
    ld.global.f32 %f1, [%d3];
    mul.f32 %f2, %f1, %f0;
    st.global.f32 [%d3], %f2;
DONE:
    ret;
}
";

/// Arguments that run it three times on 300 blocks, but for the folder behind `--out`.
const SCALE_RUN: &str = "kernel scale.ptx --grid 300 --block 128 --arg f32[38400]=iota --arg f32:1.5 --arg u32:38400 --repeat 3 --out";

/// Writes [`SCALE`] into a folder; the arguments of `lockstep` that run it, with more behind them.
pub fn scale_run<'word>(folder: &Folder, out: &'word str, more: &[&'word str]) -> Vec<&'word str> {
    std::fs::write(folder.0.join("scale.ptx"), SCALE).unwrap();
    let mut words: Vec<&str> = SCALE_RUN.split_whitespace().collect();
    words.push(out);
    words.extend(more);
    words
}

/// A folder that is removed at the end of a test.
pub struct Folder(pub PathBuf);

impl Folder {
    /// An empty folder.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("lockstep-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a script that can be executed.
    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// Names in the folder for sockets.
    pub fn sockets(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join("sockets")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// `lockstep` in this folder, with sockets in a folder of its own.
    pub fn lockstep(&self) -> Command {
        let sockets = self.0.join("sockets");
        std::fs::create_dir_all(&sockets).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
        command
            .current_dir(&self.0)
            .env("XDG_RUNTIME_DIR", sockets)
            .env("LOCKSTEP_LIBRARY_DIR", libraries())
            .env(
                "LOCKSTEP_CACHE",
                concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
            )
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null());
        // A shell without job control lets what it runs in the background ignore interrupts, and tests send them.
        // SAFETY: the call is safe between fork and exec, and changes the child alone.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            });
        }
        command
    }

    /// What `lockstep` with these arguments says.
    pub fn run(&self, arguments: &[&str]) -> Said {
        Said::from(self.lockstep().args(arguments).output().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The interposition libraries if they are built beside the command, else empty ones: these
/// tests speak the protocol themselves.
fn libraries() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let built = Path::new(env!("CARGO_BIN_EXE_lockstep")).parent().unwrap();
        if built.join(CORE_LIBRARY).exists()
            && SHIMS
                .iter()
                .all(|name| built.join(SHIM_DIRECTORY).join(name).exists())
        {
            return built.to_path_buf();
        }
        let folder = std::env::temp_dir().join(format!("lockstep-empty-{}", std::process::id()));
        std::fs::create_dir_all(folder.join(SHIM_DIRECTORY)).unwrap();
        let shims = SHIMS.iter().map(|name| format!("{SHIM_DIRECTORY}/{name}"));
        for name in shims.chain([CORE_LIBRARY.into()]) {
            let made = Command::new("cc")
                .args(["-shared", "-nostdlib", "-x", "c", "/dev/null", "-o"])
                .arg(folder.join(name))
                .status();
            assert!(
                made.is_ok_and(|status| status.success()),
                "a C compiler is needed: install gcc or clang"
            );
        }
        folder
    })
}

/// Waits until something holds; false after three seconds.
pub fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    for _ in 0..300 {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Waits until something holds, or fails after `patience`.
#[allow(clippy::disallowed_methods, reason = "a test that waits")]
pub fn wait_until(what: &str, patience: Duration, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < patience,
            "not within {patience:?}: {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a signal to a process that was started.
pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// The CUDA compiler, in the project's own environment or in the search path.
pub fn compiler() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let own = root.join(".lockstep/venv/lib");
    let mut found: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|path| path.join("nvcc"))
        .collect();
    for python in std::fs::read_dir(own).into_iter().flatten().flatten() {
        for package in std::fs::read_dir(python.path().join("site-packages/nvidia"))
            .into_iter()
            .flatten()
            .flatten()
        {
            found.push(package.path().join("bin/nvcc"));
        }
    }
    found.into_iter().find(|path| path.is_file())
}

/// Builds `program` in a folder; false, with a sentence, if this machine cannot.
pub fn build_cuda(folder: &Folder, source: &str, options: &[&str]) -> bool {
    let built =
        Path::new(env!("CARGO_BIN_EXE_lockstep")).with_file_name("liblockstep_interpose.so");
    if !built.exists() {
        eprintln!(
            "skipped: build the interposition libraries first (cargo build -p lockstep-interpose)"
        );
        return false;
    }
    let Some(nvcc) = compiler() else {
        eprintln!("skipped: nvcc is not installed; `cargo xtask demo` fetches it");
        return false;
    };
    std::fs::write(folder.0.join("program.cu"), source).unwrap();
    let output = Command::new(nvcc)
        .current_dir(&folder.0)
        .args(["program.cu", "-o", "program"])
        .args(options)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "nvcc: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    true
}

/// Builds a CUDA program that links the driver, for sm_90, in a folder of its own; none if this machine cannot.
pub fn build_with_driver(source: &str) -> Option<Folder> {
    let folder = Folder::new();
    let shims = Path::new(env!("CARGO_BIN_EXE_lockstep")).with_file_name("lockstep-shims");
    let search = format!("-L{}", shims.display());
    let loose = ["-Xlinker", "--allow-shlib-undefined"];
    let options = [&["-arch=sm_90", &search, "-lcuda", "-ldl"], &loose[..]].concat();
    build_cuda(&folder, source, &options).then_some(folder)
}
