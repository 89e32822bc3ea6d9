//! `lockstep run`: a CUDA program on a simulated GPU.

use crate::options::{NodeOptions, RecordingOptions, SimulationOptions, host_time};
use crate::{report, watch};
use clap::{Args, ValueEnum};
use lockstep_simulation::ranks::{MOST_RANKS, follow, of_mpi, started_as_rank};
use lockstep_simulation::{CheckpointOptions, Description, Recording, run_program};
use std::time::Duration;

/// Run a CUDA program on a simulated GPU.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  lockstep run -- ./vector_add\n  lockstep run --gpu a100 --mode functional -- python3 train.py\n  lockstep run --set sm.warps=32 --out results -- ./matmul 512"
)]
pub struct Run {
    #[command(flatten)]
    options: SimulationOptions,
    #[command(flatten)]
    node: NodeOptions,
    #[command(flatten)]
    recording: RecordingOptions,
    /// What to keep of the program's calls: nothing, the calls, or also all data it sent
    #[arg(long, value_enum, default_value_t = RecordName::Calls)]
    record: RecordName,
    /// Save the run at this interval of the host's time, for example `60s` or `10min`, so that `lockstep resume` can
    /// go on should it be killed
    #[arg(long, value_name = "TIME", value_parser = host_time)]
    checkpoint_every: Option<Duration>,
    /// How long a thread may compute while calls of other threads or processes wait for it, in its processor time,
    /// for example `5s`. One that takes longer is not waited for, and if it makes a call afterwards, the run says that
    /// it depends on the host [default: 1s in one process, 60s among several]
    #[arg(long, value_name = "TIME", value_parser = host_time)]
    patience: Option<Duration>,
    /// Processes that simulate the GPUs together, each with --threads threads: SMs and L2 slices are divided among
    /// them, and the results are those of one. `mpi` takes those that mpirun started, in a build with that feature
    #[arg(long, value_name = "N|mpi", default_value = "1", value_parser = rank_count)]
    ranks: RankCount,
    /// Save the run once before this launch, numbered from 0, so that `lockstep resume --out` can go on from there with
    /// other settings; best with --mode functional
    #[arg(long, value_name = "LAUNCH", conflicts_with = "checkpoint_every")]
    checkpoint_before: Option<u64>,
    /// No report at the end; the run folder has it all
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

/// Where ranks come from.
#[derive(Clone, Copy)]
enum RankCount {
    /// So many, this process included, are started.
    Start(u32),
    /// They were started by a launcher of MPI.
    Mpi,
}

fn rank_count(text: &str) -> Result<RankCount, String> {
    match text.parse() {
        _ if text == "mpi" => Ok(RankCount::Mpi),
        Ok(count @ 1..) if count as usize <= MOST_RANKS => Ok(RankCount::Start(count)),
        _ => Err(format!("a number from 1 to {MOST_RANKS}, or `mpi`")),
    }
}

/// Names for [`Recording`].
#[derive(Clone, Copy, ValueEnum)]
enum RecordName {
    /// Nothing
    None,
    /// What was called
    Calls,
    /// And every byte that the program wrote to the device
    Full,
}

impl Run {
    /// Runs it; the exit code is the program's.
    pub fn run(self) -> anyhow::Result<i32> {
        let mut description = self.describe()?;
        let threads = self.options.threads.max(1) as usize;
        let ranks = match self.ranks {
            RankCount::Mpi => Some(of_mpi()?),
            RankCount::Start(_) => started_as_rank(threads)?,
        };
        let follows = ranks.as_ref().is_some_and(|ranks| ranks.rank() > 0);
        description.ranks = ranks;
        match follows {
            true => Ok(follow(&description)?),
            false => self.simulate(&description),
        }
    }

    /// The run that its options describe.
    pub fn describe(&self) -> anyhow::Result<Description> {
        let mut description = self.options.describe()?;
        self.node.apply(&mut description, &self.options.settings)?;
        self.recording.add(&mut description)?;
        if let RankCount::Start(count) = self.ranks {
            description.execution.ranks = count;
        }
        description.recording = match self.record {
            RecordName::None => Recording::None,
            RecordName::Calls => Recording::Calls,
            RecordName::Full => Recording::Full,
        };
        description.patience = self.patience;
        description.checkpoints = self.is_saved().then(|| CheckpointOptions {
            every: self.checkpoint_every.unwrap_or(Duration::MAX),
            before: self.checkpoint_before,
            from: None,
            arguments: std::env::args().skip(1).collect(),
            resume: false,
        });
        Ok(description)
    }

    /// Whether it is saved now and then.
    pub fn is_saved(&self) -> bool {
        self.checkpoint_every.is_some() || self.checkpoint_before.is_some()
    }

    /// Takes another GPU or other settings, above those that it has, and every cycle.
    pub fn change(&mut self, gpu: Option<&str>, settings: &[String]) {
        if let Some(gpu) = gpu {
            gpu.clone_into(&mut self.options.gpu);
        }
        self.options.settings.extend_from_slice(settings);
        self.options.model_every_cycle();
    }

    /// Says no more than it has to.
    pub fn silence(&mut self) {
        self.quiet = true;
    }

    /// Runs it as described; the exit code is the program's.
    pub fn simulate(&self, description: &Description) -> anyhow::Result<i32> {
        let watcher = (!self.quiet).then(|| watch::Watcher::start(&description.progress));
        let results = run_program(description, &self.command);
        if let Some(watcher) = watcher {
            watcher.finish();
        }
        let results = results?;
        match self.quiet {
            true => report::print_bad_ending(&results),
            false => report::print(&results),
        }
        report::print_problems(&results);
        Ok(results.summary.ending.exit_code)
    }
}
