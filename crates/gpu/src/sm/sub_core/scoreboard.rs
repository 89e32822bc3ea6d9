//! The scoreboard of one warp: when its operands are ready.
//!
//! SASS names dependence counters in its control bits; for PTX there is an entry a register.

use serde::{Deserialize, Serialize};

use super::stall::Reason;
use crate::sm::front_end::hazards::{Hazard, Span};
use crate::sm::front_end::issue_table::NO_COUNTER;
use crate::sm::mbarrier_waits::CopyArrival;
use crate::sm::now::PENDING;

/// Dependence counters of a warp (SASS).
const COUNTERS: usize = 6;

/// Stands for the counter of a group that a barrier in shared memory waits for.
const BARRIER: u8 = COUNTERS as u8;

/// No group of copies.
pub const NO_GROUP: u32 = u32::MAX;

/// Copies to shared memory that belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copies {
    /// Memory instructions that have not ended.
    pub remaining: u32,
    /// When those that have ended did.
    pub ready: u64,
    /// The counter that waits for them, once the group is closed.
    pub counter: u8,
}

/// When the operands of one warp are ready.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Scoreboard {
    /// Cycle from which each register can be read; [`PENDING`] while memory has it. Empty under control
    /// bits.
    pub registers: Vec<u64>,
    /// The same for predicates.
    pub predicates: Vec<u64>,
    /// Memory instructions that each dependence counter waits for.
    pub outstanding: [u16; COUNTERS],
    /// Cycle at which each counter is released by what has a known latency.
    pub released: [u64; COUNTERS],
    /// Counters that global or local memory raised last, one bit each.
    pub long: u8,
    /// The warp may not issue before.
    pub next: u64,
    /// The stall reason until then.
    pub next_reason: u8,
    /// The same as it was when the warp last issued.
    pub own: u64,
    /// What it waited for ended here, if that was not known when it last issued.
    pub woken: u64,
    /// What that was.
    pub woken_reason: u8,
    /// Cycle of the last issue.
    pub issued: u64,
    /// Why the warp waits for its next instruction, if it is neither `next` nor the unit.
    pub reason: u8,
    /// The line of code that the warp has, plus one.
    pub line: u32,
    /// Groups of copies to shared memory, the oldest first; the last one is open.
    pub copies: Vec<Copies>,
    /// Copies of groups that were dropped from the front.
    pub copies_base: u32,
    /// Arrivals at barriers that wait for all groups up to one.
    arrivals: Vec<(u32, CopyArrival)>,
}

impl Scoreboard {
    /// Makes the slot that of a fresh warp.
    pub fn start(&mut self, registers: usize, predicates: usize, cycle: u64) {
        self.registers.clear();
        self.registers.resize(registers, 0);
        self.predicates.clear();
        self.predicates.resize(predicates, 0);
        self.outstanding = [0; COUNTERS];
        self.released = [0; COUNTERS];
        self.long = 0;
        self.next = cycle;
        self.next_reason = Reason::NoInstruction as u8;
        self.woken = 0;
        self.own = cycle;
        self.issued = cycle;
        self.reason = Reason::Wait as u8;
        self.line = 0;
        self.copies.clear();
        self.copies_base = 0;
        self.arrivals.clear();
    }

    /// When the registers and predicates of an instruction can be read and written.
    pub fn registers_ready(&self, hazard: Hazard<'_>) -> u64 {
        let mut ready = 0;
        for register in registers(hazard.reads).chain(registers(hazard.writes)) {
            ready = ready.max(self.registers.get(register).copied().unwrap_or(0));
        }
        for predicate in registers(hazard.predicate_reads).chain(registers(hazard.predicate_writes))
        {
            ready = ready.max(self.predicates.get(predicate).copied().unwrap_or(0));
        }
        ready
    }

    /// When all counters of a mask are zero, and whether memory is what they wait for.
    #[inline]
    pub fn counters_zero(&self, mut mask: u8) -> (u64, bool) {
        let mut ready = 0;
        let mut long = false;
        while mask != 0 {
            let counter = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            if counter >= COUNTERS {
                continue;
            }
            let at = if self.outstanding[counter] > 0 {
                PENDING
            } else {
                self.released[counter]
            };
            if at > ready {
                ready = at;
                long = self.long >> counter & 1 != 0;
            }
        }
        (ready, long)
    }

    /// Whether global or local memory raised a counter last.
    #[inline]
    pub fn is_long(&self, counter: u8) -> bool {
        usize::from(counter) < COUNTERS && self.long >> counter & 1 != 0
    }

    /// Raises a counter until a cycle, or until memory has answered.
    #[inline]
    pub fn raise(&mut self, counter: u8, until: u64, long: bool) {
        if counter == NO_COUNTER || usize::from(counter) >= COUNTERS {
            return;
        }
        let index = usize::from(counter);
        if until == PENDING {
            self.outstanding[index] += 1;
        } else {
            self.released[index] = self.released[index].max(until);
        }
        self.long = self.long & !(1 << counter) | u8::from(long) << counter;
    }

    /// Memory has answered an instruction that raised a counter.
    #[inline]
    pub fn lower(&mut self, counter: u8, at: u64) {
        if let Some(count) = self.outstanding.get_mut(usize::from(counter)) {
            *count = count.saturating_sub(1);
            let released = &mut self.released[usize::from(counter)];
            *released = at.max(*released);
        }
    }

