//! `cargo xtask package`: one relocatable tree with everything that a user needs, as an archive and as a `.deb`.
//!
//! ```text
//! lockstep-0.1.0-x86_64-linux/
//!   bin/lockstep                  a link to the command
//!   lib/lockstep/                 the two programs and the libraries that it looks for beside itself
//!   lib/systemd/system/           the sampler as a service
//!   share/lockstep/               measurements, sets, the table of programs, configurations
//!   share/man, share/bash-completion, share/zsh, share/fish, share/doc/lockstep
//! ```
//!
//! Nothing of NVIDIA's is in it: compilers and runtimes are fetched by the user's own command.

#[cfg(test)]
mod recipe;

use crate::{process, project, viewer};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Make an archive and a Debian package of the release build.
#[derive(Args)]
pub struct Package {
    /// Folder for both [default: target/package]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Install the archive into an empty folder, run a program from elsewhere, and remove it
    #[arg(long)]
    check: bool,
    /// Only the tree itself, which the Python package wraps: no archive and no Debian package
    #[arg(long, conflicts_with = "check")]
    tree: bool,
}

/// Builds the command and what lies beside it, with the features that the tests of the workspace build them with.
const BUILD: [&str; 9] = [
    "build",
    "--release",
    "--workspace",
    "--exclude",
    "xtask",
    "--exclude",
    "lockstep-fuzz",
    "--exclude",
    "lockstep-engine-loom",
];

/// What lies beside the command.
const LIBRARIES: [&str; 6] = [
    "lockstep",
    "lockstep-tools",
    "liblockstep_interpose.so",
    "liblockstep_injector.so",
    "liblockstep_sampler.so",
    "lockstep-shims",
];

/// What the command reads, by its path in the project.
const DATA: [&str; 4] = [
    "configs",
    "validation/hardware",
    "validation/sets.toml",
    "workloads/workloads.toml",
];

/// What a reader wants to find.
const PAPERS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

impl Package {
    /// Runs it.
    pub fn run(&self) -> Result<()> {
        let out = self
            .out
            .clone()
            .unwrap_or_else(|| project::target().join("package"));
        let tree = build_tree(&out)?;
        if self.tree {
            println!("{}", project::shown(&tree));
            return Ok(());
        }
        let name = name();
        let archive = out.join(format!("{name}.tar.gz"));
        process::run(
            process::command("tar")
                .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
                .arg("-C")
                .arg(&out)
                .arg("-czf")
                .arg(&archive)
                .arg(&name),
        )?;
        say(&archive)?;
        debian(&out, &tree)?;
        if self.check {
            check(&archive, &name)?;
        }
        Ok(())
    }
}

/// How the tree is called.
fn name() -> String {
    format!(
        "lockstep-{}-{}-linux",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    )
}

/// Builds what the tree holds, and the tree in a folder; where it is.
pub fn build_tree(out: &Path) -> Result<PathBuf> {
    viewer::prepare();
    process::run(process::command(project::cargo()).args(BUILD))?;
    let tree = out.join(name());
    if tree.exists() {
        std::fs::remove_dir_all(&tree)?;
    }
    stage(&tree)?;
    Ok(tree)
}

/// Lays the tree out.
fn stage(tree: &Path) -> Result<()> {
    let library = tree.join("lib/lockstep");
    let shared = tree.join("share");
    for name in LIBRARIES {
        copy(&project::release().join(name), &library.join(name))?;
    }
    for name in DATA {
        copy(
            &project::root().join(name),
            &shared.join("lockstep").join(name),
        )?;
    }
    for name in PAPERS {
        copy(
            &project::root().join(name),
            &shared.join("doc/lockstep").join(name),
        )?;
    }
    let unit = "lockstep-sampled@.service";
    copy(
        &project::root().join("configs/monitoring").join(unit),
        &tree.join("lib/systemd/system").join(unit),
    )?;
    process::run(process::command(project::release().join("lockstep-pages")).arg(&shared))?;
    for name in [
        "lockstep",
        "lockstep-tools",
        "liblockstep_interpose.so",
        "liblockstep_injector.so",
        "liblockstep_sampler.so",
    ] {
        // Names of functions stay for back traces; what only a debugger reads goes.
        process::run(
            process::command("strip")
                .arg("--strip-debug")
                .arg(library.join(name)),
        )?;
    }
    std::fs::create_dir_all(tree.join("bin"))?;
    symlink("../lib/lockstep/lockstep", tree.join("bin/lockstep"))?;
    Ok(())
}

/// A file, or a folder with its links as they are.
fn copy(from: &Path, to: &Path) -> Result<()> {
    ensure!(from.exists(), "{} is not there", from.display());
    let folder = to.parent().context("a place inside the tree")?;
    std::fs::create_dir_all(folder)?;
    process::run(process::command("cp").arg("-a").arg(from).arg(to))
}

fn say(file: &Path) -> Result<()> {
    let size = std::fs::metadata(file)?.len() as f64 / 1e6;
    println!("{} ({size:.1} MB)", project::shown(file));
    Ok(())
}

/// The same tree under `/usr`, as Debian wants it.
fn debian(out: &Path, tree: &Path) -> Result<()> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    if which("dpkg-deb").is_none() {
        println!("no .deb: dpkg-deb is not installed");
        return Ok(());
    }
    let version = env!("CARGO_PKG_VERSION");
    let root = out.join("debian");
    if root.exists() {
        std::fs::remove_dir_all(&root)?;
    }
    copy(tree, &root.join("usr"))?;
    let control = root.join("DEBIAN/control");
    std::fs::create_dir_all(root.join("DEBIAN"))?;
    std::fs::write(
        &control,
        format!(
            "Package: lockstep\nVersion: {version}\nArchitecture: {architecture}\n\
             Maintainer: The Lockstep authors <lockstep@localhost>\nSection: science\nPriority: optional\n\
             Depends: libc6, libgcc-s1\n\
             Description: runs CUDA programs on simulated NVIDIA GPUs\n \
             Unmodified CUDA programs run cycle by cycle on simulated GPUs, in parallel, with one\n \
             answer for any number of threads. No GPU is needed.\n"
        ),
    )?;
    let file = out.join(format!("lockstep_{version}_{architecture}.deb"));
    process::run(
        process::command("dpkg-deb")
            .args(["--root-owner-group", "--build"])
            .arg(&root)
            .arg(&file),
    )?;
    std::fs::remove_dir_all(&root)?;
    say(&file)
}

fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Unpacks the archive where nothing else is, and asks the command what depends on its place.
fn check(archive: &Path, name: &str) -> Result<()> {
    let place = std::env::temp_dir().join(format!("lockstep-package-{}", std::process::id()));
    std::fs::create_dir_all(&place)?;
    let outcome = (|| {
        process::run(
            process::command("tar")
                .arg("-C")
                .arg(&place)
                .arg("-xf")
                .arg(archive),
        )?;
        let command = place.join(name).join("bin/lockstep");
        for arguments in [
            &["gpus"][..],
            &["doctor"],
            &["correlate", "--quick", "--binaries", "/nonexistent"],
        ] {
            let mut asked = process::command(&command);
            asked.args(arguments).current_dir("/");
            let output = process::capture(&mut asked, std::time::Duration::from_secs(60))?;
            let said = format!("{}{}", output.out, output.err);
            ensure!(
                !said.contains("no measurements") && !said.contains("No such file"),
                "`lockstep {}` from an installation: {said}",
                arguments.join(" ")
            );
        }
        Ok(())
    })();
    std::fs::remove_dir_all(&place)?;
    outcome
}
