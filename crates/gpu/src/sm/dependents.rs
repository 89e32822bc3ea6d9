//! Grids that follow each other (programmatic dependent launch): a block lets the next grid begin, and waits
//! for those before.

use lockstep_engine::Outbox;
use lockstep_units::Bytes;

use super::cta::GONE;
use super::issue_model::IssueModel;
use super::now::Now;
use super::state::SmState;
use crate::message::Message;

impl SmState {
    /// A thread of a block lets the grid that follows begin; the first one counts.
    pub(super) fn launch_dependents(
        &mut self,
        slot: u8,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let block = usize::from(self.warps[usize::from(slot)].block);
        let Some(block) = self.blocks.blocks[block].as_mut() else {
            return;
        };
        if std::mem::replace(&mut block.triggered, true) {
            return;
        }
        let wiring = self.port.wiring;
        let launch = block.launch;
        let message = Message::DependentsMayStart { launch };
        outbox.send(
            wiring.report,
            wiring.dispatcher,
            now.time,
            Bytes(wiring.header),
            message,
        );
    }

    /// A warp waits until the grids before its own have ended.
    pub(super) fn wait_for_prerequisites(&mut self, slot: u8) {
        let block = usize::from(self.warps[usize::from(slot)].block);
        let block = self.blocks.blocks[block].as_ref();
        if block.is_some_and(|block| block.waits) {
            self.slots.hold(slot);
            self.waiting_for_grids |= 1 << slot;
        }
    }

    /// The grids before a launch have ended: its warps go on.
    pub(super) fn prerequisites_done<M: IssueModel>(
        &mut self,
        model: &mut M,
        launch: u32,
        now: Now,
    ) {
        let mut woken = 0;
        for block in self.blocks.blocks.iter_mut().flatten() {
            if block.launch == launch {
                block.waits = false;
                for slot in block.warps.iter().filter(|slot| **slot != GONE) {
                    woken |= 1u64 << slot;
                }
            }
        }
        woken &= self.waiting_for_grids;
        self.waiting_for_grids &= !woken;
        self.release(model, woken, now.cycle);
    }
}
