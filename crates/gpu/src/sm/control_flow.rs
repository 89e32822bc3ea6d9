//! Branches, calls, exits and meetings of lanes.

use lockstep_isa::instruction::{CodeAddress, Flow};
use lockstep_isa::lanes::Lanes;
use lockstep_isa::module::CODE_BASE;
use lockstep_isa::warp_register::{FULL, LANES, lanes_of};
use lockstep_isa::{Instruction, Mask, Operand, WarpRegister};

use super::cta::Block;
use super::problem::Problem;
use super::site::Site;
use super::warp::Warp;
use crate::check::barriers;
use crate::fault::FaultKind;
use crate::launch::LaunchContext;

/// Moves the lanes of a warp to where they go next.
///
/// # Errors
/// If a lane jumps to where no code of the kernel is.
pub fn flow(site: &mut Site<'_, '_>, instruction: &Instruction, flow: Flow) -> Result<(), Problem> {
    let lanes = site.warp.lanes(site.context, instruction);
    let execute = lanes.execute & lanes.predicate(instruction.predicates[0]);
    let context = site.context;
    let native = site.context.launch.module.native;
    match flow {
        Flow::Branch { target } => {
            lanes.convergence.branch(execute, target);
        }
        Flow::BranchOnDivergence {
            target,
            if_converged,
        } => {
            let first = execute.trailing_zeros() as usize;
            let mask = lanes.integer(instruction.sources[0]).0[first % LANES];
            let apart = mask & lanes.convergence.live() & !execute != 0;
            // Lanes that the guard leaves out are apart from the others, and all go where those go.
            let taken = match (apart, if_converged) {
                (true, false) => lanes.active,
                (false, true) => execute,
                _ => 0,
            };
            lanes.convergence.branch(taken, target);
        }
        Flow::Call { target } => {
            link(site, instruction, execute);
            site.warp.convergence.branch(execute, target);
        }
        Flow::BranchIndirect { address } | Flow::Return { address } => {
            let values = code_values(&lanes, instruction, address);
            let targets = targets(&values, address, execute, lanes.convergence.pc(), context)?;
            site.warp.convergence.branch_indirect(&targets);
        }
        Flow::CallIndirect { address } => {
            let values = code_values(&lanes, instruction, address);
            let targets = targets(&values, address, execute, lanes.convergence.pc(), context)?;
            link(site, instruction, execute);
            site.warp.convergence.branch_indirect(&targets);
        }
        Flow::Exit => site.warp.convergence.exit(execute),
        Flow::ConvergeSet { barrier } => site.warp.convergence.converge_set(barrier),
        Flow::ConvergeWait { barrier } => {
            let waited = site.warp.convergence.converge_wait(barrier);
            site.block.counters.thread_inst_executed += u64::from(waited.count_ones());
        }
        Flow::ConvergeBreak { barrier } => {
            site.warp.convergence.converge_break(barrier, execute);
        }
        Flow::WarpSync | Flow::Collective { .. } | Flow::WarpSyncExclusive if execute == 0 => {
            site.warp.convergence.advance();
        }
        Flow::WarpSync if instruction.sources[0].operand == Operand::None => {
            site.warp.convergence.warp_sync(FULL);
        }
        Flow::WarpSync => {
            let (agree, mask) = lanes_that_agree(&lanes, instruction, execute);
            let masks = (agree != execute).then(|| lanes.raw(instruction.sources[0].operand, 0).0);
            if native && (masks.is_some() || execute & !mask != 0) {
                refuse_callers(site, instruction, execute)?;
            }
            let together = instruction.sources[1].operand != Operand::None;
            if together && site.warp.convergence.others_wait_elsewhere(mask) {
                return Err(Problem {
                    lane: execute.trailing_zeros() as usize,
                    kind: FaultKind::Unsupported(TWO_PLACES.into()),
                });
            }
            match masks {
                Some(masks) => site.warp.convergence.warp_sync_each(execute, &masks),
                None => site.warp.convergence.warp_sync(mask),
            }
        }
        Flow::Collective { target } => {
            let (agree, mask) = lanes_that_agree(&lanes, instruction, execute);
            site.warp.convergence.collective(agree, mask, target);
        }
        Flow::WarpSyncExclusive => {
            let (agree, mask) = lanes_that_agree(&lanes, instruction, execute);
            refuse_strangers(site, agree & !mask)?;
            site.warp.convergence.warp_sync_exclusive(agree, mask);
        }
        Flow::EndCollective => site.warp.convergence.end_collective(),
        Flow::Yield => site.warp.convergence.yield_to_others(false),
    }
    if native {
        count_again(site.warp, site.block);
    }
    Ok(())
}

