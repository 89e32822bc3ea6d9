//! Options that several commands share.

use anyhow::Context;
use clap::{Args, ValueEnum};
use lockstep_schema::Metadata;
use lockstep_simulation::{
    Assembling, Checks, Description, Existing, FrontendChoice, Interval, Launches, Mode, Plan,
    Regex, Region, SamplingOptions, Schedule, Selection, Watch,
};
use lockstep_text::note;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Which GPU is simulated, and how.
#[derive(Args)]
pub struct SimulationOptions {
    /// GPU of the catalogue (see `lockstep gpus`), or a .toml file
    #[arg(long, value_name = "NAME|FILE", default_value = lockstep_config::DEFAULT_GPU)]
    pub gpu: String,
    /// Change one setting, for example `--set l2.capacity="30 MiB"`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Instructions to run: SASS for the GPU if the program carries it or `ptxas` makes it of the program's PTX, else PTX;
    /// or only one kind
    #[arg(long, value_enum, default_value_t = FrontendName::Auto)]
    pub frontend: FrontendName,
    /// Model every cycle, or only values
    #[arg(long, value_enum, default_value_t = ModeName::Timing)]
    pub mode: ModeName,
    /// How many launches take their time: all, none (as --mode functional), or a sample from which the cycles of the
    /// others are projected, with a 95 % confidence interval
    #[arg(long, value_enum, conflicts_with = "mode")]
    pub detail: Option<DetailName>,
    /// With --detail sampled: the folder of an earlier run of the same program, in any mode, whose launches and
    /// instruction counts to draw the sample from
    #[arg(long, value_name = "DIR")]
    pub plan: Option<PathBuf>,
    /// With --detail sampled: where chance comes from
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub sampling_seed: u64,
    /// Model every cycle only of kernels in whose name this is found; the others run functionally
    #[arg(long, value_name = "REGEX")]
    pub kernels: Option<Regex>,
    /// Model every cycle only of these launches, numbered from 0, for example 0,5-9,20-
    #[arg(long, value_name = "RANGE")]
    pub launches: Option<Launches>,
    /// Model every cycle only within a region, and run the rest functionally: `nvtx:NAME` or `nvtx:NAME@DOMAIN` (a
    /// regular expression for the whole name of a range), `profiler` (from cudaProfilerStart to cudaProfilerStop),
    /// `kernel:REGEX`, `launch:RANGE`; may be repeated for more
    #[arg(long = "region", value_name = "REGION")]
    pub regions: Vec<Region>,
    /// Worker threads at most, or `auto` for as many as the machine has; few blocks use few of them
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = thread_count)]
    pub threads: u32,
    /// How parts of the GPU are given to threads
    #[arg(long, value_enum, default_value_t = ScheduleName::Auto)]
    pub schedule: ScheduleName,
    /// Run through every moment, even those in which nothing happens: slow, with the same answers
    #[arg(long)]
    pub no_jumps: bool,
    /// Empty the caches before every kernel, as ncu does by default
    #[arg(long)]
    pub cold_caches: bool,
    /// Refuse a program without machine code for the GPU if `ptxas` does not make it from PTX, instead of running PTX; for
    /// `lockstep kernel` and `--frontend sass`, make it at all
    #[arg(long)]
    pub assemble: bool,
    /// Find what a GPU lets pass: `memory` stops at the first access outside every allocation, `initialised` finds
    /// reads of memory that nobody wrote, `race` hazards in shared memory, `barriers` misused barriers, `leaks` memory
    /// never freed; `all` is the first four. compute-sanitizer's names (`memcheck`, `initcheck`, `racecheck`,
    /// `synccheck`) work too. `control-bits` stops at a register that is read too early (SASS only)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub check: Vec<CheckName>,
    /// Write down what one part does from one SM cycle to another, in at most so many lines, for
    /// example `--debug "sm 3,5000,6000,200"`; may be repeated
    #[arg(long, value_name = "COMPONENT,FROM,TO[,LIMIT]", value_parser = Watch::parse)]
    pub debug: Vec<Watch>,
    /// Refuse images that the real driver would refuse on this GPU
    #[arg(long)]
    pub strict_image: bool,
    /// Folder for the results, new or empty [default: lockstep-out/PROGRAM-N]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Remove what an earlier run left in the folder of --out; other files stay
    #[arg(long, visible_alias = "force", requires = "out")]
    pub overwrite: bool,
}

