//! Counters over simulated time.
//!
//! While a run goes on, each kind of part has a file of pieces (an Arrow IPC stream) that only grows, so
//! whatever kills the run leaves all pieces but perhaps the last; at the end they become
//! `series.parquet`. Both forms are read in the same way.
//!
//! A row says what one part counted within one interval; what counted nothing has no row. `launch`, `kernel` and
//! `stream` are empty where several kernels ran at once, since counters of an SM do not say whose they are.
//!
//! Start reading at [`Recorder`] for writing, and at [`Series::open`] for reading.

mod finish;
mod held;
mod pieces;
mod read;
mod recorder;
mod stored;

pub use finish::{finish, write};
pub use held::Rows;
pub use read::{Block, Series};
pub use recorder::{Recorder, Sample, SampledLaunch};

use lockstep_counters::{COUNTERS, Metric, Scope};

/// The series of a run that has ended.
pub const STORED: &str = "series.parquet";

/// A kind of part that is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The whole GPU.
    Gpu,
    /// A streaming multiprocessor.
    Sm,
    /// A slice of L2 with its channel of DRAM.
    Slice,
}

impl Part {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 3] = [Self::Gpu, Self::Sm, Self::Slice];

    /// Its name in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Sm => "sm",
            Self::Slice => "slice",
        }
    }

    /// By name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    /// The file of its pieces.
    pub fn pieces(self) -> &'static str {
        match self {
            Self::Gpu => "series_gpu.arrows",
            Self::Sm => "series_sm.arrows",
            Self::Slice => "series_slice.arrows",
        }
    }

    /// Whether it counts for a metric.
    fn counts(self, metric: &Metric) -> bool {
        match metric.scope {
            Scope::SubCore | Scope::Sm => self != Self::Slice,
            Scope::Slice | Scope::Channel => self != Self::Sm,
            Scope::Link | Scope::Gpu | Scope::Kernel | Scope::Host => false,
        }
    }

    /// Its counters, with their places in the table of counters.
    pub fn counters(self) -> impl Iterator<Item = (usize, &'static Metric)> {
        let all = COUNTERS.iter().enumerate();
        all.filter(move |(_, metric)| self.counts(metric))
    }
}

/// Columns that say what a row is about, before its counters.
const TIME: &str = "time_ns";
const INTERVAL: &str = "interval_ns";
const GPU: &str = "gpu";
const STREAM: &str = "stream";
const LAUNCH: &str = "launch";
const KERNEL: &str = "kernel";
const PART: &str = "part";
const NUMBER: &str = "number";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_of_a_component_has_a_part() {
        for metric in COUNTERS {
            let parts = Part::ALL.iter().filter(|part| part.counts(metric));
            let expected = if metric.scope == Scope::Kernel { 0 } else { 2 };
            assert_eq!(parts.count(), expected, "{}", metric.name);
        }
    }
}
