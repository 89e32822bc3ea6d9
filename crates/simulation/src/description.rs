//! What is to be run, and how.

use crate::assemble::Assembling;
use crate::checkpoint::CheckpointOptions;
use crate::checks::Checks;
use crate::kernel_traces::Tracing;
use crate::outside_clock::OutsideClock;
use crate::progress::Progress;
use crate::sampling::SamplingOptions;
use crate::selection::Selection;
use crate::server::Recording;
use lockstep_config::GpuConfig;
use lockstep_gpu::{Ranks, Watch};
use lockstep_node::{NodeConfig, NodeError, Topology};
use lockstep_run_folder::Existing;
use lockstep_runtime::{FrontendChoice, LaunchSummary};
use lockstep_schema::Metadata;
use lockstep_units::{Cycles, Duration, Hertz};
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// What is modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every cycle.
    #[default]
    Timing,
    /// Values only: one instruction per resident warp in turn.
    Functional,
}

impl Mode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timing => "timing",
            Self::Functional => "functional",
        }
    }
}

/// How partitions are given to worker threads. No choice here changes a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Whatever suits the number of threads.
    #[default]
    Auto,
    /// Every partition stays with one worker.
    Static,
    /// Workers take partitions as they become free.
    Dynamic,
}

impl Schedule {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }
}

/// How the simulator itself works. Nothing here changes a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Execution {
    /// Worker threads of each rank; 0 chooses.
    pub threads: u32,
    /// Processes that simulate together; up to 1 is this one alone.
    pub ranks: u32,
    /// How partitions are given to them.
    pub schedule: Schedule,
    /// Step through idle time instead of jumping over it.
    pub no_jumping: bool,
    /// Delay workers at random, from this seed.
    pub delay_seed: Option<u64>,
    /// Save and load the whole state at random epochs, from this seed.
    pub reload_seed: Option<u64>,
}

/// How often counters are sampled, in simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// In cycles of the SM clock.
    Cycles(Cycles),
    /// In time.
    Time(Duration),
}

impl Interval {
    /// How long it is on a GPU with this clock.
    pub fn duration(self, clock: Hertz) -> Duration {
        match self {
            Self::Cycles(cycles) => clock.duration(cycles),
            Self::Time(time) => time,
        }
    }
}

impl FromStr for Interval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().map(Cycles).ok();
        let cycles = number.or_else(|| text.parse::<Cycles>().ok());
        let interval = match cycles {
            Some(cycles) => Some(Self::Cycles(cycles)),
            None => text.parse().map(Self::Time).ok(),
        };
        match interval {
            Some(Self::Cycles(Cycles(0)) | Self::Time(Duration(0))) | None => Err(format!(
                "`{text}` is no interval; write cycles or simulated time, such as `1000 cycles` or `2 us`"
            )),
            Some(interval) => Ok(interval),
        }
    }
}

/// One run.
#[derive(Clone, Debug)]
pub struct Description {
    /// The GPU, as the user named it.
    pub gpu: String,
    /// The GPU.
    pub config: GpuConfig,
    /// The GPU as programs and CUDA's calls see it, where that is another one: a run that goes on from a checkpoint of
    /// other settings.
    pub seen: Option<GpuConfig>,
    /// The GPUs of a node by their numbers, if they are of several kinds; the first is `config`.
    pub kinds: Vec<GpuConfig>,
    /// How many of them a node has.
    pub gpus: u32,
    /// How many equal nodes there are.
    pub nodes: u32,
    /// The links between them, by name or file; the usual ones of the GPU if it is not said.
    pub node: Option<String>,
    /// Which instructions to run.
    pub frontend: FrontendChoice,
    /// Whether PTX is made into machine code where the program carries none for the GPU.
    pub assembling: Assembling,
    /// Refuse images that the real driver would refuse.
    pub strict_image: bool,
    /// What is modelled.
    pub mode: Mode,
    /// Launches that take their time; the others run in functional mode.
    pub selection: Selection,
    /// How launches that take their time are sampled; all of the selection do if it is not said.
    pub sampling: Option<SamplingOptions>,
    /// Empty caches before every kernel.
    pub cold_caches: bool,
    /// What the program is checked for.
    pub checks: Checks,
    /// Parts whose doings are written down.
    pub watches: Vec<Watch>,
    /// How often counters are sampled; never if it is not said.
    pub series: Option<Interval>,
    /// Tell readers of shared memory what happens, as far as this names it.
    pub publish: Option<Metadata>,
    /// Count single instructions.
    pub lines: bool,
    /// How the simulator works.
    pub execution: Execution,
    /// Where results go; `lockstep-out/<program>-<n>` if it is not said.
    pub out: Option<PathBuf>,
    /// What becomes of a folder that is there already.
    pub existing: Existing,
    /// How much of the calls is recorded.
    pub recording: Recording,
    /// Where the run is to be saved now and then, if it is.
    pub checkpoints: Option<CheckpointOptions>,
    /// How long a thread may compute while calls of others wait for it, in its processor time, if it is said.
    pub patience: Option<std::time::Duration>,
    /// For those who watch.
    pub progress: Arc<Progress>,
    /// Who writes down what warps execute.
    pub tracing: Option<Arc<Tracing>>,
    /// Whether kernels are replayed from traces.
    pub replays: bool,
    /// Who says how far time may pass, if a simulator around this one does.
    pub outside: Option<Arc<OutsideClock>>,
    /// The ranks of the simulation, once there are several.
    pub ranks: Option<Ranks>,
}

