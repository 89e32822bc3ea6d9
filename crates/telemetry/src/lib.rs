//! Samplers and writers: run folder and counter schema.

pub mod schema;
pub mod segment;
