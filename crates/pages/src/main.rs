//! Manual pages and completions of shells for both programs, as packages lay them out: `lockstep-pages FOLDER`, where
//! the folder becomes `share`.

use anyhow::Context;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// A shell, and where its completions belong.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/lockstep"),
    (Shell::Zsh, "zsh/site-functions/_lockstep"),
    (Shell::Fish, "fish/vendor_completions.d/lockstep.fish"),
];

fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1).context("a folder is missing")?;
    let folder = PathBuf::from(folder);
    let mut command = whole_command();
    command.build();
    for (shell, path) in COMPLETIONS {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command.clone(), "lockstep", &mut text);
        write(&folder.join(path), &text)?;
    }
    let manual = folder.join("man/man1");
    page(&command, &manual, "lockstep")?;
    for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
        page(part, &manual, &format!("lockstep-{}", part.get_name()))?;
    }
    Ok(())
}

/// The command line of `lockstep`, with the options of the commands that it hands to `lockstep-tools`.
fn whole_command() -> clap::Command {
    let tools = lockstep_tools::command();
    tools
        .get_subcommands()
        .fold(lockstep_cli::command(), |whole, part| {
            whole.mut_subcommand(part.get_name(), |_| part.clone())
        })
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

#[cfg(test)]
mod tests {
    #[test]
    fn each_program_names_the_commands_of_the_other_alike() {
        let (lockstep, tools) = (lockstep_cli::command(), lockstep_tools::command());
        let handed = lockstep
            .get_subcommands()
            .filter(|part| part.is_disable_help_flag_set());
        let about = |part: &clap::Command| {
            let about = part.get_about().map(ToString::to_string);
            (part.get_name().to_string(), about)
        };
        let mut handed: Vec<_> = handed.map(about).collect();
        let mut known: Vec<_> = tools.get_subcommands().map(about).collect();
        handed.sort();
        known.sort();
        assert_eq!(handed, known);
    }
}