/// Machine code has `WARPSYNC.COLLECTIVE` for it. Each part alone would see nothing of the other's lanes.
const TWO_PLACES: &str = "a shuffle, vote or matrix product whose lanes come to it at two places of PTX code; \
                          as machine code it runs: let ptxas assemble it (--frontend sass)";

/// The mask that the lowest lane names, behind the lanes that name the same one.
fn lanes_that_agree(lanes: &Lanes<'_>, instruction: &Instruction, execute: Mask) -> (Mask, Mask) {
    let masks = lanes.raw(instruction.sources[0].operand, 0).0;
    let mask = masks[execute.trailing_zeros() as usize % LANES];
    let agree = lanes_of(execute).filter(|lane| masks[*lane] == mask);
    (agree.fold(0, |agree, lane| agree | 1 << lane), mask)
}

/// Refuses lanes that name a mask without themselves.
#[cold]
fn refuse_callers(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    execute: Mask,
) -> Result<(), Problem> {
    let lanes = site.warp.lanes(site.context, instruction);
    let masks = lanes.raw(instruction.sources[0].operand, 0).0;
    let without = lanes_of(execute).filter(|lane| masks[*lane] >> lane & 1 == 0);
    refuse_strangers(site, without.fold(0, |without, lane| without | 1 << lane))
}

/// A lane that waits for others must be one of them: an H200 stops with an illegal instruction.
fn refuse_strangers(site: &Site<'_, '_>, strangers: Mask) -> Result<(), Problem> {
    if strangers == 0 {
        return Ok(());
    }
    if site.port.checks.barriers {
        barriers::note_strangers(site, strangers);
    }
    let what = "a synchronisation of lanes by a thread that is not one of them";
    Err(Problem {
        lane: strangers.trailing_zeros() as usize,
        kind: FaultKind::IllegalInstruction(what.into()),
    })
}

/// Counts what lanes executed again in vain.
pub fn count_again(warp: &mut Warp, block: &mut Block) {
    let again = warp.convergence.take_reissued();
    let counters = &mut block.counters;
    counters.inst_executed += u64::from(again.instructions);
    counters.inst_issued += u64::from(again.instructions);
    counters.thread_inst_executed += u64::from(again.lanes);
    if let Some(trace) = &mut block.trace {
        trace.issued_again(warp.identity.warp_in_block, again.instructions);
    }
}

/// Puts the address of the next instruction where the call wants it.
fn link(site: &mut Site<'_, '_>, instruction: &Instruction, execute: Mask) {
    let Some(first) = instruction.destination else {
        return;
    };
    let back = CODE_BASE + 16 * u64::from(site.warp.convergence.pc() + 1);
    let registers = &mut site.warp.registers;
    registers[usize::from(first)].blend(&WarpRegister::splat(back as u32), execute);
    registers[usize::from(first) + 1].blend(&WarpRegister::splat((back >> 32) as u32), execute);
}

/// The register that names code: two words only if it is a whole address.
fn code_values(lanes: &Lanes<'_>, instruction: &Instruction, address: CodeAddress) -> [u64; LANES] {
    let operand = instruction.sources[0].operand;
    match address {
        CodeAddress::Absolute => lanes.pair(operand),
        _ => lanes.raw(operand, 0).0.map(u64::from),
    }
}

/// Where each active lane goes; those that do not execute go to the next instruction.
fn targets(
    values: &[u64; LANES],
    address: CodeAddress,
    execute: Mask,
    pc: u32,
    context: &LaunchContext,
) -> Result<[u32; LANES], Problem> {
    let mut targets = [pc + 1; LANES];
    for lane in lanes_of(execute) {
        let value = values[lane];
        let index = match address {
            CodeAddress::Absolute => value
                .checked_sub(CODE_BASE)
                .filter(|offset| offset % 16 == 0)
                .map(|offset| offset / 16),
            CodeAddress::Relative { base } => {
                let offset = i64::from(value as u32 as i32);
                u64::try_from(i64::from(base) + offset / 16)
                    .ok()
                    .filter(|_| offset % 16 == 0)
            }
            CodeAddress::Index => Some(u64::from(value as u32)),
        };
        match index {
            Some(index) if context.may_jump_to(index) => targets[lane] = index as u32,
            _ => {
                return Err(Problem {
                    lane,
                    kind: FaultKind::IllegalJump { target: value },
                });
            }
        }
    }
    Ok(targets)
}
