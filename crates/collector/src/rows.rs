//! What is stored: one row per kernel and interval, one per launch, one per reading of gauges.

use std::io;
use std::sync::Arc;

use lockstep_attribution::{Key, LaunchRow};

/// Counters of one key at one time, accumulated from the start of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow {
    /// Nanoseconds since 1970.
    pub time: u64,
    /// Name of the node.
    pub node: Arc<str>,
    /// The kernel, and where it ran.
    pub key: Key,
    /// Counted by hardware for this key alone; otherwise this key's estimated part.
    pub exact: bool,
    /// In the order of the metadata file; nothing where a counter could not be read.
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
    /// One launch as it was read, before anything is known of its counters.
    fn begun(&mut self, _row: &LaunchRow) -> io::Result<()> {
        Ok(())
    }
    /// One launch.
    fn launch(&mut self, row: &LaunchRow) -> io::Result<()>;
    /// A GPU is simulated: told before its first row.
    fn simulated(&mut self, _gpu: &Arc<str>) {}
    /// One reading of a GPU's gauges, or of a host side.
    fn gauges(&mut self, row: &GaugeRow) -> io::Result<()>;
    /// Everything taken so far must survive the end of this process.
    fn flush(&mut self) -> io::Result<()>;
}