    /// The number of the group that copies belong to now.
    pub fn open_copies(&mut self) -> u32 {
        if self
            .copies
            .last()
            .is_none_or(|group| group.counter != NO_COUNTER)
        {
            self.copies.push(Copies {
                counter: NO_COUNTER,
                ..Copies::default()
            });
        }
        self.copies_base + self.copies.len() as u32 - 1
    }

    /// A copy that ends at a cycle, or when memory has answered.
    pub fn copy(&mut self, until: u64) {
        let group = self.open_copies();
        let group = &mut self.copies[(group - self.copies_base) as usize];
        if until == PENDING {
            group.remaining += 1;
        } else {
            group.ready = group.ready.max(until);
        }
    }

    /// Memory has answered a copy of a group.
    pub fn copied(&mut self, group: u32, at: u64) {
        let Some(index) = group.checked_sub(self.copies_base) else {
            return;
        };
        let Some(group) = self.copies.get_mut(index as usize) else {
            return;
        };
        group.remaining = group.remaining.saturating_sub(1);
        group.ready = group.ready.max(at);
        if group.remaining == 0 && group.counter != NO_COUNTER {
            let (counter, ready) = (group.counter, group.ready);
            self.lower(counter, ready);
        }
    }

    /// When the copies so far are complete; none that follow are among them. `None` while memory has some:
    /// then the arrival waits for them.
    pub fn arrive_after_copies(&mut self, arrival: CopyArrival, now: u64) -> Option<u64> {
        if let Some(open) = self.copies.last_mut()
            && open.counter == NO_COUNTER
        {
            open.counter = BARRIER;
        }
        if self.copies.iter().any(|group| group.remaining > 0) {
            let last = self.copies_base + self.copies.len() as u32 - 1;
            self.arrivals.push((last, arrival));
            return None;
        }
        let ready = self.copies.iter().map(|group| group.ready);
        Some(ready.max().unwrap_or(0).max(now))
    }

    /// Takes the arrivals whose copies are complete.
    pub fn take_copy_arrivals(&mut self) -> Vec<(u64, CopyArrival)> {
        let mut complete = Vec::new();
        if self.arrivals.is_empty() {
            return complete;
        }
        let (copies, base) = (&self.copies, self.copies_base);
        self.arrivals.retain(|(last, arrival)| {
            let groups = (last + 1).saturating_sub(base) as usize;
            let before = &copies[..groups.min(copies.len())];
            let done = before.iter().all(|group| group.remaining == 0);
            if done {
                let ready = before.iter().map(|group| group.ready).max();
                complete.push((ready.unwrap_or(0), *arrival));
            }
            !done
        });
        complete
    }

    /// Closes the group of copies; a counter waits for it.
    pub fn close_copies(&mut self, counter: u8, now: u64) {
        let group = self.open_copies();
        let group = &mut self.copies[(group - self.copies_base) as usize];
        group.counter = counter;
        let until = if group.remaining > 0 {
            PENDING
        } else {
            group.ready
        };
        self.raise(counter, until, true);
        // What has ended needs no place.
        while let Some(first) = self.copies.first()
            && first.counter != NO_COUNTER
            && first.remaining == 0
            && first.ready <= now
        {
            self.copies.remove(0);
            self.copies_base += 1;
        }
    }

    /// When at most `at_most` closed groups of a counter are under way.
    pub fn counter_at_most(&self, counter: u8, at_most: u8) -> u64 {
        let groups = self.copies.iter().filter(|group| group.counter == counter);
        let count = groups.clone().count();
        let waited = count.saturating_sub(usize::from(at_most));
        groups
            .take(waited)
            .map(|group| {
                if group.remaining > 0 {
                    PENDING
                } else {
                    group.ready
                }
            })
            .max()
            .unwrap_or(0)
    }
}

/// Each register of some spans.
pub fn registers(spans: &[Span]) -> impl Iterator<Item = usize> + '_ {
    spans
        .iter()
        .flat_map(|span| usize::from(span.first)..usize::from(span.first + span.count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_copies_end_in_order() {
        let mut scoreboard = Scoreboard::default();
        scoreboard.start(0, 0, 0);
        scoreboard.copy(PENDING);
        scoreboard.close_copies(0, 5);
        let second = scoreboard.open_copies();
        scoreboard.copy(PENDING);
        scoreboard.close_copies(0, 6);
        assert_eq!(scoreboard.counter_at_most(0, 2), 0);
        assert_eq!(scoreboard.counter_at_most(0, 1), PENDING);
        scoreboard.copied(0, 100);
        assert_eq!(scoreboard.counter_at_most(0, 1), 100);
        assert_eq!(scoreboard.counters_zero(1).0, PENDING);
        scoreboard.copied(second, 90);
        assert_eq!(scoreboard.counters_zero(1), (100, true));
    }

    #[test]
    fn counters_wait_for_the_last() {
        let mut scoreboard = Scoreboard::default();
        scoreboard.start(0, 0, 0);
        scoreboard.raise(2, 50, false);
        scoreboard.raise(2, 40, false);
        assert_eq!(scoreboard.counters_zero(1 << 2), (50, false));
        scoreboard.raise(2, PENDING, true);
        assert_eq!(scoreboard.counters_zero(1 << 2), (PENDING, true));
        scoreboard.lower(2, 70);
        assert_eq!(scoreboard.counters_zero(1 << 2), (70, true));
        assert_eq!(scoreboard.counters_zero(1 << 1), (0, false));
    }
}
