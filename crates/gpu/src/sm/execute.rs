//! One instruction of one warp, in both modes.
//!
//! Start reading at [`SmState::execute`].

use lockstep_engine::Outbox;
use lockstep_isa::Operation;
use lockstep_isa::bulk::BulkAction;
use lockstep_isa::instruction::{Flow, GridOperation};
use lockstep_isa::memory::{FenceOperation, MemoryOperation, Order, Scope, Strength};
use lockstep_isa::operand::PredicateRegister;
use lockstep_isa::{Instruction, Mask};

use super::barrier::{BARRIERS, Barrier};
use super::bulk;
use super::control_flow;
use super::issue_model::IssueModel;
use super::lsu::access;
use super::ordering::{FenceWait, Waiter};
use super::problem::Problem;
use super::recurrence;
use super::replay;
use super::report;
use super::site::Site;
use super::state::SmState;
use super::sub_core::early_reads::check;
use super::texture;
use super::tracing;
use super::warp::Warp;
use crate::check::race;
use crate::fault::FaultKind;
use crate::launch::LaunchContext;
use crate::message::Message;
use crate::probe::Topic;
use crate::sm::lsu::transactions::NOBODY;
use crate::sm::now::Now;

/// What an instruction did, as far as the issue model must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Registers in, registers out.
    Computed,
    /// Memory was accessed; `Port::done` says how.
    Memory,
    /// The TMA engine has a command.
    Bulk,
    /// Lanes moved.
    Flowed,
    /// The warp met others, waits for an order or asked the system.
    Met,
    /// Nothing: the same instruction comes again, now or after a wait.
    Again,
    /// The SM has a fault.
    Failed,
}

/// What the warp alone could do.
pub(super) enum Step {
    /// It is done.
    Done(Effect),
    /// Lanes ended.
    Ended,
    /// It takes the whole SM.
    Special,
    /// Strong accesses under way come first.
    OrderFirst {
        /// And the end of the epoch.
        boundary: bool,
    },
    /// It waits at an `mbarrier` and tests again.
    Suspended,
    /// It cannot be executed.
    Wrong(Problem),
}

