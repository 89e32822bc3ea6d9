//! Fences, releases and sleeps of one SM: who waits, and until when.

use serde::{Deserialize, Serialize};

use super::lsu::in_flight::InFlight;

/// Who waits for an ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waiter {
    /// A warp at a fence or before a release.
    Warp {
        /// Its slot.
        slot: u8,
        /// The access that comes next is ordered then.
        release: bool,
    },
    /// A block whose warps have all ended.
    Block(u8),
}

/// A fence that is not through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceWait {
    /// The warp or block that waits.
    pub waiter: Waiter,
    /// Strong accesses up to this generation must be answered.
    pub generation: Option<u64>,
    /// Weak stores must be committed: not before this epoch has ended.
    pub boundary: bool,
    /// Not before this cycle.
    pub until: u64,
}

/// Everybody who waits on an SM, besides warps that wait for values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ordering {
    fences: Vec<FenceWait>,
    /// When the first fence can be through, if that is a matter of time.
    due: u64,
    /// Warps that sleep, and until when.
    sleepers: Vec<(u64, u8)>,
    /// When the first of them wakes.
    next_sleeper: u64,
}

impl Default for Ordering {
    fn default() -> Self {
        Self {
            fences: Vec::new(),
            due: u64::MAX,
            sleepers: Vec::new(),
            next_sleeper: u64::MAX,
        }
    }
}

impl Ordering {
    /// Adds somebody who waits.
    pub fn wait_for(&mut self, fence: FenceWait) {
        if fence.until > 0 {
            self.due = self.due.min(fence.until);
        }
        self.fences.push(fence);
    }

    /// Whether nobody waits at a fence.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fences.is_empty()
    }

    /// When the first fence can be through, if that is a matter of time.
    #[must_use]
    #[inline]
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Whether a fence waits for the end of the epoch.
    #[must_use]
    pub fn waits_for_boundary(&self) -> bool {
        self.fences.iter().any(|fence| fence.boundary)
    }

    /// An epoch has ended: what was logged before is committed.
    pub fn pass_boundary(&mut self) {
        for fence in &mut self.fences {
            fence.boundary = false;
        }
    }

    /// The next waiter, from the one at `index` on, whose fence has nothing left to wait for.
    pub fn next_through(
        &mut self,
        index: &mut usize,
        in_flight: &InFlight,
        cycle: u64,
    ) -> Option<Waiter> {
        while let Some(fence) = self.fences.get(*index) {
            let drained = fence
                .generation
                .is_none_or(|generation| in_flight.drained(generation));
            if !fence.boundary && drained && fence.until <= cycle {
                return Some(self.fences.remove(*index).waiter);
            }
            *index += 1;
        }
        let later = self.fences.iter().map(|fence| fence.until);
        let later = later.filter(|until| *until > cycle);
        self.due = later.min().unwrap_or(u64::MAX);
        None
    }

    /// A warp sleeps until a cycle.
    pub fn sleep(&mut self, until: u64, slot: u8) {
        self.sleepers.push((until, slot));
        self.next_sleeper = self.next_sleeper.min(until);
    }

    /// When the first of those who sleep wakes.
    #[must_use]
    #[inline]
    pub fn next_sleeper(&self) -> u64 {
        self.next_sleeper
    }

    /// Takes out those whose sleep is over, a bit a slot.
    pub fn wake_sleepers(&mut self, cycle: u64) -> u64 {
        let mut woken = 0;
        self.sleepers.retain(|(until, slot)| {
            let due = *until <= cycle;
            woken |= u64::from(due) << slot;
            !due
        });
        self.find_next_sleeper();
        woken
    }

    /// Those of some slots sleep no longer.
    pub fn cancel_sleep(&mut self, slots: u64) {
        self.sleepers.retain(|(_, slot)| slots >> slot & 1 == 0);
        self.find_next_sleeper();
    }

    fn find_next_sleeper(&mut self) {
        let all = self.sleepers.iter().map(|(until, _)| *until);
        self.next_sleeper = all.min().unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(ordering: &mut Ordering, flight: &InFlight, cycle: u64) -> Vec<Waiter> {
        let mut index = 0;
        std::iter::from_fn(|| ordering.next_through(&mut index, flight, cycle)).collect()
    }

    #[test]
    fn a_fence_waits_for_its_generation_its_epoch_and_its_time() {
        let (mut ordering, mut flight) = (Ordering::default(), InFlight::default());
        let sent = flight.start(7);
        let fence = |block, generation, boundary, until| FenceWait {
            waiter: Waiter::Block(block),
            generation,
            boundary,
            until,
        };
        ordering.wait_for(fence(0, flight.close(), false, 0));
        ordering.wait_for(fence(1, None, true, 0));
        ordering.wait_for(fence(2, None, false, 50));
        assert_eq!(through(&mut ordering, &flight, 10), []);
        assert_eq!(ordering.due(), 50);
        flight.finish(7, sent);
        assert_eq!(through(&mut ordering, &flight, 10), [Waiter::Block(0)]);
        ordering.pass_boundary();
        assert_eq!(
            through(&mut ordering, &flight, 50),
            [Waiter::Block(1), Waiter::Block(2)]
        );
        assert_eq!(ordering.due(), u64::MAX);
    }

    #[test]
    fn sleepers_wake_in_their_time() {
        let mut ordering = Ordering::default();
        ordering.sleep(20, 5);
        ordering.sleep(10, 3);
        assert_eq!(ordering.next_sleeper(), 10);
        assert_eq!(ordering.wake_sleepers(15), 1 << 3);
        assert_eq!(ordering.wake_sleepers(25), 1 << 5);
        assert_eq!(ordering.next_sleeper(), u64::MAX);
        ordering.sleep(30, 1);
        ordering.sleep(40, 2);
        ordering.cancel_sleep(1 << 1);
        assert_eq!(ordering.next_sleeper(), 40);
    }
}
