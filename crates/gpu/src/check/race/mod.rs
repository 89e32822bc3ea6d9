//! Hazards between threads of a block in shared memory.
//!
//! Two accesses to a byte race if one of them writes and nothing orders them: no barrier of the block, no `__syncwarp`
//! within a warp, no `mbarrier`, no atomic that both used. Stores of equal values do not race. A copy from global memory
//! (`cp.async`) is done when its group was waited for, and a bulk copy when its `mbarrier` was.
//!
//! Left out: reads of `wgmma` and of bulk stores after their issue, accesses of other blocks of a cluster, and copies of
//! PTX, which count as done at once.
//!
//! | file | what |
//! |---|---|
//! | `clocks.rs` | what is ordered before what |
//! | `cells.rs` | who touched each word last |
//! | `hooks.rs` | what instructions tell the checker |
//!
//! Start reading at [`RaceChecker`].

mod cells;
mod clocks;
pub mod hooks;

use std::collections::{BTreeMap, BTreeSet};

use lockstep_isa::Mask;
use serde::{Deserialize, Serialize};

pub use cells::{Access, AccessKind};
use cells::{Cell, Who};
use clocks::{Clocks, VectorClock};

use crate::sm::BARRIERS;

/// Words of shared memory whose accesses are kept together.
const CHUNK: usize = 64;

/// What is known of the shared memory of one block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RaceChecker {
    clocks: Clocks,
    /// Words by chunk; a chunk that nobody has touched has none.
    chunks: Vec<Vec<Cell>>,
    barriers: Vec<VectorClock>,
    cluster: VectorClock,
    mbarriers: BTreeMap<u32, VectorClock>,
    /// What atomics on a word have released.
    atomics: BTreeMap<u32, VectorClock>,
    /// Words that were exchanged or compared: locks, which plain loads and stores may use too.
    locks: BTreeSet<u32>,
}

/// One access of a lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneAccess {
    /// The warp, by its number in the block.
    pub warp: usize,
    /// The lane.
    pub lane: usize,
    /// The instruction.
    pub pc: u32,
    /// Load or store.
    pub kind: AccessKind,
    /// Where, in bytes.
    pub place: u32,
    /// How many bytes.
    pub bytes: u32,
    /// What a store writes, if it is of at most a word.
    pub value: u32,
}

impl RaceChecker {
    /// A block that begins.
    #[must_use]
    pub fn new(warps: usize, shared: usize) -> Self {
        Self {
            clocks: Clocks::new(warps),
            chunks: vec![Vec::new(); shared.div_ceil(4 * CHUNK)],
            barriers: vec![VectorClock::default(); BARRIERS],
            cluster: VectorClock::default(),
            mbarriers: BTreeMap::new(),
            atomics: BTreeMap::new(),
            locks: BTreeSet::new(),
        }
    }

    /// Adds an access of a lane, and gives an earlier one that it races with.
    pub fn access(&mut self, access: LaneAccess) -> Option<Access> {
        let LaneAccess { warp, kind, .. } = access;
        let clock = match kind {
            AccessKind::Copy => self.clocks.copy_group(warp),
            _ => self.clocks.now(warp),
        };
        self.add(access, warp, clock)
    }

    /// Adds a write of the bulk engine, which a lane has asked for under a number of [`Self::begin_bulk`].
    pub fn bulk_access(&mut self, access: LaneAccess, command: u32) -> Option<Access> {
        self.add(access, self.clocks.bulk_agent(), command)
    }

