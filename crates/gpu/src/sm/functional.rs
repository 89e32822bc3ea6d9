//! Functional mode: one instruction of one warp a cycle, warps in turn. A turn ends with an access that warps of
//! other SMs could see, so that the order of accesses is nearly that of instructions; see decision 0023.
//!
//! Every warp that can go on does so after at most a turn of every other, so locks and grid
//! barriers end. A warp that asked for a strong value waits for it.

use std::ops::Range;

use lockstep_engine::{Inbox, Outbox};
use lockstep_isa::{Operand, Operation};
use lockstep_units::{Clock, Cycle};

use super::execute::{Effect, guard};
use super::issue_model::IssueModel;
use super::mbarrier_waits::CopyArrival;
use super::state::SmState;
use super::translation::deferred::DeferredLoad;
use super::warp::Warp;
use crate::launch::LaunchContext;
use crate::message::Message;
use crate::sm::now::Now;
use serde::{Deserialize, Serialize};

/// Free instructions that may go with one issue; a loop of nothing else still takes time.
const FREE: u32 = 64;

/// Cycles that a warp may go on for at the most. In so many instructions it comes back to most of the rows that
/// it began with, while the host's first cache has them.
const TURN: u64 = 128;

/// Warps whose registers a host's first cache holds.
const CACHED: u32 = 8;

/// The issue model of functional mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Functional {
    /// The warp that has its turn.
    turn: u32,
}

impl Default for Functional {
    fn default() -> Self {
        // The first turn is that of slot 0.
        Self { turn: 63 }
    }
}

impl Functional {
    /// Simulates the cycles of a window.
    pub fn run(
        &mut self,
        state: &mut SmState,
        cycles: Range<Cycle>,
        inbox: &mut Inbox<Message>,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let start = cycles.start.0;
        let mut clock = state.clock_at(cycles.start);
        let mut next_message = state.next_message(inbox);
        while clock.cycle() < cycles.end {
            let now = Now::of(&clock, start);
            if next_message.min(state.wakes()) <= now.cycle {
                state.receive(self, now, inbox, outbox);
                next_message = state.next_message(inbox);
            }
            if state.slots.ready == 0 {
                let next = next_message.min(state.wakes());
                if next >= cycles.end.0 {
                    return;
                }
                clock.seek(state.clock().edge(Cycle(next)));
                continue;
            }
            // The clock says when a turn is over, not a count of its own, so that it is the same turn however
            // cycles are cut into epochs.
            let over = now.cycle.is_multiple_of(TURN);
            if over || state.slots.ready >> self.turn & 1 == 0 {
                self.give_way(state);
            }
            let slot = self.turn;
            state.progress = now.cycle;
            let turn_ends = (now.cycle / TURN + 1) * TURN;
            let until = turn_ends
                .min(next_message)
                .min(state.wakes())
                .min(cycles.end.0);
            if run_straight(state, slot, &mut clock, until) {
                continue;
            }
            match self.issue(state, slot as u8, now, outbox) {
                Effect::Failed => return,
                Effect::Memory if state.port.done.is_seen_by_others() => self.give_way(state),
                Effect::Bulk => self.give_way(state),
                _ => {}
            }
            clock.advance();
        }
    }

    /// The next cycle in which a warp can issue.
    #[must_use]
    pub fn next_cycle(&self, state: &SmState) -> u64 {
        if state.slots.ready != 0 { 0 } else { u64::MAX }
    }

    /// It is the next warp's turn, if there is one that could execute.
    #[inline(always)]
    fn give_way(&mut self, state: &SmState) {
        let ready = state.slots.ready;
        if ready == 0 {
            return;
        }
        self.turn = ready_after(ready, self.turn);
        if ready.count_ones() > CACHED {
            let next = ready_after(ready, self.turn);
            prefetch(state, next);
            state.warps[ready_after(ready, next) as usize].prefetch();
        }
    }

    /// One instruction that counts, and the free ones before it.
    #[inline]
    fn issue(
        &mut self,
        state: &mut SmState,
        slot: u8,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> Effect {
        let mut effect = Effect::Again;
        for _ in 0..FREE {
            let free;
            (effect, free) = state.execute(self, slot, now, outbox);
            if !free || !state.slots.is_ready(slot) {
                break;
            }
        }
        effect
    }
}

impl IssueModel for Functional {
    const TIMED: bool = false;

