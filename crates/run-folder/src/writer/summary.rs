//! `summary.json`: one run at a glance.
//!
//! Everything under `host` is about the machine that simulated, and outside the digest.

use lockstep_counters::{COUNTERS, LaunchCounters};
use serde::{Serialize, Serializer};

/// One run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Version of this program.
    pub lockstep: String,
    /// How far it is; `running` is only said by [`Running`](super::Running).
    pub state: RunState,
    /// Whether it ended before its program would have: more launches would have followed.
    pub partial: bool,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The GPU, as asked for.
    pub gpu: String,
    /// What the GPUs of a node call themselves, by their numbers, if they are of several kinds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_names: Vec<String>,
    /// `timing`, `functional`, or `sampled`.
    pub mode: String,
    /// `auto`, `sass` or `ptx`.
    pub frontend: String,
    /// How it ended.
    pub ending: Ending,
    /// Sums over the run.
    pub totals: Totals,
    /// How cycles were projected, if launches were sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingSummary>,
    /// One number for every statistic, kernel record and page ever written. Equal digests mean
    /// equal runs.
    pub digest: Option<String>,
    /// What the memory of the device held, when it was freed and at the end: equal for two front ends
    /// that compute the same.
    pub memory_digest: Option<String>,
    /// Whether running the program again gives the same digest: nothing that the device saw depended
    /// on the host's timing.
    pub reproducible: bool,
    /// What did, in sentences.
    pub depends_on_host: Vec<String>,
    /// Calls that the program wanted and that are lacking.
    pub unsupported: Vec<UnsupportedRow>,
    /// What the user should know although nothing failed.
    pub warnings: Vec<String>,
    /// How the code that ran came to be, where it was not the program's own machine code.
    pub remarks: Vec<String>,
    /// Speed and size of the simulation itself.
    pub host: HostSpeed,
    /// Every setting in force.
    pub configuration: serde_json::Value,
}

/// Cycles of a run of whose launches a sample took its time.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct SamplingSummary {
    /// Where chance came from.
    pub seed: u64,
    /// Launches that took their time.
    pub detailed_launches: u64,
    /// Launches whose cycles were projected.
    pub projected_launches: u64,
    /// Warp instructions of launches that took their time.
    pub detailed_inst: u64,
    /// Warp instructions of all launches, over those.
    pub fewer_inst: f64,
    /// Kernels, with a shape each.
    pub groups: u64,
    /// Different instruction counts of projected launches.
    pub strata: u64,
    /// Cycles of all launches, measured and projected.
    pub cycles: u64,
    /// Half of the width of the 95 % confidence interval around them.
    pub cycles_half_width: f64,
    /// The same, in percent.
    pub half_width_percent: f64,
}

/// How far a run is, or how it ended.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It goes on.
    #[default]
    Running,
    /// The program ended by itself, and nothing was wrong with the simulation.
    Finished,
    /// Something was wrong.
    Failed,
    /// Somebody stopped it, or it stopped for want of disk or memory.
    Stopped,
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
    /// Sums over kernels of every counter that their mode knows, by name.
    #[serde(flatten)]
    pub counters: CounterTotals,
}

/// Sums of counters over launches, in the order of the table of counters. What no launch knows is
/// absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterTotals(Vec<(&'static str, u64)>);

impl CounterTotals {
    /// Of launches that have ended.
    pub fn of<'launch>(launches: impl IntoIterator<Item = &'launch LaunchCounters>) -> Self {
        let mut sums: Vec<Option<u64>> = vec![None; COUNTERS.len()];
        for launch in launches {
            for (sum, (_, value)) in sums.iter_mut().zip(launch.all()) {
                if let Some(value) = value {
                    *sum = Some(sum.unwrap_or(0).saturating_add(value));
                }
            }
        }
        let known = COUNTERS.iter().zip(sums);
        Self(
            known
                .filter_map(|(metric, sum)| Some((metric.name, sum?)))
                .collect(),
        )
    }

    /// The same, with one counter whose sum is known otherwise.
    #[must_use]
    pub fn with(mut self, name: &str, sum: u64) -> Self {
        let Some(metric) = COUNTERS.iter().find(|metric| metric.name == name) else {
            return self;
        };
        self.0.retain(|(known, _)| *known != name);
        // Cycles are the first of the table; others would stand behind.
        self.0.insert(0, (metric.name, sum));
        self
    }

    /// The sum of one counter.
    pub fn get(&self, name: &str) -> Option<u64> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, sum)| *sum)
    }
}

impl Serialize for CounterTotals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
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
    /// Processor time inside those calls, of all threads, in seconds: what other programs on the host
    /// hardly change.
    pub processor_seconds: Option<f64>,
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
    /// Where the time of the worker threads went.
    pub work: HostWork,
}

/// Where the time of the worker threads went. What several threads did together is given in seconds
/// of wall time times the threads that took part: working, waiting for the one that had more to do,
/// and starting and meeting.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct HostWork {
    /// Epochs that were simulated.
    pub epochs: u64,
    /// Of these, the ones that one thread simulated alone.
    pub alone_epochs: u64,
    /// Threads that took part in an epoch, on average.
    pub mean_threads: f64,
    /// Parts of the GPU that had work in an epoch, on average.
    pub mean_partitions: f64,
    /// Messages between parts of the GPU.
    pub messages: u64,
    /// Wall time inside the engine.
    pub engine_seconds: f64,
    /// Wall time of epochs that one thread simulated alone.
    pub alone_seconds: f64,
    /// Wall time of epochs that several threads simulated.
    pub shared_seconds: f64,
    /// Wall time of writing to memory what an epoch left, by several threads.
    pub commit_seconds: f64,
    /// Wall time of planning and deciding, which one thread does.
    pub serial_seconds: f64,
    /// Threads working together.
    pub busy_thread_seconds: f64,
    /// Threads waiting for one that had more to do.
    pub imbalance_thread_seconds: f64,
    /// Threads starting and meeting.
    pub meeting_thread_seconds: f64,
    /// Threads writing to memory together.
    pub commit_busy_thread_seconds: f64,
    /// Threads waiting while others wrote to memory.
    pub commit_waiting_thread_seconds: f64,
}

/// A call that the program wanted and that is lacking.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct UnsupportedRow {
    /// Its name.
    pub name: String,
    /// `called`, `asked for`, `option` (which was refused) or `accepted` (and is not modelled).
    pub manner: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_hold_what_some_launch_knows() {
        let mut launch = LaunchCounters::default();
        launch.values.inst_executed = 5;
        launch.values.cycles = 100;
        let timed = LaunchCounters {
            timed: true,
            ..launch
        };
        assert_eq!(CounterTotals::of([&launch]).get("cycles"), None);
        let both = CounterTotals::of([&launch, &timed]);
        assert_eq!(both.get("cycles"), Some(100));
        assert_eq!(both.get("inst_executed"), Some(10));
        let text = serde_json::to_string(&Totals {
            counters: both,
            ..Totals::default()
        });
        assert!(text.unwrap().contains("\"cycles\":100"));
    }
}
