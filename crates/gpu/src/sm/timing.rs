//! Timing mode: sub-cores, schedulers, latencies.
//!
//! Values move at issue as in functional mode; here is decided when. Each sub-core issues one
//! instruction a cycle from a warp whose operands are ready and whose unit is free. With SASS the
//! compiler's control bits say when operands are ready; without, a scoreboard by rows does.
//! Loads from global memory go to their slices and back, sector by sector, without an L1.
//!
//! Left out, for the detailed model: instruction fetch, register banks, L1, memory queues.
//!
//! Start reading at [`Sm::run_timing`].

use std::ops::Range;
use std::sync::Arc;

use lockstep_engine::{Inbox, Outbox, PartitionId};
use lockstep_isa::Instruction;
use lockstep_isa::instruction::UNITS;
use lockstep_units::{Bytes, Clock, Cycle};
use serde::{Deserialize, Serialize};

use super::access::{Done, Traffic};
use super::execute::Effect;
use super::port::{NOBODY, Now, Transaction};
use super::scheduler::{Ages, WarpScheduler};
use super::warp::Warp;
use super::{Issue, Sm};
use crate::hazards::Hazard;
use crate::launch::LaunchContext;
use crate::memory::{LINE, SECTOR};
use crate::message::Message;
use crate::parameters::SmParameters;

/// A row that waits for memory.
const PENDING: u64 = u64::MAX;

/// Dependence counters of a warp (SASS).
const COUNTERS: usize = 6;

/// When the operands of one warp are ready.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Board {
    /// Cycle from which each row can be read; [`PENDING`] while memory has it.
    rows: Vec<u64>,
    /// The same for predicates.
    predicates: Vec<u64>,
    /// Memory instructions that each dependence counter waits for.
    outstanding: [u16; COUNTERS],
    /// Cycle at which each counter is released by what has a fixed latency.
    released: [u64; COUNTERS],
    /// The warp may not issue before.
    next: u64,
}

/// One sub-core.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SubCore {
    scheduler: WarpScheduler,
    /// Cycle from which each unit takes another instruction.
    units: [u64; UNITS],
}

/// The issue state of an SM.
#[derive(Clone, Debug)]
pub struct Timing {
    sub_cores: Vec<SubCore>,
    boards: Vec<Board>,
    /// Cycle from which the next instruction of each warp could issue, its unit being free.
    issue_at: [u64; 64],
    /// Unit of that instruction.
    units: [u8; 64],
    ages: Ages,
    born: u64,
    /// Warps of the first sub-core; those of others are shifted.
    comb: u64,
}

/// [`Timing`] as it is saved.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    sub_cores: Vec<SubCore>,
    boards: Vec<Board>,
    issue_at: Vec<u64>,
    units: Vec<u8>,
    ages: Vec<u64>,
    born: u64,
}

impl Timing {
    pub(super) fn new(parameters: &SmParameters) -> Self {
        let step = parameters.sub_cores.max(1) as usize;
        Self {
            sub_cores: vec![
                SubCore {
                    scheduler: parameters.scheduler.clone(),
                    units: [0; UNITS],
                };
                step
            ],
            boards: vec![Board::default(); parameters.warps as usize],
            issue_at: [PENDING; 64],
            units: [0; 64],
            ages: [0; 64],
            born: 0,
            comb: (0..64).step_by(step).fold(0, |mask, slot| mask | 1 << slot),
        }
    }

    pub(super) fn saved(&self) -> Saved {
        Saved {
            sub_cores: self.sub_cores.clone(),
            boards: self.boards.clone(),
            issue_at: self.issue_at.to_vec(),
            units: self.units.to_vec(),
            ages: self.ages.to_vec(),
            born: self.born,
        }
    }

