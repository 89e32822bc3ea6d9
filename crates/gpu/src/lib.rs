//! The hardware: work distributor, SMs, interconnect, L2 slices, memory.
//!
//! A GPU is a set of partitions on the engine: one work distributor, SMs, slices. They speak only over
//! links; memory changes only at the end of an epoch ([`memory`]). The executor of instructions
//! is one for functional and timing mode ([`sm`]).
//!
//! Start reading at [`Gpu`], then [`sm::Sm`] and [`memory`].

mod cache;
mod check;
mod crossbar;
mod dram;
mod error;
mod fault;
mod front;
mod gpc;
mod gpu;
mod l2;
mod launch;
mod liveness;
pub mod memory;
mod message;
mod mmu;
mod parameters;
mod partition;
mod probe;
mod profile;
pub mod sm;
mod statistics;

pub use check::{Check, Checks, Finding, Findings};
pub use crossbar::INTERCONNECTS;
pub use crossbar::network::NetworkStats;
pub use dram::DRAM_BACK_ENDS;
pub use error::GpuError;
pub use fault::{Fault, FaultKind, Place};
pub use front::{DISPATCH_POLICIES, DispatchPolicy};
pub use gpu::{Advance, EndedBlock, Gpu, Mode, Observed, Options, SampledPart, Sampler};
pub use l2::{DmaSource, LinkLoad, OutsideAccess, OutsideRequest, PeerLinks};
pub use launch::{KernelRecord, LaunchId, LaunchedBy};
pub use lockstep_counters::Counters;
pub use lockstep_engine::{
    Lost, Options as EngineOptions, Perturbation, Ranks, Schedule, Transport,
};
pub use lockstep_isa::Launch;
pub use lockstep_uvm::{
    Advice, Carry, Direction, Directory, FaultRecord, GmmuStats, MigrationRecord, News, Order,
    Placed, TlbStats,
};
pub use memory::{Contents, ContentsError};
pub use parameters::SmParameters;
pub use probe::{DEFAULT_LINES, MOST_LINES, Probe, Recorder, TOPICS, Topic, Watch, WatchError};
pub use profile::{LineCounts, Lines, Profile, SmProfile};
pub use sm::Printed;
pub use sm::sub_core::scheduler::WARP_SCHEDULERS;
pub use sm::sub_core::stall::REASON_NAMES;
pub use sm::tracing::TraceSink;
pub use statistics::{ComponentKind, DispatchStats, SliceStats, components};
