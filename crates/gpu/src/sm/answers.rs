//! What comes back to an SM from slices and from the device heap.

use lockstep_engine::{Outbox, PartitionId};
use lockstep_isa::memory::MemoryOperation;
use lockstep_isa::{Operation, WarpRegister};

use super::issue_model::IssueModel;
use super::lsu::access;
use super::lsu::transactions::NOBODY;
use super::now::Now;
use super::problem::Problem;
use super::report;
use super::state::SmState;
use super::sub_core::scoreboard::NO_GROUP;
use crate::fault::FaultKind;
use crate::memory::SECTOR;
use crate::message::{HeapRequest, Message, StrongAction, StrongRequest};

/// Bytes of the answer to an atomic.
const ATOMIC_ANSWER: u64 = 8;

impl SmState {
    /// A strong access came back.
    pub(super) fn performed<M: IssueModel>(
        &mut self,
        model: &mut M,
        request: Box<StrongRequest>,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        if request.transaction != NOBODY {
            let mut bytes = match request.action {
                StrongAction::Load => SECTOR,
                _ => ATOMIC_ANSWER,
            };
            if request.members == 0 {
                self.deliver(request.transaction, |registers, operation| {
                    access::deliver_answer(registers, operation, &request);
                });
            } else {
                self.deliver_member(&request);
                // The switch sends one answer for all members.
                bytes = bytes.div_ceil(u64::from(request.members));
            }
            let at = model.receive_strong(bytes, now.cycle);
            self.answered(model, request.transaction, at, now);
        }
        self.port.finish_strong(request);
        self.check_fences(model, now, outbox);
    }

    /// Keeps what one member of a multicast object has, and reduces when all have answered.
    fn deliver_member(&mut self, request: &StrongRequest) {
        let waits = self.port.transactions.get(request.transaction).remaining;
        let mut gathered = std::mem::take(&mut self.port.gathered);
        self.deliver(request.transaction, |registers, operation| {
            access::deliver_member(&mut gathered, registers, operation, request, waits == 1);
        });
        self.port.gathered = gathered;
    }

    /// Hands what came to the warp that waits for it, with the operation that asked.
    pub(super) fn deliver(
        &mut self,
        transaction: u32,
        deliver: impl FnOnce(&mut [WarpRegister], &MemoryOperation),
    ) {
        let transaction = self.port.transactions.get(transaction);
        let warp = &mut self.warps[usize::from(transaction.warp)];
        let launch = self.blocks.launch_of(warp.block);
        let launch = launch.expect("a warp that waits has a block");
        let instruction = &launch.launch.module.code[transaction.pc as usize];
        if let Operation::Memory(operation) = &instruction.operation {
            deliver(&mut warp.registers, operation);
        }
    }

    /// An answer of a transaction came now; it is there at cycle `at`.
    pub(super) fn answered<M: IssueModel>(
        &mut self,
        model: &mut M,
        number: u32,
        at: u64,
        now: Now,
    ) {
        let cycle = now.cycle;
        let Some(transaction) = self.port.transactions.answer(number, at) else {
            return;
        };
        let slot = transaction.warp;
        let warp = &mut self.warps[usize::from(slot)];
        warp.pending -= 1;
        if warp.pending == 0 {
            self.slots.waiting &= !(1 << slot);
        }
        if M::TIMED {
            let launch = self.blocks.launch_of(warp.block);
            let launch = launch.expect("a warp that waits has a block");
            let (pc, group) = (transaction.pc, transaction.group);
            model.complete(slot, pc, launch, group, transaction.ready);
            if group != NO_GROUP {
                let arrivals = model.take_copy_arrivals(slot);
                self.copies_completed(model, arrivals, now);
            }
        }
        let warp = &mut self.warps[usize::from(slot)];
        if warp.pending == 0 && warp.convergence.live() == 0 {
            let block = warp.block;
            self.leave(slot);
            self.try_end_block(block);
        }
        self.refresh(model, slot, cycle);
    }

    /// A slice has room for so many more requests.
    pub(super) fn credits<M: IssueModel>(
        &mut self,
        model: &mut M,
        slice: PartitionId,
        count: u16,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        if self.port.receive_credits(slice, count, now, outbox) {
            model.requests_leave(now.cycle);
        }
        if !self.ordering.is_empty() {
            self.check_fences(model, now, outbox);
        }
    }

    /// The device heap has answered.
    pub(super) fn heap_done<M: IssueModel>(
        &mut self,
        model: &mut M,
        request: HeapRequest,
        now: Now,
    ) {
        let slot = request.warp;
        if let Some((lane, pointer)) = request.invalid {
            let problem = Problem {
                lane: lane.into(),
                kind: FaultKind::InvalidFree { pointer },
            };
            return report::fail_at(self, slot, problem, request.pc, now);
        }
        if let Some(first) = request.result {
            let registers = &mut self.warps[usize::from(slot)].registers;
            for (lane, pointer) in &request.lanes {
                let lane = usize::from(*lane);
                registers[usize::from(first)].0[lane] = *pointer as u32;
                registers[usize::from(first) + 1].0[lane] = (*pointer >> 32) as u32;
            }
        }
        self.release(model, 1 << slot, now.cycle);
    }
}
