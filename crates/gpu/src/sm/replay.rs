//! Warps that are replayed from a trace: it says which instruction comes next, with which lanes, and where
//! they access memory.
//!
//! Everything else is as for warps that execute: instructions are issued, accesses go through the same
//! load/store unit and memory, barriers wait for the block. Registers hold no values of the program; the
//! two at the end of a warp's registers, and one before, take addresses from the trace.
//!
//! Left out: what only values could tell. Lanes end with the last instruction of their warp; textures,
//! bulk copies, warp groups and barriers in shared memory cost their issue alone.
//!
//! Start reading at [`step`].

use lockstep_engine::Outbox;
use lockstep_isa::memory::{Action, MemoryOperation};
use lockstep_isa::trace::{ADDRESS_REGISTERS, TraceCursor, TraceSource, WarpTrace};
use lockstep_isa::{Convergence, Instruction, Mask, Operation};
use serde::{Deserialize, Serialize};

use super::execute::{self, Effect, Step};
use super::issue_model::IssueModel;
use super::lsu::outcome::Done;
use super::now::Now;
use super::site::Site;
use super::state::SmState;
use crate::message::Message;

/// What a warp does next.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WarpReplay {
    trace: WarpTrace,
    cursor: TraceCursor,
}

impl WarpReplay {
    /// Lanes that execute the next instruction.
    pub fn lanes(&self) -> Mask {
        self.cursor.next(&self.trace).map_or(0, |next| next.lanes)
    }

    /// Puts a warp's running path at its next instruction. Some lane is always there.
    pub fn place(&self, convergence: &mut Convergence) {
        if let Some(next) = self.cursor.next(&self.trace) {
            let lanes = (next.active | next.lanes) & convergence.live();
            let lanes = if lanes == 0 {
                convergence.live()
            } else {
                lanes
            };
            convergence.place(next.index, lanes);
        }
    }

    /// Goes past an instruction.
    fn advance(&mut self) {
        self.cursor.advance(&self.trace);
    }

    /// Whether nothing comes after the next instruction.
    fn is_at_end(&self) -> bool {
        let mut after = self.cursor;
        after.advance(&self.trace);
        after.next(&self.trace).is_none()
    }
}

impl SmState {
    /// Gives the warps of a new block what they are to do.
    ///
    /// # Errors
    /// If the trace cannot be read, or has nothing for a warp.
    pub(super) fn begin_replay(
        &mut self,
        source: &dyn TraceSource,
        block: u64,
        slots: &[u8],
    ) -> Result<(), String> {
        let traces = source.block(block)?;
        if traces.len() != slots.len() || traces.iter().any(|one| one.instructions.is_empty()) {
            return Err(format!(
                "block {block} has not something to do for each warp"
            ));
        }
        self.port.replays = true;
        for (slot, trace) in slots.iter().zip(traces) {
            let warp = &mut self.warps[usize::from(*slot)];
            let replay = WarpReplay {
                trace,
                cursor: TraceCursor::default(),
            };
            replay.place(&mut warp.convergence);
            warp.replay = Some(Box::new(replay));
        }
        Ok(())
    }

    /// A replayed warp meets others or orders its accesses, with all its lanes.
    pub(super) fn replay_special<M: IssueModel>(
        &mut self,
        model: &mut M,
        slot: u8,
        pc: u32,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> Effect {
        let warp = &mut self.warps[usize::from(slot)];
        warp.convergence.place(pc, warp.convergence.live());
        if let Some(replay) = &mut warp.replay {
            replay.advance();
        }
        let effect = self.special(model, slot, pc, now, outbox);
        let warp = &mut self.warps[usize::from(slot)];
        if warp.convergence.active() != 0
            && let Some(replay) = &warp.replay
        {
            replay.place(&mut warp.convergence);
        }
        effect
    }
}

/// What a replayed warp can do by itself.
#[cold]
pub(super) fn step(site: &mut Site<'_, '_>, instruction: &Instruction, execute: Mask) -> Step {
    let at_end = site.warp.replay.as_ref().is_some_and(|own| own.is_at_end());
    let step = match &instruction.operation {
        _ if at_end => Step::Ended,
        Operation::Memory(operation) => access(site, instruction, operation, execute),
        Operation::Barrier(_) | Operation::Fence(_) => return Step::Special,
        Operation::Flow(_) => Step::Done(Effect::Flowed),
        Operation::Unsupported(_) | Operation::Illegal(_) => {
            return execute::step(site, instruction, execute);
        }
        _ => Step::Done(Effect::Computed),
    };
    let warp = &mut *site.warp;
    match (&step, &mut warp.replay) {
        (Step::Ended, _) => {
            let live = warp.convergence.live();
            warp.convergence.place(warp.convergence.pc(), live);
            warp.convergence.exit(live);
        }
        (Step::Done(_), Some(replay)) => {
            replay.advance();
            replay.place(&mut warp.convergence);
        }
        _ => {}
    }
    step
}

/// An access to memory, at the addresses of the trace.
fn access(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    operation: &MemoryOperation,
    execute: Mask,
) -> Step {
    let warp = &mut *site.warp;
    let Some(replay) = &warp.replay else {
        return Step::Done(Effect::Computed);
    };
    let places = replay
        .cursor
        .next(&replay.trace)
        .map_or(0, |next| next.places);
    if execute == 0 || places == 0 || matches!(operation.action, Action::Mbarrier(_)) {
        site.port.done = Done::NOTHING;
        return Step::Done(Effect::Memory);
    }
    let last = replay.cursor.addresses(&replay.trace, places - 1);
    let first = replay.cursor.addresses(&replay.trace, 0);
    let at = warp.registers.len() - usize::from(ADDRESS_REGISTERS);
    for lane in 0..last.len() {
        warp.registers[at].0[lane] = first[lane] as u32;
        warp.registers[at + 1].0[lane] = last[lane] as u32;
        warp.registers[at + 2].0[lane] = (last[lane] >> 32) as u32;
    }
    let pc = warp.convergence.pc();
    warp.convergence.place(pc, execute);
    let step = execute::step(site, instruction, execute);
    if !matches!(step, Step::Done(_)) {
        // It comes again.
        if let Some(replay) = &site.warp.replay {
            replay.place(&mut site.warp.convergence);
        }
    }
    step
}
