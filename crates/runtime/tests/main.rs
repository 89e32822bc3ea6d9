//! The CUDA driver's meaning over a device that is a table.
//!
//! One program for all of them: what they share is compiled once. Each file is a subject.

mod calls;
mod graphs;
mod launches;
mod managed;
mod mapped_memory;
mod routing;
mod support;
