//! `lockstep sweep`: many points from one file.

use crate::simulator;
use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lockstep_sweep::{
    Cell, Event, Interrupt, Launcher, Outcome, Point, Sweep, SweepFolder, Table, Workers, outcome,
    submit, write_results,
};
use lockstep_text::{Align, Table as TextTable};
use lockstep_text::{note, say};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Simulate many points of a file: grids and lists of settings, GPUs, programs, arguments.
#[derive(Args)]
#[command(
    after_help = "The file is TOML:\n  gpu = \"v100\"\n  program = \"./matmul\"\n  arguments = \"512\"\n  [grid]\n  \"device.clock\" = [\"1 GHz\", \"1.5 GHz\"]\n  \"l2.capacity\" = [\"3 MiB\", \"6 MiB\"]\n  [pareto]\n  minimize = [\"kernel_ns\", \"l2.capacity\"]\n\nExit code 0 if every point is finished, 1 if some failed."
)]
pub struct SweepArguments {
    /// The sweep file
    file: PathBuf,
    /// Points that are simulated at a time [default: one a processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Folder for the results [default: lockstep-out/sweep-FILE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with a sweep: points that are finished are not repeated
    #[arg(long)]
    resume: bool,
    /// Start every point by a shell, for example "srun -n1 {command}"; {folder}, {point} and {worker} work too
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "slurm")]
    launcher: Option<String>,
    /// Submit the points to Slurm as a job array and wait for them
    #[arg(long)]
    slurm: bool,
    /// Run nothing: make tables and plots of what is there
    #[arg(long, conflicts_with_all = ["slurm", "launcher"])]
    collect: bool,
}

impl SweepArguments {
    /// Runs it; 0 if every point is finished.
    pub fn run(self) -> anyhow::Result<i32> {
        let sweep = Sweep::read(&self.file)?;
        check_options(sweep.runs().into_iter())?;
        let path = self
            .out
            .clone()
            .unwrap_or_else(|| default_folder(&self.file));
        let folder = SweepFolder::open(&path, self.resume || self.collect)?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = self.workers.map_or(processors, usize::from);
        let lockstep = simulator::path()?;
        let threads = (processors / workers).max(1);
        let launcher = Launcher::new(&lockstep, self.launcher.clone(), threads)?;
        let mut code = 0;
        if !self.collect {
            let left = unfinished(&folder, &sweep);
            let shared = sweep.points.len() - sweep.runs().len();
            say!(
                "{} points, {shared} of them equal to others; {} to simulate
",
                sweep.points.len(),
                left.len()
            );
            for point in &left {
                launcher.make_checkpoint(&folder, point)?;
            }
            if self.slurm {
                submit(&folder, &launcher, &left, self.workers.map(usize::from))?;
            } else {
                let workers = Workers {
                    count: workers,
                    launcher: &launcher,
                    folder: &folder,
                    interrupt: &Interrupt::listen().context("signals")?,
                };
                simulate(&workers, &left)?;
                code = workers.interrupt.signal().map_or(0, |signal| 128 + signal);
            }
        }
        let (table, problems) = write_results(&folder, &sweep)?;
        for problem in problems {
            note!("lockstep: {problem}\n");
        }
        let failed = report(&folder, &sweep, &table);
        if code != 0 {
            note!("lockstep: interrupted; the same command with --resume goes on\n");
        }
        Ok(if code == 0 && failed { 1 } else { code })
    }
}

/// Options that `lockstep run` or `lockstep kernel` would refuse are refused before anything runs.
fn check_options<'sweep>(points: impl Iterator<Item = &'sweep Point>) -> anyhow::Result<()> {
    let unused = Path::new("unused");
    let (mut numbers, mut lines) = (Vec::new(), Vec::new());
    for point in points {
        let own = point.run.words(unused, 1);
        let checkpoint = point.run.warm_start.is_some();
        let checkpoint = checkpoint.then(|| point.run.checkpoint_words(unused, 1));
        for line in std::iter::once(own).chain(checkpoint) {
            numbers.push(point.number);
            lines.push(line);
        }
    }
    match simulator::first_refused(&lines)? {
        Some((line, error)) => anyhow::bail!("point {}: {error}", numbers[line]),
        None => Ok(()),
    }
}

fn default_folder(file: &Path) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    Path::new("lockstep-out").join(format!("sweep-{stem}"))
}

/// Runs that have no results yet.
fn unfinished<'sweep>(folder: &SweepFolder, sweep: &'sweep Sweep) -> Vec<&'sweep Point> {
    let mut points = sweep.runs();
    points.retain(|point| {
        let end = outcome(&folder.run(point), &folder.log(point));
        !matches!(end, Outcome::Finished(_))
    });
    points
}

/// Runs points, with a bar on a terminal.
fn simulate(workers: &Workers<'_>, points: &[&Point]) -> anyhow::Result<()> {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(points.len() as u64), target);
    let template = "{bar:30} {pos} of {len} points, {elapsed} gone, {eta} left{msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    let mut failed = 0;
    workers.run(points, |event| {
        if let Event::Ended(_, end) = event {
            bar.inc(1);
            if matches!(end, Outcome::Failed(_)) {
                failed += 1;
                bar.set_message(format!(", {failed} failed"));
            }
        }
    })?;
    bar.finish_and_clear();
    Ok(())
}

/// Says what came of it; whether some points have no results.
fn report(folder: &SweepFolder, sweep: &Sweep, table: &Table) -> bool {
    let columns = ["point".to_string()]
        .into_iter()
        .chain(sweep.varied.iter().cloned());
    let columns =
        columns.chain(["state", "kernels", "cycles", "kernel_ns", "pareto"].map(String::from));
    let columns: Vec<(usize, String)> = columns
        .filter_map(|name| Some((table.find(&name)?, name)))
        .collect();
    let head: Vec<(&str, Align)> = columns
        .iter()
        .map(|(_, name)| (name.as_str(), Align::Right))
        .collect();
    let mut text = TextTable::new(&head);
    for row in &table.rows {
        let cells: Vec<String> = columns
            .iter()
            .map(|(place, _)| row[*place].to_string())
            .collect();
        text.row(&cells);
    }
    say!("{text}\nresults: {}\n", folder.path().display());
    let (Some(state), Some(reason)) = (table.find("state"), table.find("reason")) else {
        return false;
    };
    let mut failed = false;
    for (point, row) in sweep.points.iter().zip(&table.rows) {
        match &row[state] {
            Cell::Text(state) if state == "finished" => continue,
            Cell::Text(state) if state == "failed" => {
                note!("lockstep: point {} failed: {}\n", point.number, row[reason]);
            }
            _ => note!("lockstep: point {} was not simulated\n", point.number),
        }
        failed = true;
    }
    failed
}
