//! `summary.json`: one run at a glance.
//!
//! Everything under `host` is about the machine that simulated, and outside the digest.

use serde::Serialize;

/// One run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Version of this program.
    pub lockstep: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The GPU, as asked for.
    pub gpu: String,
    /// `timing` or `functional`.
    pub mode: String,
    /// `auto`, `sass` or `ptx`.
    pub frontend: String,
    /// How it ended.
    pub ending: Ending,
    /// Sums over the run.
    pub totals: Totals,
    /// One number for every statistic, kernel record and page ever written. Equal digests mean
    /// equal runs.
    pub digest: Option<String>,
    /// Whether the same calls give the same digest.
    pub reproducible: bool,
    /// Calls that the program wanted and that are lacking.
    pub unsupported: Vec<UnsupportedRow>,
    /// What the user should know although nothing failed.
    pub warnings: Vec<String>,
    /// Speed and size of the simulation itself.
    pub host: HostSpeed,
    /// Every setting in force.
    pub configuration: serde_json::Value,
}

/// How a run ended.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct Ending {
    /// The exit code that the command passes on.
    pub exit_code: i32,
    /// The signal that ended the program, if one did.
    pub signal: Option<i32>,
    /// What went wrong, in sentences; empty when nothing did.
    pub problems: Vec<String>,
    /// Whether every launch was complete.
    pub complete: bool,
}

/// Sums over a run.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct Totals {
    /// CUDA calls that reached the simulator.
    pub calls: u64,
    /// Kernels launched.
    pub kernels: u64,
    /// Simulated time of the whole run, in nanoseconds.
    pub simulated_ns: f64,
    /// Sum over kernels of their durations, in nanoseconds.
    pub kernel_ns: f64,
    /// Sum over kernels of their cycles; absent when the mode knows none.
    pub cycles: Option<u64>,
    /// Warp instructions executed.
    pub inst_executed: Option<u64>,
    /// Thread instructions executed.
    pub thread_inst_executed: Option<u64>,
}

/// Speed and size of the simulation itself.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct HostSpeed {
    /// Worker threads.
    pub threads: u32,
    /// Wall time of the run in seconds.
    pub seconds: f64,
    /// Wall time inside calls that reached the simulator, in seconds.
    pub simulating_seconds: f64,
    /// From the start to the first answer to a CUDA call, in seconds.
    pub first_answer_seconds: Option<f64>,
    /// Warp instructions per second while simulating.
    pub inst_per_second: Option<f64>,
    /// SM cycles (cycles times SMs) per second while simulating.
    pub sm_cycles_per_second: Option<f64>,
    /// Simulated cycles per second while simulating.
    pub cycles_per_second: Option<f64>,
    /// Wall time over simulated time of kernels.
    pub slow_down: Option<f64>,
    /// Most memory that the simulator had, in bytes.
    pub peak_memory: u64,
}

/// A call that the program wanted and that is lacking.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct UnsupportedRow {
    /// Its name.
    pub name: String,
    /// `called`, `asked for` or `option`.
    pub manner: String,
}
