//! The simulated GPU as the runtime sees it, and what only a whole run needs of it: stopping,
//! progress, fresh memory after a free, saving and loading, the digest.

mod backing;
pub mod checkpoint;
mod device;
pub mod embedded;
mod failure;
mod journal;
mod launches;
mod lines;
mod memory;
mod neighbours;
mod outside;
mod pace;
mod publication;
mod reload;
mod reports;
mod sampling;
mod series;
mod warm_start;

use crate::assemble::Assembler;
use crate::checkpoint::SharedCheckpoints;
use crate::description::{Description, Mode, Schedule};
use crate::host::Inside;
use crate::images;
use crate::kernel_traces::Tracing;
use crate::node::Node;
use crate::outside_clock::OutsideClock;
use crate::progress::Progress;
use crate::selection::Selection;
use crate::shared_images::SharedImages;
pub use backing::Backing;
use journal::Journal;
use lockstep_config::GpuConfig;
use lockstep_gpu::{
    Contents, EngineOptions, Gpu, GpuError, Launch, LaunchId, Options, PeerLinks, Perturbation,
    Profile, Recorder, WatchError,
};
use lockstep_isa::Module;
use lockstep_node::Topology;
use lockstep_protocol::{layout, window};
use lockstep_runtime::device::Listener;
use lockstep_runtime::{Device, FrontendChoice, LoadOptions, Loader, Runtime};
use lockstep_stats::{Digest, Hasher};
use lockstep_units::{Cycles, Duration, Time};
use pace::Pace;
use publication::Publication;
pub use publication::SharedSegment;
use reload::Reload;
use sampling::{Sampling, UntimedPages};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use thiserror::Error;

/// The length of slices (see [`pace`]) when state is saved and loaded now and then, which happens
/// between two of them.
const SHORT_SLICE: Duration = Duration::microseconds(2);

/// Allocations of at least so many bytes go back to the device when they are freed; smaller ones are
/// kept for the next that asks. Measured on an H200: a chase through 8 MiB finds lines that another one
/// before it left in L2, one through 20 MiB does not (`validation/microbench/chases.cu`).
const RETURNED: u64 = 16 << 20;

