//! The TMA engine of one SM: boxes of tensors and runs of bytes between global and shared memory.
//!
//! Values move when a command is issued, as those of `cp.async` do: what a program may look at before it
//! has waited is undefined. Loads read contents and the SM's own log, stores go to that log, reductions leave
//! for their slices. In functional mode a command is complete at once. In timing mode [`engine`] sends the
//! requests for its lines past L1 one after the other; the mbarrier of a load counts its bytes when the last
//! of them has come.
//!
//! | file | what |
//! |---|---|
//! | `command.rs` | operands read, tensor maps found |
//! | `transfer.rs` | what commands do to memory |
//! | `receivers.rs` | thread blocks of the cluster that data go to |
//! | `footprint.rs` | sectors and lines that a command touches |
//! | `engine.rs` | when requests leave, and when commands are complete |
//! | `groups.rs` | groups of stores and reductions that warps wait for |
//!
//! Left out: translation of managed pages (a command on one takes the time of a resident page), the cache of
//! tensor maps (a map is read at issue, in no time), L2 promotion, hints to L2's eviction, and what one
//! warp's threads do apart: groups are those of the warp.
//!
//! Start reading at `execute`.

mod command;
pub mod engine;
mod footprint;
pub mod groups;
mod receivers;
mod transfer;

use lockstep_isa::bulk::{BulkAction, BulkOperation};
use lockstep_isa::warp_register::lanes_of;
use lockstep_isa::{Instruction, Mask};

use super::problem::Problem;
use super::site::Site;
use crate::sm::lsu::outcome::Done;
use command::Command;

/// Bytes that have come for an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Arrival {
    /// Slot of the block.
    pub block: u8,
    /// Where the barrier lies in its shared memory.
    pub barrier: u32,
    /// Bytes.
    pub bytes: u32,
}

/// Gives the engine the commands of an instruction: one for the warp, or one for each lane.
///
/// # Errors
/// What is wrong with the command of which lane.
#[inline(never)]
pub(super) fn execute(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    operation: &BulkOperation,
) -> Result<(), Problem> {
    site.port.done = Done::NOTHING;
    let execute = site.warp.lanes(site.context, instruction).execute;
    if execute == 0
        || matches!(
            operation.action,
            BulkAction::Commit | BulkAction::Wait { .. }
        )
    {
        return Ok(());
    }
    let mut lanes: Mask = execute;
    if operation.uniform {
        lanes = 1 << execute.trailing_zeros();
    }
    let mut commands = Vec::new();
    for lane in lanes_of(lanes) {
        let problem = |kind| Problem { lane, kind };
        let address = command::map_address(site, instruction, operation, lane);
        if is_overtaking(site, command::map_sectors(address)) {
            site.port.done.order_first = true;
            return Ok(());
        }
        let command = Command::read(site, instruction, operation, lane).map_err(problem)?;
        let prepared = transfer::prepare(site, command).map_err(problem)?;
        if is_overtaking(site, prepared.sectors()) {
            site.port.done.order_first = true;
            return Ok(());
        }
        commands.push((lane, prepared));
    }
    for (lane, prepared) in commands {
        let problem = |kind| Problem { lane, kind };
        transfer::perform(site, prepared).map_err(problem)?;
    }
    Ok(())
}

/// Whether a strong access to one of the sectors is under way that must come first.
fn is_overtaking(site: &Site<'_, '_>, mut sectors: impl Iterator<Item = u64>) -> bool {
    let in_flight = &site.port.in_flight;
    !site.warp.released && !in_flight.is_empty() && sectors.any(|sector| in_flight.holds(sector))
}
