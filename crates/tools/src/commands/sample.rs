//! `lockstep sample`: counters of a real GPU as time series, without touching the program.

use super::job_rank::JobRank;
use lockstep_text::say;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use lockstep_attribution::Rates;
use lockstep_collector::{Collector, Launcher, Outcome, Session, find_injector, live_view};
use lockstep_schema::{Metadata, Mode, Timeline};
use lockstep_segment::SegmentDirectory;

/// Counters of a real GPU as time series, without touching the program
///
/// Runs PROGRAM with the injector in it and writes a run folder like a simulation's: summary.json,
/// kernels.csv and series.csv. With --all it reads every CUDA program of the user instead, once
/// `eval "$(lockstep sample --environment)"` stands in the shell's profile.
#[derive(Args)]
pub struct SampleArguments {
    /// File that names counters, interval and mode (TOML); see configs/counters
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    /// Time between samples, instead of the file's: "10 ms"
    #[arg(long, value_name = "TIME")]
    interval: Option<String>,
    /// Count every kernel exactly, at milliseconds per launch
    #[arg(long)]
    exact: bool,
    /// Learn nothing of kernels and touch no launch: the whole GPU is one row of the series
    #[arg(long, conflicts_with_all = ["exact", "rates"])]
    no_kernels: bool,
    /// Run folder; default lockstep-out/PROGRAM-N
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Sample one rank of a parallel program into a folder that all of its ranks share: `mpirun -n 4 lockstep sample
    /// --job DIR -- PROGRAM`. The last rank that ends leaves the whole job there
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "all", "attach", "environment"])]
    job: Option<PathBuf>,
    /// Write what was learned (launches, marks, samples), to divide it again without a GPU
    #[arg(long, value_name = "FILE")]
    recording: Option<PathBuf>,
    /// Run folder of an exact run of the same kernels: what they do is known, and need not be learned
    #[arg(long, value_name = "DIR", conflicts_with = "exact")]
    rates: Option<PathBuf>,
    /// Show no live view
    #[arg(long)]
    quiet: bool,
    /// Read every CUDA program of this user that has the injector in its environment
    #[arg(long, conflicts_with = "program")]
    all: bool,
    /// With --all: stop after so many seconds
    #[arg(long, value_name = "SECONDS", requires = "all")]
    seconds: Option<f64>,
    /// Read what a killed reader left in a folder of segments
    #[arg(long, value_name = "DIR", conflicts_with_all = ["program", "all"])]
    attach: Option<PathBuf>,
    /// Print the variables that put the injector into every CUDA program of a shell
    #[arg(long, conflicts_with_all = ["program", "all", "attach"])]
    environment: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