    fn add(&mut self, access: LaneAccess, agent: usize, clock: u32) -> Option<Access> {
        let LaneAccess {
            warp,
            lane,
            pc,
            kind,
            place,
            bytes,
            value,
        } = access;
        let who = Who { warp, lane };
        let mut hazard = None;
        let end = place.saturating_add(bytes);
        let mut at = place;
        while at < end {
            let word = at / 4;
            let until = ((word + 1) * 4).min(end);
            let atomic = matches!(kind, AccessKind::Atomic | AccessKind::Exchange);
            if !atomic && self.locks.contains(&word) {
                self.use_lock(warp, lane, word, kind);
            } else if let Some(cell) = cell(&mut self.chunks, word) {
                let new = Access {
                    kind,
                    agent: agent as u8,
                    bytes: (((1u32 << (until - at)) - 1) << (at % 4)) as u8,
                    clock,
                    lanes: 1 << lane,
                    pc,
                    value: value << (8 * (at % 4)),
                };
                let found = cell.add(new, who, &self.clocks);
                hazard = hazard.or(found);
            }
            at = until;
        }
        hazard
    }

    /// A plain load or store of a lock: it takes the lock, or lets it go.
    fn use_lock(&mut self, warp: usize, lane: usize, word: u32, kind: AccessKind) {
        let clock = self.atomics.entry(word).or_default();
        if kind == AccessKind::Read {
            self.clocks.acquire(warp, clock);
            self.clocks.meet(warp, 1 << lane);
        } else {
            self.clocks.release(warp, clock);
        }
    }

    /// An atomic of a lane: an access that also orders what comes before it and after it.
    pub fn atomic(&mut self, access: LaneAccess) -> Option<Access> {
        let hazard = self.access(access);
        let word = access.place / 4;
        if access.kind == AccessKind::Exchange {
            let end = access.place.saturating_add(access.bytes).div_ceil(4);
            self.locks.extend(word..end);
        }
        let clock = self.atomics.entry(word).or_default();
        self.clocks.acquire(access.warp, clock);
        self.clocks.release(access.warp, clock);
        self.clocks.meet(access.warp, 1 << access.lane);
        hazard
    }

    /// Bytes were changed by another block: nothing is known of their order.
    pub fn forget(&mut self, place: u32, bytes: u32) {
        for word in place / 4..place.saturating_add(bytes).div_ceil(4) {
            if let Some(cell) = cell(&mut self.chunks, word) {
                cell.clear();
            }
        }
    }

    /// Lanes of a warp have met.
    pub fn meet(&mut self, warp: usize, lanes: Mask) {
        self.clocks.meet(warp, lanes);
    }

    /// A warp arrives at a barrier.
    pub fn arrive_at_barrier(&mut self, number: usize, warp: usize) {
        self.clocks.release(warp, &mut self.barriers[number]);
    }

    /// Lanes of a warp leave a barrier that is complete.
    pub fn leave_barrier(&mut self, number: usize, warp: usize, lanes: Mask) {
        self.clocks.acquire(warp, &self.barriers[number]);
        self.clocks.meet_ended(warp);
        self.clocks.meet(warp, lanes);
    }

    /// All have left a barrier.
    pub fn end_barrier(&mut self, number: usize) {
        self.barriers[number].clear();
    }

    /// A warp arrives at the barrier of the cluster.
    pub fn arrive_at_cluster(&mut self, warp: usize) {
        self.clocks.release(warp, &mut self.cluster);
    }

    /// The barrier of the cluster is complete, for a warp.
    pub fn leave_cluster(&mut self, warp: usize) {
        self.clocks.acquire(warp, &self.cluster);
        self.clocks.meet_ended(warp);
        self.clocks.meet(warp, Mask::MAX);
    }

    /// A warp arrives at an `mbarrier`.
    pub fn arrive_at_mbarrier(&mut self, place: u32, warp: usize) {
        let clock = self.mbarriers.entry(place).or_default();
        self.clocks.release(warp, clock);
    }

    /// A phase of an `mbarrier` was found to have ended.
    pub fn leave_mbarrier(&mut self, place: u32, warp: usize, lanes: Mask) {
        let clock = self.mbarriers.entry(place).or_default();
        self.clocks.acquire(warp, clock);
        self.clocks.meet(warp, lanes);
    }

