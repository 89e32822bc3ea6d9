//! Warp groups of a block: matrix products under way, and the pool of registers.
//!
//! Values of a product move at issue, warp by warp, as all values do. It has ended when it has issued
//! in all four warps of the group and its time is over; only then does a wait for it end, in each of
//! them. So nobody who waited can change shared memory under a warp that is late.
//!
//! A warp that gives registers up leaves them to its block, and one that wants more waits until the
//! block has them.
//!
//! Start reading at [`SmState::warpgroup`].

use std::collections::VecDeque;

use lockstep_isa::operand::PredicateRegister;
use lockstep_isa::semantics::matrix::Multiply;
use lockstep_isa::warp_register::FULL;
use lockstep_isa::warpgroup::{GROUP_WARPS, GroupMultiply, Warpgroup, multiply_rows};
use lockstep_isa::{Instruction, Mask};
use serde::{Deserialize, Serialize};

use super::cta::GONE;
use super::issue_model::IssueModel;
use super::now::Now;
use super::problem::Problem;
use super::state::SmState;
use crate::fault::FaultKind;
use crate::launch::LaunchContext;

/// Under what a warp waits for products. Barriers have the numbers below 16.
const PRODUCTS: u32 = 0x1000;
/// Under what a warp waits for registers.
const REGISTERS: u32 = 0x1001;

/// Products of a warp group that were committed together.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct ProductGroup {
    /// Warps that have committed it.
    committed: u8,
    /// When its last product ends, as far as they have issued.
    ends: u64,
}

/// One warp group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Group {
    /// Groups of products that not all warps have committed, or that some may still wait for.
    products: VecDeque<ProductGroup>,
    /// Number of the first of them.
    first: u64,
    /// Groups of products that each warp has committed.
    committed: [u64; GROUP_WARPS],
    /// When the last product of each warp ends.
    ends: [u64; GROUP_WARPS],
    /// For how many groups of products each warp waits, if it does.
    waits: [Option<u64>; GROUP_WARPS],
}

/// What the warp groups of a block have under way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Warpgroups {
    groups: Vec<Group>,
    /// Registers a thread that each warp holds; empty before any gave some up or took some.
    held: Vec<u16>,
    /// Registers a thread that no warp holds, summed over warps.
    free: u32,
    /// What each warp waits to hold; 0 if it does not wait.
    wanted: Vec<u16>,
}

impl Group {
    /// A warp's products so far are a group.
    fn commit(&mut self, part: usize) {
        let number = self.committed[part];
        self.committed[part] += 1;
        let at = (number - self.first) as usize;
        if self.products.len() <= at {
            self.products.resize(at + 1, ProductGroup::default());
        }
        let product = &mut self.products[at];
        product.committed |= 1 << part;
        product.ends = product.ends.max(self.ends[part]);
    }

    /// When the groups before this number have ended, if all warps have committed them.
    fn ended(&self, number: u64, all: u8) -> Option<u64> {
        let count = number.saturating_sub(self.first) as usize;
        let mut ends = 0;
        for product in self.products.iter().take(count) {
            if product.committed & all != all {
                return None;
            }
            ends = ends.max(product.ends);
        }
        Some(ends)
    }

    /// Forgets what every warp has committed and nobody will wait for with an earlier time.
    fn forget(&mut self, all: u8) {
        while self.products.len() > KEPT && self.products[0].committed & all == all {
            self.products.pop_front();
            self.first += 1;
        }
    }
}

/// Groups of products that are remembered after they ended; a wait names at most seven.
const KEPT: usize = 16;

impl Warpgroups {
    fn group(&mut self, warp: usize) -> &mut Group {
        let number = warp / GROUP_WARPS;
        if self.groups.len() <= number {
            self.groups.resize_with(number + 1, Group::default);
        }
        &mut self.groups[number]
    }
}

