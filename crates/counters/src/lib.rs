//! The table of counters.
//!
//! A counter of a launch is declared once, in [`table`](crate::COUNTERS). From that line come the
//! field that the model adds to and its sum ([`Counters`]), the column of `kernels.csv`, the total
//! in `summary.json`, the rows of every SM in `stats.csv`, the schema that simulated and real GPUs
//! share, the comparison of `lockstep correlate`, and the page `docs/reference/counters.md`.
//!
//! Left out: what only one kind of component counts over a whole run. Components declare that
//! beside themselves, with [`statistics!`](lockstep_stats::statistics).
//!
//! Start reading at `table.rs`; to add a counter, add an entry there and count it.

mod declare;
mod gauges;
mod launch;
mod metric;
mod table;

pub use gauges::{DEVICE_GAUGES, HOST_GAUGES, LAUNCH_GAUGES};
pub use launch::LaunchCounters;
pub use metric::{Comparison, Definition, Metric, Scope};
pub use table::{COUNTERS, Counters, MIXES, STALL_STATISTICS, STALLS};

/// All metrics that a launch has: its counters, and the gauges that are worked out from them.
pub fn of_launches() -> impl Iterator<Item = &'static Metric> {
    COUNTERS.iter().chain(LAUNCH_GAUGES)
}

/// Counters that some real GPU can give.
pub fn measurable() -> impl Iterator<Item = &'static Metric> {
    COUNTERS.iter().filter(|one| !one.definitions.is_empty())
}

/// Counters of what warps did in their cycles: `stalled_REASON`.
pub fn stalls() -> impl Iterator<Item = &'static Metric> {
    COUNTERS
        .iter()
        .filter(|one| one.name.starts_with(table::STALLED))
}