/// How many GPUs there are, and what joins them.
#[derive(Args)]
pub struct NodeOptions {
    /// GPUs of a node: how many of the kind of --gpu, or the kind of each, for example `h200,h200,a100`, which then
    /// stand in its place
    #[arg(long, value_name = "N|KIND,...", default_value_t = Gpus::Alike(1))]
    pub gpus: Gpus,
    /// Equal nodes, each with so many GPUs; a process is on one of them, as its launcher or LOCKSTEP_NODE says
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub nodes: u32,
    /// Links between GPUs: pcie, nvlink-mesh, hgx, hgx-cluster, or a .toml file [default: those that such GPUs
    /// usually have]
    #[arg(long, value_name = "NAME|FILE")]
    pub node: Option<String>,
}

/// The GPUs of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gpus {
    /// So many of one kind.
    Alike(u32),
    /// One of each of these kinds, in their order.
    Kinds(Vec<String>),
}

impl FromStr for Gpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(count) = text.parse() {
            return Ok(Self::Alike(count));
        }
        let kinds: Vec<String> = text.split(',').map(|kind| kind.trim().into()).collect();
        match kinds.iter().any(String::is_empty) || text.starts_with('-') {
            true => Err(format!(
                "`{text}` is neither a number of GPUs nor a list of kinds such as `h200,a100`"
            )),
            false => Ok(Self::Kinds(kinds)),
        }
    }
}

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alike(count) => write!(f, "{count}"),
            Self::Kinds(kinds) => f.write_str(&kinds.join(",")),
        }
    }
}

impl NodeOptions {
    /// Says in a description of a run what node it has, with these settings for each GPU.
    pub fn apply(&self, description: &mut Description, settings: &[String]) -> anyhow::Result<()> {
        description.nodes = self.nodes;
        description.node.clone_from(&self.node);
        match &self.gpus {
            Gpus::Alike(count) => description.gpus = *count,
            Gpus::Kinds(kinds) => {
                let configs = kinds.iter().map(|kind| {
                    let resolved = configuration(kind, settings)?;
                    Ok(resolved.config)
                });
                let configs: Vec<_> = configs.collect::<anyhow::Result<_>>()?;
                description.gpu = kinds.join(",");
                description.gpus = u32::try_from(kinds.len())?;
                description.config.clone_from(&configs[0]);
                description.kinds = configs;
            }
        }
        Ok(())
    }
}

/// What a run writes beside its tables.
#[derive(Args)]
pub struct RecordingOptions {
    /// Sample all counters of the GPU, its SMs and its L2 slices at this interval of simulated time, for example
    /// `1000 cycles` or `2 us`, into series.blocks (`lockstep export --table series`)
    #[arg(long, value_name = "INTERVAL")]
    pub series: Option<Interval>,
    /// Publish counters in shared memory while the run goes on, as a sampled program of a real GPU does: all
    /// that those have, or those of a metadata file (TOML)
    #[arg(long, value_name = "FILE")]
    pub publish: Option<Option<PathBuf>>,
    /// Count by instruction what was issued and what warps waited for, into lines.csv
    #[arg(long)]
    pub lines: bool,
}

impl RecordingOptions {
    /// Adds them to a run.
    pub fn add(&self, description: &mut Description) -> anyhow::Result<()> {
        anyhow::ensure!(
            description.mode == Mode::Timing || (self.series.is_none() && !self.lines),
            "--series and --lines need time; leave --mode functional out"
        );
        anyhow::ensure!(
            description.sampling.is_none() || (self.series.is_none() && !self.lines),
            "--series and --lines follow launches that take their time; leave them or --detail sampled out"
        );
        anyhow::ensure!(
            description.sampling.is_none() || description.all_gpus() == 1,
            "--detail sampled follows one GPU so far; leave it or --gpus out"
        );
        anyhow::ensure!(
            description.all_gpus() == 1 || (self.series.is_none() && !self.lines),
            "--series and --lines follow one GPU; leave them or --gpus out"
        );
        description.series = self.series;
        description.publish = match &self.publish {
            Some(Some(file)) => Some(Metadata::read(file).context("--publish")?),
            Some(None) => Some(Metadata::of_everything()),
            None => None,
        };
        description.lines = self.lines;
        Ok(())
    }
}

