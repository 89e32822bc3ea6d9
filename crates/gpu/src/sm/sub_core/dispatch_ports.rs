//! The dispatch ports of a sub-core: each functional unit takes instructions at its own rate.

use serde::{Deserialize, Serialize};

use crate::sm::front_end::issue_table::{IssueInfo, PIPES, Pipe};

/// When each pipe of a sub-core takes another instruction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DispatchPorts {
    free: [u64; PIPES],
    /// The same for the light half of the multiply-add unit.
    fma_light: u64,
}

impl DispatchPorts {
    /// Cycle from which a pipe takes another instruction.
    #[must_use]
    #[inline(always)]
    pub fn free_at(&self, pipe: usize) -> u64 {
        self.free[pipe]
    }

    /// Keeps a pipe busy until a cycle.
    #[inline]
    pub fn set_free(&mut self, pipe: Pipe, cycle: u64) {
        self.free[pipe as usize] = cycle;
    }

    /// Keeps the pipe of an instruction busy that issues in a cycle. `split_multiply` if the
    /// multiply-add unit has two halves of which one multiplies integers. Memory instructions keep
    /// their place in the MIO queue instead.
    #[inline]
    pub fn dispatch(&mut self, info: &IssueInfo, cycle: u64, split_multiply: bool) {
        let interval = u64::from(info.interval);
        let [heavy, any] = [Pipe::FmaHeavy as usize, Pipe::Fma as usize];
        match info.pipe {
            Pipe::LoadStore => {}
            Pipe::Fma if split_multiply => {
                // Either half takes two cycles for a warp.
                let busy = cycle + 2 * interval;
                if self.fma_light <= cycle {
                    self.fma_light = busy;
                } else {
                    self.free[heavy] = busy;
                }
                self.free[any] = self.fma_light.min(self.free[heavy]);
            }
            Pipe::FmaHeavy if split_multiply => {
                self.free[heavy] = cycle + interval;
                self.free[any] = self.fma_light.min(self.free[heavy]);
            }
            Pipe::Fma | Pipe::FmaHeavy => {
                self.free[heavy] = cycle + interval;
                self.free[any] = cycle + interval;
            }
            pipe => self.free[pipe as usize] = cycle + interval,
        }
    }
}
