//! What an SM keeps for the next timed kernel while others take no time: the code in its instruction
//! caches and the pages that its TLBs know. L1 and constants are empty at the start of a launch anyway.
//!
//! Start reading at [`Sm::succeed`].

use std::ops::Range;

use lockstep_isa::Launch;
use serde::{Deserialize, Serialize};

use super::front_end::instruction_fetch::InstructionFetch;
use super::translation::device::DeviceTranslation;
use super::{Mode, Sm};

/// What the last timed kernel left in an SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptCaches {
    fetch: InstructionFetch,
    /// TLBs of device memory.
    pub(super) translation: DeviceTranslation,
}

impl KeptCaches {
    /// A launch that takes no time begins: its code comes with it all the same.
    fn start_launch(&mut self, launch: &Launch, cold: bool, cycle: u64) {
        self.fetch.start_launch(launch, true, cold, cycle);
    }
}

impl Sm {
    /// A launch begins, at a cycle, that takes no time; it may come to any SM.
    pub fn note_untimed_launch(&mut self, launch: &Launch, cycle: u64) {
        let cold = self.state.parameters.cold;
        if let Some(kept) = &mut self.state.kept {
            kept.start_launch(launch, cold, cycle);
        }
    }

    /// Kernels that took no time touched lines: none of their pages will be met for the first time.
    pub fn note_touched(&mut self, lines: &[Range<u64>]) {
        self.state.port.device_translation.note_touched(lines);
    }

    /// Takes the place of another SM of this GPU that has nothing to do: goes on counting, and has its caches,
    /// in use or kept.
    pub fn succeed(&mut self, old: &mut Self) {
        self.count_on(old);
        let kept = match &mut old.mode {
            Mode::Timing(timing) => {
                let fetch = timing.take_fetch();
                let translation = old.state.port.device_translation.clone();
                Some(Box::new(KeptCaches { fetch, translation }))
            }
            Mode::Functional(_) => old.state.kept.take(),
        };
        match (&mut self.mode, kept) {
            (Mode::Timing(timing), Some(kept)) => {
                timing.set_fetch(kept.fetch);
                self.state.port.device_translation = kept.translation;
            }
            (Mode::Timing(_), None) => {}
            (Mode::Functional(_), kept) => self.state.kept = kept,
        }
    }
}
