//! The cycle of timing mode: who issues, and what it costs.

use std::ops::Range;

use lockstep_engine::{Inbox, Outbox};
use lockstep_isa::Mask;
use lockstep_units::{Clock, Cycle};

use super::SubCore;
use crate::memory::SECTOR;
use crate::message::Message;
use crate::parameters::SmParameters;
use crate::sm::execute::Effect;
use crate::sm::front_end::issue_table::{IssueInfo, Kind, NO_CONSTANT, Pipe};
use crate::sm::lsu::access::{SharedAtomic, Traffic};
use crate::sm::lsu::l1tex::{Access, LineSet, Manner};
use crate::sm::lsu::port::NOBODY;
use crate::sm::now::Now;
use crate::sm::now::PENDING;
use crate::sm::sub_core::scoreboard::{self, NO_GROUP};
use crate::sm::sub_core::stall::Reason;
use crate::sm::{Issue, Sm};

/// Free instructions that may go with one issue; a loop of nothing else still takes time.
const FREE: u32 = 64;

/// What an instruction that is accounted for takes.
struct Cost {
    /// When its results are there, or [`PENDING`].
    ready: u64,
    /// Whether they come from global or local memory.
    long: bool,
    /// When its operands were read.
    operands: u64,
}

/// Cycles from an atomic on shared memory to its value.
fn shared_atomic(parameters: &SmParameters, atomic: SharedAtomic) -> u64 {
    let adds = u64::from(atomic.swaps) + u64::from(atomic.wide);
    parameters.shared_atomic_latency
        + adds * parameters.shared_swap_adds
        + u64::from(atomic.waiting) * parameters.shared_atomic_conflict
}

