//! `cargo xtask fuzz`: good inputs of this tree, changed by seeds, and everything that reads bytes
//! from outside.
//!
//! The work is that of `lockstep-fuzz` (folder `fuzz`); here are its building and its corpus. It is
//! built with checks of arithmetic, and needs nothing but itself and the corpus to run elsewhere.

use crate::{cuda, process, project, random_programs, simulator};
use anyhow::{Context, Result};
use clap::Args;
use std::path::{Path, PathBuf};

/// Where good inputs are, as far as they have been built.
const SEEDS: &[&str] = &[
    "tests",
    "crates/frontend/tests/sass",
    "crates/gpu/tests/sass",
    "crates/simulation/src/every_key/program.ptx",
    "configs/gpus",
    ".lockstep/workloads",
];

/// Throw changed inputs at everything that reads bytes from outside, and run what they hold.
#[derive(Args)]
pub struct Fuzz {
    /// One target, or all, one after the other
    #[arg(long, default_value = "all")]
    target: String,
    /// Workers side by side
    #[arg(long, default_value_t = 2)]
    jobs: u64,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// First seed; the same seeds make the same inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// More good inputs: files or folders
    #[arg(long, value_name = "PATH")]
    seeds: Vec<PathBuf>,
    /// Put program and corpus into this folder, to be run on another machine, and run nothing
    #[arg(long, value_name = "FOLDER")]
    pack: Option<PathBuf>,
    /// Instead: this many random CUDA programs of 16 kernels, from `--seed` on, which must compute the same on the
    /// host, as machine code in both modes, for a debugger and as PTX
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["target", "seconds", "seeds", "pack"])]
    programs: Option<u64>,
}

/// Ways in which a random program must compute the same: the first is what the others must give.
const WAYS: &[&str] = &[
    "functional:O3",
    "timing:O3",
    "functional:G",
    "functional:ptx",
    "host",
];

impl Fuzz {
    /// Runs it.
    pub fn run(self) -> Result<()> {
        if let Some(count) = self.programs {
            return self.random_programs(count);
        }
        process::step("Building lockstep-fuzz");
        process::run(&mut process::cargo(&[
            "build",
            "--package",
            "lockstep-fuzz",
        ]))?;
        let program = project::target().join("debug/lockstep-fuzz");
        let folder = self.pack.clone().unwrap_or_else(project::local);
        std::fs::create_dir_all(&folder)?;
        let corpus = folder.join("fuzz.corpus");
        process::step("Gathering good inputs");
        self.gather(&program, &corpus)?;
        if self.pack.is_some() {
            let copy = folder.join("lockstep-fuzz");
            std::fs::copy(&program, &copy).with_context(|| copy.display().to_string())?;
            println!(
                "There: ./lockstep-fuzz run --corpus fuzz.corpus --jobs 16 --seconds {}",
                self.seconds
            );
            return Ok(());
        }
        process::step("Running");
        let mut command = process::command(&program);
        command.args(["run", "--target", &self.target, "--corpus"]);
        command.arg(&corpus);
        command.args(["--jobs", &self.jobs.to_string()]);
        command.args(["--seconds", &self.seconds.to_string()]);
        command.args(["--seed", &self.seed.to_string()]);
        process::run(&mut command)
    }

    fn random_programs(&self, count: u64) -> Result<()> {
        simulator::build()?;
        let (seed, count, jobs) = (
            self.seed.to_string(),
            count.to_string(),
            self.jobs.to_string(),
        );
        let mut arguments = vec!["--seed", &seed, "--programs", &count, "--jobs", &jobs];
        arguments.extend(WAYS.iter().flat_map(|way| ["--way", way]));
        random_programs::check(&cuda::required()?, &arguments)
    }

    fn gather(&self, program: &Path, corpus: &Path) -> Result<()> {
        let mut command = process::command(program);
        command.args(["corpus", "--out"]).arg(corpus);
        let root = project::root();
        let known = SEEDS.iter().map(|path| root.join(path));
        command.args(known.filter(|path| path.exists()));
        command.args(&self.seeds);
        process::run(&mut command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What has to be built first is under `.lockstep`.
    #[test]
    fn every_committed_folder_of_inputs_is_there() {
        for path in SEEDS.iter().filter(|path| !path.starts_with('.')) {
            assert!(project::root().join(path).exists(), "{path}");
        }
    }
}