/// Why a GPU could not be made.
#[derive(Debug, Error)]
pub enum MachineError {
    /// Its configuration or its parts.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// Its memory.
    #[error("simulated memory: {0}")]
    Memory(String),
    /// A part to be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The links between several.
    #[error(transparent)]
    Node(#[from] lockstep_node::NodeError),
    /// How many there should be.
    #[error("{found} GPUs: a node has 1 to {most}")]
    Gpus {
        /// GPUs that were asked for.
        found: u32,
        /// The most that there can be.
        most: u32,
    },
    /// How many nodes there should be.
    #[error("{nodes} nodes of {gpus} GPUs: a run has 1 to {most} GPUs")]
    Nodes {
        /// Nodes that were asked for.
        nodes: u32,
        /// GPUs of each.
        gpus: u32,
        /// The most GPUs that there can be.
        most: u32,
    },
    /// State of several GPUs.
    #[error("{found} GPUs: state can be saved and loaded only with one so far")]
    Saving {
        /// GPUs of the run.
        found: u32,
    },
}

/// Cycles without a block that begins or ends after which warps are watched for whether they can go on: under two
/// milliseconds of an H200, a second or so of the host.
const PATIENCE: Cycles = Cycles(1 << 21);

/// Pages of managed memory.
const MANAGED_PAGE: u64 = 4096;

/// A page that stands for memory of the context, at the end of the device's region, past the heap of device code.
/// Nobody writes it.
fn context_page(ordinal: u32) -> u64 {
    layout::Region::Device(ordinal).range().end - lockstep_gpu::memory::PAGE
}

/// One simulated GPU in a run.
pub struct Machine {
    /// Its number among the GPUs of the run.
    ordinal: u32,
    /// What its parts are called after.
    name: String,
    gpu: Gpu,
    memory: Arc<OwnedFd>,
    config: GpuConfig,
    options: Options,
    progress: Arc<Progress>,
    mode: Mode,
    selection: Selection,
    /// Launches that it chose; all are where it is everything.
    chosen: BTreeSet<u64>,
    /// What chooses launches, if they are sampled.
    sampling: Option<Box<Sampling>>,
    /// Pages that launches wrote which took no time, since the last that did.
    untimed_pages: UntimedPages,
    /// The runtime's number of each launch on the device, and whether it takes its time.
    launches: BTreeMap<LaunchId, (u64, Mode)>,
    /// Launches that wait until those of the other mode have ended, in their order.
    held: VecDeque<(u64, Launch)>,
    /// Modules by the number that saved state knows them by.
    modules: Vec<Arc<Module>>,
    /// The runtime's number of the first launch of each.
    introduced: Vec<u64>,
    /// Numbers of modules that are replayed from traces, by name of the kernel and length of its code.
    traced: BTreeMap<(String, usize), u64>,
    output: Vec<u8>,
    /// What freed memory held.
    freed: Hasher,
    /// What the memory held that was freed last, for those who save it.
    freed_last: Vec<(u64, Digest)>,
    reload: Option<Reload>,
    pace: Pace,
    reloads: u64,
    /// Whether there is memory for the arguments of launches by kernels.
    has_launch_pool: bool,
    /// Managed memory that there ever was.
    managed: Vec<(u64, u64)>,
    /// What the simulated GPU could not do.
    failure: Option<String>,
    /// Threads of the host that are inside a call.
    host: Inside,
    /// Who says that a call has come for which an advance is to end.
    listener: Option<Listener>,
    /// Whether it was said that kernels wait for the host.
    warned_of_spin: bool,
    /// What is written down while the run goes on, if anything is.
    journal: Option<Box<Journal>>,
    /// What readers of shared memory are told, if anything is.
    publication: Option<Box<Publication>>,
    /// The launch before which it is still to be saved.
    save_before: Option<u64>,
    /// Where it is saved now and then, if that is asked for.
    checkpoints: Option<SharedCheckpoints>,
    /// What writes down what warps execute, if that is asked for.
    tracing: Option<Arc<Tracing>>,
    /// Who says how far time may pass, if anybody does.
    outside: Option<Arc<OutsideClock>>,
}

/// A runtime over fresh GPUs whose memory is in the file.
///
/// # Errors
/// The GPUs cannot be built.
pub fn runtime(description: &Description, memory: &OwnedFd) -> Result<Runtime<Node>, MachineError> {
    let assembling = description.assembling;
    // Looked for when it is first needed.
    let assembler = OnceLock::new();
    let shared = SharedImages::default();
    let loader: Loader = Box::new(move |all, options| {
        images::load(all, options, &shared, assembling, || {
            assembler.get_or_init(Assembler::find)
        })
    });
    runtime_with(description, memory, loader)
}

/// The same, for code that somebody else makes of images.
///
/// # Errors
/// The GPUs cannot be built.
pub fn runtime_with(
    description: &Description,
    memory: &OwnedFd,
    loader: Loader,
) -> Result<Runtime<Node>, MachineError> {
    let node = Node::new(description, memory)?;
    let options = load_options(description);
    let links = description.links()?;
    let several = node.gpus() > 1;
    let runtime = Runtime::new(description.seen().clone(), options, loader, node);
    let runtime = runtime.with_kinds(description.kinds.clone());
    Ok(match several {
        true => runtime.with_links(links),
        false => runtime,
    })
}

/// How images are chosen.
fn load_options(description: &Description) -> LoadOptions {
    LoadOptions {
        frontend: description.frontend,
        architecture: description.config.device.compute_capability.architecture(),
        strict: description.strict_image,
    }
}

/// The name of a choice.
pub fn frontend_name(choice: FrontendChoice) -> &'static str {
    match choice {
        FrontendChoice::Auto => "auto",
        FrontendChoice::Sass => "sass",
        FrontendChoice::Ptx => "ptx",
    }
}

/// Threads that a run has in each of its processes.
pub fn worker_threads(description: &Description) -> u32 {
    let ranks = description.execution.ranks.max(1);
    match description.execution.threads {
        0 => std::thread::available_parallelism()
            .map_or(1, |count| (count.get() as u32 / ranks).max(1)),
        given => given,
    }
}

