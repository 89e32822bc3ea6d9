//! The CUDA programs of `workloads/`, and how they are built.

use crate::cuda::Toolkit;
use crate::{process, project};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The table `workloads/workloads.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    program: Vec<Program>,
}

/// One program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name, which it prints in its verdict.
    pub name: String,
    /// Its source, below `workloads/`.
    pub source: String,
    /// Arguments for a quick check.
    pub small: Vec<String>,
    /// Arguments for a size that fills the GPU, where it has one.
    #[serde(default)]
    #[allow(
        dead_code,
        reason = "read by measure.py and lockstep correlate; parsed here so that it is checked"
    )]
    pub medium: Option<Vec<String>>,
    /// Arguments for hardware.
    #[allow(
        dead_code,
        reason = "read by run_all.py; parsed here so that it is checked"
    )]
    pub large: Vec<String>,
    /// What it exercises.
    pub tags: Vec<String>,
    /// The least architecture that its instructions need.
    pub architecture: String,
    /// Kernels launch kernels: its device code is relocatable, and linked with the device runtime.
    #[serde(default)]
    pub relocatable: bool,
    /// Libraries beside the CUDA runtime.
    #[serde(default)]
    pub links: Vec<String>,
    /// GPUs that it needs, if it needs several.
    pub gpus: Option<u32>,
    /// What it launches.
    pub kernels: Vec<String>,
}

/// How the CUDA runtime comes into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// Linked into it, which is nvcc's default.
    Static,
    /// `libcudart.so`, loaded when it starts.
    Shared,
}

impl Runtime {
    fn name(self) -> &'static str {
        match self {
            Runtime::Static => "static",
            Runtime::Shared => "shared",
        }
    }
}

/// What nvcc compiles for when it is not told.
const DEFAULT_ARCHITECTURE: &str = "sm_75";

/// All programs, in the table's order.
pub fn all() -> Result<Vec<Program>> {
    let path = project::root().join("workloads/workloads.toml");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let table: Table = toml::from_str(&text).with_context(|| project::shown(&path))?;
    Ok(table.program)
}

/// The program with this name.
pub fn named(name: &str) -> Result<Program> {
    all()?
        .into_iter()
        .find(|program| program.name == name)
        .with_context(|| format!("workloads/workloads.toml has no program `{name}`"))
}

/// What only one architecture has (`sm_90a`) is compiled for it alone: nvcc's `-arch` adds a general
/// one.
fn architecture_options(name: &str) -> Vec<String> {
    match name.strip_prefix("sm_").filter(|name| name.ends_with('a')) {
        Some(number) => vec![
            "-gencode".into(),
            format!("arch=compute_{number},code=[sm_{number},compute_{number}]"),
        ],
        None => vec![format!("-arch={name}")],
    }
}

impl Program {
    /// Whether it has this tag.
    pub fn is(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }

    /// Options that run it as PTX on an H200, for which plain nvcc leaves nothing else: without them `ptxas` makes machine
    /// code of it. A program that needs an H200 has its machine code.
    pub fn as_ptx(&self) -> &'static [&'static str] {
        match self.architecture.as_str() < "sm_90" {
            true => &["--frontend", "ptx"],
            false => &[],
        }
    }

    /// Whether this executable is there and younger than its source.
    pub fn is_built(&self, executable: &Path) -> Result<bool> {
        is_newer(
            executable,
            &project::root().join("workloads").join(&self.source),
        )
    }

    /// Compiles it with plain nvcc and answers the executable; a newer source is compiled again.
    pub fn build(&self, toolkit: &Toolkit, runtime: Runtime) -> Result<PathBuf> {
        let folder = project::local().join("workloads").join(runtime.name());
        std::fs::create_dir_all(&folder)?;
        let executable = folder.join(&self.name);
        let source = project::root().join("workloads").join(&self.source);
        let mut nvcc = process::command(toolkit.nvcc());
        nvcc.args(["-O3", "-std=c++17"]);
        if self.architecture != DEFAULT_ARCHITECTURE {
            nvcc.args(architecture_options(&self.architecture));
        }
        if self.relocatable {
            nvcc.arg("-rdc=true");
        }
        if runtime == Runtime::Shared {
            nvcc.args(["-cudart", "shared", "-L"])
                .arg(toolkit.link_folder()?);
        }
        if !self.links.is_empty() {
            // The driver's library exists only where a driver does, except for ours.
            nvcc.arg("-L")
                .arg(project::release().join("lockstep-shims"));
            nvcc.args(self.links.iter().map(|library| format!("-l{library}")));
        }
        nvcc.arg(&source).arg("-o").arg(&executable);

        // The command is part of what an executable depends on.
        let note = folder.join(format!("{}.command", self.name));
        let line = process::shown(&nvcc);
        if std::fs::read_to_string(&note).is_ok_and(|old| old == line)
            && is_newer(&executable, &source)?
        {
            return Ok(executable);
        }
        let output = process::capture(&mut nvcc, Duration::from_secs(300))?;
        if !output.success() {
            bail!(
                "nvcc refuses {}:\n{}",
                project::shown(&source),
                output.tail(12)
            );
        }
        std::fs::write(&note, line)?;
        Ok(executable)
    }
}

/// Whether the executable is younger than its source and every header beside it.
fn is_newer(executable: &Path, source: &Path) -> Result<bool> {
    let Ok(built) = executable.metadata().and_then(|meta| meta.modified()) else {
        return Ok(false);
    };
    let mut inputs = vec![source.to_path_buf()];
    let workloads = project::root().join("workloads");
    let beside = source.parent().unwrap_or(&workloads);
    for folder in [&workloads.join("common"), &workloads.join("litmus"), beside] {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "cuh") {
                inputs.push(path);
            }
        }
    }
    for input in inputs {
        let changed = input
            .metadata()
            .and_then(|meta| meta.modified())
            .with_context(|| format!("cannot read {}", input.display()))?;
        if changed >= built {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Seven programs in one, each with managed memory, prefetches and plain copies: they are asked
    /// for by name (`crates/cli/tests/managed.rs`, `studies/unified-memory`).
    const MANAGED: &str = "managed/managed.cu";

    #[test]
    fn the_table_and_the_folders_name_the_same_programs() {
        let listed: BTreeSet<String> = all()
            .expect("table")
            .into_iter()
            .map(|p| p.source)
            .collect();
        let workloads = project::root().join("workloads");
        let mut found = BTreeSet::new();
        for (folder, prefix) in [
            (workloads.clone(), ""),
            (workloads.join("litmus"), "litmus/"),
        ] {
            for entry in std::fs::read_dir(folder).expect("workloads") {
                let name = entry
                    .expect("entry")
                    .file_name()
                    .into_string()
                    .expect("name");
                let source = format!("{prefix}{name}/{name}.cu");
                if workloads.join(&source).exists() && source != MANAGED {
                    found.insert(source);
                }
            }
        }
        assert_eq!(listed, found);
    }

    #[test]
    fn every_kernel_of_the_table_stands_in_its_source() {
        for program in all().expect("table") {
            let source = project::root().join("workloads").join(&program.source);
            let text = std::fs::read_to_string(source).expect("source");
            assert!(
                !program.kernels.is_empty(),
                "{} has no kernel",
                program.name
            );
            for kernel in &program.kernels {
                assert!(text.contains(kernel.as_str()), "{}: {kernel}", program.name);
            }
        }
    }
}