    fn start_block(&mut self, _: &LaunchContext, _: &[Warp], _: &[u8], _: bool, _: u64) {}

    fn schedule(&mut self, _: u8, _: &Warp, _: Option<&LaunchContext>, _: u64) {}

    fn complete(&mut self, _: u8, _: u32, _: &LaunchContext, _: u32, _: u64) {}

    fn copies_complete(&mut self, _: u8, _: CopyArrival, cycle: u64) -> Option<u64> {
        Some(cycle)
    }

    fn take_copy_arrivals(&mut self, _: u8) -> Vec<(u64, CopyArrival)> {
        Vec::new()
    }

    fn arrive_at_barrier(&mut self, _: u64) {}

    fn barrier_release(&self, cycle: u64) -> u64 {
        cycle
    }

    fn receive_strong(&mut self, _: u64, cycle: u64) -> u64 {
        cycle
    }

    fn receive_sectors(&mut self, _: &mut SmState, mshr: u32, _: Now) {
        panic!("functional mode asks L2 for no sectors, and was sent those of MSHR {mshr}");
    }

    fn resume_load(
        &mut self,
        _: &mut SmState,
        load: DeferredLoad,
        _: u64,
        _: Now,
        _: &mut Outbox<'_, Message>,
    ) {
        panic!("functional mode defers strong accesses alone, not {load:?}");
    }

    fn set_translation_full(&mut self, _: bool) {}

    fn requests_leave(&mut self, _: u64) {}

    fn wake_all(&mut self) {}

    fn invalidate_l1(&mut self, _: Range<u64>, _: bool) {}
}

/// The next warp that could execute, after this one; at least one can.
#[inline(always)]
fn ready_after(ready: u64, slot: u32) -> u32 {
    let turn = (slot + 1) % 64;
    (ready.rotate_right(turn).trailing_zeros() + turn) % 64
}

/// Asks the host for the rows that a warp's next instruction touches. The warps of a GPU have more
/// registers than a host has cache, so most rows come from afar; this way they come while another
/// warp executes.
#[inline(always)]
fn prefetch(state: &SmState, slot: u32) {
    let warp = &state.warps[slot as usize];
    let Some(context) = state.blocks.launch_of(warp.block) else {
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
            warp.prefetch_register(row);
            if rows > 1 {
                warp.prefetch_register(row + 1);
            }
        }
    }
    if let Some(row) = instruction.destination {
        warp.prefetch_register(row);
        if scheduling.destination_registers > 1 {
            warp.prefetch_register(row + 1);
        }
    }
    if let Operation::Memory(operation) = &instruction.operation
        && let Operand::Register(row) = operation.address.base
    {
        warp.prefetch_register(row);
        if operation.address.wide {
            warp.prefetch_register(row + 1);
        }
        for row in operation.data.into_iter().flatten() {
            warp.prefetch_register(row);
        }
    }
}

/// Lets a warp run through instructions that only compute, up to a cycle: all that can happen to it there is
/// known beforehand, so nothing is asked in between. Does what [`Functional::issue`] would do as often;
/// false, and nothing happened, if the next instruction is another.
#[inline]
fn run_straight(state: &mut SmState, slot: u32, clock: &mut Clock, until: u64) -> bool {
    let warp = &mut state.warps[slot as usize];
    let block_slot = usize::from(warp.block);
    let (Some(context), Some(block)) = (
        state.blocks.contexts[block_slot].as_deref(),
        state.blocks.blocks[block_slot].as_mut(),
    ) else {
        return false;
    };
    let module = &context.launch.module;
    let pc = warp.convergence.pc();
    let straight = module.straight_line(pc);
    let count = (straight.len() as u64).min(until.saturating_sub(clock.cycle().0));
    if count < 2 || warp.control_bit_checker.is_some() || state.port.is_watched() {
        return false;
    }
    let active = warp.convergence.active();
    let counters = &mut block.counters;
    let mut executing = 0;
    for instruction in &straight[..count as usize] {
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
    state.progress = clock.cycle().0 - 1;
    true
}
