//! What is stored: one row per kernel and interval, one per launch, one per reading of gauges.

use std::io;
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

/// Counters of one key at one time, accumulated from the start of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow {
    /// Nanoseconds since 1970.
    pub time: u64,
    /// Name of the node.
    pub node: Arc<str>,
    /// Whose.
    pub key: Key,
    /// Counted by hardware for this key alone; otherwise this key's estimated part.
    pub exact: bool,
    /// In the order of the metadata file; nothing where a counter could not be read.
    pub counters: Vec<Option<u64>>,
}

/// One kernel launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchRow {
    /// Number of the launch in its process.
    pub launch: u64,
    /// Whose.
    pub key: Key,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads.
    pub block: [u32; 3],
    /// Nanoseconds since 1970.
    pub begin: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    /// Counters were counted for this launch alone.
    pub exact: bool,
    /// In the order of the metadata file.
    pub counters: Vec<Option<u64>>,
}

/// A reading of gauges: of a GPU, or of a process's host side.
#[derive(Clone, Debug, PartialEq)]
pub struct GaugeRow {
    /// Nanoseconds since 1970.
    pub time: u64,
    /// Name of the node.
    pub node: Arc<str>,
    /// UUID of the GPU; empty for a host side.
    pub gpu: Arc<str>,
    /// The process that read them.
    pub process: u32,
    /// In the order of the registry; nothing where a gauge could not be read.
    pub gauges: Vec<Option<u64>>,
}

/// Takes rows. An error stops the collection, and what was not taken stays in shared memory.
pub trait Sink {
    /// One row of the series.
    fn series(&mut self, row: &SeriesRow) -> io::Result<()>;
    /// One launch.
    fn launch(&mut self, row: &LaunchRow) -> io::Result<()>;
    /// One reading of a GPU's gauges, or of a host side.
    fn gauges(&mut self, row: &GaugeRow) -> io::Result<()>;
    /// Everything taken so far must survive the end of this process.
    fn flush(&mut self) -> io::Result<()>;
}
