//! Lanes that name one place or places side by side: their bytes move at once rather than lane by lane.
//!
//! This is more than fewer loads and stores. A register that was stored word by word cannot be read as vectors
//! until all words have reached the host's cache, and the next instruction wants to do just that.

use lockstep_isa::addresses::Layout;
use lockstep_isa::memory::MemoryOperation;
use lockstep_isa::semantics::lane_loops::map_lanes;
use lockstep_isa::warp_register::LANES;
use lockstep_isa::{Mask, WarpRegister};

use super::registers::extend;

/// How many bytes an access of `bytes` a lane reads from its first address on, where lanes lie together.
#[inline(always)]
pub(super) fn span(layout: Layout, bytes: u32) -> Option<usize> {
    match layout {
        Layout::Same => Some(bytes as usize),
        Layout::SideBySide => Some(bytes as usize * LANES),
        Layout::Scattered => None,
    }
}

/// Where a word of a lane goes: element by element, words of an element in registers one after the other.
#[inline(always)]
fn register_of_word(operation: &MemoryOperation, word: usize) -> Option<usize> {
    let words = usize::from(operation.element.words());
    let register = operation.data.get(word / words).copied().flatten()?;
    Some(usize::from(register) + word % words)
}

/// Writes into registers what lanes together read: the bytes of [`span`]. False, and nothing is written, if
/// it cannot.
#[inline(always)]
pub(super) fn deliver_together(
    registers: &mut [WarpRegister],
    operation: &MemoryOperation,
    mask: Mask,
    layout: Layout,
    bytes: &[u8],
) -> bool {
    let size = operation.element.bytes() as usize;
    if size < 4 {
        return operation.elements == 1
            && deliver_narrow(registers, operation, mask, layout, bytes);
    }
    let (words, _) = bytes.as_chunks::<4>();
    let count = size * usize::from(operation.elements) / 4;
    match (layout, count) {
        (Layout::Same, _) => {
            for (word, value) in words.iter().enumerate().take(count) {
                put(registers, operation, word, mask, || {
                    WarpRegister::splat(u32::from_le_bytes(*value))
                });
            }
        }
        (Layout::SideBySide, 1) => {
            put(registers, operation, 0, mask, || every::<1>(words, 0));
        }
        (Layout::SideBySide, 2) => (0..2).for_each(|word| {
            put(registers, operation, word, mask, || every::<2>(words, word));
        }),
        (Layout::SideBySide, 4) => (0..4).for_each(|word| {
            put(registers, operation, word, mask, || every::<4>(words, word));
        }),
        _ => return false,
    }
    true
}

/// One byte or two a lane.
fn deliver_narrow(
    registers: &mut [WarpRegister],
    operation: &MemoryOperation,
    mask: Mask,
    layout: Layout,
    bytes: &[u8],
) -> bool {
    let element = operation.element;
    let (pairs, _) = bytes.as_chunks::<2>();
    let value = |lane: usize| match element.bytes() {
        1 => extend(element, u32::from(bytes[lane])),
        _ => extend(element, u32::from(u16::from_le_bytes(pairs[lane]))),
    };
    put(registers, operation, 0, mask, || match layout {
        Layout::Same => WarpRegister::splat(value(0)),
        _ => map_lanes(value),
    });
    true
}

#[inline(always)]
fn put(
    registers: &mut [WarpRegister],
    operation: &MemoryOperation,
    word: usize,
    mask: Mask,
    value: impl FnOnce() -> WarpRegister,
) {
    if let Some(register) = register_of_word(operation, word) {
        registers[register].blend(&value(), mask);
    }
}

/// One word of each lane, of which every one has `COUNT`.
#[inline(always)]
fn every<const COUNT: usize>(words: &[[u8; 4]], word: usize) -> WarpRegister {
    let (lanes, _) = words.as_chunks::<COUNT>();
    let Some(lanes) = lanes.first_chunk::<LANES>() else {
        return WarpRegister::ZERO;
    };
    map_lanes(|lane| u32::from_le_bytes(lanes[lane][word]))
}