impl SampleArguments {
    /// Runs it; the program's exit code.
    pub fn run(self) -> anyhow::Result<i32> {
        let metadata = self.metadata()?;
        if self.environment {
            let injector = find_injector()?;
            say!("export CUDA_INJECTION64_PATH={}\n", injector.display());
            if let Some(file) = &self.metadata {
                let file = file
                    .canonicalize()
                    .with_context(|| format!("{}", file.display()))?;
                say!("export LOCKSTEP_SAMPLE_METADATA={}\n", file.display());
            }
            return Ok(0);
        }
        // Before the program starts, so that a wrong folder costs nothing.
        let counters: Vec<&'static str> = metadata
            .resolved_counters()
            .iter()
            .map(|counter| counter.name)
            .collect();
        let rates = self.rates.as_deref();
        let rates = rates.map(|run| Rates::read(run, &counters)).transpose()?;
        let rank = self.job.as_deref().map(JobRank::begin).transpose()?;
        let base = SegmentDirectory::of_user();
        let mut session = if self.all {
            let segments = base.join("programs");
            SegmentDirectory::open(&base, &metadata.segment.group)?;
            SegmentDirectory::open(&segments, &metadata.segment.group)?;
            let time = self.seconds.map(Duration::from_secs_f64);
            Session::of_folder(&segments, &metadata, &self.folder("programs"), time, false)?
        } else if let Some(segments) = &self.attach {
            Session::of_folder(segments, &metadata, &self.folder("attached"), None, true)?
        } else if let Some(program) = self.program.first() {
            let name = Path::new(program)
                .file_name()
                .map_or_else(|| "program".into(), |name| name.to_string_lossy());
            let launcher = Launcher::prepare(find_injector()?, &base, &metadata)?;
            let sampler = std::env::current_exe()
                .ok()
                .filter(|_| metadata.mode == Mode::Sampled)
                .and_then(|this| {
                    launcher.start_sampler(Command::new(this).args(["sampled", "--run"]))
                });
            let folder = match &rank {
                Some(rank) => rank.folder.clone(),
                None => self.folder(&name),
            };
            Session::of_program(launcher, sampler, &self.program, &metadata, &folder)?
        } else {
            bail!("nothing to sample: give a program after --, or --all, or --attach DIR");
        };
        if let Some(rates) = rates {
            session.know(rates);
        }
        if let Some(path) = &self.recording {
            session.record(path)?;
        }
        let quiet = self.quiet || !std::io::stderr().is_terminal();
        let mut view = View::default();
        let outcome = session.run(&mut |collector, seconds| {
            if !quiet {
                view.show(collector, seconds);
            }
            true
        })?;
        report(&outcome, metadata.timeline != Timeline::None);
        if let Some(rank) = rank {
            rank.end()?;
        }
        Ok(outcome.code)
    }

    fn metadata(&self) -> anyhow::Result<Metadata> {
        let mut metadata = match &self.metadata {
            Some(path) => Metadata::read(path)?,
            None if self.exact => Metadata::exact(),
            None => Metadata::default(),
        };
        if let Some(text) = &self.interval {
            metadata.interval = text.parse().context("--interval")?;
        }
        if self.exact {
            metadata.mode = Mode::Exact;
        }
        if self.no_kernels {
            metadata.timeline = Timeline::None;
        }
        let place = self.metadata.as_ref().map_or_else(
            || "the command line".to_owned(),
            |path| path.display().to_string(),
        );
        // Through its own text once more, so that options obey the rules of the file.
        let metadata = Metadata::parse(&place, &metadata.text())?;
        metadata.check_for_real_gpu(&place)?;
        Ok(metadata)
    }

    /// The run folder that was asked for, or the next free one.
    fn folder(&self, name: &str) -> PathBuf {
        if let Some(path) = &self.out {
            return path.clone();
        }
        (1..)
            .map(|n| Path::new("lockstep-out").join(format!("{name}-{n}")))
            .find(|path| !path.exists())
            .unwrap_or_else(|| "lockstep-out".into())
    }
}

/// Draws over its own lines at most four times a second; a terminal that is gone sees nothing.
#[derive(Default)]
struct View {
    lines: usize,
    shown: f64,
}

impl View {
    fn show(&mut self, collector: &Collector, seconds: f64) {
        if seconds - self.shown < 0.25 {
            return;
        }
        self.shown = seconds;
        let mut error = std::io::stderr().lock();
        if self.lines > 0 {
            let _ = write!(error, "\x1b[{}A\x1b[J", self.lines);
        }
        let lines = live_view(collector, seconds, 160);
        self.lines = lines.len();
        for line in lines {
            let _ = writeln!(error, "{line}");
        }
    }
}

/// Says what went wrong. The same sentences are in `summary.json`, so a terminal that is gone loses
/// nothing.
fn report(outcome: &Outcome, injected: bool) {
    let mut error = std::io::stderr().lock();
    for notice in &outcome.summary.notices {
        let _ = writeln!(error, "lockstep: {notice}");
    }
    if injected && outcome.summary.processes.is_empty() {
        let _ = writeln!(
            error,
            "lockstep: no CUDA program published anything: the program made no CUDA context"
        );
    }
    for loss in &outcome.summary.losses {
        let _ = writeln!(error, "lockstep: {loss}");
    }
}
