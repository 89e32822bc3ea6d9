//! Names of kernels, numbers and tables as people read them, and printing that survives a closed pipe.
//!
//! Every output for people calls this crate, so that a kernel or a number looks alike in a terminal, a report and a page.

pub mod names;
pub mod numbers;
pub mod say;
mod table;
pub mod tip;

pub use table::{Align, Table};
