//! Samplers and writers: run folder and counter schema.
