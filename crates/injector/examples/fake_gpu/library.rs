//! A GPU's libraries without a GPU: CUPTI, the management library and the driver's device calls.
//!
//! It behaves like the real ones as far as the injector uses them, and it is stricter: a call out of
//! order, a parameter block of the wrong size or an image that was not prepared is written to the
//! file that `FAKE_GPU_LOG` names, and tests want that file empty. `FAKE_GPU_FAIL` makes calls fail
//! (`cuptiSubscribe=39,cuptiPmSamplingEnable=35`), `FAKE_GPU_CLOCK_OFFSET` shifts the device's clock,
//! and `FAKE_GPU_SHARED` names the file in which processes share one device.

#![allow(non_snake_case, reason = "the names that the injector looks for")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the contracts are those of the libraries imitated"
)]
#![allow(
    missing_docs,
    reason = "the functions imitate documented ones of the same names"
)]
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "pointers come from the injector under test"
)]

mod board;
mod device;
mod graph;
mod marks;
mod profiler;
mod state;
mod tracing;
