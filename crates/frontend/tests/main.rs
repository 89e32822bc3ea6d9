//! PTX and machine code, from text and images to values.
//!
//! One program for all of them: what they share is compiled once. Each file is a subject.

mod conformance;
mod harness;
mod ptx_computes_correctly;
mod ptx_errors;
mod ptx_workloads;
mod sass_loader;
