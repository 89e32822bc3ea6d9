//! `lockstep pages`: manual pages and completions of shells, for packages.

use crate::Cli;
use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// Write manual pages and completions of shells into a folder, as packages lay them out.
#[derive(Args)]
pub struct Pages {
    /// Folder that becomes `share`
    folder: PathBuf,
}

/// A shell, and where its completions belong.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/lockstep"),
    (Shell::Zsh, "zsh/site-functions/_lockstep"),
    (Shell::Fish, "fish/vendor_completions.d/lockstep.fish"),
];

impl Pages {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        let mut command = Cli::command();
        command.build();
        for (shell, path) in COMPLETIONS {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command.clone(), "lockstep", &mut text);
            write(&self.folder.join(path), &text)?;
        }
        let manual = self.folder.join("man/man1");
        page(&command, &manual, "lockstep")?;
        for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
            page(part, &manual, &format!("lockstep-{}", part.get_name()))?;
        }
        Ok(0)
    }
}

fn page(command: &clap::Command, folder: &Path, name: &str) -> anyhow::Result<()> {
    let mut text = Vec::new();
    // Names live as long as the program does; there are a dozen.
    let named = command.clone().name(&*name.to_owned().leak());
    clap_mangen::Man::new(named).render(&mut text)?;
    write(&folder.join(format!("{name}.1")), &text)
}

fn write(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}