impl SmState {
    /// An instruction of a warp group, for one of its warps.
    ///
    /// # Errors
    /// If lanes are missing, or a matrix lies outside shared memory.
    #[inline(never)]
    pub(super) fn warpgroup<M: IssueModel>(
        &mut self,
        model: &mut M,
        slot: u8,
        context: &LaunchContext,
        instruction: &Instruction,
        operation: Warpgroup,
        now: Now,
    ) -> Result<(), Problem> {
        let warp = &mut self.warps[usize::from(slot)];
        let lanes = warp.lanes(context, instruction);
        let (execute, live) = (lanes.execute, warp.convergence.live());
        if execute == 0 {
            warp.convergence.advance();
            return Ok(());
        }
        if execute != live {
            return Err(Problem {
                lane: execute.trailing_zeros() as usize,
                kind: FaultKind::IllegalInstruction(format!(
                    "an instruction of a warp group needs all lanes of its warp; {execute:08x} are here, {live:08x} have not ended"
                )),
            });
        }
        match operation {
            Warpgroup::Arrive => warp.convergence.advance(),
            Warpgroup::Commit => {
                warp.convergence.advance();
                self.commit_products(model, slot, now);
            }
            Warpgroup::Wait { at_most } => self.wait_for_products(model, slot, at_most, now),
            Warpgroup::Multiply(multiply) => {
                self.multiply(slot, context, instruction, multiply)?;
                let ends = if M::TIMED {
                    now.cycle
                        + self.product_cycles(Multiply::decode(instruction.modifiers), multiply)
                } else {
                    0
                };
                let (groups, part) = self.groups_of(slot);
                let last = &mut groups.group(part).ends[part % GROUP_WARPS];
                *last = ends.max(*last);
                if multiply.commits {
                    self.commit_products(model, slot, now);
                }
            }
            Warpgroup::ReleaseRegisters { keep } => self.release_registers(model, slot, keep, now),
            Warpgroup::TakeRegisters { wanted } => {
                self.take_registers(model, slot, instruction, execute, wanted, now);
            }
        }
        Ok(())
    }

    /// From issue to the end of a product.
    fn product_cycles(&self, shape: Multiply, multiply: GroupMultiply) -> u64 {
        // An H200 ends ten cycles later if A comes from shared memory, and two if it is sparse.
        let reads = if multiply.a_in_registers { 0 } else { 10 };
        let sparse = if shape.sparse { 2 } else { 0 };
        self.parameters.sub_core.group_latency + reads + sparse + column_cycles(shape)
    }

    /// The warp groups of a warp's block, and the warp's number in it.
    fn groups_of(&mut self, slot: u8) -> (&mut Warpgroups, usize) {
        let warp = &self.warps[usize::from(slot)];
        let block = self.blocks.blocks[usize::from(warp.block)].as_mut();
        let block = block.expect("a ready warp has a block");
        let groups = block.warpgroups.get_or_insert_with(Box::default);
        (groups, warp.identity.warp_in_block as usize)
    }

    /// Warps of the group of a warp that the block has, a bit each.
    fn members(&self, slot: u8) -> u8 {
        let warp = &self.warps[usize::from(slot)];
        let block = self.blocks.blocks[usize::from(warp.block)].as_ref();
        let warps = block.map_or(0, |block| block.warps.len());
        let first = warp.identity.warp_in_block as usize / GROUP_WARPS * GROUP_WARPS;
        (1u8 << (warps - first).min(GROUP_WARPS)) - 1
    }

    fn commit_products<M: IssueModel>(&mut self, model: &mut M, slot: u8, now: Now) {
        let all = self.members(slot);
        let (groups, number) = self.groups_of(slot);
        let group = groups.group(number);
        group.commit(number % GROUP_WARPS);
        // Others may wait for this warp alone.
        let mut woken = [None; GROUP_WARPS];
        for (part, wake) in woken.iter_mut().enumerate() {
            if let Some(wanted) = group.waits[part]
                && let Some(ends) = group.ended(wanted, all)
            {
                group.waits[part] = None;
                *wake = Some(ends);
            }
        }
        group.forget(all);
        let first = number / GROUP_WARPS * GROUP_WARPS;
        for (part, ends) in woken.into_iter().enumerate() {
            if let Some(ends) = ends {
                let other = self.member_slot(slot, first + part);
                self.warps[usize::from(other)].convergence.resume(PRODUCTS);
                self.refresh(model, other, ends.max(now.cycle + 1));
            }
        }
    }

    /// Slot of another warp of the block.
    fn member_slot(&self, slot: u8, member: usize) -> u8 {
        let block = usize::from(self.warps[usize::from(slot)].block);
        let block = self.blocks.blocks[block].as_ref();
        block.map_or(GONE, |block| block.warps[member])
    }