impl Sm {
    pub(in crate::sm) fn run_timing(
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
            let due = next_message.min(self.fence_due);
            if due <= now.cycle || !self.sleepers.is_empty() {
                self.receive(now, inbox, outbox);
                next_message = self.next_message(inbox);
            }
            let next = self.issue_cycle(now, outbox);
            if self.fault.is_some() {
                return;
            }
            self.flush_wanted(now, outbox);
            if next <= now.cycle + 1 {
                clock.advance();
                continue;
            }
            let asleep = self.sleepers.iter().map(|(until, _)| *until).min();
            let next = next
                .min(next_message)
                .min(self.fence_due)
                .min(asleep.unwrap_or(u64::MAX));
            if next >= cycles.end.0 {
                return;
            }
            clock.seek(self.clock().edge(Cycle(next.max(now.cycle + 1))));
        }
    }

    #[inline]
    fn flush_wanted(&mut self, now: Now, outbox: &mut Outbox<'_, Message>) {
        let Issue::Timing(timing) = &self.issue else {
            return;
        };
        if !timing.fetch.wanted.is_empty() {
            self.send_wanted(now, outbox);
        }
    }

    /// Lets every sub-core issue, and says when the next one could.
    fn issue_cycle(&mut self, now: Now, outbox: &mut Outbox<'_, Message>) -> u64 {
        let mut next = PENDING;
        for sub_core in 0..self.parameters.sub_cores as usize {
            let Issue::Timing(timing) = &mut self.issue else {
                return PENDING;
            };
            let core = &mut timing.sub_cores[sub_core];
            let asleep = core.asleep.max(core.hold);
            if asleep > now.cycle {
                next = next.min(asleep);
                continue;
            }
            let full = timing.memory.is_full();
            let mut left = self.ready & timing.comb << sub_core;
            let mut eligible = 0;
            let mut later = PENDING;
            while left != 0 {
                let slot = left.trailing_zeros() as usize;
                left &= left - 1;
                let pipe = usize::from(timing.pipes[slot]);
                if full && pipe == Pipe::LoadStore as usize {
                    continue;
                }
                let at = timing.issue_at[slot].max(core.pipes[pipe]);
                if at <= now.cycle {
                    eligible |= 1 << slot;
                } else {
                    later = later.min(at);
                }
            }
            let Some(slot) = core.scheduler.pick(eligible, &timing.ages) else {
                core.asleep = later;
                next = next.min(later);
                continue;
            };
            core.asleep = now.cycle + 1;
            self.progress = now.cycle;
            self.issue_timed(slot, sub_core, now, outbox);
            if self.fault.is_some() {
                return next;
            }
            if let Issue::Timing(timing) = &self.issue {
                let core = &timing.sub_cores[sub_core];
                next = next.min(core.asleep.max(core.hold));
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
        for _ in 0..FREE {
            let warp = &self.warps[usize::from(slot)];
            let (pc, block) = (warp.convergence.pc(), usize::from(warp.block));
            let active = warp.convergence.active();
            let (effect, free) = self.execute(slot, now, outbox);
            if effect == Effect::Failed {
                return;
            }
            // A block that ended took its launch along; then nothing is left to be timed.
            if self.contexts[block].is_some() && effect != Effect::Again {
                self.account(slot, sub_core, (pc, active), block, effect, now, outbox);
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
        (pc, active): (u32, Mask),
        block: usize,
        effect: Effect,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let context = self.contexts[block].as_ref();
        let Some(info) = context.and_then(|context| context.issue_table().info(pc)) else {
            return;
        };
        let info = &info.clone();
        let launch = context.map_or(0, |context| context.id.0);
        if !info.free {
            let far = matches!(
                self.port.done.traffic,
                Traffic::Global { .. } | Traffic::Local { .. }
            );
            let shared = !(effect == Effect::Memory && far);
            self.count_stalls(slot, sub_core, block, shared, now);
        }
        let cost = match effect {
            Effect::Memory => self.access_cost(slot, sub_core, pc, block, info, now, outbox),
            _ => self.compute_cost(sub_core, info, launch, now),
        };
        let convergence = &self.warps[usize::from(slot)].convergence;
        let goes_to = convergence.pc();
        let taken = goes_to != pc.wrapping_add(1);
        let left = convergence.active();
        let Issue::Timing(timing) = &mut self.issue else {
            return;
        };
        let parameters = &*self.parameters;
        let scoreboard = &mut timing.scoreboards[usize::from(slot)];
        let mut stall = u64::from(!info.free);
        let mut reason = Reason::Wait;
        if info.native {
            stall = u64::from(info.stall);
            match info.kind {
                Kind::CloseCopies => scoreboard.close_copies(info.write_counter, now.cycle),
                _ => scoreboard.raise(info.write_counter, cost.ready, cost.long),
            }
            scoreboard.raise(info.read_counter, cost.operands, false);
        } else if let Some(context) = &self.contexts[block] {
            let hazard = context.issue_table().hazard(pc);
            for row in scoreboard::rows(hazard.writes) {
                if let Some(at) = scoreboard.rows.get_mut(row) {
                    *at = cost.ready;
                }
            }
            let predicate = if info.free {
                0
            } else {
                parameters.predicate_latency
            };
            for row in scoreboard::rows(hazard.predicate_writes) {
                if let Some(at) = scoreboard.predicates.get_mut(row) {
                    *at = now.cycle + predicate;
                }
            }
        }
        match info.kind {
            Kind::Flow if !info.free && (taken || left != active) => {
                let latency = if left & active == 0 && goes_to != pc {
                    parameters.switch_latency
                } else if left & active != 0 && left & active != active {
                    parameters.divergence_latency
                } else {
                    0
                };
                if taken || latency > 0 {
                    let jump = if taken { u64::from(info.latency) } else { 0 };
                    stall = stall.max(latency).max(jump);
                    reason = Reason::BranchResolving;
                }
                if taken {
                    scoreboard.line = 0;
                }
            }
            Kind::Barrier => reason = Reason::Barrier,
            Kind::Fence => reason = Reason::Membar,
            Kind::Sleep => reason = Reason::Sleeping,
            _ => {}
        }
        if self.waiting >> slot & 1 != 0 {
            reason = Reason::LongScoreboard;
        }
        scoreboard.next = scoreboard.next.max(now.cycle + stall);
        scoreboard.own = scoreboard.next;
        scoreboard.next_reason = reason as u8;
        if !info.free {
            scoreboard.issued = now.cycle;
            timing.sub_cores[sub_core].occupy(info, now.cycle, parameters);
            if info.pipe == Pipe::Double && parameters.shared_double {
                let free = now.cycle + u64::from(info.interval);
                let cores = timing.sub_cores.iter_mut();
                cores.for_each(|core| core.pipes[Pipe::Double as usize] = free);
            }
        }
    }

    /// What an instruction without memory takes.
    fn compute_cost(&mut self, sub_core: usize, info: &IssueInfo, launch: u32, now: Now) -> Cost {
        let mut begin = now.cycle;
        if matches!(info.kind, Kind::Exchange | Kind::Fence)
            && let Issue::Timing(timing) = &mut self.issue
        {
            let interval = u64::from(info.interval);
            let memory = &mut timing.memory;
            let (taken, room) = if info.kind == Kind::Fence {
                let wait = self.parameters.fence_wavefronts;
                memory.drain(sub_core, now.cycle, wait, interval)
            } else {
                memory.enter(sub_core, now.cycle, 1, interval)
            };
            if info.constant != NO_CONSTANT {
                let there = timing.fetch.constant(launch, info.constant, taken);
                begin = begin.max(there);
            }
            timing.sub_cores[sub_core].pipes[Pipe::LoadStore as usize] = room;
            begin = begin.max(taken);
        }
        let latency = if info.free {
            0
        } else {
            u64::from(info.latency)
        };
        Cost {
            ready: begin + latency,
            long: false,
            operands: begin + u64::from(info.operands),
        }
    }

    /// What a memory instruction takes; sends for what it needs from L2.
    fn access_cost(
        &mut self,
        slot: u8,
        sub_core: usize,
        pc: u32,
        block: usize,
        info: &IssueInfo,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> Cost {
        let parameters = &*self.parameters;
        let done = self.port.done;
        let lines = match done.traffic {
            Traffic::Global { .. } | Traffic::Local { .. } => {
                Some(LineSet::of(self.port.found.sectors()))
            }
            _ => None,
        };
        let wavefronts = match done.traffic {
            Traffic::Shared { wavefronts, .. } => u64::from(wavefronts),
            Traffic::Local { .. } => u64::from(done.wavefronts).max(1),
            Traffic::Global { write: false } if done.wavefronts > 0 => {
                let lines = lines.as_ref().map_or(0, LineSet::len) as u64;
                lines
                    .div_ceil(parameters.l1_load_tags)
                    .max(u64::from(done.wavefronts))
                    .max(u64::from(done.strong_lines))
            }
            Traffic::Global { write } => {
                let strong = u64::from(done.strong_lines);
                let lines = lines.as_ref().map_or(0, LineSet::len) as u64;
                let wavefronts = (lines + strong).div_ceil(parameters.l1_lines_per_cycle);
                // Within a line, sectors take as long as the array takes to deliver them.
                let sectors = if write {
                    0
                } else {
                    self.port.found.count as u64
                };
                let bytes = sectors * SECTOR + (1 << parameters.l1_bytes_shift) - 1;
                let delivered = bytes >> parameters.l1_bytes_shift;
                wavefronts.max(delivered).max(1)
            }
            Traffic::Constant | Traffic::None => 1,
        };
        let Issue::Timing(timing) = &mut self.issue else {
            return Cost {
                ready: now.cycle,
                long: false,
                operands: now.cycle,
            };
        };
        if done.changed {
            timing.memory.lose(self.port.changed.sectors());
        }
        let wavefronts = match (done.traffic, &lines) {
            (Traffic::Global { write: true }, Some(set)) => {
                let (window, bytes) = (parameters.store_window, parameters.store_bytes);
                let (memory, whole) = (&timing.memory, self.port.partial == 0);
                wavefronts.max(memory.store_wavefronts(set, whole, now.cycle, window, bytes))
            }
            _ => wavefronts,
        };
        let interval = u64::from(info.interval);
        let (taken, room) = timing
            .memory
            .enter(sub_core, now.cycle, wavefronts, interval);
        timing.sub_cores[sub_core].pipes[Pipe::LoadStore as usize] = room;
        let last = taken + wavefronts - 1;
        let operands = taken + u64::from(info.operands);
        let words = u64::from(info.words.max(1));
        let wide = (words - 1) * parameters.wide_global;
        let store_latency = parameters.store_latency;
        let (ready, long) = match done.traffic {
            Traffic::None => (now.cycle + 2, false),
            Traffic::Constant => (last + parameters.constant_latency, false),
            Traffic::Shared { atomic, .. } => {
                let latency = if let Some(atomic) = atomic {
                    shared_atomic(parameters, atomic).saturating_sub(wavefronts - 1)
                } else if words >= 4 {
                    parameters.shared_latency + parameters.wide_shared
                } else {
                    parameters.shared_latency
                };
                (last + latency, false)
            }
            Traffic::Global { .. } | Traffic::Local { .. } => {
                let group = if info.copies && info.native {
                    timing.scoreboards[usize::from(slot)].open_copies()
                } else {
                    NO_GROUP
                };
                let mut access = Access {
                    slot,
                    block,
                    pc,
                    manner: match done.traffic {
                        Traffic::Local { write: true } => Manner::StoreLocal,
                        Traffic::Global { write: true } => Manner::Store,
                        _ if info.past => Manner::LoadBypass,
                        _ => Manner::Load,
                    },
                    transaction: done.transaction,
                    group,
                    taken,
                    wavefronts,
                    hit: last + parameters.l1_latency + wide,
                    fill: wide,
                    partial: self.port.partial,
                };
                if done.strong_load && done.transaction != NOBODY {
                    // They have left already, and pass the pipe when they come back.
                    let late = wide + last - now.cycle;
                    self.port.transactions.delay(done.transaction, late as u16);
                }
                let mut lines = lines;
                if self.port.translation.is_some()
                    && let Some(set) = &lines
                    && let Some(left) = self.translate_lines(set, &mut access, outbox)
                {
                    lines = Some(left);
                }
                let ready = match lines {
                    Some(set) if set.len() > 0 => self.access_lines(&set, &access, outbox),
                    _ if access.transaction != NOBODY && access.manner != Manner::Store => PENDING,
                    _ => access.hit,
                };
                if access.manner == Manner::Store
                    && let Some(block) = self.blocks[block].as_mut()
                {
                    block.stored = last + store_latency;
                }
                if group != NO_GROUP
                    && let Issue::Timing(timing) = &mut self.issue
                {
                    timing.scoreboards[usize::from(slot)].copy(ready);
                    // The registers of a copy are free once they are read.
                    return Cost {
                        ready: operands,
                        long: true,
                        operands,
                    };
                }
                (ready, true)
            }
        };
        Cost {
            ready,
            long,
            operands,
        }
    }

    /// Says what the warp did since its last issue; `shared` if its instruction is none that goes
    /// to global or local memory.
    #[inline]
    fn count_stalls(&mut self, slot: u8, sub_core: usize, block: usize, shared: bool, now: Now) {
        let Issue::Timing(timing) = &self.issue else {
            return;
        };
        let Some(block) = self.blocks[block].as_mut() else {
            return;
        };
        let index = usize::from(slot);
        let scoreboard = &timing.scoreboards[index];
        let stalls = &mut block.counters.stalls;
        stalls[Reason::Selected as usize] += 1;
        let mut at = scoreboard.issued + 1;
        let mut until = |end: u64, reason: usize| {
            let end = end.min(now.cycle);
            if end > at {
                stalls[reason] += end - at;
                at = end;
            }
        };
        if scoreboard.woken > scoreboard.issued {
            until(scoreboard.own, usize::from(scoreboard.next_reason));
            until(scoreboard.woken, usize::from(scoreboard.woken_reason));
        }
        until(scoreboard.next, usize::from(scoreboard.next_reason));
        until(timing.issue_at[index], usize::from(scoreboard.reason));
        let pipe = usize::from(timing.pipes[index]);
        let busy = timing.sub_cores[sub_core].pipes[pipe];
        let throttle = match (pipe == Pipe::LoadStore as usize, shared) {
            (true, false) => Reason::LgThrottle,
            (true, true) => Reason::MioThrottle,
            (false, _) => Reason::MathPipeThrottle,
        };
        until(busy, throttle as usize);
        if pipe == Pipe::LoadStore as usize {
            // All MSHRs were taken.
            until(timing.memory.opened(), Reason::LgThrottle as usize);
        }
        until(now.cycle, Reason::NotSelected as usize);
    }
}

impl SubCore {
    /// Keeps the pipe and the register banks of an instruction busy.
    #[inline]
    fn occupy(&mut self, info: &IssueInfo, cycle: u64, parameters: &SmParameters) {
        let interval = u64::from(info.interval);
        let [heavy, any] = [Pipe::FmaHeavy as usize, Pipe::Fma as usize];
        match info.pipe {
            Pipe::LoadStore => {}
            Pipe::Fma if parameters.split_multiply => {
                // Either half takes two cycles for a warp.
                let busy = cycle + 2 * interval;
                if self.light <= cycle {
                    self.light = busy;
                } else {
                    self.pipes[heavy] = busy;
                }
                self.pipes[any] = self.light.min(self.pipes[heavy]);
            }
            Pipe::FmaHeavy if parameters.split_multiply => {
                self.pipes[heavy] = cycle + interval;
                self.pipes[any] = self.light.min(self.pipes[heavy]);
            }
            Pipe::Fma | Pipe::FmaHeavy => {
                self.pipes[heavy] = cycle + interval;
                self.pipes[any] = cycle + interval;
            }
            pipe => self.pipes[pipe as usize] = cycle + interval,
        }
        let mut over = 0;
        for (bank, reads) in self.banks.iter_mut().zip(info.reads) {
            *bank = cycle.max(*bank) + u64::from(reads);
            over = over.max(bank.saturating_sub(cycle + parameters.read_window));
        }
        // Reads that do not fit in their window hold up what comes after.
        self.hold = cycle + 1 + over;
    }
}
