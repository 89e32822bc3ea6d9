//! What CUDA calls mean, without a C ABI.
//!
//! A [`Runtime`] takes one request at a time, in the order in which they are handed over, and answers it. It keeps
//! contexts, modules, streams, events and allocations, and a simulated host clock: every call
//! costs a configured time, a call that waits lets the device advance until its work is complete,
//! and nothing else ever lets it advance. The answers therefore depend on the calls and on the
//! simulated state alone.
//!
//! Start reading at [`Runtime::handle`], then [`timeline`] for what happens when.

mod attributes;
mod calls;
mod context;
pub mod device;
mod faults;
mod heap;
pub mod host;
mod memory;
mod module;
mod multicast;
mod ranges;
mod record;
mod runtime;
pub mod timeline;
mod virtual_memory;

pub use attributes::{DRIVER_VERSION, describe, describe_links};
pub use calls::{Annotations, Within};
pub use context::DEFAULT_HEAP;
pub use device::Device;
pub use faults::MetFault;
pub use heap::Heap;
pub use memory::SYSTEM_SPACE;
pub use module::{
    ConstantRange, FrontendChoice, LoadOptions, Loader, ModuleSource, constant_banks, lay_out,
};
pub use record::{Entry, Piece, RecordError, RecordReader, RecordWriter, pieces};
pub use runtime::{Client, LaunchSummary, Runtime, UnsupportedCall};

use lockstep_protocol::{CuResult, Failure};

/// What a call comes to.
pub type CallResult<T> = Result<T, Failure>;

/// A failed call, with CUDA's code and a sentence.
pub(crate) fn fail<T>(code: CuResult, message: impl Into<String>) -> CallResult<T> {
    Err(failure(code, message))
}

pub(crate) fn failure(code: CuResult, message: impl Into<String>) -> Failure {
    Failure {
        code,
        message: message.into(),
    }
}
