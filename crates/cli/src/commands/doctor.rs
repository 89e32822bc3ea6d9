//! `lockstep doctor`: what works on this machine, what is missing, and how to get it.

use clap::Args;
use lockstep_protocol::library::Libraries;
use lockstep_protocol::window::{self, Window};
use lockstep_text::say;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Check what works on this machine and say what is missing.
#[derive(Args)]
pub struct Doctor {}

/// Result of a check.
enum Finding {
    /// It works.
    Good(String),
    /// Something optional is missing: what, and how to get it.
    Lacking(String),
    /// Nothing can run without it: what, and what to do.
    Broken(String),
}

use Finding::{Broken, Good, Lacking};

/// Looks at one thing.
type Check = fn() -> Finding;

/// Every check, in the order of the report.
const CHECKS: &[(&str, Check)] = &[
    ("processor", processor),
    ("memory", memory),
    ("shared memory", shared_memory),
    ("fixed addresses", fixed_addresses),
    ("libraries for CUDA programs", libraries),
    ("socket directory", socket_directory),
    ("host accesses to managed memory", host_accesses),
    ("nvcc", || {
        tool(
            "nvcc",
            "compiles CUDA programs; `cargo xtask demo` fetches it from PyPI into .lockstep/venv",
        )
    }),
    ("ptxas", || {
        tool("ptxas", "turns PTX into machine code; it comes with nvcc")
    }),
    ("nvdisasm", || {
        tool(
            "nvdisasm",
            "checks the decoder of machine code; it comes with nvcc",
        )
    }),
    ("real GPU", real_gpu),
];

impl Doctor {
    /// Runs it; 1 if programs cannot be simulated here.
    pub fn run(self) -> anyhow::Result<i32> {
        say!("lockstep {}\n", env!("CARGO_PKG_VERSION"));
        let mut broken = 0;
        for (name, check) in CHECKS {
            let (mark, text) = match check() {
                Good(text) => ("ok  ", text),
                Lacking(text) => ("none", text),
                Broken(text) => {
                    broken += 1;
                    ("FAIL", text)
                }
            };
            say!("[{mark}] {name}: {text}\n");
        }
        match broken {
            0 => say!("\nCUDA programs can be simulated here.\n"),
            1 => {
                say!("\nOne thing must be repaired before CUDA programs can be simulated here.\n")
            }
            count => say!(
                "\n{count} things must be repaired before CUDA programs can be simulated here.\n"
            ),
        }
        Ok(i32::from(broken > 0))
    }
}

fn processor() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut features = Vec::new();
    #[cfg(target_arch = "x86_64")]
    for (name, present) in [
        ("AVX2", std::arch::is_x86_feature_detected!("avx2")),
        ("AVX-512", std::arch::is_x86_feature_detected!("avx512f")),
        ("FMA", std::arch::is_x86_feature_detected!("fma")),
    ] {
        if present {
            features.push(name);
        }
    }
    let features = if features.is_empty() {
        "no wide vectors (slower)".into()
    } else {
        features.join(", ")
    };
    Good(format!(
        "{cores} cores, {}, {features}",
        std::env::consts::ARCH
    ))
}

fn memory() -> Finding {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let value = |key: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(key))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    match value("MemAvailable:") {
        Some(kibibytes) if kibibytes < 1 << 20 => Lacking(format!(
            "{} MiB free; large programs will not fit",
            kibibytes >> 10
        )),
        Some(kibibytes) => Good(format!(
            "{:.1} GiB free",
            kibibytes as f64 / f64::from(1 << 20)
        )),
        None => Lacking("/proc/meminfo cannot be read".into()),
    }
}

fn shared_memory() -> Finding {
    match window::create() {
        Ok(_) => Good("a sparse memory file can be made".into()),
        Err(error) => Broken(error.to_string()),
    }
}

fn fixed_addresses() -> Finding {
    match window::create().and_then(Window::map_fixed) {
        Ok(_) => {
            Good("the window of simulated memory can be mapped where programs expect it".into())
        }
        Err(error) => Broken(error.to_string()),
    }
}

fn libraries() -> Finding {
    match Libraries::find() {
        Ok(found) => Good(found.core.display().to_string()),
        Err(error) => Broken(error.to_string()),
    }
}

fn socket_directory() -> Finding {
    let parent = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_dir())
        .unwrap_or_else(std::env::temp_dir);
    match lockstep_protocol::Listener::bind_under(&parent, |_| Ok(())) {
        Ok(_) => Good(parent.display().to_string()),
        Err(error) => Broken(error.to_string()),
    }
}

/// How the host's own accesses to managed memory are noticed here; programs choose in this order.
fn host_accesses() -> Finding {
    match kernel_faults() {
        Ok(()) => Good("kernel: userfaultfd stops programs and system calls".into()),
        Err(error) => Lacking(format!(
            "protection: pages without access, and wrappers of system calls; what only the kernel \
             could notice (readv, libraries that call it directly) fails with \"bad address\". \
             userfaultfd: {error} (`sysctl vm.unprivileged_userfaultfd=1` allows it)"
        )),
    }
}

/// Opens userfaultfd for shared memory, as programs do.
fn kernel_faults() -> std::io::Result<()> {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    const API: u64 = 0xaa;
    const SHARED_MEMORY: u64 = 1 << 5 | 1 << 10;
    /// `_IOWR(0xaa, 0x3f, 24)`.
    const IOCTL_API: u64 = 3 << 30 | 24 << 16 | 0xaa << 8 | 0x3f;
    // SAFETY: the call has no preconditions.
    let file = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
    if file < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just made and that nobody else has.
    let file = unsafe { OwnedFd::from_raw_fd(file as i32) };
    let mut words = [API, SHARED_MEMORY, 0u64];
    // SAFETY: the request reads and writes three words.
    let outcome = unsafe { libc::ioctl(file.as_raw_fd(), IOCTL_API as _, words.as_mut_ptr()) };
    if outcome == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error())
}

fn tool(name: &str, why: &str) -> Finding {
    let Some(path) = find_tool(name) else {
        return Lacking(format!("not found; it {why}"));
    };
    let version = Command::new(&path)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines()
                .find(|line| line.contains("release"))
                .map(|line| line.trim().to_string())
        });
    Good(format!(
        "{} ({})",
        path.display(),
        version.as_deref().unwrap_or("version unknown")
    ))
}

/// In the path, in the usual places, or in the project's own virtual environment.
fn find_tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Some(home) = std::env::var_os("CUDA_HOME").or_else(|| std::env::var_os("CUDA_PATH")) {
        folders.push(Path::new(&home).join("bin"));
    }
    folders.push("/usr/local/cuda/bin".into());
    // Above this command and the current folder, as a run looks for `ptxas`.
    let starts = [std::env::current_exe().ok(), std::env::current_dir().ok()];
    for above in starts.iter().flatten().flat_map(|start| start.ancestors()) {
        let libraries = above.join(".lockstep/venv/lib");
        for python in std::fs::read_dir(libraries).into_iter().flatten().flatten() {
            let packages = python.path().join("site-packages/nvidia");
            for package in std::fs::read_dir(packages).into_iter().flatten().flatten() {
                folders.push(package.path().join("bin"));
            }
        }
    }
    folders
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

fn real_gpu() -> Finding {
    if Path::new("/dev/nvidiactl").exists() || Path::new("/proc/driver/nvidia/version").exists() {
        return Good("an NVIDIA driver is loaded; `lockstep sample` can read its counters".into());
    }
    Lacking("no NVIDIA driver; none is needed to simulate".into())
}
