//! CUPTI as this crate uses it: layouts, numbers and the functions found at run time.
//!
//! Nothing is linked. The library that the machine has is opened when a CUDA program starts; each
//! parameter block carries its own size, so that one build works with CUPTI 12.6 to 13.

pub mod layouts;
mod library;
pub mod numbers;

pub use library::{
    BufferCompleted, BufferRequested, Callback, Cupti, CuptiError, Host, Range, Sampling, Tracing,
};
