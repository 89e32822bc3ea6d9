//! What a sample of a texture takes: its turn in the texture unit, then L1TEX, as loads.

use lockstep_engine::Outbox;

use super::Timing;
use super::account::Issued;
use super::memory_cost::requester;
use crate::message::Message;
use crate::sm::front_end::issue_table::IssueInfo;
use crate::sm::lsu::l1tex::{Access, Manner};
use crate::sm::lsu::line_set::LineSet;
use crate::sm::lsu::transactions::NOBODY;
use crate::sm::now::PENDING;
use crate::sm::state::SmState;
use crate::sm::sub_core::scoreboard::NO_GROUP;

/// Lines that are looked up together: as many as a set holds.
const TOGETHER: usize = 32;

impl Timing {
    /// A sample that the pipe takes at a cycle and that keeps the texture unit busy for some quarters of cycles. Says
    /// when it is done, or [`PENDING`].
    pub(super) fn texture_access(
        &mut self,
        state: &mut SmState,
        issued: &Issued,
        info: &IssueInfo,
        taken: u64,
        quarters: u16,
        outbox: &mut Outbox<'_, Message>,
    ) -> u64 {
        let begin = self.lsu.texture_free.max(taken * 4);
        self.lsu.texture_free = begin + u64::from(quarters);
        let busy = u64::from(quarters).div_ceil(4);
        let wide = u64::from(info.words.max(1) - 1) * self.parameters.lsu.wide_global;
        let begin = begin / 4;
        let mut access = Access {
            slot: issued.slot,
            block: issued.block,
            pc: issued.pc,
            manner: Manner::Load,
            transaction: NOBODY,
            group: NO_GROUP,
            taken: begin,
            wavefronts: busy,
            hit: begin + busy - 1 + self.parameters.lsu.texture_latency + wide,
            fill: (self.parameters.lsu.texture_latency)
                .saturating_sub(self.parameters.lsu.l1_latency)
                + wide,
            partial: 0,
        };
        let sectors = std::mem::take(&mut state.port.texels);
        if let Some(mut requester) = requester(state, &access, outbox) {
            // Sectors ascend: those of a line stand together.
            for part in sectors.chunks(TOGETHER) {
                let lines = LineSet::of(part);
                self.lsu.l1tex.access(&lines, &mut access, &mut requester);
            }
        }
        state.port.texels = sectors;
        if access.transaction == NOBODY {
            access.hit
        } else {
            PENDING
        }
    }
}
