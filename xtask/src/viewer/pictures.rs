//! `cargo xtask viewer --pictures`: the pictures of the book, taken while the page is tested in a browser.
//!
//! Programs run in a folder of their own and under their own names, so that no picture shows where somebody works.

use crate::{cuda, process, project, simulator, workloads};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Programs with their arguments: a small one, and one of many kernels.
const PROGRAMS: [(&str, &[&str]); 2] =
    [("histogram", &["262144"]), ("hydrodynamics", &["22", "2"])];
/// One dark picture is enough for a book.
const UNUSED: [&str; 1] = ["histogram-dark.webp"];
/// How long one step may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Where the book has them.
fn place() -> std::path::PathBuf {
    project::root().join("docs/book/pictures")
}

/// Takes all pictures.
pub fn take() -> Result<()> {
    simulator::build_with_tools()?;
    let toolkit = cuda::required()?;
    let folder = simulator::scratch_folder();
    std::fs::create_dir_all(&folder)?;
    let taken = PROGRAMS
        .iter()
        .try_for_each(|(name, arguments)| of_program(&toolkit, &folder, name, arguments));
    std::fs::remove_dir_all(&folder)?;
    taken?;
    for name in UNUSED {
        std::fs::remove_file(place().join(name))?;
    }
    Ok(())
}

/// Runs a program with series and counts by instruction, and uses the viewer over what it left.
fn of_program(
    toolkit: &cuda::Toolkit,
    folder: &Path,
    name: &str,
    arguments: &[&str],
) -> Result<()> {
    process::step(&format!("pictures of {name} {}", arguments.join(" ")));
    let program = workloads::named(name)?;
    let source = project::root().join("workloads").join(&program.source);
    let mut nvcc = process::command(toolkit.nvcc());
    // Line information, so that instructions stand beside their lines.
    nvcc.args(["-O3", "-std=c++17", "-lineinfo", "-arch=sm_90", "-o"])
        .arg(folder.join(name))
        .arg(source);
    process::run(&mut nvcc)?;
    let out = format!("{name}-1");
    let mut run = simulator::lockstep(&["run", "--quiet", "--series", "1000", "--lines"]);
    run.args(["--out", &out, "--", &format!("./{name}")])
        .args(arguments)
        .current_dir(folder);
    process::run(&mut run)?;
    let mut view = simulator::lockstep(&["view", &out]);
    let child = view
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start `lockstep view`")?;
    let mut viewer = Viewer(child);
    let address = viewer.address()?;
    let root = project::root();
    let mut check = process::command("python3");
    check
        .arg("-B")
        .arg(root.join("crates/cli/tests/viewer/check.py"))
        .arg(address)
        .arg(place().join(name));
    let said = process::capture(&mut check, PATIENCE)?;
    print!("{}", said.out);
    if !said.success() || !said.out.contains("all is well") {
        bail!("the page of {name} was not tested: {}", said.tail(10));
    }
    Ok(())
}

/// A viewer that ends with its owner.
struct Viewer(Child);

impl Viewer {
    /// Where its page is; it says so first.
    fn address(&mut self) -> Result<String> {
        let out = self.0.stdout.take().context("its output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        Ok(line.trim().to_string())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
