//! One instruction of one warp.

use lockstep_engine::Outbox;
use lockstep_isa::Operation;
use lockstep_isa::convergence::PathState;
use lockstep_isa::instruction::{BlockBarrier, BlockBarrierMode, Flow};
use lockstep_isa::memory::{FenceOperation, MemoryOperation, Order, Scope, Strength};
use lockstep_isa::operand::PredicateRegister;
use lockstep_isa::{Instruction, Mask, Operand, WarpRegister};

use super::barrier::{BARRIERS, Barrier, Reduced};
use super::control_flow;
use super::cta::GONE;
use super::lsu::access;
use super::ordering::Waiter;
use super::site::{Problem, Site};
use super::sub_core::early_reads::check;
use super::warp::Warp;
use super::{Issue, Sm};
use crate::fault::FaultKind;
use crate::launch::LaunchContext;
use crate::message::Message;
use crate::probe::Topic;
use crate::sm::lsu::port::NOBODY;
use crate::sm::now::Now;

/// What an instruction did, as far as the issue model must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Registers in, registers out.
    Computed,
    /// Memory was accessed; `Port::done` says how.
    Memory,
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
enum Step {
    Done(Effect),
    /// Lanes ended.
    Ended,
    /// It takes the whole SM.
    Special,
    OrderFirst {
        boundary: bool,
    },
    Wrong(Problem),
}

