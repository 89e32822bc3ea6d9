//! How far a run has come, for those who watch it.

use lockstep_gpu::Observed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Shared between a run and whoever shows its progress. Nothing here flows back into the run,
/// but for the wish to stop it.
#[derive(Debug, Default)]
pub struct Progress {
    stop: Arc<AtomicBool>,
    simulated: AtomicU64,
    /// Slices of simulated time that were begun and that were ended.
    begun: AtomicU64,
    ended: AtomicU64,
    launched: AtomicU64,
    completed: AtomicU64,
    kernel: Mutex<String>,
    blocks: AtomicU64,
    blocks_done: AtomicU64,
    instructions: AtomicU64,
}

impl Progress {
    /// Asks the run to stop at the next boundary.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked the run to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The wish to stop, for handlers of signals.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Simulated time, in nanoseconds.
    pub fn simulated_ns(&self) -> u64 {
        self.simulated.load(Ordering::Relaxed)
    }

    /// Kernels that began and kernels that ended.
    pub fn kernels(&self) -> (u64, u64) {
        (
            self.launched.load(Ordering::Relaxed),
            self.completed.load(Ordering::Relaxed),
        )
    }

    /// The kernel that began last.
    pub fn kernel(&self) -> String {
        self.kernel
            .lock()
            .map(|name| name.clone())
            .unwrap_or_default()
    }

    /// Blocks of the kernels that run, and those of them that have ended.
    pub fn blocks(&self) -> (u64, u64) {
        (
            self.blocks.load(Ordering::Relaxed),
            self.blocks_done.load(Ordering::Relaxed),
        )
    }

    /// Warp instructions executed so far.
    pub fn instructions(&self) -> u64 {
        self.instructions.load(Ordering::Relaxed)
    }

    pub(crate) fn observed(&self, observed: &Observed) {
        self.blocks.store(observed.blocks, Ordering::Relaxed);
        let done = observed.blocks_done;
        self.blocks_done.store(done, Ordering::Relaxed);
        let instructions = observed.instructions;
        self.instructions.store(instructions, Ordering::Relaxed);
    }

    pub(crate) fn began(&self, kernel: &str) {
        self.launched.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut name) = self.kernel.lock() {
            name.clear();
            name.push_str(kernel);
        }
    }

    pub(crate) fn ended(&self, count: usize) {
        self.completed.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn reached(&self, nanoseconds: u64) {
        self.simulated.store(nanoseconds, Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// A slice of simulated time begins, which [`Progress::reached`] ends.
    pub(crate) fn begins(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of the slice that is being simulated, if one is.
    pub(crate) fn slice(&self) -> Option<u64> {
        let ended = self.ended.load(Ordering::Relaxed);
        (self.begun.load(Ordering::Relaxed) > ended).then_some(ended)
    }
}