impl SmState {
    /// Executes the next instruction of a warp, which must be ready, and counts it. Says what it
    /// did, and whether it was free.
    #[inline]
    pub(super) fn execute<M: IssueModel>(
        &mut self,
        model: &mut M,
        slot: u8,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> (Effect, bool) {
        let warp = &mut self.warps[usize::from(slot)];
        let block_slot = usize::from(warp.block);
        let context = self.blocks.contexts[block_slot].as_deref();
        let context = context.expect("a ready warp has a launch");
        let block = self.blocks.blocks[block_slot].as_mut();
        let block = block.expect("a ready warp has a block");
        let pc = warp.convergence.pc();
        let active = warp.convergence.active();
        let Some(instruction) = context.launch.module.code.get(pc as usize) else {
            let lane = active.trailing_zeros() as usize;
            let kind = FaultKind::IllegalJump { target: pc.into() };
            return (self.failed(slot, Problem { lane, kind }, now), false);
        };
        let free = instruction.scheduling.pseudo;
        warp.identity.clock = now.cycle;
        warp.identity.time = now.time.0;
        let mut site = Site {
            slot,
            warp,
            block,
            context,
            port: &mut self.port,
            now: &now,
            outbox,
            timed: M::TIMED,
        };
        let mut execute = active & guard(site.warp, instruction);
        let watched = site.port.is_watched();
        if watched {
            if let Some(replay) = &site.warp.replay {
                execute = replay.lanes();
            }
            note_instruction(&site, pc, execute);
            recurrence::note(&mut site, instruction, execute);
            if site.port.checks.race {
                race::hooks::instruction(&mut site, instruction, execute);
            }
            tracing::prepare(&mut site, instruction, execute);
        }
        let replayed = watched && site.warp.replay.is_some();
        if M::TIMED
            && !replayed
            && let Some(bank) = instruction.scheduling.indexed_constant
        {
            let addresses = &mut site.port.constants;
            addresses.note(site.warp, context, instruction, execute, bank);
        }
        let step = match replayed {
            true => replay::step(&mut site, instruction, execute),
            false => step(&mut site, instruction, execute),
        };
        if !free && matches!(step, Step::Done(_) | Step::Ended | Step::Special) {
            if watched {
                tracing::commit(&mut site, pc, active, execute);
            }
            let counters = &mut site.block.counters;
            counters.inst_executed += 1;
            counters.inst_issued += 1;
            counters.thread_inst_executed += u64::from(active.count_ones());
            counters.thread_inst_executed_pred_on += u64::from(execute.count_ones());
            counters.mix[instruction.scheduling.mix as usize] += 1;
            if site.warp.control_bit_checker.is_some()
                && let Some(problem) = check(site.warp, context, pc, active, execute)
            {
                return (self.failed(slot, problem, now), false);
            }
        }
        let effect = match step {
            Step::Done(Effect::Memory) => {
                if self.port.done.transaction != NOBODY && (!M::TIMED || acquires(instruction)) {
                    self.slots.waiting |= 1 << slot;
                    self.slots.clear_ready(slot);
                }
                if self.port.done.mbarrier {
                    self.after_mbarrier(model, slot, now);
                }
                Effect::Memory
            }
            Step::Done(Effect::Bulk) => {
                let arrived = std::mem::take(&mut self.port.bulk.arrived);
                for arrival in arrived {
                    self.bulk_arrived(model, arrival, now);
                }
                if self.fault.is_some() {
                    Effect::Failed
                } else {
                    Effect::Bulk
                }
            }
            Step::Done(effect) => {
                if self.warps[usize::from(slot)].convergence.active() == 0 {
                    self.slots.clear_ready(slot);
                    self.check_stuck(model, slot, now);
                }
                effect
            }
            Step::Ended => {
                self.lanes_ended(model, slot, now, outbox);
                self.check_stuck(model, slot, now);
                Effect::Flowed
            }
            Step::Special if replayed => {
                let effect = self.replay_special(model, slot, pc, now, outbox);
                self.check_stuck(model, slot, now);
                effect
            }
            Step::Special => {
                let effect = self.special(model, slot, pc, now, outbox);
                self.check_stuck(model, slot, now);
                effect
            }
            Step::OrderFirst { boundary } => self.order_first(slot, boundary),
            Step::Suspended => {
                self.suspend_at_mbarrier(slot);
                Effect::Again
            }
            Step::Wrong(problem) => self.failed(slot, problem, now),
        };
        (effect, free)
    }

    /// Counts a warp as arrived at barriers of its block if none of its lanes can run.
    fn check_stuck<M: IssueModel>(&mut self, model: &mut M, slot: u8, now: Now) {
        let convergence = &self.warps[usize::from(slot)].convergence;
        if convergence.is_stuck_at_block_barrier() {
            self.arrive_stuck(model, slot, now);
        }
    }

    /// Meets others, fences, asks the system.
    pub(super) fn special<M: IssueModel>(
        &mut self,
        model: &mut M,
        slot: u8,
        pc: u32,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> Effect {
        let block = usize::from(self.warps[usize::from(slot)].block);
        let context = self.blocks.contexts[block].clone();
        let context = context.expect("a ready warp has a launch");
        let instruction = &context.launch.module.code[pc as usize];
        let went = match &instruction.operation {
            Operation::Barrier(barrier) => {
                model.arrive_at_barrier(now.cycle);
                self.arrive(model, slot, &context, instruction, *barrier, now)
            }
            Operation::Grid(operation) => {
                self.grid_instruction(model, slot, &context, instruction, *operation, now, outbox);
                Ok(())
            }
            Operation::Warpgroup(operation) => {
                self.warpgroup(model, slot, &context, instruction, *operation, now)
            }
            Operation::Fence(fence) => {
                self.fence_instruction::<M>(slot, *fence, now);
                Ok(())
            }
            Operation::System(call) => {
                self.system_call(slot, &context, instruction, call, now, outbox)
            }
            Operation::Bulk(operation) => {
                self.wait_for_bulk::<M>(slot, operation.action, now);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(problem) = went {
            return self.failed(slot, problem, now);
        }
        self.refresh(model, slot, now.cycle);
        Effect::Met
    }

    /// Meets other blocks of the cluster, or other grids.
    #[allow(clippy::too_many_arguments, reason = "what an instruction may reach")]
    #[inline(never)]
    fn grid_instruction<M: IssueModel>(
        &mut self,
        model: &mut M,
        slot: u8,
        context: &LaunchContext,
        instruction: &Instruction,
        operation: GridOperation,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let warp = &mut self.warps[usize::from(slot)];
        let execute = warp.lanes(context, instruction).execute;
        if execute == 0 {
            return warp.convergence.advance();
        }
        match operation {
            GridOperation::ClusterArrive => {
                warp.convergence.advance();
                self.arrive_at_cluster(model, slot, execute, now, outbox);
            }
            GridOperation::ClusterWait => {
                if !self.wait_for_cluster(slot) {
                    self.warps[usize::from(slot)].convergence.advance();
                }
            }
            GridOperation::LaunchDependents => {
                warp.convergence.advance();
                self.launch_dependents(slot, now, outbox);
            }
            GridOperation::WaitForPrerequisites => {
                warp.convergence.advance();
                self.wait_for_prerequisites(slot);
            }
        }
    }

    fn failed(&mut self, slot: u8, problem: Problem, now: Now) -> Effect {
        report::fail(self, slot, problem, now);
        Effect::Failed
    }

    /// Lanes of a warp have ended: barriers wait for fewer, and the block may be over.
    fn lanes_ended<M: IssueModel>(
        &mut self,
        model: &mut M,
        slot: u8,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let warp = &self.warps[usize::from(slot)];
        let (block_slot, member) = (warp.block, warp.identity.warp_in_block);
        let live = warp.convergence.live();
        if warp.convergence.active() == 0 {
            self.slots.clear_ready(slot);
        }
        let block = self.blocks.blocks[usize::from(block_slot)].as_mut();
        let block = block.expect("a ready warp has a block");
        if live == 0 {
            block.live &= !(1 << member);
            if let Some(race) = &mut block.race {
                race.end_warp(member as usize);
            }
        }
        if block.barriers.iter().any(Barrier::is_used) {
            for barrier in &mut block.barriers {
                barrier.ended(member as usize, live);
            }
            let context = self.blocks.contexts[usize::from(block_slot)].clone();
            let context = context.expect("a ready warp has a launch");
            for number in 0..BARRIERS {
                self.complete_barrier(model, block_slot, number, &context, now);
            }
        }
        self.check_cluster_barrier(model, block_slot, now, outbox);
        if live == 0 {
            if self.warps[usize::from(slot)].pending == 0 {
                self.leave(slot);
            }
            self.try_end_block(block_slot);
            self.check_fences(model, now, outbox);
        }
    }

    /// A warp waits until strong accesses under way are answered, then executes again.
    fn order_first(&mut self, slot: u8, boundary: bool) -> Effect {
        let waiter = Waiter::Warp {
            slot,
            release: true,
        };
        if self.fence(waiter, boundary, 0) {
            self.slots.hold(slot);
            self.slots.clear_ready(slot);
        } else {
            self.warps[usize::from(slot)].released = true;
        }
        Effect::Again
    }

    /// `cp.async.bulk.wait_group` of PTX: machine code waits for a dependence counter.
    #[inline(never)]
    fn wait_for_bulk<M: IssueModel>(&mut self, slot: u8, action: BulkAction, now: Now) {
        self.warps[usize::from(slot)].convergence.advance();
        let BulkAction::Wait { at_most } = action else {
            return;
        };
        let until = self.port.bulk.groups.ready(slot, at_most);
        if M::TIMED && until > now.cycle {
            self.ordering.wait_for(FenceWait {
                waiter: Waiter::Warp {
                    slot,
                    release: false,
                },
                generation: None,
                boundary: false,
                until,
            });
            self.slots.hold(slot);
        }
    }

    fn fence_instruction<M: IssueModel>(&mut self, slot: u8, fence: FenceOperation, now: Now) {
        self.warps[usize::from(slot)].convergence.advance();
        let waiter = Waiter::Warp {
            slot,
            release: false,
        };
        // Threads of a block share an SM, which is coherent in itself. Only loads that follow a
        // sequential fence could overtake the commit of weak stores before it.
        let block = usize::from(self.warps[usize::from(slot)].block);
        // Stores of the block arrive first. A fence for the system has a way to L2 and one beyond:
        // it makes the first while they make theirs.
        let stored = self.blocks.blocks[block].as_ref();
        let stored = stored.map_or(0, |block| block.stored);
        let near = self.parameters.lsu.fence_gpu;
        let until = match fence.scope {
            _ if !M::TIMED => 0,
            Scope::System => {
                let beyond = self.parameters.lsu.fence_system.saturating_sub(near);
                stored.max(now.cycle + near) + beyond
            }
            _ => stored.max(now.cycle) + near,
        };
        if fence.scope > Scope::Block && self.fence(waiter, fence.sequential, until) {
            self.slots.hold(slot);
        }
    }
}

/// Tells somebody who watches what a warp is about to execute.
#[cold]
fn note_instruction(site: &Site<'_, '_>, pc: u32, execute: Mask) {
    let Some(probe) = &site.port.probe else {
        return;
    };
    let module = &site.context.launch.module;
    probe.note(Topic::Sm, site.now.time, || {
        let text = module.text(pc).unwrap_or_default();
        let [x, y, z] = site.warp.identity.block;
        let (slot, warp) = (site.slot, site.warp.identity.warp_in_block);
        format!(
            "warp slot {slot} (block {x},{y},{z} warp {warp}) at {pc} {text} lanes {execute:08x}"
        )
    });
}

/// What the warp can do by itself, with its block and the memory side of the SM.
#[inline(always)]
pub(super) fn step(site: &mut Site<'_, '_>, instruction: &Instruction, execute: Mask) -> Step {
    match &instruction.operation {
        Operation::Compute(compute) => {
            if execute != 0 {
                compute(
                    &mut site.warp.lanes_that(site.context, execute),
                    instruction,
                );
            }
            site.warp.convergence.advance();
            Step::Done(Effect::Computed)
        }
        Operation::Bulk(operation) if !matches!(operation.action, BulkAction::Wait { .. }) => {
            match bulk::execute(site, instruction, operation) {
                Ok(()) if site.port.done.order_first => Step::OrderFirst { boundary: false },
                Ok(()) => {
                    site.warp.released = false;
                    site.warp.convergence.advance();
                    Step::Done(Effect::Bulk)
                }
                Err(problem) => Step::Wrong(problem),
            }
        }
        Operation::Texture(operation) => match texture::execute(site, instruction, operation) {
            Ok(()) if site.port.done.order_first => Step::OrderFirst { boundary: false },
            Ok(()) => {
                site.warp.released = false;
                site.warp.convergence.advance();
                Step::Done(Effect::Memory)
            }
            Err(problem) => Step::Wrong(problem),
        },
        Operation::Nothing => {
            site.warp.convergence.advance();
            Step::Done(Effect::Computed)
        }
        Operation::Flow(what) => match control_flow::flow(site, instruction, *what) {
            Ok(()) if *what == Flow::Exit => Step::Ended,
            Ok(()) => Step::Done(Effect::Flowed),
            Err(problem) => Step::Wrong(problem),
        },
        Operation::Memory(operation) => {
            if !site.warp.released && releases(operation) {
                // What was stored weakly is committed before a message can arrive.
                return Step::OrderFirst { boundary: false };
            }
            match access::memory(site, instruction, operation) {
                Ok(()) if site.port.done.order_first => Step::OrderFirst { boundary: false },
                Ok(()) if site.port.done.suspends => Step::Suspended,
                Ok(()) => {
                    site.warp.released = false;
                    if site.port.done.yields {
                        site.warp.convergence.let_others_run();
                    } else {
                        site.warp.convergence.advance();
                    }
                    Step::Done(Effect::Memory)
                }
                Err(problem) => Step::Wrong(problem),
            }
        }
        Operation::Barrier(_)
        | Operation::Bulk(_)
        | Operation::Grid(_)
        | Operation::Warpgroup(_)
        | Operation::Fence(_)
        | Operation::System(_) => Step::Special,
        Operation::Unsupported(_) if execute == 0 => {
            site.warp.convergence.advance();
            Step::Done(Effect::Computed)
        }
        Operation::Unsupported(sentence) => Step::Wrong(Problem {
            lane: site.warp.convergence.active().trailing_zeros() as usize,
            kind: FaultKind::Unsupported(sentence.to_string()),
        }),
        Operation::Illegal(sentence) => Step::Wrong(Problem {
            lane: site.warp.convergence.active().trailing_zeros() as usize,
            kind: FaultKind::IllegalInstruction(sentence.to_string()),
        }),
    }
}

/// The guard of an instruction as a lane mask.
#[inline(always)]
pub(super) fn guard(warp: &Warp, instruction: &Instruction) -> Mask {
    let mask = match instruction.guard.register {
        PredicateRegister::True => Mask::MAX,
        PredicateRegister::Lanes(index) => warp.predicates[usize::from(index)],
    };
    if instruction.guard.negate {
        !mask
    } else {
        mask
    }
}

fn order_of(operation: &MemoryOperation) -> Option<Order> {
    match operation.strength {
        Strength::Strong { scope, order } if scope > Scope::Block => Some(order),
        _ => None,
    }
}

fn releases(operation: &MemoryOperation) -> bool {
    matches!(
        order_of(operation),
        Some(Order::Release | Order::AcquireRelease)
    )
}

fn acquires(instruction: &Instruction) -> bool {
    match &instruction.operation {
        Operation::Memory(operation) => matches!(
            order_of(operation),
            Some(Order::Acquire | Order::AcquireRelease)
        ),
        _ => false,
    }
}
