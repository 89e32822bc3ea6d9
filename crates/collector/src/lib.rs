//! From segments to a run folder: reads every sampled process, divides the counters of a GPU among
//! kernels, and stores the series.
//!
//! ```text
//! segments ─▶ Collector ─▶ lockstep_attribution (one per GPU) ─▶ Sink: SampleFolder, live view
//! ```
//!
//! Start reading at [`Collector::poll`].

mod clock;
mod collector;
mod folder;
mod launcher;
mod rows;
mod session;
mod view;

pub use clock::ClockOffset;
pub use collector::{Collector, Gaps, Membership, Position, SampledUntil, Totals};
pub use folder::{FolderError, SampleFolder, Summary};
pub use launcher::{LaunchError, Launcher, SamplerProcess, find_injector};
pub use rows::{GaugeRow, SeriesRow, Sink};
pub use session::{Outcome, Session, SessionError};
pub use view::live_view;