    fn wait_for_products<M: IssueModel>(&mut self, model: &mut M, slot: u8, at_most: u8, now: Now) {
        let all = self.members(slot);
        let (groups, number) = self.groups_of(slot);
        let group = groups.group(number);
        let part = number % GROUP_WARPS;
        let wanted = group.committed[part].saturating_sub(u64::from(at_most));
        match group.ended(wanted, all) {
            Some(ends) => {
                self.warps[usize::from(slot)].convergence.advance();
                self.refresh(model, slot, ends.max(now.cycle));
            }
            None => {
                group.waits[part] = Some(wanted);
                self.warps[usize::from(slot)].convergence.suspend(PRODUCTS);
            }
        }
    }

    /// Computes the rows of one warp.
    fn multiply(
        &mut self,
        slot: u8,
        context: &LaunchContext,
        instruction: &Instruction,
        multiply: GroupMultiply,
    ) -> Result<(), Problem> {
        let warp = &mut self.warps[usize::from(slot)];
        let block = self.blocks.blocks[usize::from(warp.block)].as_ref();
        let shared = block.map_or(&[][..], |block| &block.shared);
        let part = warp.identity.warp_in_block as usize % GROUP_WARPS;
        let mut lanes = warp.lanes(context, instruction);
        // A group that is committed without a product is one without a result.
        if instruction.destination.is_some() {
            let outcome = multiply_rows(&mut lanes, instruction, multiply, part, shared);
            if let Err(address) = outcome {
                let kind = FaultKind::IllegalAddress {
                    what: "shared load by a matrix descriptor".into(),
                    address: address.into(),
                    bytes: 16,
                    nearest: Some(0..shared.len() as u64),
                };
                return Err(Problem { lane: 0, kind });
            }
        }
        warp.convergence.advance();
        Ok(())
    }

    /// Makes the block's account of registers, if it has none.
    fn register_pool(&mut self, slot: u8) -> (&mut Warpgroups, usize) {
        let warp = &self.warps[usize::from(slot)];
        let block = usize::from(warp.block);
        let each = self.blocks.launch_of(warp.block).map_or(0, |launch| {
            launch.launch.kernel().registers.next_multiple_of(8) as u16
        });
        let warps = self.blocks.blocks[block]
            .as_ref()
            .map_or(0, |block| block.warps.len());
        let (groups, number) = self.groups_of(slot);
        if groups.held.is_empty() {
            groups.held = vec![each; warps];
            groups.wanted = vec![0; warps];
        }
        (groups, number)
    }

    fn release_registers<M: IssueModel>(&mut self, model: &mut M, slot: u8, keep: u16, now: Now) {
        self.warps[usize::from(slot)].convergence.advance();
        let (pool, number) = self.register_pool(slot);
        let held = &mut pool.held[number];
        let given = held.saturating_sub(keep);
        *held -= given;
        pool.free += u32::from(given);
        self.give_registers(model, slot, now);
    }

    fn take_registers<M: IssueModel>(
        &mut self,
        model: &mut M,
        slot: u8,
        instruction: &Instruction,
        execute: Mask,
        wanted: u16,
        now: Now,
    ) {
        let (pool, number) = self.register_pool(slot);
        let more = u32::from(wanted.saturating_sub(pool.held[number]));
        let granted = more <= pool.free;
        if granted {
            pool.free -= more;
            pool.held[number] = pool.held[number].max(wanted);
        }
        let says = instruction.predicate_destinations[0];
        if !granted && says == PredicateRegister::True {
            pool.wanted[number] = wanted;
            self.warps[usize::from(slot)].convergence.suspend(REGISTERS);
            return;
        }
        let warp = &mut self.warps[usize::from(slot)];
        if let PredicateRegister::Lanes(index) = says {
            // Of the uniform datapath: one value for the warp.
            let all = if execute == 0 { 0 } else { FULL };
            warp.predicates[usize::from(index)] = if granted { all } else { 0 };
        }
        warp.convergence.advance();
        self.refresh(model, slot, now.cycle + 1);
    }

