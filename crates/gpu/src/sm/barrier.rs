//! Barriers of a block.
//!
//! Lanes arrive one by one or together; a warp has arrived when all its lanes that have not
//! ended are there, and then counts as 32 threads, as the hardware counts. Without a number of
//! threads a barrier waits for every warp of the block that has not ended.

use lockstep_isa::convergence::PathState;
use lockstep_isa::instruction::{BlockBarrier, BlockBarrierMode};
use lockstep_isa::operand::PredicateRegister;
use lockstep_isa::{Instruction, Mask, Operand, Operation, WarpRegister};
use serde::{Deserialize, Serialize};

use super::cta::GONE;
use super::issue_model::IssueModel;
use super::now::Now;
use super::site::Problem;
use super::state::SmState;
use super::warp::Warp;
use crate::fault::FaultKind;
use crate::launch::LaunchContext;

/// Barriers that a block has.
pub const BARRIERS: usize = 16;

/// Warps that a block can have.
pub const BLOCK_WARPS: usize = 32;

/// One barrier in its current phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    /// Lanes of each warp that are here, as far as the warp is not counted yet.
    partial: Vec<Mask>,
    /// Warps that were counted, one bit each.
    counted: u32,
    /// Threads counted, 32 a warp.
    threads: u32,
    /// Threads to wait for; `None`: the whole block.
    expected: Option<u32>,
    /// Lanes whose predicate held.
    population: u32,
    /// Whether all predicates held so far.
    all: bool,
    /// Whether any predicate held so far.
    any: bool,
}

/// What a reduction over a barrier found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduced {
    /// Threads whose predicate held.
    pub population: u32,
    /// All did.
    pub all: bool,
    /// One did.
    pub any: bool,
}

impl Barrier {
    /// Whether anybody is here.
    #[must_use]
    pub fn is_used(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Threads counted so far and those waited for, for reports.
    #[must_use]
    pub fn progress(&self) -> (u32, Option<u32>) {
        (self.threads, self.expected)
    }

    /// Lanes of a warp arrive; `holds` are those whose predicate holds.
    pub fn arrive(
        &mut self,
        warp: usize,
        lanes: Mask,
        live: Mask,
        expected: Option<u32>,
        holds: Mask,
    ) {
        if self.partial.is_empty() {
            self.partial = vec![0; BLOCK_WARPS];
            self.all = true;
        }
        self.expected = expected;
        self.partial[warp] |= lanes;
        self.population += (holds & lanes).count_ones();
        self.all &= holds & lanes == lanes;
        self.any |= holds & lanes != 0;
        self.count(warp, live);
    }

    /// Lanes of a warp have ended: fewer are waited for.
    pub fn ended(&mut self, warp: usize, live: Mask) {
        if self.is_used() {
            self.count(warp, live);
        }
    }

    fn count(&mut self, warp: usize, live: Mask) {
        if self.partial[warp] != 0 && live & !self.partial[warp] == 0 {
            self.partial[warp] = 0;
            self.counted |= 1 << warp;
            self.threads += 32;
        }
    }

    /// If the phase is complete, ends it and gives its reduction. `live` has a bit for each warp
    /// of the block that has not ended.
    pub fn complete(&mut self, live: u32) -> Option<Reduced> {
        let complete = self.is_used()
            && match self.expected {
                Some(threads) => self.threads >= threads,
                None => live & !self.counted == 0 && self.counted != 0,
            };
        complete.then(|| {
            let reduced = Reduced {
                population: self.population,
                all: self.all,
                any: self.any,
            };
            *self = Self::default();
            reduced
        })
    }
}

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
        let block = self.blocks.blocks[usize::from(block_slot)].as_mut();
        let block = block.expect("a ready warp has a block");
        block.barriers[number].arrive(member as usize, execute, live, expected, holds);
        self.complete_barrier(model, block_slot, number, context, now);
        Ok(())
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
        let release = model.barrier_release(now.cycle);
        for slot in members.iter().filter(|slot| **slot != GONE) {
            let warp = &mut self.warps[usize::from(*slot)];
            if warp.convergence.suspended(number as u32) == 0 {
                continue;
            }
            for index in 0..warp.convergence.waiting_paths().len() {
                let path = warp.convergence.waiting_paths()[index];
                if path.state == PathState::External(number as u32) {
                    let instruction = &context.launch.module.code[path.pc as usize];
                    give_reduction(warp, instruction, path.lanes, reduced);
                }
            }
            warp.convergence.resume(number as u32);
            self.refresh(model, *slot, release);
        }
        if let Some(block) = self.blocks.blocks[usize::from(block_slot)].as_mut() {
            block.warps = members;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_block_is_waited_for() {
        let mut barrier = Barrier::default();
        barrier.arrive(0, !0, !0, None, 0b11);
        assert_eq!(barrier.complete(0b11), None);
        barrier.arrive(1, 0xf, 0xf, None, 0xf);
        let reduced = barrier.complete(0b11).unwrap();
        assert_eq!(
            (reduced.population, reduced.all, reduced.any),
            (6, false, true)
        );
        assert!(!barrier.is_used());
    }

    #[test]
    fn lanes_may_come_apart_and_ended_ones_are_not_waited_for() {
        let mut barrier = Barrier::default();
        barrier.arrive(0, 0xff, !0, None, 0);
        assert_eq!(barrier.complete(1), None);
        barrier.ended(0, 0xffff);
        assert_eq!(barrier.complete(1), None);
        barrier.ended(0, 0xff);
        assert!(barrier.complete(1).is_some());
    }

    #[test]
    fn an_ended_warp_is_not_waited_for() {
        let mut barrier = Barrier::default();
        barrier.arrive(0, !0, !0, None, 0);
        assert!(barrier.complete(0b11).is_none());
        assert!(barrier.complete(0b01).is_some());
    }

    #[test]
    fn a_count_may_be_reached_by_one_warp_twice() {
        let mut barrier = Barrier::default();
        barrier.arrive(0, !0, !0, Some(64), 0);
        assert!(barrier.complete(0b111).is_none());
        barrier.arrive(0, !0, !0, Some(64), 0);
        assert!(barrier.complete(0b111).is_some());
    }
}
