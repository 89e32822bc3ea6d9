//! A kernel launch, and whose work a count is.

use std::sync::Arc;

/// Whose work a count is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// UUID of the GPU.
    pub gpu: Arc<str>,
    /// Process; 0 for work that no sampled process launched.
    pub process: u32,
    /// The driver's number of the context in its process.
    pub context: u32,
    /// The driver's number of the stream.
    pub stream: u32,
    /// Name of the kernel.
    pub kernel: Arc<str>,
}

impl Key {
    /// The stream of the kernel.
    pub(crate) fn stream_id(&self) -> StreamId {
        (self.process, self.context, self.stream)
    }
}

/// A stream: its process, context and number.
pub(crate) type StreamId = (u32, u32, u32);

/// One kernel launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchRow {
    /// Number of the launch in its process.
    pub launch: u64,
    /// The kernel, and where it ran.
    pub key: Key,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Nanoseconds since 1970.
    pub begin: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    /// Its counters were counted for this launch alone.
    pub exact: bool,
    /// Counters, in the order of the samples.
    pub counters: Vec<Option<u64>>,
}

impl LaunchRow {
    /// Warps of the whole grid.
    pub(crate) fn warps(&self) -> u64 {
        let volume = |sizes: [u32; 3]| sizes.iter().map(|size| u64::from(*size)).product::<u64>();
        volume(self.grid) * volume(self.block).div_ceil(32)
    }
}

/// Where a launch stands in the queue: the host's time, then the order of arrival.
pub(crate) type Place = (u64, u64);

/// A launch on its way through the device.
pub(crate) struct Queued {
    pub row: LaunchRow,
    /// The device itself told when it ran.
    pub timed: bool,
    /// Warps that the device has not started yet.
    pub left: u64,
    pub begun: bool,
}
