//! What a computing instruction may touch: the state of one warp, as 32 lanes.

use std::mem::MaybeUninit;

use lockstep_units::Time;

use crate::{
    convergence::Convergence,
    operand::{Halves, Operand, PredicateOperand, PredicateRegister, Source},
    warp_register::{FULL, LANES, Mask, WarpRegister},
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

/// Bytes of the widest read of a bank: its last one may begin where only one byte is left.
const WIDEST_READ: usize = 16;

impl ConstantBanks {
    /// Puts bytes into a bank, which grows to whole reads of any width.
    pub fn write(&mut self, bank: u8, offset: u32, bytes: &[u8]) {
        let (bank, start) = (usize::from(bank), offset as usize);
        if self.banks.len() <= bank {
            self.banks.resize(bank + 1, Vec::new());
        }
        let (bank, end) = (&mut self.banks[bank], start + bytes.len());
        if bank.len() < end {
            bank.resize(end.next_multiple_of(WIDEST_READ), 0);
        }
        bank[start..end].copy_from_slice(bytes);
    }

    /// So many bytes from an offset on, if the bank has them all.
    #[must_use]
    #[inline]
    pub fn bytes(&self, bank: u8, offset: u64, length: usize) -> Option<&[u8]> {
        let offset = usize::try_from(offset).ok()?;
        let bytes = self.banks.get(usize::from(bank))?;
        bytes.get(offset..offset.checked_add(length)?)
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
    /// Simulated femtoseconds now; see [`Self::nanoseconds`].
    pub time: u64,
    /// Nanoseconds by which `%globaltimer` advances; 0 as 1.
    pub timer_step: u32,
    /// Bytes of dynamic shared memory of the block.
    pub dynamic_shared: u32,
    /// All bytes of shared memory of the block.
    pub total_shared: u32,
    /// Bytes of local memory of a thread, stack included.
    pub local_bytes: u32,
    /// Blocks of a cluster by axis; 0 as 1.
    pub cluster_size: [u32; 3],
    /// Whether the launch or the kernel asked for clusters.
    pub explicit_cluster: bool,
    /// `%envreg0` to `%envreg3`: 1 and 2 hold the cooperative grid's work space address, high word first.
    pub environment: [u32; 4],
}

impl Identity {
    /// Simulated nanoseconds when `%globaltimer` last advanced.
    #[must_use]
    pub fn nanoseconds(&self) -> u64 {
        let now = Time(self.time).nanoseconds();
        now - now % u64::from(self.timer_step.max(1))
    }

    /// Blocks of a cluster by axis.
    #[must_use]
    #[inline]
    pub fn cluster(&self) -> [u32; 3] {
        self.cluster_size.map(|size| size.max(1))
    }

    /// `%cluster_ctarank`: the number of the block in its cluster.
    #[must_use]
    pub fn cluster_rank(&self) -> u32 {
        let size = self.cluster();
        let [x, y, z] = [0, 1, 2].map(|axis| self.block[axis] % size[axis]);
        x + size[0] * (y + size[1] * z)
    }

    /// `%cluster_nctarank`: blocks of a cluster.
    #[must_use]
    pub fn cluster_blocks(&self) -> u32 {
        self.cluster().iter().product()
    }

    /// `%tid` of a lane.
    #[must_use]
    #[inline]
    pub fn thread(&self, lane: usize) -> [u32; 3] {
        let linear = self.warp_in_block * 32 + lane as u32;
        let [x, y, _] = self.block_size.map(|size| size.max(1));
        [linear % x, (linear / x) % y, linear / (x * y)]
    }
}

impl Identity {
    /// One component of `%tid` in every lane. Divides once and counts on from there.
    #[must_use]
    pub fn threads(&self, axis: usize) -> WarpRegister {
        let [x, y, _] = self.block_size.map(|size| size.max(1));
        let mut thread = self.thread(0);
        if x.is_multiple_of(LANES as u32) {
            // The lanes of a warp lie side by side along the first axis.
            let step = u32::from(axis == 0);
            return WarpRegister(std::array::from_fn(|lane| {
                thread[axis] + step * lane as u32
            }));
        }
        let mut row = WarpRegister::ZERO;
        for word in &mut row.0 {
            *word = thread[axis];
            thread[0] += 1;
            if thread[0] == x {
                thread[0] = 0;
                thread[1] += 1;
                if thread[1] == y {
                    thread[1] = 0;
                    thread[2] += 1;
                }
            }
        }
        row
    }
}

/// One warp at one instruction.
pub struct Lanes<'a> {
    /// The registers of the warp.
    pub registers: &'a mut [WarpRegister],
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

/// ScratchRegister for the value of an operand that is no register as it stands.
pub type ScratchRegister = MaybeUninit<WarpRegister>;

/// What an absent operand reads.
static ZEROS: WarpRegister = WarpRegister::ZERO;

/// Binds names to operands of an instruction, without a copy where an operand is a register:
/// `operands!(lanes, i; a = integer_at 0, b = float_at 1)`.
#[macro_export]
macro_rules! operands {
    ($lanes:expr, $i:expr; $($name:ident = $kind:ident $index:expr),+ $(,)?) => {
        $(
            let mut room = $crate::lanes::ScratchRegister::uninit();
            let $name = $lanes.$kind(&$i.sources[$index], &mut room);
        )+
    };
}

/// Binds names to 64-bit operands of an instruction, a low and a high register each.
#[macro_export]
macro_rules! operands64 {
    ($lanes:expr, $i:expr; $($name:ident = $kind:ident $index:expr),+ $(,)?) => {
        $(
            let mut room = [$crate::lanes::ScratchRegister::uninit(); 2];
            let $name = $lanes.$kind(&$i.sources[$index], &mut room);
        )+
    };
}

/// A 64-bit operand in every lane, low and high words apart.
#[derive(Clone, Copy)]
pub struct RegisterPair<'a> {
    low: &'a WarpRegister,
    high: &'a WarpRegister,
}

impl RegisterPair<'_> {
    /// The value of one lane.
    #[must_use]
    #[inline(always)]
    pub fn at(&self, lane: usize) -> u64 {
        u64::from(self.low.0[lane]) | u64::from(self.high.0[lane]) << 32
    }
}

