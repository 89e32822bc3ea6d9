//! `cargo xtask docs`: pages made from the code, so that they say what is true.

use crate::{
    configuration, coverage, cuda, glossary, instructions, links, nvml, options, process, project,
    readme, routing, simulator, status, status_page, validate, workloads,
};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fmt::Write;
use std::time::Duration;

/// Write the generated pages of the documentation, or check that they are up to date.
#[derive(Args)]
pub struct Docs {
    /// Write nothing; fail if a page would change
    #[arg(long)]
    check: bool,
}

/// One page and what makes it.
struct Page {
    path: &'static str,
    make: fn() -> Result<String>,
}

const PAGES: &[Page] = &[
    Page {
        path: readme::PATH,
        make: readme::page,
    },
    Page {
        path: status_page::PATH,
        make: status_page::page,
    },
    Page {
        path: "docs/reference/command_line.md",
        make: command_line,
    },
    Page {
        path: "docs/reference/cuda_calls.md",
        make: || Ok(format!("{NOTICE}{}", coverage::page()?)),
    },
    Page {
        path: "docs/reference/nvml.md",
        make: || Ok(format!("{NOTICE}{}", nvml::page()?)),
    },
    Page {
        path: "docs/reference/options.md",
        make: || Ok(format!("{NOTICE}{}", options::page()?)),
    },
    Page {
        path: "docs/reference/sst_calls.md",
        make: || Ok(format!("{NOTICE}{}", routing::page()?)),
    },
    Page {
        path: "docs/reference/configuration.md",
        make: || configuration::page(NOTICE),
    },
    Page {
        path: "docs/reference/counters.md",
        make: counters,
    },
    Page {
        path: "docs/reference/ptx.md",
        make: || Ok(format!("{NOTICE}{}", instructions::ptx()?)),
    },
    Page {
        path: "docs/reference/sass.md",
        make: || Ok(format!("{NOTICE}{}", instructions::sass()?)),
    },
    Page {
        path: "docs/reference/workloads.md",
        make: workload_table,
    },
    Page {
        path: "docs/reference/model_card_h200.md",
        make: || Ok(format!("{NOTICE}{}", validate::model_card("h200")?)),
    },
];

const NOTICE: &str = "<!-- Made by `cargo xtask docs`; change the code instead. -->\n\n";

impl Docs {
    /// Runs it.
    pub fn run(self) -> Result<()> {
        simulator::build_with_tools()?;
        if self.check {
            return check();
        }
        match cuda::toolkit() {
            Ok(toolkit) => readme::example::write(&toolkit)?,
            Err(_) => println!(
                "Without a CUDA compiler the example of {} stays as it is",
                readme::PATH
            ),
        }
        write()
    }
}

/// Writes every page; needs a built `lockstep`.
pub fn write() -> Result<()> {
    for page in PAGES {
        let path = project::root().join(page.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, (page.make)()?)
            .with_context(|| format!("cannot write {}", page.path))?;
        println!("wrote {}", page.path);
    }
    Ok(())
}

/// Fails if a page is not what `write` would write, or tells what is not so.
pub fn check() -> Result<()> {
    links::check()?;
    glossary::check()?;
    options::check()?;
    readme::check_length()?;
    status::load()?.check()?;
    let mut stale = Vec::new();
    for page in PAGES {
        let found = std::fs::read_to_string(project::root().join(page.path)).unwrap_or_default();
        if found != (page.make)()? {
            stale.push(page.path);
        }
    }
    if !stale.is_empty() {
        bail!("out of date: {}; run `cargo xtask docs`", stale.join(", "));
    }
    Ok(())
}

/// `--help` of the command and of each of its commands.
fn command_line() -> Result<String> {
    let top = help(&[])?;
    let mut page = format!(
        "{NOTICE}# Command line\n\n```text\n{}\n```\n",
        top.trim_end()
    );
    for name in commands_of(&top) {
        let text = help(&[&name])?;
        write!(
            page,
            "\n## lockstep {name}\n\n```text\n{}\n```\n",
            text.trim_end()
        )?;
    }
    Ok(page)
}

fn help(command: &[&str]) -> Result<String> {
    let mut arguments = command.to_vec();
    arguments.push("--help");
    let output = process::capture(
        // One width for every terminal.
        simulator::lockstep(&arguments).env("COLUMNS", "100"),
        Duration::from_secs(30),
    )?;
    if !output.success() {
        bail!(
            "`lockstep {}` failed: {}",
            arguments.join(" "),
            output.tail(3)
        );
    }
    let trimmed: Vec<&str> = output.out.lines().map(str::trim_end).collect();
    Ok(trimmed.join("\n"))
}

/// What `lockstep counters` prints.
fn counters() -> Result<String> {
    let output = process::capture(
        &mut simulator::lockstep(&["counters"]),
        Duration::from_secs(30),
    )?;
    if !output.success() {
        bail!("`lockstep counters` failed: {}", output.tail(3));
    }
    Ok(format!("{NOTICE}{}", output.out))
}

/// Names under "Commands:" of a help text.
fn commands_of(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| line.trim() != "Commands:")
        .skip(1)
        .take_while(|line| !line.trim().is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_string)
        .collect()
}

/// All programs, in the table's order.
fn workload_table() -> Result<String> {
    let programs = workloads::all()?;
    let kernels: usize = programs.iter().map(|program| program.kernels.len()).sum();
    let mut page = format!(
        "{NOTICE}# Workloads\n\n{} CUDA programs with {kernels} kernels, all written for this project. \
         Each verifies its own result and prints `PASS` or `FAIL`; \
         `workloads/run_all.py` runs them on a real GPU.\n\n\
         | program | kernels | what it exercises | needs |\n|---|---|---|---|\n",
        programs.len()
    );
    for program in &programs {
        let gpus = program.gpus.map(|gpus| format!(", `--gpus {gpus}`"));
        writeln!(
            page,
            "| [`{}`](../../workloads/{}) | {} | {} | {}{} |",
            program.name,
            program.source,
            program.kernels.join(", "),
            program.tags.join(", "),
            program.architecture,
            gpus.unwrap_or_default()
        )?;
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_help() {
        let help = "Runs.\n\nCommands:\n  run     Run a program\n          on a GPU\n  gpus    List\n  help    Print\n\nOptions:\n  -v\n";
        assert_eq!(commands_of(help), ["run", "gpus"]);
    }
}