    /// Takes on what was saved; false if it does not fit.
    pub(super) fn restore(&mut self, saved: Saved) -> bool {
        let lengths = saved.sub_cores.len() == self.sub_cores.len()
            && saved.boards.len() == self.boards.len();
        let (Ok(issue_at), Ok(units), Ok(ages)) = (
            saved.issue_at.try_into(),
            saved.units.try_into(),
            saved.ages.try_into(),
        ) else {
            return false;
        };
        if lengths {
            self.sub_cores = saved.sub_cores;
            self.boards = saved.boards;
            (self.issue_at, self.units, self.ages) = (issue_at, units, ages);
            self.born = saved.born;
        }
        lengths
    }

    pub(super) fn start_warp(&mut self, slot: u8, warp: &Warp, cycle: u64) {
        let board = &mut self.boards[usize::from(slot)];
        board.rows.clear();
        board.rows.resize(warp.registers.len(), 0);
        board.predicates.clear();
        board.predicates.resize(warp.predicates.len(), 0);
        board.outstanding = [0; COUNTERS];
        board.released = [0; COUNTERS];
        board.next = cycle;
        self.born += 1;
        self.ages[usize::from(slot)] = self.born;
    }

    /// Finds out when the next instruction of a warp can issue, not before `cycle`.
    pub(super) fn schedule(
        &mut self,
        slot: u8,
        warp: &Warp,
        context: Option<&Arc<LaunchContext>>,
        cycle: u64,
    ) {
        let index = usize::from(slot);
        let board = &mut self.boards[index];
        board.next = board.next.max(cycle);
        let pc = warp.convergence.pc();
        let Some((context, instruction)) = context
            .and_then(|context| Some((context, context.launch.module.code.get(pc as usize)?)))
        else {
            // Executing it will say what is wrong.
            self.issue_at[index] = board.next;
            return;
        };
        self.units[index] = instruction.shape.unit as u8;
        self.issue_at[index] = match instruction.shape.control {
            Some(control) => board.control_ready(control.wait_mask),
            None => board.rows_ready(context.hazards().get(pc)),
        }
        .max(board.next);
    }

    /// The next cycle in which a warp of `ready` can issue.
    pub(super) fn next_cycle(&self, ready: u64) -> Option<u64> {
        let mut left = ready;
        let mut next = PENDING;
        while left != 0 {
            let slot = left.trailing_zeros() as usize;
            left &= left - 1;
            let units = &self.sub_cores[slot % self.sub_cores.len()].units;
            next = next.min(self.issue_at[slot].max(units[usize::from(self.units[slot])]));
        }
        (next != PENDING).then_some(next)
    }

    /// What memory owed a warp has come.
    pub(super) fn complete(
        &mut self,
        slot: u8,
        instruction: &Instruction,
        hazard: Hazard<'_>,
        cycle: u64,
    ) {
        let board = &mut self.boards[usize::from(slot)];
        for row in rows(hazard.writes) {
            board.rows[row] = cycle;
        }
        if let Some(control) = instruction.shape.control
            && let Some(count) = board
                .outstanding
                .get_mut(usize::from(control.write_counter))
        {
            *count = count.saturating_sub(1);
        }
    }
}

fn rows(spans: &[crate::hazards::Span]) -> impl Iterator<Item = usize> + '_ {
    spans
        .iter()
        .flat_map(|span| usize::from(span.first)..usize::from(span.first + span.count))
}

impl Board {
    fn rows_ready(&self, hazard: Hazard<'_>) -> u64 {
        let mut ready = 0;
        for row in rows(hazard.reads).chain(rows(hazard.writes)) {
            ready = ready.max(self.rows.get(row).copied().unwrap_or(0));
        }
        for predicate in rows(hazard.predicate_reads).chain(rows(hazard.predicate_writes)) {
            ready = ready.max(self.predicates.get(predicate).copied().unwrap_or(0));
        }
        ready
    }

    fn control_ready(&self, wait_mask: u8) -> u64 {
        let mut ready = 0;
        for counter in 0..COUNTERS {
            if wait_mask >> counter & 1 != 0 {
                if self.outstanding[counter] > 0 {
                    return PENDING;
                }
                ready = ready.max(self.released[counter]);
            }
        }
        ready
    }
}

