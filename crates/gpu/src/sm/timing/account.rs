//! What an instruction that has issued costs: its unit, its scoreboard, its warp's next issue.
//!
//! Start reading at [`Timing::account`].

use lockstep_engine::Outbox;
use lockstep_isa::Mask;

use super::Timing;
use crate::launch::LaunchContext;
use crate::message::Message;
use crate::parameters::SmParameters;
use crate::sm::execute::Effect;
use crate::sm::front_end::constant_addresses::ConstantAddresses;
use crate::sm::front_end::issue_table::{IssueInfo, Kind, NO_CONSTANT, Pipe};
use crate::sm::lsu::outcome::Traffic;
use crate::sm::now::Now;
use crate::sm::state::SmState;
use crate::sm::sub_core::scoreboard::{Scoreboard, registers};
use crate::sm::sub_core::stall::Reason;

/// An instruction that was executed.
pub(super) struct Issued {
    pub slot: u8,
    pub sub_core: usize,
    pub pc: u32,
    /// Lanes that were at it.
    pub active: Mask,
    /// Slot of the block.
    pub block: usize,
    pub effect: Effect,
}

/// What an instruction takes.
pub(super) struct Cost {
    /// When its results are there, or [`PENDING`](crate::sm::now::PENDING).
    pub ready: u64,
    /// Whether they come from global or local memory.
    pub long: bool,
    /// When its operands were read.
    pub operands: u64,
}

impl Timing {
    /// Books the time that an instruction takes.
    pub(super) fn account(
        &mut self,
        state: &mut SmState,
        issued: &Issued,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let Some(launch) = state.blocks.launch_of(issued.block as u8) else {
            return;
        };
        let Some(&info) = launch.issue_table().info(issued.pc) else {
            return;
        };
        let launch_id = launch.id.0;
        let slot = usize::from(issued.slot);
        if !info.free {
            match state.port.profile {
                None => self.count_stalls(state, issued, now.cycle),
                Some(_) => self.count_line(state, issued, now.cycle),
            }
        }
        let cost = match issued.effect {
            Effect::Memory => self.memory_cost(state, issued, &info, now, outbox),
            _ => {
                let words = (&state.port.constants, state.port.share);
                self.compute_cost(issued.sub_core, &info, launch_id, words, now.cycle)
            }
        };
        let mut committed = 0;
        if info.kind == Kind::CommitBulk {
            committed = state.port.bulk.groups.commit(issued.slot, now.cycle);
        }
        let scoreboard = &mut self.warps.scoreboards[slot];
        if info.native {
            match info.kind {
                Kind::CloseCopies => scoreboard.close_copies(info.write_counter, now.cycle),
                Kind::CommitBulk => {
                    // Counters know groups of copies by what closes them.
                    scoreboard.copy(committed);
                    scoreboard.close_copies(info.read_counter, now.cycle);
                }
                _ => {
                    let until = cost.ready.saturating_add(u64::from(info.after_result));
                    scoreboard.raise(info.write_counter, until, cost.long);
                }
            }
            if info.kind != Kind::CommitBulk {
                let until = cost.operands + u64::from(info.after_result);
                scoreboard.raise(info.read_counter, until, false);
            }
        } else if let Some(launch) = state.blocks.launch_of(issued.block as u8) {
            let predicate = if info.free {
                now.cycle
            } else {
                now.cycle + self.parameters.sub_core.predicate_latency
            };
            book_registers(scoreboard, launch, issued.pc, cost.ready, predicate);
        }
        let (mut stall, mut reason) = self.stall(state, issued, &info);
        if info.indexed_constant && info.pipe == Pipe::Uniform {
            stall = stall.max(cost.ready.saturating_sub(now.cycle));
            reason = Reason::ImcMiss;
        }
        if state.slots.waiting >> issued.slot & 1 != 0 {
            reason = Reason::LongScoreboard;
        }
        let scoreboard = &mut self.warps.scoreboards[slot];
        scoreboard.next = scoreboard.next.max(now.cycle + stall);
        scoreboard.own = scoreboard.next;
        scoreboard.next_reason = reason as u8;
        if !info.free {
            scoreboard.issued = now.cycle;
            self.occupy(issued.sub_core, &info, now.cycle);
        }
    }

    /// Keeps the units of an instruction busy.
    #[inline]
    fn occupy(&mut self, sub_core: usize, info: &IssueInfo, cycle: u64) {
        let parameters: &SmParameters = &self.parameters;
        self.sub_cores[sub_core].occupy(info, cycle, parameters);
        if info.pipe == Pipe::Double && parameters.sub_core.shared_double {
            let free = cycle + u64::from(info.interval);
            for sub_core in &mut self.sub_cores {
                sub_core.ports.set_free(Pipe::Double, free);
            }
        }
    }