    /// An `mbarrier` will know when the copies of a warp are complete.
    pub fn copies_arrive(&mut self, place: u32, warp: usize) {
        self.clocks.complete_copies(warp);
        self.arrive_at_mbarrier(place, warp);
    }

    /// The bulk engine begins a command.
    pub fn begin_bulk(&mut self) -> u32 {
        self.clocks.begin_bulk()
    }

    /// An `mbarrier` will know when a command of the bulk engine is complete.
    pub fn bulk_arrives(&mut self, place: u32, command: u32) {
        let clock = self.mbarriers.entry(place).or_default();
        self.clocks.release_bulk(command, clock);
    }

    /// A warp closes a group of copies, which keeps a dependence counter up.
    pub fn close_group(&mut self, warp: usize, counter: u8) {
        self.clocks.close_group(warp, counter);
    }

    /// A warp has waited until at most so many groups of copies are open.
    pub fn wait_for_groups(&mut self, warp: usize, at_most: u32) {
        self.clocks.wait_for_groups(warp, at_most);
    }

    /// A warp has waited for dependence counters.
    pub fn wait_for_counters(&mut self, warp: usize, counters: u8) {
        self.clocks.wait_for_counters(warp, counters);
    }

    /// A warp has ended.
    pub fn end_warp(&mut self, warp: usize) {
        self.clocks.end(warp);
    }
}

