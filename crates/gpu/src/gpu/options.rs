//! How a GPU is simulated, and how an advance of it ends.

use std::ops::Range;
use std::sync::Arc;

use lockstep_engine::{Options as EngineOptions, Ranks};
use lockstep_units::Cycles;

use crate::check::{Checks, Findings};
use crate::fault::Fault;
use crate::l2::PeerLinks;
use crate::launch::KernelRecord;
use crate::probe::Recorder;
use crate::profile::Profile;
use crate::sm::tracing::TraceSink;

/// Whether instructions take their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Values only: one instruction of one warp a cycle on each SM.
    #[default]
    Functional,
    /// Sub-cores, schedulers, latencies.
    Timing,
}

/// How a GPU is simulated.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether instructions take their time.
    pub mode: Mode,
    /// What programs are checked for.
    pub checks: Checks,
    /// What checks found.
    pub findings: Arc<Findings>,
    /// Threads, schedule, jumping, delays for tests: nothing here changes the simulation.
    pub engine: EngineOptions,
    /// The ranks that simulate the GPU together, if there are several; nothing here changes the simulation.
    pub ranks: Option<Ranks>,
    /// Launches of both modes will come: what timed ones leave in caches and TLBs stays there while
    /// others run.
    pub both_modes: bool,
    /// Empties all caches before every kernel.
    pub cold_caches: bool,
    /// SM cycles after which a kernel is taken to hang; never without.
    pub watchdog: Option<Cycles>,
    /// SM cycles without a block that begins or ends, after which warps are watched for whether they can make
    /// progress at all; never without.
    pub patience: Option<Cycles>,
    /// Accepts a configuration whose links are so fast that an epoch has under 16 cycles.
    pub force_short_epoch: bool,
    /// Addresses of managed memory; none without it.
    pub managed: Option<Range<u64>>,
    /// The links to other GPUs; none without them.
    pub peers: Option<PeerLinks>,
    /// Somebody else models what is behind the L1 caches.
    pub outside_memory: bool,
    /// What parts are watched, for people; nothing here changes the simulation.
    pub recorder: Option<Recorder>,
    /// Counts of single instructions, likewise.
    pub profile: Option<Profile>,
    /// Who takes what warps execute, likewise.
    pub tracer: Option<Arc<dyn TraceSink>>,
}

/// How an advance ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Advance {
    /// At the limit, or at the end of kernels before it; these ended.
    Reached(Vec<KernelRecord>),
    /// No kernel can go on unless somebody outside the GPU writes its memory. Time may pass all the same;
    /// [`Gpu::fail`](crate::Gpu::fail) makes this the kernel's fault.
    Stuck(Box<Fault>),
    /// A kernel failed; [`Gpu::abort`](crate::Gpu::abort) makes the GPU usable again.
    Faulted(Box<Fault>),
}