    /// For how many cycles an instruction keeps its warp from issuing, and why.
    #[inline]
    fn stall(&mut self, state: &SmState, issued: &Issued, info: &IssueInfo) -> (u64, Reason) {
        let stall = if info.native {
            u64::from(info.stall)
        } else {
            u64::from(!info.free)
        };
        match info.kind {
            Kind::Flow if !info.free => {}
            Kind::Barrier => return (stall, Reason::Barrier),
            Kind::Fence => return (stall, Reason::Membar),
            Kind::Sleep => return (stall, Reason::Sleeping),
            _ => return (stall, Reason::Wait),
        }
        let convergence = &state.warps[usize::from(issued.slot)].convergence;
        let (target, left) = (convergence.pc(), convergence.active());
        let (pc, active) = (issued.pc, issued.active);
        let taken = target != pc.wrapping_add(1);
        if !taken && left == active {
            return (stall, Reason::Wait);
        }
        let latency = if left & active == 0 && target != pc {
            self.parameters.sub_core.switch_latency
        } else if left & active != 0 && left & active != active {
            self.parameters.sub_core.divergence_latency
        } else {
            0
        };
        if taken {
            self.warps.scoreboards[usize::from(issued.slot)].line = 0;
        }
        if taken || latency > 0 {
            let jump = if taken { u64::from(info.latency) } else { 0 };
            (stall.max(latency).max(jump), Reason::BranchResolving)
        } else {
            (stall, Reason::Wait)
        }
    }

    /// What an instruction without memory takes.
    fn compute_cost(
        &mut self,
        sub_core: usize,
        info: &IssueInfo,
        launch: u32,
        (words, share): (&ConstantAddresses, u32),
        now: u64,
    ) -> Cost {
        let mut begin = now;
        if matches!(info.kind, Kind::Exchange | Kind::Fence) {
            let interval = u64::from(info.interval);
            let mio = &mut self.lsu.mio;
            let entry = if info.kind == Kind::Fence {
                let lsu = &self.parameters.lsu;
                let wait = [lsu.fence_wavefronts, lsu.fence_wait_eighths];
                mio.drain(sub_core, now, wait, interval)
            } else {
                mio.enter(sub_core, now, 1, interval)
            };
            let constants = &mut self.front_end.constants;
            if info.constant != NO_CONSTANT {
                begin = begin.max(constants.line(launch, info.constant, entry.taken));
            } else if info.indexed_constant {
                begin = begin.max(constants.read(launch, words, entry.taken, share));
            }
            let ports = &mut self.sub_cores[sub_core].ports;
            ports.set_free(Pipe::LoadStore, entry.room);
            begin = begin.max(entry.taken);
        } else if info.indexed_constant {
            // Its latency is fixed: its warp waits.
            begin = self.front_end.constants.read(launch, words, now, share);
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

    /// Says what the warp did since its last issue.
    #[inline]
    pub(super) fn count_stalls(&mut self, state: &mut SmState, issued: &Issued, now: u64) {
        let far = matches!(
            state.port.done.traffic,
            Traffic::Global { .. } | Traffic::Local { .. } | Traffic::Texture { .. }
        );
        let global = issued.effect == Effect::Memory && far;
        let Some(block) = state.blocks.blocks[issued.block].as_mut() else {
            return;
        };
        let slot = usize::from(issued.slot);
        let scoreboard = &self.warps.scoreboards[slot];
        let sub_core = &mut self.sub_cores[issued.sub_core];
        let (stalls, of_core) = (&mut block.counters.stalls, &mut sub_core.stats.stalls);
        stalls[Reason::Selected as usize] += 1;
        of_core[Reason::Selected as usize] += 1;
        let mut at = scoreboard.issued + 1;
        let mut until = |end: u64, reason: usize| {
            let end = end.min(now);
            if end > at {
                stalls[reason] += end - at;
                of_core[reason] += end - at;
                at = end;
            }
        };
        if scoreboard.woken > scoreboard.issued {
            until(scoreboard.own, usize::from(scoreboard.next_reason));
            until(scoreboard.woken, usize::from(scoreboard.woken_reason));
        }
        until(scoreboard.next, usize::from(scoreboard.next_reason));
        until(self.warps.issue_at[slot], usize::from(scoreboard.reason));
        let pipe = usize::from(self.warps.pipes[slot]);
        let busy = sub_core.ports.free_at(pipe);
        let throttle = match (pipe == Pipe::LoadStore as usize, global) {
            (true, true) => Reason::LgThrottle,
            (true, false) => Reason::MioThrottle,
            (false, _) => Reason::MathPipeThrottle,
        };
        until(busy, throttle as usize);
        if pipe == Pipe::LoadStore as usize {
            // All MSHRs were taken.
            until(self.lsu.l1tex.opened(), Reason::LgThrottle as usize);
        }
        until(now, Reason::NotSelected as usize);
    }
}

/// Without control bits, every register that an instruction writes is on its way.
fn book_registers(
    scoreboard: &mut Scoreboard,
    launch: &LaunchContext,
    pc: u32,
    ready: u64,
    predicate: u64,
) {
    let hazard = launch.issue_table().hazard(pc);
    for register in registers(hazard.writes) {
        if let Some(at) = scoreboard.registers.get_mut(register) {
            *at = ready;
        }
    }
    for register in registers(hazard.predicate_writes) {
        if let Some(at) = scoreboard.predicates.get_mut(register) {
            *at = predicate;
        }
    }
}