/// Parts and links of the GPU, as text or for Graphviz.
///
/// # Errors
/// The GPU cannot be built.
pub fn topology(description: &Description, graph: bool) -> Result<String, MachineError> {
    let memory = window::create().map_err(|error| MachineError::Memory(error.to_string()))?;
    let machine = Machine::new(description, &memory, 0)?;
    let topology = machine.gpu.topology();
    Ok(if graph {
        topology.graphviz()
    } else {
        topology.text()
    })
}

fn contents(memory: &OwnedFd, ordinal: u32) -> Result<Contents, MachineError> {
    Backing::of(memory)?.contents(ordinal)
}

/// Where reads of memory that nobody has written are found. The heap of device code is the kernels' own.
fn tracked(ordinal: u32) -> Range<u64> {
    let device = layout::Region::Device(ordinal).range();
    device.start..device.end - lockstep_runtime::SYSTEM_SPACE
}

fn options(description: &Description, config: &GpuConfig) -> Options {
    let execution = &description.execution;
    let threads = worker_threads(description) as usize;
    let schedule = match (execution.schedule, threads) {
        (Schedule::Static, _) | (Schedule::Auto, 1) => lockstep_gpu::Schedule::Static,
        (Schedule::Dynamic | Schedule::Auto, _) => lockstep_gpu::Schedule::Dynamic,
    };
    Options {
        mode: hardware_mode(description.mode),
        engine: EngineOptions {
            threads,
            schedule,
            jumping: !execution.no_jumping,
            perturbation: execution.delay_seed.map(|seed| Perturbation { seed }),
            ..EngineOptions::default()
        },
        cold_caches: description.cold_caches,
        both_modes: description.has_both_modes(),
        checks: description.checks.gpu,
        findings: Arc::default(),
        ranks: description.ranks.clone(),
        watchdog: Some(config.launch.watchdog),
        // Registers of a warp that is replayed do not tell whether it goes round in circles.
        patience: (!description.replays).then_some(PATIENCE),
        managed: Some(layout::Region::Managed.range()),
        ..Options::default()
    }
}

/// How a GPU reaches the memory of the others.
fn peer_links(topology: &Topology, ordinal: u32) -> PeerLinks {
    let others = topology
        .neighbours(ordinal)
        .filter(|other| *other != ordinal);
    PeerLinks {
        memories: others
            .map(|other| layout::Region::Device(other).range())
            .collect(),
        one_port: topology.has_switch(),
        bandwidth: topology.bandwidth(),
        packet_header: topology.packet_header(),
        latency: topology.latency(),
    }
}

fn hardware_mode(mode: Mode) -> lockstep_gpu::Mode {
    match mode {
        Mode::Timing => lockstep_gpu::Mode::Timing,
        Mode::Functional => lockstep_gpu::Mode::Functional,
    }
}

impl Machine {
    /// A fresh GPU with its number among those of the node.
    ///
    /// # Errors
    /// The GPU cannot be built.
    pub fn new(
        description: &Description,
        memory: &OwnedFd,
        ordinal: u32,
    ) -> Result<Self, MachineError> {
        Self::over(description, &Backing::of(memory)?, ordinal)
    }

