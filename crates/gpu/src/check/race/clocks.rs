//! What is ordered before what, among the warps of a block and the bulk engine.
//!
//! Each agent has a clock that goes on whenever it releases: arrives at a barrier, an `mbarrier` or an atomic. A vector
//! clock says of every agent up to which of its clocks everything is ordered before now. Lanes of a warp share its
//! clock; among them an access is ordered if the lane has met others since (`__syncwarp`, or any barrier of the block).
//!
//! Where it must choose, an order is assumed: a race may be missed, but what is reported is one.

use std::collections::VecDeque;

use lockstep_isa::Mask;
use lockstep_isa::warp_register::{LANES, lanes_of};
use serde::{Deserialize, Serialize};

/// Groups of copies whose end is remembered; older ones count as ordered.
const GROUPS: usize = 64;

/// A clock of every agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorClock(Vec<u32>);

impl VectorClock {
    /// All that the other says is known here too.
    pub fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, new) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*new);
        }
    }

    fn of(&self, agent: usize) -> u32 {
        self.0.get(agent).copied().unwrap_or(0)
    }

    fn set(&mut self, agent: usize, clock: u32) {
        if self.0.len() <= agent {
            self.0.resize(agent + 1, 0);
        }
        self.0[agent] = clock;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Copies to shared memory (`cp.async`) of one warp: groups by number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct CopyGroups {
    /// The group that copies join now.
    open: u32,
    /// Groups before this one are complete.
    complete: u32,
    /// The warp's clock when the last groups were complete, the newest last.
    ends: VecDeque<u32>,
    /// The dependence counters that groups raise.
    counters: u8,
}

impl CopyGroups {
    /// The warp's clock when a group was complete, if it is.
    fn end_of(&self, group: u32) -> Option<u32> {
        if group >= self.complete {
            return None;
        }
        let back = (self.complete - group) as usize;
        let index = self.ends.len().checked_sub(back);
        Some(index.map_or(0, |index| self.ends[index]))
    }

    fn complete_until(&mut self, group: u32, clock: u32) {
        while self.complete < group {
            self.complete += 1;
            self.ends.push_back(clock);
            if self.ends.len() > GROUPS {
                self.ends.pop_front();
            }
        }
    }
}

/// One warp.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct WarpClock {
    known: VectorClock,
    /// The warp's own clock when a lane last met others.
    met: [u32; LANES],
    copies: CopyGroups,
}

/// The agents of a block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Clocks {
    warps: Vec<WarpClock>,
    /// What warps knew that have ended.
    ended: VectorClock,
    /// Commands of the bulk engine so far.
    bulk: u32,
}

impl Clocks {
    /// At the start of a block nobody has done anything.
    pub fn new(warps: usize) -> Self {
        let mut all = vec![WarpClock::default(); warps];
        for (warp, clock) in all.iter_mut().enumerate() {
            clock.known.set(warp, 1);
        }
        Self {
            warps: all,
            ended: VectorClock::default(),
            bulk: 0,
        }
    }

    /// The agent that stands for the bulk engine.
    pub fn bulk_agent(&self) -> usize {
        self.warps.len()
    }

    /// A warp's own clock.
    pub fn now(&self, warp: usize) -> u32 {
        self.warps[warp].known.of(warp)
    }

    /// Whether what an agent did at a clock is ordered before what a lane of a warp does now.
    pub fn is_before(&self, agent: usize, clock: u32, warp: usize, lane: usize) -> bool {
        if agent == warp {
            self.warps[warp].met[lane] > clock
        } else {
            self.warps[warp].known.of(agent) >= clock
        }
    }

    /// A warp releases: what it has done so far is known at `to`.
    pub fn release(&mut self, warp: usize, to: &mut VectorClock) {
        to.join(&self.warps[warp].known);
        self.tick(warp);
    }

    /// A warp acquires what is known at `from`.
    pub fn acquire(&mut self, warp: usize, from: &VectorClock) {
        self.warps[warp].known.join(from);
    }

    /// Lanes of a warp have met.
    pub fn meet(&mut self, warp: usize, lanes: Mask) {
        let clock = self.tick(warp);
        for lane in lanes_of(lanes) {
            self.warps[warp].met[lane] = clock;
        }
    }

    /// Whoever meets others at a barrier knows what warps did that have ended before.
    pub fn meet_ended(&mut self, warp: usize) {
        self.warps[warp].known.join(&self.ended);
    }