/// The accesses of a word, if the block has it.
fn cell(chunks: &mut [Vec<Cell>], word: u32) -> Option<&mut Cell> {
    let chunk = chunks.get_mut(word as usize / CHUNK)?;
    if chunk.is_empty() {
        chunk.resize(CHUNK, Cell::default());
    }
    chunk.get_mut(word as usize % CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARPS: usize = 4;

    fn checker() -> RaceChecker {
        RaceChecker::new(WARPS, 1024)
    }

    fn at(warp: usize, lane: usize, kind: AccessKind, place: u32, bytes: u32) -> LaneAccess {
        LaneAccess {
            warp,
            lane,
            pc: (warp * 100 + lane) as u32,
            kind,
            place,
            bytes,
            value: lane as u32,
        }
    }

    fn barrier(checker: &mut RaceChecker, number: usize, warps: &[usize]) {
        for warp in warps {
            checker.arrive_at_barrier(number, *warp);
        }
        for warp in warps {
            checker.leave_barrier(number, *warp, !0);
        }
        checker.end_barrier(number);
    }

    use AccessKind::{Atomic, Bulk, Copy, Exchange, Read, Write};

    #[test]
    fn a_store_and_a_load_of_two_warps_need_a_barrier() {
        let mut race = checker();
        assert!(race.access(at(0, 3, Write, 16, 4)).is_none());
        assert!(race.access(at(0, 3, Read, 16, 4)).is_none(), "its own");
        let found = race.access(at(1, 0, Read, 16, 4)).unwrap();
        assert_eq!((found.agent, found.lanes, found.kind), (0, 8, Write));
        barrier(&mut race, 0, &[0, 1, 2, 3]);
        assert!(race.access(at(2, 9, Read, 16, 4)).is_none());
        let found = race.access(at(0, 3, Write, 16, 4)).unwrap();
        assert_eq!((found.agent, found.kind), (2, Read));
    }

    #[test]
    fn named_barriers_order_those_who_meet() {
        let mut race = checker();
        race.access(at(0, 0, Write, 0, 4));
        barrier(&mut race, 1, &[0, 1]);
        barrier(&mut race, 2, &[2, 3]);
        assert!(race.access(at(1, 5, Read, 0, 4)).is_none());
        assert!(race.access(at(2, 5, Read, 0, 4)).is_some());
    }

    #[test]
    fn bytes_of_a_word_are_apart() {
        let mut race = checker();
        race.access(at(0, 0, Write, 4, 1));
        assert!(race.access(at(1, 1, Write, 5, 1)).is_none());
        assert!(race.access(at(2, 2, Write, 6, 2)).is_none());
        assert!(race.access(at(3, 3, Read, 5, 1)).is_some());
        assert!(race.access(at(3, 3, Read, 7, 1)).is_some());
    }

    #[test]
    fn equal_stores_do_not_race() {
        let mut race = checker();
        let same = |warp, lane| LaneAccess {
            value: 77,
            ..at(warp, lane, Write, 8, 4)
        };
        assert!(race.access(same(0, 0)).is_none());
        assert!(race.access(same(0, 1)).is_none());
        assert!(race.access(same(2, 1)).is_none());
        assert!(race.access(at(3, 1, Write, 8, 4)).is_some());
    }

    #[test]
    fn lanes_of_a_warp_need_to_meet() {
        let mut race = checker();
        race.access(at(0, 0, Write, 8, 4));
        race.access(at(0, 1, Write, 12, 4));
        assert!(race.access(at(0, 0, Read, 12, 4)).is_some());
        race.meet(0, !0);
        assert!(race.access(at(0, 1, Read, 8, 4)).is_none());
    }

    #[test]
    fn atomics_order_and_locks_may_be_let_go_by_a_store() {
        let mut race = checker();
        assert!(race.atomic(at(0, 0, Exchange, 64, 4)).is_none());
        race.access(at(0, 0, Write, 0, 4));
        assert!(race.access(at(0, 0, Write, 64, 4)).is_none());
        assert!(race.access(at(3, 0, Read, 192, 4)).is_none());
        assert!(race.atomic(at(2, 0, Exchange, 192, 4)).is_none(), "a try");
        assert!(race.atomic(at(1, 0, Exchange, 64, 4)).is_none());
        assert!(race.access(at(1, 0, Read, 0, 4)).is_none());
        assert!(race.atomic(at(2, 0, Atomic, 128, 4)).is_none());
        assert!(race.atomic(at(3, 0, Atomic, 128, 4)).is_none());
        assert!(race.access(at(1, 0, Read, 128, 4)).is_some(), "no lock");
    }

    #[test]
    fn a_copy_is_done_when_its_group_was_waited_for() {
        let mut race = checker();
        race.access(at(0, 4, Copy, 256, 16));
        race.close_group(0, 0);
        assert!(
            race.access(at(0, 4, Read, 256, 4)).is_some(),
            "even its own"
        );
        race.access(at(0, 4, Copy, 512, 16));
        race.close_group(0, 0);
        race.wait_for_groups(0, 1);
        assert!(race.access(at(0, 4, Read, 260, 4)).is_none());
        assert!(race.access(at(0, 4, Read, 512, 4)).is_some());
        barrier(&mut race, 0, &[0, 1]);
        assert!(race.access(at(1, 4, Read, 264, 4)).is_none());
        assert!(race.access(at(1, 4, Read, 516, 4)).is_some());
        race.wait_for_counters(0, 1);
        barrier(&mut race, 0, &[0, 1]);
        assert!(race.access(at(1, 4, Read, 520, 4)).is_none());
    }

    #[test]
    fn a_bulk_copy_is_done_when_its_mbarrier_was_waited_for() {
        let mut race = checker();
        let command = race.begin_bulk();
        assert!(race.bulk_access(at(0, 0, Bulk, 0, 64), command).is_none());
        race.bulk_arrives(960, command);
        assert!(race.access(at(1, 0, Read, 32, 4)).is_some());
        race.leave_mbarrier(960, 2, !0);
        assert!(race.access(at(2, 0, Read, 36, 4)).is_none());
        let next = race.begin_bulk();
        assert!(
            race.bulk_access(at(0, 0, Bulk, 0, 64), next).is_some(),
            "still read"
        );
        race.bulk_arrives(976, next);
        race.leave_mbarrier(976, 3, !0);
        race.arrive_at_mbarrier(968, 2);
        race.leave_mbarrier(968, 3, !0);
        let next = race.begin_bulk();
        assert!(race.bulk_access(at(3, 0, Bulk, 36, 4), next).is_none());
    }
}
