//! Accesses that are performed at their slice.

use lockstep_isa::memory::{Action, AtomicOperation, MemoryOperation};
use lockstep_isa::semantics::atomic;
use lockstep_isa::warp_register::{LANES, lanes_of};
use lockstep_isa::{Mask, WarpRegister};

use super::registers::{deliver, give_old, no_such, operand_of, word_of};
use super::store_buffer::collect_store;
use crate::memory::{LINE, PAGE, SECTOR};
use crate::message::{LaneAccess, StrongAction, StrongRequest};
use crate::sm::lsu::port::Port;
use crate::sm::lsu::transactions::NOBODY;
use crate::sm::problem::Problem;
use crate::sm::site::Site;

/// Lanes that left for their slices.
pub(super) struct Left {
    /// The lanes that left.
    pub lanes: Mask,
    /// What brings their values.
    pub transaction: u32,
}

/// Sends the accesses to the sectors of `leaving` to their slices.
pub(super) fn leave(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
    leaving: Mask,
) -> Result<Left, Problem> {
    let found = site.port.found;
    let action = match operation.action {
        Action::Load => StrongAction::Load,
        Action::Store => StrongAction::Store,
        Action::Atomic(function, kind) => StrongAction::Atomic(function, kind),
        Action::Reduce(function, kind) => StrongAction::Reduce(function, kind),
        _ => {
            return Ok(Left {
                lanes: 0,
                transaction: NOBODY,
            });
        }
    };
    if let StrongAction::Atomic(function, kind) | StrongAction::Reduce(function, kind) = action
        && atomic::apply(function, kind, 0, 0, 0).is_none()
    {
        return Err(no_such(function, kind, execute.trailing_zeros() as usize));
    }
    if action == StrongAction::Store {
        collect_store(site.port, operation, execute, addresses);
    }
    let answers = matches!(action, StrongAction::Load | StrongAction::Atomic(..));
    let transaction = if answers {
        site.open_transaction()
    } else {
        NOBODY
    };
    let mut lanes_left = 0;
    let mut sent = 0;
    for index in 0..found.count {
        if leaving >> index & 1 == 0 {
            continue;
        }
        let lanes = found.lanes(index, execute);
        lanes_left |= lanes;
        sent += 1;
        site.block.counters.strong_accesses += 1;
        let mut request = site.port.request(action, found.sectors[index], transaction);
        request.tag = site.block.tag;
        fill(&mut request, site.port, operation, lanes, addresses, index);
        if action == StrongAction::Load {
            request.of_line = of_line(&found.sectors[..found.count], leaving, index);
        }
        let lines = || lines_beside(&found.sectors[..found.count], leaving, index);
        let warp = site.slot;
        site.port
            .send_strong(request, warp, lines, *site.now, site.outbox);
    }
    if answers {
        site.port.transactions.expect(transaction, sent);
    }
    Ok(Left {
        lanes: lanes_left,
        transaction,
    })
}

/// The leaving sectors of an instruction that lie in the line of one of them, a bit each.
pub(super) fn of_line(sectors: &[u64], leaving: Mask, index: usize) -> u8 {
    const SECTORS: u64 = LINE / SECTOR;
    let line = sectors[index] / SECTORS;
    let mut mask = 0;
    for (other, sector) in sectors.iter().enumerate() {
        if leaving >> other & 1 != 0 && sector / SECTORS == line {
            mask |= 1 << (sector % SECTORS);
        }
    }
    mask
}

/// How many lines of the page of one sector the leaving sectors of an instruction lie in.
fn lines_beside(sectors: &[u64], leaving: Mask, index: usize) -> usize {
    let page = |sector: u64| sector / (PAGE / SECTOR);
    let line = |sector: u64| sector / (LINE / SECTOR);
    let mut lines = 0;
    for (other, sector) in sectors.iter().enumerate() {
        let counted = sectors[..other]
            .iter()
            .enumerate()
            .any(|(earlier, known)| leaving >> earlier & 1 != 0 && line(*known) == line(*sector));
        let leaves = leaving >> other & 1 != 0;
        if leaves && page(*sector) == page(sectors[index]) && !counted {
            lines += 1;
        }
    }
    lines
}

/// Writes into a request what its lanes ask for.
pub(super) fn fill(
    request: &mut StrongRequest,
    port: &Port,
    operation: &MemoryOperation,
    lanes: Mask,
    addresses: &[u64; LANES],
    index: usize,
) {
    let access = |lane: usize| LaneAccess {
        lane: lane as u8,
        offset: (addresses[lane] % SECTOR) as u8,
        element: 0,
        operand: 0,
        second: 0,
    };
    match request.action {
        StrongAction::Store => {
            request.bytes = port.buffer[index];
            request.mask = port.masks[index];
        }
        StrongAction::Load => {
            request.lanes.extend(lanes_of(lanes).map(access));
        }
        StrongAction::Atomic(function, kind) | StrongAction::Reduce(function, kind) => {
            for lane in lanes_of(lanes) {
                for element in 0..operation.elements.max(1) {
                    let operand = operand_of(&port.values, kind, lane, usize::from(element));
                    let second = match function {
                        AtomicOperation::CompareAndSwap => operand_of(&port.values, kind, lane, 1),
                        _ => 0,
                    };
                    for half in 0..LaneAccess::needed(kind) {
                        let mut one = access(lane);
                        one.offset += element * kind.bytes() as u8 + 8 * half as u8;
                        one.element = element;
                        one.operand = (operand >> (64 * half)) as u64;
                        one.second = (second >> (64 * half)) as u64;
                        request.lanes.push(one);
                    }
                }
            }
        }
    }
}

/// Writes what came back from a slice into registers.
pub fn deliver_answer(
    registers: &mut [WarpRegister],
    operation: &MemoryOperation,
    request: &StrongRequest,
) {
    match request.action {
        StrongAction::Load => {
            let mut addresses = [0; LANES];
            let mut mask = 0;
            for access in &request.lanes {
                addresses[usize::from(access.lane)] = u64::from(access.offset);
                mask |= 1 << access.lane;
            }
            deliver(registers, operation, mask, &addresses, |_, address| {
                word_of(&request.bytes, address)
            });
        }
        StrongAction::Atomic(_, kind) => {
            for accesses in request.lanes.chunks_exact(LaneAccess::needed(kind)) {
                let access = &accesses[0];
                give_old(
                    registers,
                    operation,
                    usize::from(access.lane),
                    usize::from(access.element),
                    kind,
                    LaneAccess::joined(accesses, |access| access.operand),
                );
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_once_and_by_page() {
        // Two sectors of one line, one of the next, one of the next page.
        let sectors = [0, 1, LINE / SECTOR, PAGE / SECTOR];
        assert_eq!(lines_beside(&sectors, 0b1111, 0), 2);
        assert_eq!(lines_beside(&sectors, 0b1111, 3), 1);
        assert_eq!(lines_beside(&sectors, 0b1011, 0), 1, "what does not leave");
        assert_eq!(lines_beside(&sectors, 0b0110, 2), 2);
        // A line apart each, as a warp that touches all lines of a page.
        let page: Vec<u64> = (0..32).map(|line| line * LINE / SECTOR).collect();
        assert_eq!(lines_beside(&page, u32::MAX, 7), 32);
    }
}