impl Sm {
    /// Executes the next instruction of a warp, which must be ready, and counts it. Says what it
    /// did, and whether it was free.
    #[inline]
    pub(super) fn execute(
        &mut self,
        slot: u8,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> (Effect, bool) {
        let warp = &mut self.warps[usize::from(slot)];
        let block_slot = usize::from(warp.block);
        let context = self.contexts[block_slot]
            .as_deref()
            .expect("a ready warp has a launch");
        let block = self.blocks[block_slot]
            .as_mut()
            .expect("a ready warp has a block");
        let pc = warp.convergence.pc();
        let active = warp.convergence.active();
        let Some(instruction) = context.launch.module.code.get(pc as usize) else {
            let lane = active.trailing_zeros() as usize;
            let kind = FaultKind::IllegalJump { target: pc.into() };
            return (self.failed(slot, Problem { lane, kind }, now), false);
        };
        let pseudo = instruction.scheduling.pseudo;
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
            timed: self.parameters.timed,
        };
        let execute = active & guard(site.warp, instruction);
        if let Some(probe) = &site.port.probe {
            let module = &context.launch.module;
            probe.note(Topic::Sm, now.time, || {
                let text = module.listing.get(pc as usize).map_or("", String::as_str);
                let [x, y, z] = site.warp.identity.block;
                let warp = site.warp.identity.warp_in_block;
                format!(
                    "warp slot {slot} (block {x},{y},{z} warp {warp}) at {pc} {text} lanes {execute:08x}"
                )
            });
        }
        let step = step(&mut site, instruction, execute);
        if !pseudo && matches!(step, Step::Done(_) | Step::Ended | Step::Special) {
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
                if self.port.done.transaction != NOBODY
                    && (!self.parameters.timed || acquires(instruction))
                {
                    self.waiting |= 1 << slot;
                    self.ready &= !(1 << slot);
                }
                Effect::Memory
            }
            Step::Done(effect) => {
                if self.warps[usize::from(slot)].convergence.active() == 0 {
                    self.ready &= !(1 << slot);
                }
                effect
            }
            Step::Ended => {
                self.lanes_ended(slot, now, outbox);
                Effect::Flowed
            }
            Step::Special => self.special(slot, pc, now, outbox),
            Step::OrderFirst { boundary } => self.order_first(slot, boundary),
            Step::Wrong(problem) => self.failed(slot, problem, now),
        };
        (effect, pseudo)
    }

    /// Meets others, fences, asks the system.
    fn special(&mut self, slot: u8, pc: u32, now: Now, outbox: &mut Outbox<'_, Message>) -> Effect {
        let block = self.warps[usize::from(slot)].block;
        let context = self.contexts[usize::from(block)]
            .clone()
            .expect("a ready warp has a launch");
        let instruction = &context.launch.module.code[pc as usize];
        let went = match &instruction.operation {
            Operation::Barrier(barrier) => {
                if let Issue::Timing(timing) = &mut self.issue {
                    self.barrier_release = timing.arrive(now.cycle, &self.parameters);
                }
                self.arrive(slot, &context, instruction, *barrier, now)
            }
            Operation::Fence(fence) => {
                self.fence_instruction(slot, *fence, now);
                Ok(())
            }
            Operation::System(call) => {
                self.system_call(slot, &context, instruction, call, now, outbox)
            }
            _ => Ok(()),
        };
        if let Err(problem) = went {
            return self.failed(slot, problem, now);
        }
        self.refresh(slot, now.cycle);
        Effect::Met
    }

    fn failed(&mut self, slot: u8, problem: Problem, now: Now) -> Effect {
        self.fail(slot, problem, now);
        Effect::Failed
    }

    /// Lanes of a warp have ended: barriers wait for fewer, and the block may be over.
    fn lanes_ended(&mut self, slot: u8, now: Now, outbox: &mut Outbox<'_, Message>) {
        let warp = &self.warps[usize::from(slot)];
        let (block_slot, member) = (warp.block, warp.identity.warp_in_block);
        let live = warp.convergence.live();
        if warp.convergence.active() == 0 {
            self.ready &= !(1 << slot);
        }
        let block = self.blocks[usize::from(block_slot)]
            .as_mut()
            .expect("a ready warp has a block");
        if live == 0 {
            block.live &= !(1 << member);
        }
        if block.barriers.iter().any(Barrier::is_used) {
            for barrier in &mut block.barriers {
                barrier.ended(member as usize, live);
            }
            let context = self.contexts[usize::from(block_slot)]
                .clone()
                .expect("a ready warp has a launch");
            for number in 0..BARRIERS {
                self.complete_barrier(block_slot, number, &context, now);
            }
        }
        if live == 0 {
            if self.warps[usize::from(slot)].pending == 0 {
                self.leave(slot);
            }
            self.try_end_block(block_slot);
            self.check_fences(now, outbox);
        }
    }

    /// A warp waits until strong accesses under way are answered, then executes again.
    fn order_first(&mut self, slot: u8, boundary: bool) -> Effect {
        if self.fence(
            Waiter::Warp {
                slot,
                release: true,
            },
            boundary,
            0,
        ) {
            self.held |= 1 << slot;
            self.ready &= !(1 << slot);
        } else {
            self.warps[usize::from(slot)].released = true;
        }
        Effect::Again
    }

    fn fence_instruction(&mut self, slot: u8, fence: FenceOperation, now: Now) {
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
        let stored = self.blocks[block].as_ref().map_or(0, |block| block.stored);
        let near = self.parameters.fence_gpu;
        let until = match fence.scope {
            _ if !self.parameters.timed => 0,
            Scope::System => {
                let beyond = self.parameters.fence_system.saturating_sub(near);
                stored.max(now.cycle + near) + beyond
            }
            _ => stored.max(now.cycle) + near,
        };
        if fence.scope > Scope::Block && self.fence(waiter, fence.sequential, until) {
            self.held |= 1 << slot;
        }
    }

    fn arrive(
        &mut self,
        slot: u8,
        context: &LaunchContext,
        instruction: &Instruction,
        barrier: BlockBarrier,
        now: Now,
    ) -> Result<(), Problem> {
        let warp = &mut self.warps[usize::from(slot)];
        let pc = warp.convergence.pc();
        let lanes = warp.lanes(context, instruction);
        let (execute, active) = (lanes.execute, lanes.active);
        if execute == 0 {
            warp.convergence.advance();
            return Ok(());
        }
        let first = execute.trailing_zeros() as usize;
        let number = lanes.raw(instruction.sources[0].operand, 0).0[first] as usize;
        let expected = match instruction.sources[1].operand {
            Operand::None => None,
            operand => Some(lanes.raw(operand, 0).0[first]),
        };
        let holds = lanes.predicate(instruction.predicates[0]);
        if number >= BARRIERS {
            let kind = FaultKind::Unsupported(format!("barrier {number}; a block has 16"));
            return Err(Problem { lane: first, kind });
        }
        if execute != active {
            // Lanes that do not take part go their own way.
            warp.convergence.branch(execute, pc);
            if warp.convergence.active() != execute {
                return Ok(());
            }
        }
        if barrier.mode == BlockBarrierMode::Arrive {
            warp.convergence.advance();
        } else {
            warp.convergence.suspend(number as u32);
        }
        let (member, live) = (warp.identity.warp_in_block, warp.convergence.live());
        let block_slot = warp.block;
        let block = self.blocks[usize::from(block_slot)]
            .as_mut()
            .expect("a ready warp has a block");
        block.barriers[number].arrive(member as usize, execute, live, expected, holds);
        self.complete_barrier(block_slot, number, context, now);
        Ok(())
    }

    /// If all have come, lets those go who wait.
    fn complete_barrier(
        &mut self,
        block_slot: u8,
        number: usize,
        context: &LaunchContext,
        now: Now,
    ) {
        let Some(block) = self.blocks[usize::from(block_slot)].as_mut() else {
            return;
        };
        let Some(reduced) = block.barriers[number].complete(block.live) else {
            return;
        };
        let members = std::mem::take(&mut block.warps);
        let release = if self.parameters.timed {
            self.barrier_release.max(now.cycle + 1)
        } else {
            now.cycle
        };
        for slot in members.iter().filter(|slot| **slot != GONE) {
            let warp = &mut self.warps[usize::from(*slot)];
            if warp.convergence.suspended(number as u32) == 0 {
                continue;
            }
            for index in 0..warp.convergence.waiting_paths().len() {
                let split = warp.convergence.waiting_paths()[index];
                if split.state == PathState::External(number as u32) {
                    let instruction = &context.launch.module.code[split.pc as usize];
                    give_reduction(warp, instruction, split.lanes, reduced);
                }
            }
            warp.convergence.resume(number as u32);
            self.refresh(*slot, release);
        }
        if let Some(block) = self.blocks[usize::from(block_slot)].as_mut() {
            block.warps = members;
        }
    }
}

