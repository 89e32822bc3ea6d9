//! Functional mode: one instruction of one warp a cycle, warps in turn. A turn ends with an access that warps of
//! other SMs could see, so that the order of accesses is nearly that of instructions; see decision 0023.
//!
//! Every warp that can go on does so after at most a turn of every other, so locks and grid
//! barriers end. A warp that asked for a strong value waits for it.

use std::ops::Range;

use lockstep_engine::{Inbox, Outbox};
use lockstep_isa::{Operand, Operation};
use lockstep_units::{Clock, Cycle};

use super::Sm;
use super::execute::{Effect, guard};
use crate::message::Message;
use crate::sm::now::Now;

/// Free instructions that may go with one issue; a loop of nothing else still takes time.
const FREE: u32 = 64;

/// Cycles that a warp may go on for at the most. In so many instructions it comes back to most of the rows that
/// it began with, while the host's first cache has them.
const TURN: u64 = 128;

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
            // The clock says when a turn is over, not a count of its own, so that it is the same turn however
            // cycles are cut into epochs.
            let over = now.cycle.is_multiple_of(TURN);
            if over || self.ready >> self.last & 1 == 0 {
                self.yield_to_others();
            }
            let slot = self.last;
            self.progress = now.cycle;
            let turn_ends = (now.cycle / TURN + 1) * TURN;
            let until = turn_ends.min(next_message).min(cycles.end.0);
            if self.sleepers.is_empty() && self.run_straight(slot, &mut clock, until) {
                continue;
            }
            match self.issue_functional(slot as u8, now, outbox) {
                Effect::Failed => return,
                Effect::Memory if self.port.done.is_seen_by_others() => self.yield_to_others(),
                _ => {}
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

    /// It is the next warp's turn, if there is one that could execute.
    #[inline(always)]
    fn yield_to_others(&mut self) {
        if self.ready == 0 {
            return;
        }
        self.last = self.ready_after(self.last);
        if self.ready.count_ones() > CACHED {
            let next = self.ready_after(self.last);
            self.foresee(next);
            self.warps[self.ready_after(next) as usize].foresee();
        }
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
        let scheduling = &instruction.scheduling;
        for (source, rows) in instruction.sources[..3]
            .iter()
            .zip(scheduling.source_registers)
        {
            if let Operand::Register(row) = source.operand {
                warp.foresee_row(row);
                if rows > 1 {
                    warp.foresee_row(row + 1);
                }
            }
        }
        if let Some(row) = instruction.destination {
            warp.foresee_row(row);
            if scheduling.destination_registers > 1 {
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

    /// Lets a warp run through instructions that only compute, up to a cycle: all that can happen to it there is
    /// known beforehand, so nothing is asked in between. Does what [`Self::issue_functional`] would do as often;
    /// false, and nothing happened, if the next instruction is another.
    #[inline]
    fn run_straight(&mut self, slot: u32, clock: &mut Clock, until: u64) -> bool {
        let warp = &mut self.warps[slot as usize];
        let block_slot = usize::from(warp.block);
        let (Some(context), Some(block)) = (
            self.contexts[block_slot].as_deref(),
            self.blocks[block_slot].as_mut(),
        ) else {
            return false;
        };
        let module = &context.launch.module;
        let pc = warp.convergence.pc();
        let count = module
            .straight_line_from(pc)
            .min(until.saturating_sub(clock.cycle().0));
        if count < 2 || warp.control_bit_checker.is_some() || self.port.probe.is_some() {
            return false;
        }
        let active = warp.convergence.active();
        let counters = &mut block.counters;
        let mut executing = 0;
        let first = pc as usize;
        for instruction in &module.code[first..first + count as usize] {
            warp.identity.clock = clock.cycle().0;
            warp.identity.time = clock.time().0;
            let execute = active & guard(warp, instruction);
            if let Operation::Compute(compute) = &instruction.operation
                && execute != 0
            {
                compute(&mut warp.lanes_that(context, execute), instruction);
            }
            executing += execute.count_ones();
            counters.mix[instruction.scheduling.mix as usize] += 1;
            clock.advance();
        }
        warp.convergence.advance_by(count as u32);
        counters.inst_executed += count;
        counters.inst_issued += count;
        counters.thread_inst_executed += count * u64::from(active.count_ones());
        counters.thread_inst_executed_pred_on += u64::from(executing);
        self.progress = clock.cycle().0 - 1;
        true
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