    /// A warp ends.
    pub fn end(&mut self, warp: usize) {
        self.ended.join(&self.warps[warp].known);
    }

    fn tick(&mut self, warp: usize) -> u32 {
        let clock = self.now(warp).saturating_add(1);
        self.warps[warp].known.set(warp, clock);
        clock
    }

    /// The group that copies of a warp join now.
    pub fn copy_group(&self, warp: usize) -> u32 {
        self.warps[warp].copies.open
    }

    /// The warp's clock when a group of its copies was complete, if it is.
    pub fn end_of_copies(&self, warp: usize, group: u32) -> Option<u32> {
        self.warps[warp].copies.end_of(group)
    }

    /// A warp closes a group of copies, which keeps a dependence counter up.
    pub fn close_group(&mut self, warp: usize, counter: u8) {
        let copies = &mut self.warps[warp].copies;
        copies.open = copies.open.saturating_add(1);
        copies.counters |= 1u8.checked_shl(counter.into()).unwrap_or(0);
    }

    /// A warp has waited until at most so many groups are open.
    pub fn wait_for_groups(&mut self, warp: usize, at_most: u32) {
        let clock = self.now(warp);
        let copies = &mut self.warps[warp].copies;
        copies.complete_until(copies.open.saturating_sub(at_most), clock);
    }

    /// A warp has waited for dependence counters: if groups of copies kept one up, they are complete.
    pub fn wait_for_counters(&mut self, warp: usize, counters: u8) {
        if self.warps[warp].copies.counters & counters != 0 {
            self.wait_for_groups(warp, 0);
        }
    }

    /// All copies of a warp are complete, when an `mbarrier` counts them.
    pub fn complete_copies(&mut self, warp: usize) {
        self.close_group(warp, 7);
        self.wait_for_groups(warp, 0);
    }

    /// The bulk engine begins a command; gives its clock.
    pub fn begin_bulk(&mut self) -> u32 {
        self.bulk = self.bulk.saturating_add(1);
        self.bulk
    }

    /// A barrier will know of the bulk engine's commands up to a clock.
    pub fn release_bulk(&self, clock: u32, to: &mut VectorClock) {
        let agent = self.bulk_agent();
        to.set(agent, to.of(agent).max(clock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_released_and_acquired_is_ordered() {
        let mut clocks = Clocks::new(3);
        let (mut barrier, stamp) = (VectorClock::default(), clocks.now(0));
        assert!(!clocks.is_before(0, stamp, 1, 0));
        clocks.release(0, &mut barrier);
        let later = clocks.now(0);
        clocks.acquire(1, &barrier);
        assert!(clocks.is_before(0, stamp, 1, 0) && !clocks.is_before(0, later, 1, 0));
        assert!(!clocks.is_before(0, stamp, 2, 0));
        let mut second = VectorClock::default();
        clocks.release(1, &mut second);
        clocks.acquire(2, &second);
        assert!(clocks.is_before(0, stamp, 2, 31), "by way of another warp");
    }

    #[test]
    fn lanes_of_a_warp_are_ordered_where_they_met() {
        let mut clocks = Clocks::new(1);
        let stamp = clocks.now(0);
        clocks.meet(0, 0xff);
        assert!(clocks.is_before(0, stamp, 0, 7) && !clocks.is_before(0, stamp, 0, 8));
        assert!(!clocks.is_before(0, clocks.now(0), 0, 7));
    }

    #[test]
    fn groups_of_copies_end_in_their_order() {
        let mut clocks = Clocks::new(1);
        for _ in 0..3 {
            clocks.close_group(0, 2);
        }
        assert_eq!(clocks.copy_group(0), 3);
        clocks.wait_for_groups(0, 1);
        let ends = [0, 1, 2, 3].map(|group| clocks.end_of_copies(0, group));
        assert_eq!(ends, [Some(1), Some(1), None, None]);
        clocks.meet(0, !0);
        clocks.wait_for_counters(0, 1 << 3);
        assert_eq!(clocks.end_of_copies(0, 2), None);
        clocks.wait_for_counters(0, 1 << 2);
        assert_eq!(clocks.end_of_copies(0, 2), Some(2));
        for _ in 0..200 {
            clocks.close_group(0, 2);
            clocks.wait_for_groups(0, 0);
        }
        assert_eq!(clocks.end_of_copies(0, 0), Some(0), "long ago");
    }
}
