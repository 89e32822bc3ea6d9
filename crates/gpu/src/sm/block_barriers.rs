//! Warps at the barriers of their block (`BAR`): they arrive, wait and go on together.

use lockstep_isa::convergence::PathState;
use lockstep_isa::instruction::{BlockBarrier, BlockBarrierMode};
use lockstep_isa::operand::PredicateRegister;
use lockstep_isa::{Instruction, Mask, Operand, Operation, WarpRegister};

use super::barrier::{BARRIERS, Reduced};
use super::cta::GONE;
use super::issue_model::IssueModel;
use super::now::Now;
use super::problem::Problem;
use super::state::SmState;
use super::warp::Warp;
use crate::check::{Culprits, barriers};
use crate::fault::FaultKind;
use crate::launch::LaunchContext;

impl SmState {
    /// Lanes of a warp arrive at a barrier of their block.
    ///
    /// # Errors
    /// If the block has no such barrier.
    pub(super) fn arrive<M: IssueModel>(
        &mut self,
        model: &mut M,
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
        let [barrier_of, count_of] = [0, 1].map(|source| instruction.sources[source].operand);
        let value = lanes.raw(barrier_of, 0).0[first];
        let (number, expected) = match count_of {
            // One register has both: threads, or 0 for the block, above the number of the barrier.
            Operand::Register(_) if count_of == barrier_of => {
                let count = value >> 16 & 0xfff;
                ((value & 0xf) as usize, (count != 0).then_some(count))
            }
            Operand::None => (value as usize, None),
            operand => (value as usize, Some(lanes.raw(operand, 0).0[first])),
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
        if self.port.checks.barriers {
            let block = self.blocks.blocks[usize::from(warp.block)].as_deref();
            let culprits = Culprits {
                warp,
                context,
                time: now.time,
                pc,
                lanes: execute,
            };
            let findings = &self.port.findings;
            barriers::arrival(
                findings,
                &culprits,
                block,
                number,
                expected,
                barrier.aligned,
            );
        }
        if expected.is_some_and(|count| !count.is_multiple_of(32)) {
            let count = expected.unwrap_or(0);
            let what = format!("a barrier for {count} threads, which are no whole warps");
            let kind = FaultKind::IllegalInstruction(what);
            return Err(Problem { lane: first, kind });
        }
        if barrier.mode == BlockBarrierMode::Arrive {
            warp.convergence.advance();
        } else {
            warp.convergence.suspend(number as u32);
        }
        let member = warp.identity.warp_in_block;
        let goes_on = barrier.mode == BlockBarrierMode::Arrive;
        let awaited = match goes_on && warp.convergence.arrives_as_warp() {
            true => execute,
            false => warp.convergence.live(),
        };
        let block_slot = warp.block;
        let block = self.blocks.blocks[usize::from(block_slot)].as_mut();
        let block = block.expect("a ready warp has a block");
        block.barriers[number].arrive(member as usize, execute, awaited, expected, holds);
        if let Some(race) = &mut block.race {
            race.arrive_at_barrier(number, member as usize);
        }
        self.complete_barrier(model, block_slot, number, context, now);
        Ok(())
    }

    /// The warp has arrived at barriers of its block where only some of its lanes wait: the others cannot run.
    #[cold]
    pub(super) fn arrive_stuck<M: IssueModel>(&mut self, model: &mut M, slot: u8, now: Now) {
        let warp = &self.warps[usize::from(slot)];
        let (block_slot, member) = (warp.block, warp.identity.warp_in_block);
        let context = self.blocks.contexts[usize::from(block_slot)].clone();
        let context = context.expect("a ready warp has a launch");
        for number in 0..BARRIERS {
            let waiting = self.warps[usize::from(slot)]
                .convergence
                .suspended(number as u32);
            let block = self.blocks.blocks[usize::from(block_slot)].as_mut();
            if let Some(block) = block.filter(|_| waiting != 0) {
                block.barriers[number].ended(member as usize, waiting);
                self.complete_barrier(model, block_slot, number, &context, now);
            }
        }
    }

    /// If all have come, lets those go who wait.
    pub(super) fn complete_barrier<M: IssueModel>(
        &mut self,
        model: &mut M,
        block_slot: u8,
        number: usize,
        context: &LaunchContext,
        now: Now,
    ) {
        let Some(block) = self.blocks.blocks[usize::from(block_slot)].as_mut() else {
            return;
        };
        let Some(reduced) = block.barriers[number].complete(block.live) else {
            return;
        };
        let members = std::mem::take(&mut block.warps);
        let mut race = block.race.take();
        let release = model.barrier_release(now.cycle);
        for slot in members.iter().filter(|slot| **slot != GONE) {
            let warp = &mut self.warps[usize::from(*slot)];
            let waiting = warp.convergence.suspended(number as u32);
            if waiting == 0 {
                continue;
            }
            if let Some(race) = &mut race {
                let member = warp.identity.warp_in_block as usize;
                race.leave_barrier(number, member, waiting);
            }
            for index in 0..warp.convergence.waiting_paths().len() {
                let path = warp.convergence.waiting_paths()[index];
                if path.state == PathState::External(number as u32) {
                    let instruction = &context.launch.module.code[path.pc as usize];
                    give_reduction(warp, instruction, path.lanes, reduced);
                }
            }
            warp.convergence.resume(number as u32);
            if let Some(replay) = &warp.replay {
                replay.place(&mut warp.convergence);
            }
            self.refresh(model, *slot, release);
        }
        if let Some(block) = self.blocks.blocks[usize::from(block_slot)].as_mut() {
            block.warps = members;
            if let Some(race) = &mut race {
                race.end_barrier(number);
            }
            block.race = race;
        }
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
