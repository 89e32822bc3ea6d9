//! What the GMMU says to an SM, and what goes on then.

use lockstep_engine::Outbox;

use super::deferred::Deferred;
use super::{Moment, Translation};
use crate::memory::{LINE, PAGE};
use crate::message::Message;
use crate::sm::issue_model::IssueModel;
use crate::sm::now::Now;
use crate::sm::state::SmState;

/// Pages beyond which an SM empties L1 rather than looking for their lines.
const MOST_LINE_BY_LINE: u32 = 64;

impl SmState {
    /// The GMMU says something.
    pub(in crate::sm) fn translation_message<M: IssueModel>(
        &mut self,
        model: &mut M,
        message: Message,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let moment = Moment {
            warp: 0,
            cycle: now.cycle,
            time: now.time,
            header: self.port.wiring.header,
        };
        let Some(translation) = &mut self.port.translation else {
            return;
        };
        match message {
            Message::Nack { page } => {
                translation.translator.nack(page, now.cycle);
                translation.tell_again(page, moment, outbox);
                update_full(model, translation, now.cycle);
            }
            Message::Replay { page } => {
                let transactions = &self.port.transactions;
                let warp_of = |transaction| transactions.get(transaction).warp;
                translation.replay(page, warp_of, moment, outbox);
            }
            Message::ShootDown(scope) => translation.translator.shoot_down(scope),
            // A write has come to wait for it meanwhile: it asks anew.
            Message::Translated {
                page,
                read_only: true,
                ..
            } if translation.translator.wants_write(page) => {
                let transactions = &self.port.transactions;
                let warp_of = |transaction| transactions.get(transaction).warp;
                translation.replay(page, warp_of, moment, outbox);
            }
            Message::Translated {
                page,
                size,
                read_only,
            } => {
                let translator = &mut translation.translator;
                translator.fill(page, Some(size), read_only, now.cycle);
                self.resume_page(model, page, false, now, outbox);
            }
            Message::Remote { page } => {
                translation.translator.fill(page, None, false, now.cycle);
                self.resume_page(model, page, true, now, outbox);
            }
            Message::Invalidate { first, count } => {
                let lines = PAGE / LINE;
                let range = first * lines..(first + u64::from(count)) * lines;
                model.invalidate_l1(range, count > MOST_LINE_BY_LINE);
            }
            other => panic!("an SM was sent {other:?}"),
        }
    }

    /// A page has its translation, or was accessed over the link: what waited for it goes on.
    fn resume_page<M: IssueModel>(
        &mut self,
        model: &mut M,
        page: u64,
        remote: bool,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let Some(translation) = &mut self.port.translation else {
            return;
        };
        let waiting = translation.take_deferred(page);
        update_full(model, translation, now.cycle);
        for (index, one) in waiting.into_iter().enumerate() {
            // One a cycle, as they would have come.
            let at = now.cycle + 1 + index as u64;
            match one {
                Deferred::Strong { request, .. } => {
                    self.port.dispatch_strong(request, now, outbox);
                }
                Deferred::Load(load) if remote => {
                    self.answered(model, load.transaction, now.cycle, now);
                }
                Deferred::Store { transaction, .. } if remote => {
                    self.answered(model, transaction, now.cycle, now);
                }
                Deferred::Load(load) => model.resume_load(self, load, at, now, outbox),
                Deferred::Store {
                    line,
                    sectors,
                    partial,
                    transaction,
                } => {
                    let clock = self.clock();
                    let warp = self.port.transactions.get(transaction).warp;
                    let tag = self.blocks.tag_of(self.warps[usize::from(warp)].block);
                    self.port
                        .send_write(line, sectors, partial, tag, at, clock, outbox);
                    self.answered(model, transaction, at, now);
                }
            }
        }
    }
}

/// Says whether memory instructions may issue, whenever that may have changed.
fn update_full<M: IssueModel>(model: &mut M, translation: &mut Translation, cycle: u64) {
    if !M::TIMED {
        return;
    }
    let (full, opened) = translation.update_full(cycle);
    if opened {
        model.wake_all();
    }
    model.set_translation_full(full);
}