/// What a program can be checked for.
#[derive(Clone, Copy, ValueEnum)]
pub enum CheckName {
    /// Accesses outside every allocation, and misaligned ones
    #[value(alias = "memcheck")]
    Memory,
    /// Reads of device memory that nobody has written
    #[value(aliases = ["initcheck", "initialized"])]
    Initialised,
    /// Hazards in shared memory
    #[value(alias = "racecheck")]
    Race,
    /// Misused barriers
    #[value(alias = "synccheck")]
    Barriers,
    /// Memory that is never freed
    #[value(alias = "leakcheck")]
    Leaks,
    /// Memory, initialised, race and barriers
    All,
    /// Registers that are read before the compiler's control bits allow it
    ControlBits,
}

/// The checks that names stand for.
fn checks(names: &[CheckName]) -> Checks {
    let mut checks = Checks::default();
    for name in names {
        let gpu = &mut checks.gpu;
        match name {
            CheckName::Memory => gpu.memory = true,
            CheckName::Initialised => gpu.initialised = true,
            CheckName::Race => gpu.race = true,
            CheckName::Barriers => gpu.barriers = true,
            CheckName::Leaks => checks.leaks = true,
            CheckName::ControlBits => gpu.control_bits = true,
            CheckName::All => {
                gpu.memory = true;
                gpu.initialised = true;
                gpu.race = true;
                gpu.barriers = true;
            }
        }
    }
    checks
}

/// Names for [`FrontendChoice`].
#[derive(Clone, Copy, ValueEnum)]
pub enum FrontendName {
    /// SASS if there is any for the GPU or `ptxas` makes it of PTX, else PTX
    Auto,
    /// Machine code
    Sass,
    /// Virtual machine code
    Ptx,
}

/// Names for [`Mode`].
#[derive(Clone, Copy, ValueEnum)]
pub enum ModeName {
    /// Every cycle
    Timing,
    /// Values only
    Functional,
}

/// How many launches take their time.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DetailName {
    /// All
    Full,
    /// None
    Functional,
    /// A sample
    Sampled,
}

/// Names for [`Schedule`].
#[derive(Clone, Copy, ValueEnum)]
pub enum ScheduleName {
    /// Whatever suits the number of threads
    Auto,
    /// Every part stays with one thread
    Static,
    /// Threads take parts as they become free
    Dynamic,
}

/// The configuration of a GPU; keys under old names are answered with their new ones.
pub fn configuration(gpu: &str, settings: &[String]) -> anyhow::Result<lockstep_config::Resolved> {
    let resolved = lockstep_config::resolve(Some(gpu), settings).context("configuration")?;
    for warning in &resolved.warnings {
        note!("lockstep: warning: {warning}\n");
    }
    Ok(resolved)
}

/// The most threads that can be asked for.
const MOST_THREADS: u32 = 4096;

/// A number of threads; zero stands for as many as the machine has.
pub fn thread_count(text: &str) -> Result<u32, String> {
    if text == "auto" {
        return Ok(0);
    }
    match text.parse() {
        Ok(count) if count <= MOST_THREADS => Ok(count),
        _ => Err(format!("a number up to {MOST_THREADS}, or `auto`")),
    }
}

/// Units of the host's time, with their length in milliseconds.
const HOST_UNITS: [(&str, f64); 4] = [("ms", 1.0), ("min", 6e4), ("s", 1e3), ("h", 3.6e6)];

/// A length of the host's time.
pub fn host_time(text: &str) -> Result<Duration, String> {
    let read = HOST_UNITS.iter().find_map(|(unit, milliseconds)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Duration::try_from_secs_f64(number * milliseconds / 1e3).ok()
    });
    read.filter(|time| !time.is_zero())
        .ok_or_else(|| "a number with its unit (ms, s, min, h), such as `60s`".into())
}