/// Operands that are plain registers are read and written in place, inside every lane function. All else
/// stays out of line: with the choice among operand kinds in every one this crate took three
/// times as long to compile.
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

    /// As [`Self::raw`], without a copy of a register.
    #[must_use]
    #[inline(always)]
    pub fn raw_at<'a>(
        &'a self,
        operand: Operand,
        word: u16,
        room: &'a mut ScratchRegister,
    ) -> &'a WarpRegister {
        match operand {
            Operand::Register(row) => &self.registers[usize::from(row + word)],
            Operand::None => &ZEROS,
            _ => self.literal_at(operand, word, room),
        }
    }

    #[inline(never)]
    fn literal_at<'a>(
        &self,
        operand: Operand,
        word: u16,
        room: &'a mut ScratchRegister,
    ) -> &'a WarpRegister {
        match self.literal(operand, word) {
            Some(value) => room.write(WarpRegister::splat(value)),
            None => room.write(self.raw(operand, word)),
        }
    }

    /// The word that an operand has in all lanes, if it is no register.
    #[inline(always)]
    fn literal(&self, operand: Operand, word: u16) -> Option<u32> {
        match operand {
            Operand::None => Some(0),
            Operand::Register(_) => None,
            Operand::Immediate(value) => Some((value >> (32 * word.min(1))) as u32),
            Operand::Constant { bank, offset } => {
                Some(self.constants.word(bank, offset + 4 * u32::from(word)))
            }
        }
    }

    /// As [`Self::integer`], without a copy of a register.
    #[must_use]
    #[inline(always)]
    pub fn integer_at<'a>(
        &'a self,
        source: &Source,
        room: &'a mut ScratchRegister,
    ) -> &'a WarpRegister {
        match source.operand {
            Operand::Register(row) if !(source.negate | source.invert) => {
                &self.registers[usize::from(row)]
            }
            Operand::None if !(source.negate | source.invert) => &ZEROS,
            _ => self.integer_into(source, room),
        }
    }

    #[inline(never)]
    fn integer_into<'a>(&self, source: &Source, room: &'a mut ScratchRegister) -> &'a WarpRegister {
        match self.literal(source.operand, 0) {
            Some(word) => room.write(WarpRegister::splat(source.of_integer(word))),
            None => room.write(self.integer(*source)),
        }
    }

    /// As [`Self::float`], without a copy of a register.
    #[must_use]
    #[inline(always)]
    pub fn float_at<'a>(
        &'a self,
        source: &Source,
        room: &'a mut ScratchRegister,
    ) -> &'a WarpRegister {
        match source.operand {
            Operand::Register(row) if !(source.negate | source.absolute) => {
                &self.registers[usize::from(row)]
            }
            _ => self.float_into(source, room),
        }
    }

    #[inline(never)]
    fn float_into<'a>(&self, source: &Source, room: &'a mut ScratchRegister) -> &'a WarpRegister {
        match self.literal(source.operand, 0) {
            Some(word) => room.write(WarpRegister::splat(source.of_float(word))),
            None => room.write(self.float(*source)),
        }
    }

    /// As [`Self::integer64`], without a copy of registers.
    #[must_use]
    #[inline(always)]
    pub fn integer64_at<'a>(
        &'a self,
        source: &Source,
        room: &'a mut [ScratchRegister; 2],
    ) -> RegisterPair<'a> {
        match source.operand {
            Operand::Register(row) if !(source.negate | source.invert) => self.longs(row),
            Operand::None if !(source.negate | source.invert) => RegisterPair {
                low: &ZEROS,
                high: &ZEROS,
            },
            _ => self.integer64_into(source, room),
        }
    }

    #[inline(never)]
    fn integer64_into<'a>(
        &self,
        source: &Source,
        room: &'a mut [ScratchRegister; 2],
    ) -> RegisterPair<'a> {
        match self.literal64(source.operand) {
            Some(value) => repeated(source.of_integer64(value), room),
            None => divided(&self.integer64(*source), room),
        }
    }

    /// As [`Self::float64`], without a copy of registers.
    #[must_use]
    #[inline(always)]
    pub fn float64_at<'a>(
        &'a self,
        source: &Source,
        room: &'a mut [ScratchRegister; 2],
    ) -> RegisterPair<'a> {
        match source.operand {
            Operand::Register(row) if !(source.negate | source.absolute) => self.longs(row),
            _ => self.float64_into(source, room),
        }
    }

    #[inline(never)]
    fn float64_into<'a>(
        &self,
        source: &Source,
        room: &'a mut [ScratchRegister; 2],
    ) -> RegisterPair<'a> {
        match self.literal64(source.operand) {
            Some(value) => repeated(source.of_float64(value), room),
            None => divided(&self.float64(*source), room),
        }
    }

    /// Two words that an operand has in all lanes, low first.
    #[inline(always)]
    fn literal64(&self, operand: Operand) -> Option<u64> {
        let low = self.literal(operand, 0)?;
        let high = self.literal(operand, 1)?;
        Some(u64::from(low) | u64::from(high) << 32)
    }

    #[inline(always)]
    fn longs(&self, row: u16) -> RegisterPair<'_> {
        RegisterPair {
            low: &self.registers[usize::from(row)],
            high: &self.registers[usize::from(row) + 1],
        }
    }

    /// The raw word of an operand in every lane, `word` words above its first.
    #[must_use]
    #[inline(never)]
    pub fn raw(&self, operand: Operand, word: u16) -> WarpRegister {
        match (operand, self.literal(operand, word)) {
            (_, Some(value)) => WarpRegister::splat(value),
            (Operand::Register(row), None) => self.registers[usize::from(row + word)],
            (_, None) => WarpRegister::ZERO,
        }
    }

    /// A 32-bit integer source: `invert` and `negate` applied.
    #[must_use]
    #[inline(never)]
    pub fn integer(&self, source: Source) -> WarpRegister {
        let mut row = self.raw(source.operand, 0);
        row.0
            .iter_mut()
            .for_each(|word| *word = source.of_integer(*word));
        row
    }

    /// A 32-bit float source as bits: `absolute`, then `negate` applied.
    #[must_use]
    #[inline(never)]
    pub fn float(&self, source: Source) -> WarpRegister {
        let mut row = self.raw(source.operand, 0);
        row.0
            .iter_mut()
            .for_each(|word| *word = source.of_float(*word));
        row
    }

    /// A 64-bit integer source: `invert` and `negate` applied.
    #[must_use]
    #[inline(never)]
    pub fn integer64(&self, source: Source) -> [u64; LANES] {
        let mut values = self.pair(source.operand);
        values
            .iter_mut()
            .for_each(|value| *value = source.of_integer64(*value));
        values
    }

    /// A 64-bit float source as bits: `absolute`, then `negate` applied.
    #[must_use]
    #[inline(never)]
    pub fn float64(&self, source: Source) -> [u64; LANES] {
        let mut values = self.pair(source.operand);
        values
            .iter_mut()
            .for_each(|value| *value = source.of_float64(*value));
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
    pub fn halves(&self, source: Source) -> WarpRegister {
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

    /// Writes a register for the executing lanes; no destination drops it.
    #[inline(always)]
    pub fn write(&mut self, destination: Option<u16>, word: u16, value: &WarpRegister) {
        if let Some(row) = destination {
            let register = &mut self.registers[usize::from(row + word)];
            if self.execute == FULL {
                *register = *value;
            } else {
                blend(register, value, self.execute);
            }
        }
    }

    /// Writes two registers for the executing lanes.
    #[inline(always)]
    pub fn write64(&mut self, destination: Option<u16>, values: &[u64; LANES]) {
        let Some(row) = destination else { return };
        let (mut low, mut high) = (WarpRegister::ZERO, WarpRegister::ZERO);
        for (lane, value) in values.iter().enumerate() {
            low.0[lane] = *value as u32;
            high.0[lane] = (*value >> 32) as u32;
        }
        self.write(Some(row), 0, &low);
        self.write(Some(row), 1, &high);
    }
}

#[inline(never)]
fn blend(register: &mut WarpRegister, value: &WarpRegister, lanes: Mask) {
    register.blend(value, lanes);
}

/// One 64-bit value in every lane.
fn repeated(value: u64, room: &mut [ScratchRegister; 2]) -> RegisterPair<'_> {
    let [low, high] = room;
    RegisterPair {
        low: low.write(WarpRegister::splat(value as u32)),
        high: high.write(WarpRegister::splat((value >> 32) as u32)),
    }
}

/// 64-bit values as two registers.
fn divided<'a>(values: &[u64; LANES], room: &'a mut [ScratchRegister; 2]) -> RegisterPair<'a> {
    let (mut low, mut high) = (WarpRegister::ZERO, WarpRegister::ZERO);
    for (lane, value) in values.iter().enumerate() {
        low.0[lane] = *value as u32;
        high.0[lane] = (*value >> 32) as u32;
    }
    let [first, second] = room;
    RegisterPair {
        low: first.write(low),
        high: second.write(high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_advances_by_its_step() {
        let at = |nanoseconds: u64, timer_step| {
            let time = nanoseconds * 1_000_000 + 999_999;
            let identity = Identity {
                time,
                timer_step,
                ..Identity::default()
            };
            identity.nanoseconds()
        };
        assert_eq!(at(1023, 0), 1023);
        assert_eq!(at(1023, 1), 1023);
        assert_eq!(at(1023, 32), 992);
        assert_eq!(at(1024, 32), 1024);
    }
}
