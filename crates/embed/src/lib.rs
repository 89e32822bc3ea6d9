//! A C ABI over one simulated GPU, for other simulators.
//!
//! `include/lockstep.h` is generated from here (a test holds it up to date); `examples/vector_add.c` shows a kernel from
//! its code to its counters. Every function takes the GPU that it is about and there is no other state, so GPUs may
//! live side by side in one process and be used from different threads, each from one at a time.
//!
//! Bytes and numbers from outside are checked; pointers must be good. A panic inside does not leave: the call answers
//! [`LockstepStatus::Internal`], and so does every later one on that GPU.
//!
//! Start reading at [`lockstep_create`]. `calls` has what a simulation is given, `listeners` how
//! time passes and who is told, `results` what is read of it. [`lockstep_playback_create`] makes a GPU with CUDA's
//! runtime before it, which takes the calls of a program from a record (`playback`, `record`).

mod calls;
mod guard;
mod handle;
mod listeners;
mod playback;
mod record;
mod results;

pub use calls::*;
pub use handle::*;
pub use listeners::*;
pub use playback::*;
pub use record::*;
pub use results::*;

/// Changes when programs that were compiled before no longer work.
pub const LOCKSTEP_ABI_MAJOR: u32 = 0;

/// Changes when functions come to it.
pub const LOCKSTEP_ABI_MINOR: u32 = 3;

/// The version of the library that was loaded: major in the upper 16 bits, minor in the lower.
#[unsafe(no_mangle)]
pub extern "C" fn lockstep_abi_version() -> u32 {
    LOCKSTEP_ABI_MAJOR << 16 | LOCKSTEP_ABI_MINOR
}
