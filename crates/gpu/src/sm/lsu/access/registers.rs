//! Between registers and bytes.

use lockstep_isa::lanes::{Lanes, ScratchRegister};
use lockstep_isa::memory::{Action, AtomicOperation, AtomicType, Element, MemoryOperation};
use lockstep_isa::semantics::atomic;
use lockstep_isa::warp_register::{FULL, LANES, lanes_of};
use lockstep_isa::{Mask, WarpRegister};

use crate::fault::FaultKind;
use crate::sm::problem::Problem;

/// Copies the rows that stores and atomics need, element by element, word by word.
pub(super) fn gather_values(
    lanes: &Lanes<'_>,
    operation: &MemoryOperation,
    values: &mut [WarpRegister; 8],
) {
    let elements = usize::from(operation.elements.max(1));
    let (count, rows) = match operation.action {
        Action::Store | Action::StoreAsync => (elements, operation.element.words()),
        Action::Atomic(_, kind) | Action::Reduce(_, kind) | Action::ReduceAsync(_, kind) => {
            (elements.max(2), kind.bytes().div_ceil(4) as u16)
        }
        Action::StoreMatrix { matrices, .. } => (usize::from(matrices), 1),
        Action::CopyToShared => (4, 1),
        Action::Mbarrier(_) => (2, 1),
        _ => return,
    };
    for (element, operand) in operation.values.iter().take(count).enumerate() {
        for word in 0..rows {
            if let Some(row) = values.get_mut(element * usize::from(rows) + usize::from(word)) {
                let mut room = ScratchRegister::uninit();
                *row = *lanes.raw_at(*operand, word, &mut room);
            }
        }
    }
}

/// Writes what was read into registers. `read` gives the aligned 32-bit word around an address.
#[inline(always)]
pub(super) fn deliver(
    registers: &mut [WarpRegister],
    operation: &MemoryOperation,
    mask: Mask,
    addresses: &[u64; LANES],
    read: impl Fn(usize, u64) -> u32,
) {
    let words = operation.element.words();
    let bytes = operation.element.bytes();
    for (element, row) in operation.data.iter().enumerate() {
        let Some(row) = *row else { continue };
        if element >= usize::from(operation.elements) {
            break;
        }
        let offset = element as u64 * u64::from(bytes);
        for word in 0..words {
            let destination = &mut registers[usize::from(row + word)];
            let offset = offset + 4 * u64::from(word);
            if bytes >= 4 {
                deliver_word(destination, mask, addresses, offset, &read);
            } else {
                for lane in lanes_of(mask) {
                    let address = addresses[lane] + offset;
                    let word = read(lane, address & !3) >> (8 * (address & 3));
                    destination.0[lane] = extend(operation.element, word);
                }
            }
        }
    }
}

/// Lanes from which on it is faster to read for all and to drop what nobody asked for than to read one by
/// one: a row that is stored at once can be read at once.
const MANY: u32 = 8;

/// One word a lane.
#[inline(never)]
fn deliver_word(
    destination: &mut WarpRegister,
    mask: Mask,
    addresses: &[u64; LANES],
    offset: u64,
    read: &impl Fn(usize, u64) -> u32,
) {
    if mask == FULL {
        let (fours, _) = destination.0.as_chunks_mut::<4>();
        for (first, words) in fours.iter_mut().enumerate() {
            let word = |next: usize| {
                let lane = 4 * first + next;
                read(lane, addresses[lane] + offset)
            };
            four(words, [word(0), word(1), word(2), word(3)]);
        }
    } else if mask.count_ones() >= MANY {
        // Lanes that do not take part read with the first one that does.
        let first = mask.trailing_zeros() as usize;
        let mut row = WarpRegister::ZERO;
        let (fours, _) = row.0.as_chunks_mut::<4>();
        for (group, words) in fours.iter_mut().enumerate() {
            let word = |next: usize| {
                let lane = 4 * group + next;
                let lane = if mask >> lane & 1 == 0 { first } else { lane };
                read(lane, addresses[lane] + offset)
            };
            four(words, [word(0), word(1), word(2), word(3)]);
        }
        destination.blend(&row, mask);
    } else {
        for lane in lanes_of(mask) {
            destination.0[lane] = read(lane, addresses[lane] + offset);
        }
    }
}

pub(super) fn extend(element: Element, word: u32) -> u32 {
    match element {
        Element::U8 => word & 0xff,
        Element::S8 => word as i8 as u32,
        Element::U16 => word & 0xffff,
        Element::S16 => word as i16 as u32,
        _ => word,
    }
}

