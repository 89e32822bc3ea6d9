//! The commands of `lockstep-tools`, which this program starts in its own place.
//!
//! They lie beside this program. In a checkout the first call builds them.

use crate::Cli;
use anyhow::{Context, bail};
use clap::CommandFactory;
use lockstep_text::note;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program.
const NAME: &str = "lockstep-tools";

/// A command of the other program: here it has a name and a sentence, there its options.
#[derive(clap::Args)]
pub struct Handed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<OsString>,
}

impl Handed {
    /// Goes on as the other program.
    pub fn run(self) -> anyhow::Result<i32> {
        become_tools()
    }
}

/// Whether this process is asked for help about a command of the other program.
pub fn is_asked_for_help() -> bool {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_none_or(|word| word != "help") {
        return false;
    }
    let command = Cli::command();
    let known = words.next().and_then(|name| command.find_subcommand(name));
    known.is_some_and(|command| command.is_disable_help_flag_set())
}

/// Goes on as the other program, with the whole command line of this one.
pub fn become_tools() -> anyhow::Result<i32> {
    let own = std::env::current_exe().context("where this program is")?;
    let own = own.canonicalize().unwrap_or(own);
    let tools = own.with_file_name(NAME);
    if !tools.is_file() {
        build(&own, &tools)?;
    }
    let error = Command::new(&tools)
        .args(std::env::args_os().skip(1))
        .exec();
    Err(error).with_context(|| tools.display().to_string())
}

/// Builds it, where this program was built by `cargo xtask`.
fn build(own: &Path, tools: &Path) -> anyhow::Result<()> {
    let Some(root) = checkout(own) else {
        bail!(
            "{}: this command is part of {NAME}, which is not there; install the whole package, or build it with \
             `cargo xtask tools` in a checkout",
            tools.display()
        );
    };
    note!("lockstep: building {NAME}, which has this command (once; three minutes on two cores)\n");
    // What it says on standard output is not what the command says.
    let status = Command::new("cargo")
        .args(["xtask", "tools"])
        .current_dir(&root)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .context("cargo, to build lockstep-tools")?;
    if !status.success() || !tools.is_file() {
        bail!(
            "{NAME} could not be built; `cargo xtask tools` in {} says why",
            root.display()
        );
    }
    Ok(())
}

/// The checkout whose release build a program is.
fn checkout(own: &Path) -> Option<PathBuf> {
    let root = own.ancestors().nth(3)?;
    let is_ours =
        own.parent()?.ends_with("target/release") && root.join("crates/tools/Cargo.toml").is_file();
    is_ours.then(|| root.to_owned())
}
