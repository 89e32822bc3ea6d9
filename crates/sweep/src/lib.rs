//! Many runs from one file.
//!
//! A sweep file names programs, GPUs and settings, as grids and lists (`file`). It becomes
//! [`Point`]s, each checked in full before anything runs and named by a digest of what it simulates:
//! points that are equal share one run, and a run that is finished is never repeated. Workers start
//! `lockstep` as child processes, directly or through a launcher (`workers`, `launcher`,
//! `slurm`); what they left becomes one table (`table`), a plot and a Pareto front.
//!
//! Left out: simulating. This crate knows run folders only by their `summary.json`.
//!
//! Start reading at [`Sweep::read`].

mod axes;
mod command;
mod error;
pub mod file;
mod folder;
mod launcher;
mod outcome;
mod pareto;
mod parquet;
mod plot;
mod point;
mod results;
mod slurm;
mod sweep;
mod table;
mod workers;

pub use command::quoted;
pub use error::SweepError;
pub use folder::SweepFolder;
pub use launcher::Launcher;
pub use outcome::{Outcome, outcome};
pub use point::{Executable, Point, Run};
pub use results::write as write_results;
pub use slurm::submit;
pub use sweep::Sweep;
pub use table::{Cell, Table};
pub use workers::{Event, Interrupt, Workers};
