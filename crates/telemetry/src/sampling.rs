//! From segments to a run folder: reads every sampled process, divides the counters of a GPU among
//! kernels, and stores the series.
//!
//! ```text
//! segments ─▶ Collector ─▶ Attribution (one per GPU) ─▶ Sink: SampleFolder, live view
//! ```
//!
//! Start reading at [`Collector::poll`].

mod attribution;
mod collector;
mod doubt;
mod folder;
mod habits;
mod launcher;
mod rates;
mod recording;
mod rows;
mod session;
mod sharing;
mod view;

pub use attribution::Attribution;
pub use collector::{Collector, Gaps, Totals};
pub use doubt::{Doubts, Shared};
pub use folder::{FolderError, SampleFolder, Summary};
pub use launcher::{LaunchError, Launcher, SamplerProcess, find_injector};
pub use rates::{Rates, RatesError};
pub use recording::Recording;
pub use rows::{GaugeRow, Key, LaunchRow, SeriesRow, Sink};
pub use session::{Outcome, Session, SessionError, now};
pub use view::live_view;
