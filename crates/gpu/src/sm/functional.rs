//! Functional mode: one instruction of one warp a cycle, in turn.
//!
//! Every warp that can go on does so after at most as many cycles as there are warps, so locks
//! and grid barriers end. A warp that asked for a strong value waits for it.

use std::ops::Range;

use lockstep_engine::{Inbox, Outbox};
use lockstep_isa::{Operand, Operation};
use lockstep_units::{Clock, Cycle};

use super::Sm;
use super::execute::Effect;
use super::port::Now;
use crate::message::Message;

/// Free instructions that may go with one issue; a loop of nothing else still takes time.
const FREE: u32 = 64;

/// Warps whose registers a host's first cache holds.
const CACHED: u32 = 8;

impl Sm {
    pub(super) fn run_functional(
        &mut self,
        cycles: Range<Cycle>,
        inbox: &mut Inbox<Message>,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let start = cycles.start.0;
        let mut clock = Clock::new(self.clock());
        clock.seek(self.clock().edge(cycles.start));
        let mut next_message = self.next_message(inbox);
        while clock.cycle() < cycles.end {
            let now = Now {
                cycle: clock.cycle().0,
                time: clock.time(),
                since: (clock.cycle().0 - start) as u16,
            };
            if next_message <= now.cycle || !self.sleepers.is_empty() {
                self.receive(now, inbox, outbox);
                next_message = self.next_message(inbox);
            }
            if self.ready == 0 {
                let asleep = self.sleepers.iter().map(|(until, _)| *until).min();
                let next = next_message.min(asleep.unwrap_or(u64::MAX));
                if next >= cycles.end.0 {
                    return;
                }
                clock.seek(self.clock().edge(Cycle(next)));
                continue;
            }
            // The next ready warp after the last one.
            let slot = self.ready_after(self.last);
            self.last = slot;
            if self.ready.count_ones() > CACHED {
                let next = self.ready_after(slot);
                self.foresee(next);
                self.warps[self.ready_after(next) as usize].foresee();
            }
            self.progress = now.cycle;
            if self.issue_functional(slot as u8, now, outbox) == Effect::Failed {
                return;
            }
            clock.advance();
        }
    }

    /// The cycle of the next message, at the end of time if there is none.
    pub(super) fn next_message(&self, inbox: &Inbox<Message>) -> u64 {
        inbox
            .next_due()
            .map_or(u64::MAX, |due| self.clock().cycle_at_or_after(due).0)
    }

    /// The next warp that could execute, after this one; at least one can.
    #[inline(always)]
    fn ready_after(&self, slot: u32) -> u32 {
        let turn = (slot + 1) % 64;
        (self.ready.rotate_right(turn).trailing_zeros() + turn) % 64
    }

    /// Asks the host for the rows that a warp's next instruction touches. The warps of a GPU have more
    /// registers than a host has cache, so most rows come from afar; this way they come while another
    /// warp executes.
    #[inline(always)]
    fn foresee(&self, slot: u32) {
        let warp = &self.warps[slot as usize];
        let Some(context) = self.contexts[usize::from(warp.block)].as_deref() else {
            return;
        };
        let code = &context.launch.module.code;
        let Some(instruction) = code.get(warp.convergence.pc() as usize) else {
            return;
        };
        let shape = &instruction.shape;
        for (source, rows) in instruction.sources[..3].iter().zip(shape.source_rows) {
            if let Operand::Register(row) = source.operand {
                warp.foresee_row(row);
                if rows > 1 {
                    warp.foresee_row(row + 1);
                }
            }
        }
        if let Some(row) = instruction.destination {
            warp.foresee_row(row);
            if shape.destination_rows > 1 {
                warp.foresee_row(row + 1);
            }
        }
        if let Operation::Memory(operation) = &instruction.operation
            && let Operand::Register(row) = operation.address.base
        {
            warp.foresee_row(row);
            if operation.address.wide {
                warp.foresee_row(row + 1);
            }
            for row in operation.data.into_iter().flatten() {
                warp.foresee_row(row);
            }
        }
    }

    /// One instruction that counts, and the free ones before it.
    #[inline]
    fn issue_functional(&mut self, slot: u8, now: Now, outbox: &mut Outbox<'_, Message>) -> Effect {
        let mut effect = Effect::Again;
        for _ in 0..FREE {
            let free;
            (effect, free) = self.execute(slot, now, outbox);
            if !free || self.ready >> slot & 1 == 0 {
                break;
            }
        }
        effect
    }
}