/// Hands every value that a store writes to `write`: lane, address, word, bytes of it.
#[inline(always)]
pub(super) fn emit(
    values: &[WarpRegister; 8],
    operation: &MemoryOperation,
    mask: Mask,
    addresses: &[u64; LANES],
    mut write: impl FnMut(usize, u64, u32, usize),
) {
    let words = usize::from(operation.element.words());
    let bytes = operation.element.bytes() as usize;
    let size = bytes.min(4);
    for lane in lanes_in_writing_order(mask, bytes * usize::from(operation.elements)) {
        for element in 0..usize::from(operation.elements) {
            for word in 0..words {
                let offset = (element * bytes + 4 * word) as u64;
                let value = values[element * words + word].0[lane];
                write(lane, addresses[lane] + offset, value, size);
            }
        }
    }
}

/// The lanes of a store, each before those that overwrite it. A store of 8 bytes a lane is made of two halves of the
/// warp, one of 16 bytes of four quarters, one after the other; in each of them the lowest lane's value stays
/// (`same_address.csv`).
#[inline]
fn lanes_in_writing_order(mask: Mask, bytes: usize) -> impl Iterator<Item = usize> {
    let together = match bytes {
        0..=4 => LANES,
        5..=8 => LANES / 2,
        _ => LANES / 4,
    };
    let first = Mask::MAX >> (LANES - together);
    (0..LANES).step_by(together).flat_map(move |begin| {
        let mut left = mask & (first << begin);
        std::iter::from_fn(move || {
            let lane = left.checked_ilog2()?;
            left &= !(1 << lane);
            Some(lane as usize)
        })
    })
}

#[inline(always)]
pub(super) fn word_of(memory: &[u8], address: u64) -> u32 {
    let at = address as usize;
    memory.get(at..at + 4).map_or(0, |bytes| {
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    })
}

pub(super) fn operand_of(
    values: &[WarpRegister; 8],
    kind: AtomicType,
    lane: usize,
    element: usize,
) -> u128 {
    let rows = kind.bytes().div_ceil(4) as usize;
    let words = values[element * rows..][..rows].iter().rev();
    words.fold(0, |value, row| value << 32 | u128::from(row.0[lane]))
}

pub(super) fn modify(
    values: &[WarpRegister; 8],
    function: AtomicOperation,
    kind: AtomicType,
    lane: usize,
    element: usize,
    old: u128,
) -> Result<u128, Problem> {
    let operand = operand_of(values, kind, lane, element);
    let second = match function {
        AtomicOperation::CompareAndSwap | AtomicOperation::CompareAndTest => {
            operand_of(values, kind, lane, 1)
        }
        _ => 0,
    };
    atomic::apply(function, kind, old, operand, second).ok_or_else(|| no_such(function, kind, lane))
}

pub(super) fn no_such(function: AtomicOperation, kind: AtomicType, lane: usize) -> Problem {
    Problem {
        lane,
        kind: FaultKind::Unsupported(format!("atomic {function:?} on {kind:?}")),
    }
}

pub(super) fn give_old(
    registers: &mut [WarpRegister],
    operation: &MemoryOperation,
    lane: usize,
    element: usize,
    kind: AtomicType,
    old: u128,
) {
    let (Action::Atomic(..), Some(row)) = (operation.action, operation.data[element]) else {
        return;
    };
    let rows = kind.bytes().div_ceil(4) as usize;
    let rows = registers[usize::from(row)..][..rows].iter_mut();
    for (word, register) in rows.enumerate() {
        register.0[lane] = (old >> (32 * word)) as u32;
    }
}

/// Four words that belong to one row, as one vector where the host has any.
#[inline(always)]
pub(super) fn four(to: &mut [u32; 4], words: [u32; 4]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_set_epi32, _mm_storeu_si128};
        let [a, b, c, d] = words.map(|word| word as i32);
        // SAFETY: every x86-64 host has these vectors, and 16 bytes are written to where 16 bytes are.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_set_epi32(d, c, b, a)) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        *to = words;
    }
}

#[cfg(test)]
mod tests {
    use super::lanes_in_writing_order;
    use lockstep_isa::warp_register::LANES;

    /// Recorded on an H200 by `validation/microbench/same_address.cu`.
    const RECORDED: &str =
        include_str!("../../../../../../validation/hardware/h200/same_address.csv");

    #[test]
    fn of_lanes_that_store_to_one_place_the_value_of_an_h200_stays() {
        let mut compared = 0;
        for row in RECORDED.lines().filter(|row| row.starts_with("store_")) {
            let columns: Vec<&str> = row.split(',').collect();
            let [_, bytes, mask, sharing, who, stayed] = columns[..] else {
                panic!("{row}");
            };
            let mask = u32::from_str_radix(mask, 16).unwrap();
            let sharing: usize = sharing.parse().unwrap();
            let places = LANES / sharing;
            let mut memory = vec!["-".to_owned(); places];
            for lane in lanes_in_writing_order(mask, bytes.parse().unwrap()) {
                let place = match who {
                    "apart" => lane % places,
                    _ => lane / sharing,
                };
                memory[place] = lane.to_string();
            }
            assert_eq!(memory.join(" "), stayed, "{row}");
            compared += 1;
        }
        assert_eq!(compared, 960);
    }
}