    /// The same, over memory that is mapped already.
    ///
    /// # Errors
    /// The GPU cannot be built.
    pub fn over(
        description: &Description,
        backing: &Backing,
        ordinal: u32,
    ) -> Result<Self, MachineError> {
        let config = description.config_of(ordinal);
        let mut options = options(description, config);
        if ordinal == 0 {
            options.recorder = Recorder::new(&description.watches, config)?;
        }
        if description.all_gpus() > 1 {
            if !description.pages_between_gpus() {
                // Without places they count as being everywhere.
                options.managed = None;
            }
            options.peers = Some(peer_links(&description.links()?, ordinal));
        }
        let outside = description.outside.as_ref();
        options.outside_memory = outside.is_some_and(|clock| clock.has_memory());
        let tracing = description.tracing.clone();
        options.tracer = tracing.clone().map(|tracing| tracing as _);
        options.profile = description.lines.then(|| Profile::new(config.device.sms));
        let mut contents = backing.contents(ordinal)?;
        if options.checks.initialised {
            let tracked = contents.track_initialised(tracked(ordinal));
            tracked.map_err(|error| MachineError::Memory(error.to_string()))?;
        }
        let gpu = Gpu::new(config, Arc::new(contents), options.clone())?;
        let timed = description.mode == Mode::Timing;
        Ok(Self {
            ordinal,
            name: description.gpu_name(ordinal),
            gpu,
            memory: backing.file.clone(),
            config: config.clone(),
            options,
            progress: description.progress.clone(),
            mode: description.mode,
            selection: description.selection.clone(),
            chosen: BTreeSet::new(),
            // Without time there is nothing to sample.
            sampling: description
                .sampling
                .as_ref()
                .filter(|_| timed)
                .map(|options| {
                    let launch = &config.launch;
                    let floor = launch.start_latency + launch.finish_latency;
                    Box::new(Sampling::new(options, floor))
                }),
            untimed_pages: UntimedPages::default(),
            launches: BTreeMap::new(),
            held: VecDeque::new(),
            modules: Vec::new(),
            introduced: Vec::new(),
            traced: BTreeMap::new(),
            output: Vec::new(),
            freed: Hasher::new("freed memory"),
            freed_last: Vec::new(),
            pace: Pace::default(),
            reload: description.execution.reload_seed.map(|seed| Reload {
                random: seed,
                at: Time::ZERO,
            }),
            reloads: 0,
            has_launch_pool: false,
            managed: Vec::new(),
            failure: None,
            host: Inside::new(),
            listener: None,
            warned_of_spin: false,
            journal: None,
            publication: None,
            save_before: description
                .checkpoints
                .as_ref()
                .filter(|options| !options.resume)
                .and_then(|options| options.before),
            checkpoints: None,
            tracing,
            outside: description.outside.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_gpu::memory::PAGE;

    fn machine(memory: &OwnedFd, pinned: u64) -> Machine {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        let mut machine = Machine::new(&Description::new("h200", config), memory, 0).unwrap();
        machine.map(0, pinned, 0x10000);
        machine
    }

    /// What the program writes into pinned memory counts as if a call had written it: a live run
    /// has the first, its replay the second.
    #[test]
    fn nothing_runs_on_a_gpu_that_failed() {
        let memory = window::create().unwrap();
        let pinned = layout::Region::Pinned.range().start;
        let mut machine = machine(&memory, pinned);
        assert!(machine.check().is_ok());
        // Memory that is there already cannot be allocated.
        machine.map(0, pinned, 0x10000);
        let failure = machine.failure().unwrap().to_owned();
        assert!(failure.contains("cannot be used"), "{failure}");
        let fault = machine.check().unwrap_err();
        assert_eq!((fault.message, fault.launch), (failure, None));
    }

    #[test]
    fn who_wrote_a_page_does_not_show() {
        let pages: [(u64, Vec<u8>); 3] = [
            (0, vec![1; PAGE as usize]),
            (3 * PAGE, vec![0; PAGE as usize]),
            (7 * PAGE + 4000, vec![2; 200]),
        ];
        let pinned = layout::Region::Pinned.range().start;
        let digest = |write: &dyn Fn(&mut Machine, &Contents), free: bool| {
            let memory = window::create().unwrap();
            let mut machine = machine(&memory, pinned);
            write(&mut machine, &contents(&memory, 0).unwrap());
            if free {
                machine.unmap(pinned, 0x10000);
            }
            machine.digest()
        };
        for free in [false, true] {
            let by_call = digest(
                &|machine, _| {
                    for (offset, bytes) in &pages {
                        machine.write(pinned + offset, bytes);
                    }
                },
                free,
            );
            let by_program = digest(
                &|_, mapped| {
                    for (offset, bytes) in &pages {
                        mapped.write(pinned + offset, bytes);
                    }
                },
                free,
            );
            let by_nobody = digest(&|_, _| (), free);
            assert_eq!(by_call, by_program, "freed: {free}");
            assert_ne!(by_call, by_nobody, "freed: {free}");
        }
    }
}
