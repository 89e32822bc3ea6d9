//! Counters over simulated time: `series.blocks`.
//!
//! While a run goes on the file only grows, block by block, so whatever kills the run leaves all blocks but perhaps
//! the last. At the end the blocks are joined to long ones, whose bytes are a function of the samples alone and not
//! of when they were written. Both are read in the same way; `lockstep export` makes Parquet and CSV of them.
//!
//! A row says what one part counted within one interval; what counted nothing has no row. `launch`, `kernel` and
//! `stream` are empty where several kernels ran at once, since counters of an SM do not say whose they are.
//!
//! Start reading at [`Recorder`] for writing, and at [`Series::open`] for reading.

mod encoding;
mod finish;
mod held;
mod read;
mod recorder;

pub use finish::{each_group, finish};
pub use held::Rows;
pub use read::{Keys, Series, SeriesBlock};
pub use recorder::{Recorder, Sample, SampledLaunch};

use lockstep_counters::{COUNTERS, Metric, Scope};

/// The series of a run.
pub const SERIES: &str = "series.blocks";

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

/// Columns that say what a row is about.
mod columns {
    pub const TIME: &str = "time_ns";
    pub const INTERVAL: &str = "interval_ns";
    pub const GPU: &str = "gpu";
    pub const STREAM: &str = "stream";
    pub const LAUNCH: &str = "launch";
    pub const KERNEL: &str = "kernel";
    pub const NUMBER: &str = "number";
}

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
