//! Divides the counters of one GPU among the kernels that ran on it.
//!
//! A sample says how much each counter of the whole GPU grew in an interval. Which kernels ran then
//! is known in one of two ways:
//!
//! - Kernels timed by the device: each gets a part by the time that it overlaps the interval.
//! - Launches known by their host time only: the device starts warps in the order of launches, and
//!   the sampled `warps_launched` says how many, so the queue of launches is worked off by that
//!   count. A launch cannot start before the host made it: both clocks are the same. A kernel that
//!   started no warp in an interval may still be running in it: it keeps what others cannot explain.
//!
//! Inside an interval, parts follow what each kernel is known to do per warp (or per nanosecond);
//! that is learned as samples come (`learned_rates`). A sample with one kernel in it is exact, any
//! other estimated, and parts always add up to the whole. Work that no launch explains goes to the
//! kernel `(other)`, and all of it to `(all)` where nobody follows launches.
//!
//! While several streams, contexts or processes are at work at once, the order of launches says
//! little; then marks tell how far each stream had come, and `solver` divides whole runs of
//! intervals (`concurrent`). Every kernel gets the warps that were launched; warps beyond those
//! were restored after a context switch (the hardware counts them again) and go to `(other)`.
//!
//! Nothing here reads a GPU, a segment or a clock: launches, marks and samples come in, parts go out.
//!
//! Start reading at [`Attribution::samples`].

mod attribution;
mod concurrent;
mod counted_rates;
mod error_bounds;
mod launch;
mod learned_rates;
#[cfg(test)]
mod recorded;
mod recording;
mod sample;
mod sequential;
mod solver;

pub use attribution::Attribution;
pub use counted_rates::{Rates, RatesError};
pub use error_bounds::{ErrorBounds, Shared};
pub use launch::{Key, LaunchRow};
pub use recording::Recording;
pub use sample::{DeviceSample, Mark, Part, SHARED_ERROR_BOUND};