/// Writes what all 32 lanes store side by side. False, and nothing is written, if it cannot: narrow elements.
#[inline(always)]
pub(super) fn emit_together(
    values: &[WarpRegister; 8],
    operation: &MemoryOperation,
    to: &mut [u8],
) -> bool {
    let (words, _) = to.as_chunks_mut::<4>();
    if operation.element.bytes() < 4 {
        return false;
    }
    match usize::from(operation.element.words()) * usize::from(operation.elements) {
        1 => place::<1>(values, words),
        2 => place::<2>(values, words),
        4 => place::<4>(values, words),
        _ => return false,
    }
    true
}

#[inline(always)]
fn place<const COUNT: usize>(values: &[WarpRegister; 8], words: &mut [[u8; 4]]) {
    let (lanes, _) = words.as_chunks_mut::<COUNT>();
    if let Some(lanes) = lanes.first_chunk_mut::<LANES>() {
        for (lane, words) in lanes.iter_mut().enumerate() {
            for (word, bytes) in words.iter_mut().enumerate() {
                *bytes = values[word].0[lane].to_le_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_isa::Operand;
    use lockstep_isa::memory::{Action, AddressOperand, CachePolicy, Element, Space, Strength};
    use lockstep_isa::warp_register::FULL;

    fn load(element: Element, elements: u8, data: [Option<u16>; 4]) -> MemoryOperation {
        MemoryOperation {
            space: Space::Global,
            action: Action::Load,
            element,
            elements,
            address: AddressOperand {
                base: Operand::None,
                wide: true,
                shift: 0,
                uniform: Operand::None,
                uniform_wide: false,
                offset: 0,
            },
            data,
            values: [Operand::None; 4],
            strength: Strength::Weak,
            cache: CachePolicy::Default,
        }
    }

    /// The same by lanes: byte `n` of memory is `7 n`.
    fn check(element: Element, elements: u8, data: [Option<u16>; 4], mask: Mask) {
        let operation = load(element, elements, data);
        let bytes = element.bytes() * u32::from(elements);
        for layout in [Layout::Same, Layout::SideBySide] {
            let memory: Vec<u8> = (0..span(layout, bytes).unwrap())
                .map(|at| (7 * at) as u8)
                .collect();
            let mut expected = vec![WarpRegister::splat(99); 12];
            let step = if layout == Layout::Same { 0 } else { bytes };
            let addresses = std::array::from_fn(|lane| lane as u64 * u64::from(step));
            let mut padded = memory.clone();
            padded.resize(memory.len() + 8, 0);
            super::super::registers::deliver(
                &mut expected,
                &operation,
                mask,
                &addresses,
                |_, address| super::super::registers::word_of(&padded, address),
            );
            let mut registers = vec![WarpRegister::splat(99); 12];
            let done = deliver_together(&mut registers, &operation, mask, layout, &memory);
            assert!(done, "{element:?} x {elements} {layout:?}");
            assert_eq!(registers, expected, "{element:?} x {elements} {layout:?}");
        }
    }

    #[test]
    fn lanes_together_read_what_each_would_read_alone() {
        let one = [Some(3), None, None, None];
        for mask in [FULL, 0x00ff_0f01] {
            for element in [
                Element::U8,
                Element::S8,
                Element::U16,
                Element::S16,
                Element::B32,
                Element::B64,
                Element::B128,
            ] {
                check(element, 1, one, mask);
            }
            check(Element::B32, 2, [Some(8), Some(2), None, None], mask);
            check(Element::B32, 4, [Some(8), None, Some(1), Some(5)], mask);
            check(Element::B64, 2, [Some(8), Some(2), None, None], mask);
        }
    }

    #[test]
    fn lanes_together_store_word_after_word() {
        let mut values = [WarpRegister::ZERO; 8];
        for (row, values) in values.iter_mut().enumerate() {
            *values = map_lanes(|lane| (1000 * row + lane) as u32);
        }
        let mut bytes = [0; 256];
        let operation = load(Element::B64, 1, [None; 4]);
        assert!(emit_together(&values, &operation, &mut bytes));
        let (words, _) = bytes.as_chunks::<4>();
        for (at, word) in words.iter().enumerate() {
            assert_eq!(u32::from_le_bytes(*word) as usize, 1000 * (at % 2) + at / 2);
        }
        let narrow = load(Element::U8, 1, [None; 4]);
        assert!(!emit_together(&values, &narrow, &mut bytes));
    }
}