impl Description {
    /// The links between the GPUs.
    ///
    /// # Errors
    /// There is no such node, or it does not hold as many GPUs.
    pub fn links(&self) -> Result<Topology, NodeError> {
        let capability = self.config.device.compute_capability;
        let usual = || NodeConfig::usual(capability.major, capability.minor, self.nodes);
        let name = self.node.as_deref().unwrap_or_else(usual);
        Topology::cluster(NodeConfig::load(name)?, self.gpus, self.nodes)
    }

    /// A GPU, by its number among those of all nodes.
    pub fn config_of(&self, gpu: u32) -> &GpuConfig {
        let on_node = gpu % self.gpus.max(1);
        self.kinds.get(on_node as usize).unwrap_or(&self.config)
    }

    /// What the GPUs of a node call themselves, by their numbers, if they are of several kinds.
    pub fn gpu_names(&self) -> Vec<String> {
        let names = self.kinds.iter().map(|config| config.device.name.clone());
        names.collect()
    }

    /// GPUs of all nodes, which are counted node by node.
    pub fn all_gpus(&self) -> u32 {
        self.gpus.saturating_mul(self.nodes)
    }

    /// Whether managed pages move between GPUs, where there are several.
    pub fn pages_between_gpus(&self) -> bool {
        self.mode == Mode::Timing
    }

    /// The GPUs of the node that a GPU is on.
    pub fn neighbours(&self, gpu: u32) -> Range<u32> {
        let each = self.gpus.max(1);
        let first = gpu / each * each;
        first..first + each
    }

    /// What a GPU is called in tables: by its number on its node, and by that node if there are several.
    pub fn gpu_name(&self, gpu: u32) -> String {
        match self.nodes {
            0 | 1 => format!("gpu {gpu}"),
            _ => format!("node {}/gpu {}", gpu / self.gpus, gpu % self.gpus),
        }
    }

    /// The links between the GPUs as NCCL's topology file.
    ///
    /// # Errors
    /// There is no such node, or it does not hold as many GPUs.
    pub fn nccl_topology(&self) -> Result<String, NodeError> {
        let links = self.links()?;
        Ok(links.nccl_xml(|gpu| {
            let seen = match self.kinds.is_empty() {
                true => self.seen(),
                false => self.config_of(gpu),
            };
            let capability = seen.device.compute_capability;
            (capability.major, capability.minor, seen.copy.pinned)
        }))
    }

    /// The GPU as programs and CUDA's calls see it.
    pub fn seen(&self) -> &GpuConfig {
        self.seen.as_ref().unwrap_or(&self.config)
    }

    /// Whether launches of both modes may come, here or from a checkpoint on.
    pub fn has_both_modes(&self) -> bool {
        let saved = self.checkpoints.as_ref();
        let chosen = self.sampling.is_some() || !self.selection.is_everything();
        self.mode == Mode::Timing && chosen || saved.is_some_and(|options| options.before.is_some())
    }

    /// The mode that a launch runs in, unless it is sampled.
    pub fn mode_of(&self, launch: &LaunchSummary) -> Mode {
        match self.mode {
            Mode::Timing if self.selection.chooses(launch) => Mode::Timing,
            _ => Mode::Functional,
        }
    }

    /// A run on this GPU with nothing special about it.
    pub fn new(gpu: &str, config: GpuConfig) -> Self {
        Self {
            gpu: gpu.into(),
            config,
            seen: None,
            kinds: Vec::new(),
            gpus: 1,
            nodes: 1,
            node: None,
            frontend: FrontendChoice::default(),
            assembling: Assembling::default(),
            strict_image: false,
            mode: Mode::default(),
            selection: Selection::default(),
            sampling: None,
            cold_caches: false,
            checks: Checks::default(),
            watches: Vec::new(),
            series: None,
            publish: None,
            lines: false,
            execution: Execution::default(),
            out: None,
            existing: Existing::default(),
            recording: Recording::default(),
            checkpoints: None,
            patience: None,
            progress: Arc::default(),
            tracing: None,
            replays: false,
            outside: None,
            ranks: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_in_cycles_or_in_time() {
        let cycles = Interval::Cycles(Cycles(1000));
        assert_eq!("1000".parse(), Ok(cycles));
        assert_eq!("1000 cycles".parse(), Ok(cycles));
        assert_eq!(
            "2 us".parse(),
            Ok(Interval::Time(Duration::microseconds(2)))
        );
        assert_eq!(
            cycles.duration(Hertz::mega(1000)),
            Duration::microseconds(1)
        );
        for wrong in ["", "0", "0 ns", "-5", "often", "1000 bytes"] {
            assert!(wrong.parse::<Interval>().is_err(), "{wrong}");
        }
    }
}