    /// Registers were given up: those who wait get them, the first warp first.
    fn give_registers<M: IssueModel>(&mut self, model: &mut M, slot: u8, now: Now) {
        let (pool, _) = self.register_pool(slot);
        let mut served = Vec::new();
        for member in 0..pool.wanted.len() {
            let wanted = pool.wanted[member];
            let more = u32::from(wanted.saturating_sub(pool.held[member]));
            if wanted == 0 || more > pool.free {
                continue;
            }
            pool.free -= more;
            pool.held[member] = wanted;
            pool.wanted[member] = 0;
            served.push(member);
        }
        for member in served {
            let other = self.member_slot(slot, member);
            self.warps[usize::from(other)].convergence.resume(REGISTERS);
            self.refresh(model, other, now.cycle + 1);
        }
    }
}

/// Cycles that the columns of a product take: a sub-core has two of 16 rows a cycle, for all types.
const fn column_cycles(shape: Multiply) -> u64 {
    shape.n as u64 / 2
}

/// Bytes that shared memory gives to the tensor cores in a cycle.
const SHARED_BYTES: u64 = 128;

/// The least for which a product keeps its unit.
const LEAST: u64 = 13;

/// Cycles for which a product keeps the tensor core of each sub-core: as long as its columns take, or
/// as shared memory takes to give A of the whole group and B. Measured on an H200 for one and two warp
/// groups: 128 for 256 columns, 18 for eight with A in shared memory, 13 with A in registers.
#[must_use]
pub fn group_interval(shape: Multiply, multiply: GroupMultiply) -> u64 {
    let bytes = |elements: usize, bits: usize| (elements * bits / 8) as u64;
    let a = if multiply.a_in_registers {
        0
    } else {
        bytes(GROUP_WARPS * shape.m * shape.stored_k(), shape.a.bits())
    };
    let b = bytes(shape.n * shape.k, shape.b.bits());
    column_cycles(shape)
        .max((a + b).div_ceil(SHARED_BYTES))
        .max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_isa::semantics::matrix::{Accumulator, Input};

    const ALL: u8 = 0b1111;

    #[test]
    fn a_group_of_products_ends_when_the_last_warp_has_committed_it() {
        let mut group = Group::default();
        for part in 0..3 {
            group.ends[part] = 100 + part as u64;
            group.commit(part);
        }
        assert_eq!(group.ended(1, ALL), None);
        assert_eq!(group.ended(0, ALL), Some(0), "nothing is waited for");
        group.ends[3] = 90;
        group.commit(3);
        assert_eq!(group.ended(1, ALL), Some(102));
        // A block of fewer warps than a group has no others to wait for.
        assert_eq!(group.ended(1, 0b0001), Some(102));
    }

    #[test]
    fn old_groups_are_forgotten_and_counted() {
        let mut group = Group::default();
        for round in 0..40 {
            for part in 0..GROUP_WARPS {
                group.ends[part] = round;
                group.commit(part);
                group.forget(ALL);
            }
        }
        assert_eq!(group.products.len(), KEPT);
        assert_eq!(group.ended(40, ALL), Some(39));
        assert_eq!(group.ended(33, ALL), Some(32));
    }

    /// From `validation`'s H200: clocks of sixteen products in a row.
    #[test]
    fn intervals_are_those_of_an_h200() {
        let half = |n, sparse: bool| Multiply {
            sparse,
            ..Multiply::dense(
                [16, n, if sparse { 32 } else { 16 }],
                [Input::F16; 2],
                Accumulator::F32,
                Accumulator::F32,
            )
        };
        let operands = |a_in_registers| GroupMultiply {
            a_in_registers,
            negate: [false; 2],
            transpose: [false; 2],
            commits: true,
        };
        let interval = |n, sparse, registers| group_interval(half(n, sparse), operands(registers));
        let shared: Vec<u64> = [8, 32, 64, 128, 256]
            .map(|n| interval(n, false, false))
            .into();
        assert_eq!(shared, [18, 24, 32, 64, 128]);
        let registers: Vec<u64> = [8, 32, 64, 256].map(|n| interval(n, false, true)).into();
        assert_eq!(registers, [13, 16, 32, 128]);
        assert_eq!(interval(64, true, false), 48);
        assert_eq!(interval(256, true, false), 144);
    }
}
