//! Samplers and writers: run folder and counter schema.

pub mod run_folder;
pub mod schema;
pub mod segment;