impl Sm {
    pub(super) fn run_timing(
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
            let next = self.issue_cycle(now, outbox);
            if self.fault.is_some() {
                return;
            }
            if next <= now.cycle + 1 {
                clock.advance();
                continue;
            }
            let asleep = self.sleepers.iter().map(|(until, _)| *until).min();
            let next = next.min(next_message).min(asleep.unwrap_or(u64::MAX));
            if next >= cycles.end.0 {
                return;
            }
            clock.seek(self.clock().edge(Cycle(next.max(now.cycle + 1))));
        }
    }

    /// Lets every sub-core issue, and says when the next one could.
    fn issue_cycle(&mut self, now: Now, outbox: &mut Outbox<'_, Message>) -> u64 {
        let mut next = PENDING;
        for sub_core in 0..self.parameters.sub_cores as usize {
            let Issue::Timing(timing) = &mut self.issue else {
                return PENDING;
            };
            let mut left = self.ready & timing.comb << sub_core;
            let mut eligible = 0;
            let core = &mut timing.sub_cores[sub_core];
            while left != 0 {
                let slot = left.trailing_zeros() as usize;
                left &= left - 1;
                let at = timing.issue_at[slot].max(core.units[usize::from(timing.units[slot])]);
                if at <= now.cycle {
                    eligible |= 1 << slot;
                } else {
                    next = next.min(at);
                }
            }
            let Some(slot) = core.scheduler.pick(eligible, &timing.ages) else {
                continue;
            };
            next = next.min(now.cycle + 1);
            self.progress = now.cycle;
            self.issue_timed(slot, sub_core, now, outbox);
            if self.fault.is_some() {
                return next;
            }
        }
        next
    }

    /// Issues one instruction of a warp, and the free ones before it.
    fn issue_timed(
        &mut self,
        slot: u8,
        sub_core: usize,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        for _ in 0..64 {
            let warp = &self.warps[usize::from(slot)];
            let (pc, block) = (warp.convergence.pc(), usize::from(warp.block));
            let (effect, free) = self.execute(slot, now, outbox);
            if effect == Effect::Failed {
                return;
            }
            // A block that ended took its launch along; then nothing is left to be timed.
            if self.contexts[block].is_some() && effect != Effect::Again {
                self.account(slot, sub_core, pc, block, free, effect, now, outbox);
            }
            if self.ready >> slot & 1 == 0 {
                return;
            }
            self.refresh(slot, now.cycle + u64::from(!free));
            let Issue::Timing(timing) = &self.issue else {
                return;
            };
            if !free || timing.issue_at[usize::from(slot)] > now.cycle {
                return;
            }
        }
    }

    /// Books the time that an instruction takes.
    fn account(
        &mut self,
        slot: u8,
        sub_core: usize,
        pc: u32,
        block: usize,
        free: bool,
        effect: Effect,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let done = match effect {
            Effect::Memory(done) => Some(done),
            _ => None,
        };
        let reads = done.map_or(0, |done| {
            self.send_traffic(slot, block, pc, done, now, outbox)
        });
        let Some(context) = self.contexts[block].as_deref() else {
            return;
        };
        let Issue::Timing(timing) = &mut self.issue else {
            return;
        };
        let parameters = &*self.parameters;
        let instruction = &context.launch.module.code[pc as usize];
        let shape = &instruction.shape;
        let hazard = context.hazards().get(pc);
        let board = &mut timing.boards[usize::from(slot)];
        let mut latency = parameters.latency[shape.latency as usize];
        let mut interval = parameters.interval[shape.unit as usize];
        let mut pending = false;
        match done.map(|done| done.traffic) {
            Some(Traffic::Shared { passes, atomic }) => {
                let base = if atomic {
                    parameters.shared_atomic_latency
                } else {
                    parameters.shared_latency
                };
                latency = base + u64::from(passes) - 1;
                interval = interval.max(u64::from(passes));
            }
            Some(Traffic::Constant) => latency = parameters.constant_latency,
            Some(Traffic::Local) => latency = parameters.local_latency,
            Some(Traffic::Global { .. }) => {
                pending = reads > 0 || done.is_some_and(|done| done.transaction != NOBODY);
            }
            Some(Traffic::None) | None => {}
        }
        if free {
            latency = 0;
        }
        let ready = if pending {
            PENDING
        } else {
            now.cycle + latency
        };
        for row in rows(hazard.writes) {
            if let Some(at) = board.rows.get_mut(row) {
                *at = ready;
            }
        }
        for predicate in rows(hazard.predicate_writes) {
            if let Some(at) = board.predicates.get_mut(predicate) {
                *at = now.cycle
                    + if free {
                        0
                    } else {
                        parameters.predicate_latency
                    };
            }
        }
        let mut stall = u64::from(!free);
        if effect == Effect::Flowed && !free {
            stall = parameters.latency[lockstep_isa::instruction::Latency::Branch as usize];
        }
        if let Some(control) = shape.control {
            stall = u64::from(control.stall.max(1));
            let write = usize::from(control.write_counter);
            if write < COUNTERS {
                if pending {
                    board.outstanding[write] += 1;
                } else {
                    board.released[write] = board.released[write].max(now.cycle + latency);
                }
            }
            let read = usize::from(control.read_counter);
            if read < COUNTERS {
                let at = now.cycle + parameters.operand_latency;
                board.released[read] = board.released[read].max(at);
            }
        }
        board.next = board.next.max(now.cycle + stall);
        if !free {
            timing.sub_cores[sub_core].units[shape.unit as usize] = now.cycle + interval;
        }
    }

    /// Sends the weak sectors of an access to their slices, a message a line. Says how many
    /// answers will come.
    fn send_traffic(
        &mut self,
        slot: u8,
        block: usize,
        pc: u32,
        done: Done,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> u16 {
        let Traffic::Global { write } = done.traffic else {
            return 0;
        };
        const SECTORS: u64 = LINE / SECTOR;
        let mut lines = [(0u64, 0u8); 32];
        let mut count = 0;
        for sector in self.port.found.sectors() {
            let (line, bit) = (sector / SECTORS, 1 << (sector % SECTORS));
            match lines[..count]
                .iter_mut()
                .rev()
                .find(|known| known.0 == line)
            {
                Some(known) => known.1 |= bit,
                None => {
                    lines[count] = (line, bit);
                    count += 1;
                }
            }
        }
        if count == 0 {
            return 0;
        }
        let counters = self.blocks[block].as_mut().map(|block| &mut block.counters);
        if let Some(counters) = counters {
            counters.l2_sectors += self.port.found.count as u64;
        }
        let wiring = self.port.wiring;
        let mut transaction = done.transaction;
        if !write {
            if transaction == NOBODY {
                self.warps[usize::from(slot)].pending += 1;
                transaction = self.port.transactions.open(Transaction {
                    warp: slot,
                    pc,
                    remaining: count as u16,
                });
            } else {
                let already = self.port.transactions.get(transaction).remaining;
                self.port
                    .transactions
                    .expect(transaction, already + count as u16);
            }
        }
        for (line, sectors) in &lines[..count] {
            let (line, sectors) = (*line, *sectors);
            let slice = PartitionId(wiring.slices + self.port.home.slice(line * LINE));
            let (size, message) = if write {
                let bytes = u64::from(sectors.count_ones()) * SECTOR;
                (wiring.header + bytes, Message::Write { line, sectors })
            } else {
                (
                    wiring.header,
                    Message::Read {
                        line,
                        sectors,
                        transaction,
                    },
                )
            };
            outbox.send(wiring.request, slice, now.time, Bytes(size), message);
        }
        if write { 0 } else { count as u16 }
    }
}
