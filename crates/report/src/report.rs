//! The report as data: what its JSON form has.

use crate::compare::{Comparison, compare};
use crate::kernel::{KernelReport, kernels};
use crate::limits::GpuLimits;
use crate::memory::{RunMemory, memory};
use lockstep_run_folder::Line;
use lockstep_run_folder::{Run, RunInfo};
use serde::Serialize;

/// The version of the JSON form; it changes when a reader of the old one would stumble.
pub const SCHEMA_VERSION: u32 = 1;

/// Instructions in a report.
pub const MAXIMUM_HOTTEST: usize = 40;

/// A report of one run or several. `docs/reference/report.schema.json` describes its JSON form.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this form.
    pub schema_version: u32,
    /// The version of this program.
    pub lockstep: &'static str,
    /// The runs, in the order in which they were given.
    pub runs: Vec<RunReport>,
    /// The runs side by side, if there are several.
    pub comparison: Option<Comparison>,
}

/// What is said of one run.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// The run as a whole.
    #[serde(flatten)]
    pub info: RunInfo,
    /// What is missing in the folder, in sentences.
    pub notes: Vec<String>,
    /// Launches.
    pub launches: u64,
    /// Sum of the durations of kernels, in nanoseconds.
    pub kernel_ns: Option<f64>,
    /// What the GPU can do at most, if it is simulated.
    pub limits: Option<GpuLimits>,
    /// Kernels, the one that took most time first.
    pub kernels: Vec<KernelReport>,
    /// The instructions with most cycles of warps, the hottest first; none unless they were counted.
    pub hottest: Vec<Line>,
    /// Caches, DRAM and links over the run.
    pub memory: Option<RunMemory>,
}

/// Reports on runs.
pub fn report(runs: &[Run]) -> Report {
    Report {
        schema_version: SCHEMA_VERSION,
        lockstep: env!("CARGO_PKG_VERSION"),
        runs: runs.iter().map(of_run).collect(),
        comparison: (runs.len() > 1).then(|| compare(runs)),
    }
}

fn of_run(run: &Run) -> RunReport {
    let times: Vec<f64> = run
        .launches
        .iter()
        .filter_map(|launch| launch.duration_ns)
        .collect();
    let kernel_ns: f64 = times.iter().sum();
    RunReport {
        info: run.info.clone(),
        notes: run.notes.clone(),
        launches: run.launches.len() as u64,
        kernel_ns: (!times.is_empty() && kernel_ns.is_finite()).then_some(kernel_ns),
        limits: run.config.as_ref().map(GpuLimits::of),
        kernels: kernels(&run.launches, run.config.as_ref()),
        hottest: run.lines.iter().take(MAXIMUM_HOTTEST).cloned().collect(),
        memory: run
            .statistics
            .as_ref()
            .map(|statistics| memory(statistics, kernel_ns)),
    }
}
