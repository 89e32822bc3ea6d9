//! What run folders say, for people and for other programs.
//!
//! A [`lockstep_run_folder::Run`] is read from a folder that `lockstep run` or `lockstep sample` left, whole or not.
//! [`report()`] works out where the time went, what bounds each kernel and what removing the bound
//! would give; [`compare`] sets runs side by side. Both become one [`Document`], which is written as
//! text, Markdown or one HTML file, and as JSON ([`Report`] itself is what the JSON has). [`export`]
//! writes the launches for other tools.
//!
//! Left out: counts by instruction or source line, since no run folder has them.
//!
//! Start reading at [`report()`].

mod advice;
mod bounds;
mod charts;
pub mod columns;
pub mod compare;
mod document;
mod error;
pub mod export;
mod html;
pub mod job;
mod kernel;
mod limits;
mod memory;
mod occupancy;
mod page;
mod report;

pub use compare::Comparison;
pub use document::{Block, Cell, Document, Grid};
pub use error::ReportError;
pub use kernel::KernelReport;
pub use page::{comparison_page, report_page};
pub use report::{Report, RunReport, report};
