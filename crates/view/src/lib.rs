//! Run folders as a page in a browser: time line, counters over time, heat maps, kernels, what warps wait for.
//!
//! The page is part of the program and needs no network. It is served to this machine alone, under an address with
//! a token that nobody else knows, and it shows names of kernels as text, whatever they hold. Folders are read
//! again while their runs go on.
//!
//! Figures are brought to the width of the screen here, not in the browser: a run of ten million samples is some
//! thousand points to it.
//!
//! Start reading at [`Viewer::run`]; `answers.rs` has what the page can ask, `page/app.js` asks.

mod answers;
mod assets;
mod counter;
mod error;
mod resample;
mod server;
mod store;

pub use error::ViewError;
pub use server::Viewer;
