//! What a computing instruction may touch: the state of one warp, as 32 lanes.

use crate::{
    convergence::Convergence,
    operand::{Halves, Operand, PredicateOperand, PredicateRegister, Source},
    row::{FULL, LANES, Mask, Row},
};

/// Banks of constants of one launch.
#[derive(Clone, Debug, Default)]
pub struct ConstantBanks {
    /// Bytes by bank number; what lies beyond reads zero.
    pub banks: Vec<Vec<u8>>,
}

impl ConstantBanks {
    /// The word at a byte offset; zero outside the bank.
    #[must_use]
    #[inline]
    pub fn word(&self, bank: u8, offset: u32) -> u32 {
        let offset = offset as usize;
        self.banks
            .get(usize::from(bank))
            .and_then(|bytes| bytes.get(offset..offset.checked_add(4)?))
            .map_or(0, |bytes| {
                u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
            })
    }
}

/// Who a warp is: what special registers answer from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// Threads in a block.
    pub block_size: [u32; 3],
    /// Blocks in the grid.
    pub grid_size: [u32; 3],
    /// Warp within the block.
    pub warp_in_block: u32,
    /// Slot of the warp in the SM (`%warpid`).
    pub warp_slot: u32,
    /// Warps that the SM can hold (`%nwarpid`).
    pub warp_slots: u32,
    /// SM (`%smid`).
    pub sm: u32,
    /// SMs of the GPU (`%nsmid`).
    pub sms: u32,
    /// Launch number (`%gridid`).
    pub grid: u64,
    /// Core cycle now (`%clock64`).
    pub clock: u64,
    /// Simulated nanoseconds now (`%globaltimer`).
    pub nanoseconds: u64,
    /// Bytes of dynamic shared memory of the block.
    pub dynamic_shared: u32,
    /// All bytes of shared memory of the block.
    pub total_shared: u32,
    /// Bytes of local memory of a thread, stack included.
    pub local_bytes: u32,
    /// `%envreg0` to `%envreg3`: 1 and 2 hold the cooperative grid's work space address, high word first.
    pub environment: [u32; 4],
}

impl Identity {
    /// `%tid` of a lane.
    #[must_use]
    #[inline]
    pub fn thread(&self, lane: usize) -> [u32; 3] {
        let linear = self.warp_in_block * 32 + lane as u32;
        let [x, y, _] = self.block_size.map(|size| size.max(1));
        [linear % x, (linear / x) % y, linear / (x * y)]
    }
}

/// One warp at one instruction.
pub struct Lanes<'a> {
    /// The warp's rows.
    pub registers: &'a mut [Row],
    /// The warp's predicates, a lane mask each.
    pub predicates: &'a mut [Mask],
    /// Convergence barriers, for instructions that move them.
    pub convergence: &'a mut Convergence,
    /// Constants of the launch.
    pub constants: &'a ConstantBanks,
    /// Who the warp is.
    pub identity: &'a Identity,
    /// Lanes at this instruction, whatever the guard says.
    pub active: Mask,
    /// Lanes that execute: `active` under the guard.
    pub execute: Mask,
}

