//! `summary.json` while a run goes on: what is known so far, in the places where the final one has
//! it.

use super::summary::{Ending, RunState};
use serde::Serialize;

/// A run that is not over.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Running {
    /// Version of this program.
    pub lockstep: String,
    /// How far it is.
    pub state: RunState,
    /// Always: launches may follow, or would have.
    pub partial: bool,
    /// What is being done, in a few words.
    pub phase: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The GPU, as asked for.
    pub gpu: String,
    /// `timing` or `functional`.
    pub mode: String,
    /// `auto`, `sass` or `ptx`.
    pub frontend: String,
    /// How it ended: only if nobody was left to say more.
    pub ending: Option<Ending>,
    /// Sums so far.
    pub totals: RunningTotals,
    /// Not known before the end.
    pub digest: Option<String>,
    /// Speed and size of the simulation so far.
    pub host: RunningHost,
    /// Every setting in force.
    pub configuration: serde_json::Value,
}

/// Sums so far.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct RunningTotals {
    /// Kernels that began.
    pub kernels: u64,
    /// Kernels that ended.
    pub kernels_ended: u64,
    /// The kernel that began last.
    pub kernel: String,
    /// Simulated time, in nanoseconds.
    pub simulated_ns: f64,
}

/// Speed and size so far.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct RunningHost {
    /// Worker threads.
    pub threads: u32,
    /// Wall time so far in seconds.
    pub seconds: f64,
    /// Most memory that the simulator had, in bytes.
    pub peak_memory: u64,
}
