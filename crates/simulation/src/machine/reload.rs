//! Saving and loading a machine now and then, to show that nothing can be seen of it.

use super::{Machine, MachineError, contents};
use lockstep_gpu::Gpu;
use lockstep_protocol::window;
use lockstep_units::{Duration, Time};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// When to save and load next, and how that goes on.
#[derive(Debug)]
pub(super) struct Reload {
    pub random: u64,
    pub at: Time,
}

impl Machine {
    /// Saves everything, makes a GPU anew and loads it, if the time for that has come.
    pub(super) fn reload_if_due(&mut self) {
        let now = self.gpu.now();
        let Some(reload) = &mut self.reload else {
            return;
        };
        if now < reload.at {
            return;
        }
        // Some hundred to some ten thousand cycles further on.
        reload.random = reload
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        reload.at = now + Duration::nanoseconds(100 + (reload.random >> 33) % 10_000);
        if self.gpu.is_idle() {
            return;
        }
        self.note_host_memory();
        self.gather_untimed_pages();
        let saved = self.gpu.save();
        let (gpu, memory) = self
            .rebuilt(&saved)
            .unwrap_or_else(|error| panic!("state that was saved loads: {error}"));
        self.gpu = gpu;
        self.memory = Arc::new(memory);
        self.skip_recent_pages();
        self.reloads += 1;
    }

    pub(super) fn rebuilt(&self, saved: &[u8]) -> Result<(Gpu, OwnedFd), MachineError> {
        let memory = window::create().map_err(|error| MachineError::Memory(error.to_string()))?;
        let mut contents = contents(&memory, self.ordinal)?;
        contents.share_initialised(self.gpu.contents());
        let mut gpu = Gpu::new(&self.config, Arc::new(contents), self.options.clone())?;
        gpu.load(saved, &|number| self.modules.get(number as usize).cloned())?;
        Ok((gpu, memory))
    }
}
