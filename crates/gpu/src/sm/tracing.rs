//! What warps execute, for somebody who writes it down.
//!
//! An SM that is not traced has no [`TraceSink`] and looks at nothing but that. What a block has executed
//! is part of its state until it ends; then the sink has it. Blocks end in any order, so a sink goes by
//! their numbers.

use std::fmt;

use lockstep_isa::memory::{Action, MemoryOperation, Space};
use lockstep_isa::trace::WarpTrace;
use lockstep_isa::warp_register::LANES;
use lockstep_isa::{Instruction, Mask, Operation};
use serde::{Deserialize, Serialize};

use super::cta::Block;
use super::site::Site;
use super::state::SmState;
use crate::launch::LaunchId;

/// Takes what the warps of blocks executed.
pub trait TraceSink: fmt::Debug + Send + Sync {
    /// Whether blocks of a launch are wanted.
    fn wants(&self, launch: LaunchId) -> bool;

    /// A block of a launch that was wanted has ended.
    fn block(&self, launch: LaunchId, block: u64, warps: Vec<WarpTrace>);
}

/// What the warps of a block have executed so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockTrace {
    warps: Vec<WarpTrace>,
    /// The instruction that is about to be executed.
    at: u32,
    /// Where the instruction that is about to be executed accesses memory, by place and lane.
    places: Vec<Vec<u64>>,
}

impl BlockTrace {
    /// Notes that the instruction which is being executed was issued so often again without an effect: hardware counts
    /// that, so it is a line without lanes.
    pub(super) fn issued_again(&mut self, warp: u32, times: u32) {
        for _ in 0..times {
            self.warps[warp as usize].push(self.at, 0, 0);
        }
    }
}

impl SmState {
    /// Room for what a new block executes, if its launch is traced.
    pub(super) fn begin_trace(&self, launch: u32, warps: usize) -> Option<Box<BlockTrace>> {
        let tracer = self.port.tracer.as_ref()?;
        tracer.wants(LaunchId(launch)).then(|| {
            Box::new(BlockTrace {
                warps: vec![WarpTrace::default(); warps],
                at: 0,
                places: Vec::new(),
            })
        })
    }

    /// Hands over what a block executed that has ended.
    pub(super) fn end_trace(&self, block: &mut Block) {
        if let (Some(tracer), Some(trace)) = (&self.port.tracer, block.trace.take()) {
            tracer.block(LaunchId(block.launch), block.index, trace.warps);
        }
    }
}

/// Looks where an instruction is going to access memory: it may overwrite what its address is made of.
#[cold]
pub(super) fn prepare(site: &mut Site<'_, '_>, instruction: &Instruction, execute: Mask) {
    let Some(mut trace) = site.block.trace.take() else {
        return;
    };
    trace.places.clear();
    trace.at = site.warp.convergence.pc();
    if let Operation::Memory(operation) = &instruction.operation
        && !matches!(operation.space, Space::Constant { .. })
    {
        let lanes = site.warp.lanes_that(site.context, execute);
        if operation.action == Action::CopyToShared {
            trace.places.push(copy_target(&lanes, operation).to_vec());
        }
        let global = operation.address.evaluate(&lanes, 1).lanes;
        trace.places.push(global.to_vec());
    }
    site.block.trace = Some(trace);
}

/// Where a copy puts what it copies: an address in shared memory.
fn copy_target(lanes: &lockstep_isa::Lanes<'_>, operation: &MemoryOperation) -> [u64; LANES] {
    let parts = [0, 2, 3].map(|part| lanes.raw(operation.values[part], 0));
    std::array::from_fn(|lane| {
        let sum = parts
            .iter()
            .fold(0u32, |sum, part| sum.wrapping_add(part.0[lane]));
        u64::from(sum)
    })
}

/// Notes an instruction that was executed.
#[cold]
pub(super) fn commit(site: &mut Site<'_, '_>, pc: u32, active: Mask, execute: Mask) {
    let Some(trace) = &mut site.block.trace else {
        return;
    };
    let warp = &mut trace.warps[site.warp.identity.warp_in_block as usize];
    warp.push(pc, active, execute);
    for places in &trace.places {
        let places: Result<&[u64; LANES], _> = places.as_slice().try_into();
        warp.push_places(places.expect("an address for each lane"));
    }
}
