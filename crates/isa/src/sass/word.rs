//! One 128-bit instruction word and its control bits.

use crate::instruction::Control;

/// Bytes of one instruction.
pub const WORD_BYTES: u64 = 16;

/// An instruction as it lies in memory, bit 0 the lowest of the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub u128);

impl Word {
    /// The word in the first 16 bytes, or `None` when there are fewer.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let first: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
        Some(Self(u128::from_le_bytes(first)))
    }

    /// The field of `width` bits (at most 64) that starts at bit `low`.
    #[must_use]
    pub fn field(self, low: u8, width: u8) -> u64 {
        let shifted = (self.0 >> low) as u64;
        if width >= 64 {
            shifted
        } else {
            shifted & ((1 << width) - 1)
        }
    }

    /// The same field, sign-extended.
    #[must_use]
    pub fn signed_field(self, low: u8, width: u8) -> i64 {
        let unused = 64 - u32::from(width.clamp(1, 64));
        ((self.field(low, width) << unused) as i64) >> unused
    }

    /// Whether bit `position` is set.
    #[must_use]
    pub fn bit(self, position: u8) -> bool {
        (self.0 >> position) & 1 != 0
    }

    /// Opcode and operand form: the lowest 12 bits.
    #[must_use]
    pub fn operation(self) -> u16 {
        self.field(0, 12) as u16
    }

    /// The compiler's scheduling bits. The yield bit is active low.
    #[must_use]
    pub fn control(self) -> Control {
        Control {
            stall: self.field(105, 4) as u8,
            yields: !self.bit(109),
            write_counter: self.field(110, 3) as u8,
            read_counter: self.field(113, 3) as u8,
            wait_mask: self.field(116, 6) as u8,
            reuse: self.field(122, 4) as u8,
            threshold: None,
        }
    }
}
