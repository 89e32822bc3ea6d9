//! Fences and releases: who waits for which accesses.

use lockstep_engine::Outbox;
use serde::{Deserialize, Serialize};

use super::Sm;
use crate::message::Message;
use crate::sm::now::Now;

/// Who waits for an ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Waiter {
    /// A warp at a fence or before a release.
    Warp {
        slot: u8,
        /// The access that comes next is ordered then.
        release: bool,
    },
    /// A block whose warps have all ended.
    Block(u8),
}

/// A fence that is not through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FenceWait {
    pub waiter: Waiter,
    /// Strong accesses up to this generation must be answered.
    pub generation: Option<u64>,
    /// Weak stores must be committed: not before this epoch has ended.
    pub boundary: bool,
    /// Not before this cycle.
    pub until: u64,
}

impl Sm {
    /// Whether a fence has something to wait for; then the waiter is remembered.
    pub(super) fn fence(&mut self, waiter: Waiter, boundary: bool, until: u64) -> bool {
        let generation = self.port.in_flight.close();
        let boundary = boundary && !self.port.log.is_empty();
        if generation.is_none() && !boundary && until == 0 {
            return false;
        }
        self.wait_for(FenceWait {
            waiter,
            generation,
            boundary,
            until,
        });
        true
    }

    /// Remembers somebody who waits.
    pub(super) fn wait_for(&mut self, fence: FenceWait) {
        if fence.until > 0 {
            self.fence_due = self.fence_due.min(fence.until);
        }
        self.fences.push(fence);
    }

    /// Lets those through whose fence has nothing left to wait for.
    pub(super) fn check_fences(&mut self, now: Now, outbox: &mut Outbox<'_, Message>) {
        let mut index = 0;
        while index < self.fences.len() {
            let fence = self.fences[index];
            let drained = fence
                .generation
                .is_none_or(|generation| self.port.in_flight.drained(generation));
            if fence.boundary || !drained || fence.until > now.cycle {
                index += 1;
                continue;
            }
            self.fences.remove(index);
            match fence.waiter {
                Waiter::Warp { slot, release } => {
                    self.warps[usize::from(slot)].released = release;
                    self.release(1 << slot, now);
                }
                Waiter::Block(block) => self.end_block(block, now, outbox),
            }
        }
        let later = self.fences.iter().map(|fence| fence.until);
        self.fence_due = later
            .filter(|until| *until > now.cycle)
            .min()
            .unwrap_or(u64::MAX);
    }
}