impl From<ScheduleName> for Schedule {
    fn from(name: ScheduleName) -> Self {
        match name {
            ScheduleName::Auto => Self::Auto,
            ScheduleName::Static => Self::Static,
            ScheduleName::Dynamic => Self::Dynamic,
        }
    }
}

impl SimulationOptions {
    /// All launches take their time from now on.
    pub fn model_every_cycle(&mut self) {
        self.mode = ModeName::Timing;
        self.detail = None;
        self.plan = None;
    }

    /// Says in a description of a run which launches take their time.
    fn describe_detail(&self, description: &mut Description) -> anyhow::Result<()> {
        let sampled = self.detail == Some(DetailName::Sampled);
        anyhow::ensure!(
            sampled || self.plan.is_none(),
            "--plan says what to sample; add --detail sampled"
        );
        if self.detail == Some(DetailName::Functional) {
            description.mode = Mode::Functional;
        }
        if sampled {
            let seed = self.sampling_seed;
            let plan = self.plan.as_deref().map(|path| Plan::read(path, seed));
            description.sampling = Some(SamplingOptions {
                seed,
                plan: plan.transpose().context("--plan")?,
            });
        }
        Ok(())
    }

    /// The run that these options describe.
    pub fn describe(&self) -> anyhow::Result<Description> {
        let config = configuration(&self.gpu, &self.settings)?.config;
        let mut description = Description::new(&self.gpu, config);
        description.frontend = match self.frontend {
            FrontendName::Auto => FrontendChoice::Auto,
            FrontendName::Sass => FrontendChoice::Sass,
            FrontendName::Ptx => FrontendChoice::Ptx,
        };
        description.mode = match self.mode {
            ModeName::Timing => Mode::Timing,
            ModeName::Functional => Mode::Functional,
        };
        self.describe_detail(&mut description)?;
        description.selection = Selection {
            kernels: self.kernels.clone(),
            launches: self.launches.clone(),
            regions: self.regions.clone(),
        };
        anyhow::ensure!(
            description.mode == Mode::Timing || description.selection.is_everything(),
            "--kernels, --launches and --region choose what runs in timing mode; leave --mode functional out"
        );
        anyhow::ensure!(
            description.sampling.is_none() || description.selection.is_everything(),
            "--detail sampled chooses launches by itself; leave --kernels, --launches and --region out"
        );
        description.execution.threads = self.threads;
        description.execution.schedule = self.schedule.into();
        description.execution.no_jumping = self.no_jumps;
        description.cold_caches = self.cold_caches;
        description.assembling = match self.assemble {
            true => Assembling::Required,
            false => Assembling::IfPossible,
        };
        description.checks = checks(&self.check);
        for watch in &self.debug {
            watch.check(&description.config).context("--debug")?;
        }
        description.watches = self.debug.clone();
        description.strict_image = self.strict_image;
        description.out = self.out.clone();
        description.existing = match self.overwrite {
            true => Existing::Overwrite,
            false => Existing::MustBeEmpty,
        };
        Ok(description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_the_host_has_a_unit() {
        assert_eq!(host_time("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(host_time("1.5 min"), Ok(Duration::from_secs(90)));
        assert_eq!(host_time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(host_time("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "60", "s", "0s", "-1s", "nan s", "inf h", "1 us"] {
            assert!(host_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn gpus_are_a_number_or_their_kinds() {
        assert_eq!("4".parse(), Ok(Gpus::Alike(4)));
        let kinds =
            |kinds: &[&str]| Ok(Gpus::Kinds(kinds.iter().map(|&kind| kind.into()).collect()));
        assert_eq!("h200, a100".parse(), kinds(&["h200", "a100"]));
        assert_eq!("./own.toml".parse(), kinds(&["./own.toml"]));
        for wrong in ["", "-1", "h200,", ","] {
            assert!(wrong.parse::<Gpus>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn threads_are_a_number_or_auto() {
        assert_eq!(thread_count("auto"), Ok(0));
        assert_eq!(thread_count("0"), Ok(0));
        assert_eq!(thread_count("16"), Ok(16));
        for wrong in ["-1", "some", "5000", "99999999999", ""] {
            assert!(thread_count(wrong).is_err(), "{wrong}");
        }
    }
}
