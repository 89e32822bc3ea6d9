//! Samplers and writers: run folder and counter schema.

pub mod run_folder;
pub mod sampling;
pub mod schema;
pub mod segment;
