//! `cargo xtask demo`: from a fresh clone to a CUDA program on a simulated H200.

use crate::cuda::Missing;
use crate::workloads::{Program, Runtime};
use crate::{cuda, packages, process, project, simulator, workloads};
use anyhow::Result;
use clap::Args;
use std::path::Path;

/// Elements that the demo adds.
const ELEMENTS: u32 = 163_840;
const THREADS: u32 = 256;

/// Steps after the demo.
const NEXT: &str = "
Next:
  your own program:  nvcc -O3 program.cu -o program && target/release/lockstep run -- ./program
  what a run says:   target/release/lockstep report lockstep-out/vector_add-1 (or `view`, in a browser)
  read on:           docs/book/SUMMARY.md; `target/release/lockstep --help`";

/// Build everything, compile a CUDA program with plain nvcc and run it on a simulated H200.
#[derive(Args)]
pub struct Demo {
    /// Fetch neither the CUDA compiler nor the charts of the viewer; run the committed PTX
    #[arg(long)]
    offline: bool,
}

impl Demo {
    /// Runs it, and says what to do next.
    pub fn run(self) -> Result<()> {
        self.show()?;
        println!("{NEXT}");
        Ok(())
    }

    fn show(&self) -> Result<()> {
        packages::need(&[packages::CXX])?;
        println!(
            "This builds the simulator ({}), fetches a CUDA compiler (220 MB, once) and runs a first program.",
            if simulator::executable().exists() {
                "again, as far as it changed"
            } else {
                "6 to 10 minutes on two quiet cores, once"
            }
        );
        process::step("Building lockstep (release)");
        simulator::build()?;

        process::step("The CUDA compiler");
        if self.offline {
            println!("PyPI is not asked, because of --offline.");
            return run_committed_ptx();
        }
        match cuda::toolkit() {
            Ok(toolkit) => {
                println!("Ready: {}", project::shown(&toolkit.nvcc()));
                process::step("Compiling workloads/vector_add/vector_add.cu with plain nvcc");
                let program = workloads::named("vector_add")?;
                let executable = program.build(&toolkit, Runtime::Static)?;
                println!("Made {}", project::shown(&executable));
                run_program(&program, &executable)
            }
            Err(reason) => {
                let because = match reason {
                    Missing::Index(error) => format!("PyPI could not be reached ({error})"),
                    Missing::Machine(error) => format!("{error:#}"),
                };
                println!("There is no CUDA compiler: {because}.");
                run_committed_ptx()
            }
        }
    }
}

/// The program itself, unmodified; its own words come first, then the report.
fn run_program(program: &Program, executable: &Path) -> Result<()> {
    let mut command = simulator::lockstep(&["run", "--gpu", "h200", "--"]);
    command.arg(executable).arg(ELEMENTS.to_string());
    process::step(&format!(
        "lockstep run --gpu h200 -- ./{} {ELEMENTS}",
        program.name
    ));
    process::run(&mut command)
}

/// The same kernel from its PTX in the repository.
fn run_committed_ptx() -> Result<()> {
    println!("The committed PTX of the same kernel runs instead, without a host program.");
    let buffer = format!("f32[{ELEMENTS}]");
    let mut command = simulator::lockstep(&[
        "kernel",
        "--gpu",
        "h200",
        "workloads/vector_add/vector_add.ptx",
        "--entry",
        "vector_add",
    ]);
    command
        .args(["--grid", &ELEMENTS.div_ceil(THREADS).to_string()])
        .args(["--block", &THREADS.to_string()])
        .args(["--arg", &format!("{buffer}=iota")])
        .args(["--arg", &format!("{buffer}=random:7")])
        .args(["--arg", &buffer])
        .args(["--arg", &format!("u32:{ELEMENTS}")])
        .args(["--print", "0:4", "--print", "1:4", "--print", "2:4"]);
    process::step(&process::shown(&command));
    process::run(&mut command)
}