/// What the warp can do by itself, with its block and the memory side of the SM.
#[inline(always)]
fn step(site: &mut Site<'_, '_>, instruction: &Instruction, execute: Mask) -> Step {
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
                Ok(()) => {
                    site.warp.released = false;
                    site.warp.convergence.advance();
                    Step::Done(Effect::Memory)
                }
                Err(problem) => Step::Wrong(problem),
            }
        }
        Operation::Barrier(_) | Operation::Fence(_) | Operation::System(_) => Step::Special,
        Operation::Unsupported(sentence) => Step::Wrong(Problem {
            lane: site.warp.convergence.active().trailing_zeros() as usize,
            kind: FaultKind::Unsupported(sentence.to_string()),
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

/// Writes what a reducing barrier found for the lanes that waited at it.
fn give_reduction(warp: &mut Warp, instruction: &Instruction, lanes: Mask, reduced: Reduced) {
    let Operation::Barrier(barrier) = &instruction.operation else {
        return;
    };
    let holds = match barrier.mode {
        BlockBarrierMode::ReducePopulation => {
            if let Some(row) = instruction.destination {
                warp.registers[usize::from(row)]
                    .blend(&WarpRegister::splat(reduced.population), lanes);
            }
            return;
        }
        BlockBarrierMode::ReduceAnd => reduced.all,
        BlockBarrierMode::ReduceOr => reduced.any,
        BlockBarrierMode::Sync | BlockBarrierMode::Arrive => return,
    };
    let value = if holds { Mask::MAX } else { 0 };
    if let PredicateRegister::Lanes(index) = instruction.predicate_destinations[0] {
        let old = &mut warp.predicates[usize::from(index)];
        *old = (value & lanes) | (*old & !lanes);
    }
    if let Some(row) = instruction.destination {
        warp.registers[usize::from(row)].blend(&WarpRegister::splat(u32::from(holds)), lanes);
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