/// Reading and writing operands stays out of line: inlined into every meaning, the choice among
/// operand kinds made this crate take three times as long to compile.
impl Lanes<'_> {
    /// A predicate as a lane mask.
    #[must_use]
    #[inline]
    pub fn predicate(&self, operand: PredicateOperand) -> Mask {
        let mask = match operand.register {
            PredicateRegister::True => FULL,
            PredicateRegister::Lanes(index) => self.predicates[usize::from(index)],
        };
        if operand.negate { !mask } else { mask }
    }

    /// Writes a predicate for the executing lanes.
    #[inline]
    pub fn set_predicate(&mut self, register: PredicateRegister, value: Mask) {
        match register {
            PredicateRegister::True => {}
            PredicateRegister::Lanes(index) => {
                let old = &mut self.predicates[usize::from(index)];
                *old = (value & self.execute) | (*old & !self.execute);
            }
        }
    }

    /// The raw word of an operand in every lane, `word` words above its first.
    #[must_use]
    #[inline(never)]
    pub fn raw(&self, operand: Operand, word: u16) -> Row {
        match operand {
            Operand::None => Row::ZERO,
            Operand::Register(row) => self.registers[usize::from(row + word)],
            Operand::Immediate(value) => Row::splat((value >> (32 * word.min(1))) as u32),
            Operand::Constant { bank, offset } => {
                Row::splat(self.constants.word(bank, offset + 4 * u32::from(word)))
            }
        }
    }

    /// A 32-bit integer source: `invert` and `negate` applied.
    #[must_use]
    #[inline(never)]
    pub fn integer(&self, source: Source) -> Row {
        let mut row = self.raw(source.operand, 0);
        if source.invert {
            row.0.iter_mut().for_each(|word| *word = !*word);
        }
        if source.negate {
            row.0
                .iter_mut()
                .for_each(|word| *word = word.wrapping_neg());
        }
        row
    }

    /// A 32-bit float source as bits: `absolute`, then `negate` applied.
    #[must_use]
    #[inline(never)]
    pub fn float(&self, source: Source) -> Row {
        let mut row = self.raw(source.operand, 0);
        if source.absolute {
            row.0.iter_mut().for_each(|word| *word &= 0x7fff_ffff);
        }
        if source.negate {
            row.0.iter_mut().for_each(|word| *word ^= 0x8000_0000);
        }
        row
    }

    /// A 64-bit integer source: `invert` and `negate` applied.
    #[must_use]
    #[inline(never)]
    pub fn integer64(&self, source: Source) -> [u64; LANES] {
        let mut values = self.pair(source.operand);
        if source.invert {
            values.iter_mut().for_each(|value| *value = !*value);
        }
        if source.negate {
            values
                .iter_mut()
                .for_each(|value| *value = value.wrapping_neg());
        }
        values
    }

    /// A 64-bit float source as bits: `absolute`, then `negate` applied.
    #[must_use]
    #[inline(never)]
    pub fn float64(&self, source: Source) -> [u64; LANES] {
        let mut values = self.pair(source.operand);
        if source.absolute {
            values.iter_mut().for_each(|value| *value &= !(1 << 63));
        }
        if source.negate {
            values.iter_mut().for_each(|value| *value ^= 1 << 63);
        }
        values
    }

    /// Two words of an operand joined, low first.
    #[must_use]
    #[inline(never)]
    pub fn pair(&self, operand: Operand) -> [u64; LANES] {
        let (low, high) = (self.raw(operand, 0), self.raw(operand, 1));
        let mut values = [0; LANES];
        for (lane, value) in values.iter_mut().enumerate() {
            *value = u64::from(low.0[lane]) | u64::from(high.0[lane]) << 32;
        }
        values
    }

    /// A pair of 16-bit values, chosen by `halves`, sign operations applied to both.
    #[must_use]
    #[inline(never)]
    pub fn halves(&self, source: Source) -> Row {
        let mut row = self.raw(source.operand, 0);
        match source.halves {
            Halves::Both | Halves::Float32 => {}
            Halves::Low => row.0.iter_mut().for_each(|w| *w = (*w & 0xffff) | *w << 16),
            Halves::High => row
                .0
                .iter_mut()
                .for_each(|w| *w = (*w >> 16) | (*w & 0xffff_0000)),
        }
        if source.absolute {
            row.0.iter_mut().for_each(|word| *word &= 0x7fff_7fff);
        }
        if source.negate {
            row.0.iter_mut().for_each(|word| *word ^= 0x8000_8000);
        }
        row
    }

    /// Writes a row for the executing lanes; no destination drops it.
    #[inline(never)]
    pub fn write(&mut self, destination: Option<u16>, word: u16, value: &Row) {
        if let Some(row) = destination {
            self.registers[usize::from(row + word)].blend(value, self.execute);
        }
    }

    /// Writes two rows for the executing lanes.
    #[inline(never)]
    pub fn write64(&mut self, destination: Option<u16>, values: &[u64; LANES]) {
        let (mut low, mut high) = (Row::ZERO, Row::ZERO);
        for (lane, value) in values.iter().enumerate() {
            low.0[lane] = *value as u32;
            high.0[lane] = (*value >> 32) as u32;
        }
        self.write(destination, 0, &low);
        self.write(destination, 1, &high);
    }
}
