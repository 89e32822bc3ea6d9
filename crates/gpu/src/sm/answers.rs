//! What comes back to an SM.

use lockstep_engine::Outbox;
use lockstep_isa::Operation;

use super::lsu::access;
use super::{Issue, Sm};
use crate::memory::SECTOR;
use crate::message::{HeapRequest, Message, StrongAction, StrongRequest};
use crate::sm::lsu::port::NOBODY;
use crate::sm::now::Now;

impl Sm {
    /// A strong access came back.
    pub(super) fn performed(
        &mut self,
        request: Box<StrongRequest>,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        if request.transaction != NOBODY {
            let transaction = self.port.transactions.get(request.transaction);
            let warp = &mut self.warps[usize::from(transaction.warp)];
            let context = self.contexts[usize::from(warp.block)]
                .as_ref()
                .expect("a warp that waits has a block");
            let instruction = &context.launch.module.code[transaction.pc as usize];
            if let Operation::Memory(operation) = &instruction.operation {
                access::deliver_answer(&mut warp.registers, operation, &request);
            }
            let bytes = match request.action {
                StrongAction::Load => SECTOR,
                _ => 8,
            };
            let at = self.strong_arrived(bytes, now);
            self.answered(request.transaction, at, now);
        }
        self.port.finish_strong(request);
        self.check_fences(now, outbox);
    }

    /// An answer of a transaction came; it is there at cycle `at`.
    pub(super) fn answered(&mut self, number: u32, at: u64, now: Now) {
        let Some(transaction) = self.port.transactions.answer(number, at) else {
            return;
        };
        let slot = transaction.warp;
        let warp = &mut self.warps[usize::from(slot)];
        warp.pending -= 1;
        if warp.pending == 0 {
            self.waiting &= !(1 << slot);
        }
        if let Issue::Timing(timing) = &mut self.issue {
            let context = self.contexts[usize::from(warp.block)]
                .as_ref()
                .expect("a warp that waits has a block");
            timing.complete(
                slot,
                transaction.pc,
                context,
                transaction.group,
                transaction.ready,
            );
        }
        if warp.pending == 0 && warp.convergence.live() == 0 {
            let block = warp.block;
            self.leave(slot);
            self.try_end_block(block);
        }
        self.refresh(slot, now.cycle);
    }

    pub(super) fn heap_done(&mut self, request: HeapRequest, now: Now) {
        let slot = request.warp;
        if let Some(row) = request.result {
            let registers = &mut self.warps[usize::from(slot)].registers;
            for (lane, pointer) in &request.lanes {
                registers[usize::from(row)].0[usize::from(*lane)] = *pointer as u32;
                registers[usize::from(row) + 1].0[usize::from(*lane)] = (*pointer >> 32) as u32;
            }
        }
        self.release(1 << slot, now);
    }
}
