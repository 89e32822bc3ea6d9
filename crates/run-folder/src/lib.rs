//! The folder that every run leaves: what was run, and what came of it.
//!
//! | file | content |
//! |---|---|
//! | `summary.json` | versions, command, configuration, totals, digest, speed, how it ended |
//! | `kernels.csv` | a row a launch, from the moment at which it ends |
//! | `copies.csv` | a row a transfer of a copy engine, from the moment at which it begins |
//! | `stats.csv` | every statistic of every component |
//! | `series.blocks` | counters over simulated time, if asked for ([`series`]) |
//! | `lines.csv` | what was issued and waited for by instruction, if asked for |
//! | `migrations.csv`, `faults.csv`, `managed.trace.json`, `heat_map.svg` | managed memory over time, if there was any |
//! | `checks.csv` | what checks found, and accesses that a GPU lets pass although no allocation holds them |
//! | `calls.record` | the calls of the program, for replays |
//! | `checkpoint.state`, `checkpoint.log`, `checkpoint.pages` | where the run can go on if it is killed; gone once it has ended well |
//! | `managed_allocations.csv`, `managed_kernels.csv`, `managed_series.csv` | the same in sums |
//!
//! The folder is made before the run, for its owner alone; a folder that holds other files is refused.
//! `summary.json` is there from the beginning and says how far the run is
//! ([`Running`]); it is rewritten as the run goes on, and has room of its own ([`room`]). A run
//! that fails or is killed leaves what it has.
//!
//! Start reading at [`RunFolder::create`] for writing and at [`Run::read`] for reading.

mod error;
mod reader;
pub mod series;
mod writer;

pub use error::ReadError;
pub use reader::{Copy, Launch, Line, Run, RunInfo, Statistics};
pub use writer::*;
