//! One run, from description to results.
//!
//! A [`Description`] says what is simulated and how; [`run_program`] runs an unmodified CUDA
//! program against it, [`run_kernel`] a single kernel, [`replay()`] a record of calls, [`Playback`] such a record in the
//! time of another simulator, [`replay_traces`] traces, and [`verify()`] one program in many ways that must agree. Every entry point calls one of these.
//!
//! Start reading at [`run_program`].

mod arguments;
mod assemble;
mod calls;
mod checkpoint;
mod checks;
mod connections;
mod descendants;
mod description;
mod disassemble;
#[cfg(test)]
mod every_key;
mod freed;
mod guardian;
mod host;
mod host_writes;
mod images;
mod in_folder;
mod interrupts;
mod kernel;
mod kernel_traces;
mod machine;
mod memory_limits;
mod node;
mod outside_clock;
mod playback;
mod program;
mod progress;
pub mod ranks;
mod record_replay;
mod regions;
mod replay;
mod reporter;
mod results;
mod sampling;
mod selection;
mod server;
mod session;
mod shared_images;
mod supervise;
mod surroundings;
mod trace_replay;
mod verify;

pub use arguments::{Argument, ElementType};
pub use assemble::Assembling;
pub use calls::list_calls;
pub use checkpoint::{CheckpointError, CheckpointOptions, Started, started};
pub use checks::Checks;
pub use description::{Description, Execution, Interval, Mode, Schedule};
pub use disassemble::disassemble;
pub use kernel::{KernelDescription, Printed, run_kernel};
pub use kernel_traces::{Traced, Tracing, trace_program, trace_record};
pub use lockstep_gpu::{ComponentKind, TOPICS, Watch, components};
pub use lockstep_gpu::{EndedBlock, OutsideAccess, OutsideRequest};
pub use lockstep_run_folder::Existing;
pub use lockstep_runtime::{Entry, FrontendChoice, RecordError, RecordReader};
pub use machine::embedded::{EmbeddedError, EmbeddedGpu, EmbeddedLaunch, Passed};
pub use machine::{MachineError, topology};
pub use outside_clock::{OutsideClock, Reached};
pub use playback::{Playback, PlayedLaunch};
pub use program::{RunError, run_program};
pub use progress::Progress;
pub use record_replay::{record_at, replay_record};
pub use regex_lite::Regex;
pub use regions::{Region, RegionError};
pub use replay::{full_record, replay, replay_from};
pub use results::Results;
pub use sampling::{Plan, PlanError, SamplingOptions};
pub use selection::{Launches, LaunchesError, Selection};
pub use server::Recording;
pub use session::{Exercised, Session};
pub use supervise::{Ended, StartError};
pub use trace_replay::replay_traces;
pub use verify::{
    Outcome, Variant, live_variants, quick_variants, repetitions, variants, verify, verify_record,
};
