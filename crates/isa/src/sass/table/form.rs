//! Operand forms: where the sources of an arithmetic row lie, by the upper digit of its opcode bits.

use smallvec::SmallVec;

use super::super::decoded::ImmediateFormat;
use super::entry::{Choice, Field, OperandField, Place};
use super::row::RowReader;

/// What an immediate at 32 is.
#[derive(Clone, Copy)]
pub(super) enum ImmediateAt32 {
    Plain(ImmediateFormat),
    /// bfloat16 where the bit is set.
    Halves(u8),
}

/// Which of the arithmetic sources.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    B,
    C,
    X,
}

/// The operand form of one opcode, from the upper digit of its bits.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub nibble: u16,
    /// Sources can be kept in the register cache; not those of the slower units.
    pub cached: bool,
    pub uniform: bool,
    pub immediate: ImmediateAt32,
}

impl Form {
    /// In these forms B is at 64 and C at 32.
    fn is_swapped(self) -> bool {
        matches!(self.nibble, 4 | 6 | 0xe)
    }

    pub(super) fn register(self, low: u8, reuse: Option<u8>) -> (Place, Option<u8>) {
        if self.uniform {
            (Place::Uniform(low), None)
        } else {
            (Place::Register(low), reuse.filter(|_| self.cached))
        }
    }

    pub(super) fn source(self, slot: Slot, reader: &RowReader<'_>) -> (Place, Option<u8>) {
        let reuse = Some(if slot == Slot::B { 123 } else { 124 });
        let at_64 = match slot {
            Slot::B => self.is_swapped(),
            Slot::C => !self.is_swapped(),
            Slot::X => false,
        };
        if at_64 {
            return self.register(64, reuse);
        }
        match self.nibble {
            2 => self.register(32, reuse),
            4 | 8 => match self.immediate {
                ImmediateAt32::Plain(format) => (
                    Place::Number(Field(SmallVec::from_slice(&[(32, 32)])), format),
                    None,
                ),
                ImmediateAt32::Halves(brain) => (
                    Place::Halves(Field(SmallVec::from_slice(&[(32, 32)])), brain),
                    None,
                ),
            },
            6 | 0xa => (Place::SourceConstant, None),
            0xc | 0xe => (Place::Uniform(32), None),
            _ => reader.fail("an arithmetic row has an upper digit from 2 to f"),
        }
    }

    /// Flags are written for B at 32 and C at 64; where the two swap places, so do the flags.
    /// A number has no flags.
    pub(super) fn settle_flags(self, operands: &mut [OperandField], has_c: bool) {
        let places = |wanted: &dyn Fn(&Place) -> bool, operands: &[OperandField]| {
            operands.iter().position(|operand| wanted(&operand.place))
        };
        let at_64 = places(
            &|p| matches!(p, Place::Register(64) | Place::Uniform(64)),
            operands,
        );
        let at_32 = places(
            &|p| {
                matches!(
                    p,
                    Place::Number(..)
                        | Place::Halves(..)
                        | Place::SourceConstant
                        | Place::Uniform(32)
                )
            },
            operands,
        );
        if let (true, Some(b), Some(c)) = (self.is_swapped() && has_c, at_64, at_32) {
            let (b_flags, c_flags) = (Flags::take(&mut operands[b]), Flags::take(&mut operands[c]));
            b_flags.put(&mut operands[c]);
            c_flags.put(&mut operands[b]);
        }
        // Volta keeps a lone second register by either bit.
        let mut kept: Vec<_> = operands
            .iter_mut()
            .filter(|o| matches!(o.reuse, Some(123 | 124)))
            .collect();
        if let [operand] = &mut kept[..] {
            operand.reuse_on_volta = operand.reuse.map(|bit| 123 + 124 - bit);
        }
        for operand in operands {
            if matches!(&operand.place, Place::Halves(..))
                || matches!(&operand.place, Place::Number(field, _) if field.0[..] == [(32, 32)])
            {
                Flags::take(operand);
            }
        }
    }
}

/// The flags that belong to a place rather than to a source.
struct Flags {
    negate: Option<u8>,
    absolute: Option<u8>,
    invert: Option<u8>,
    complements_when_extended: bool,
    suffixes: Vec<Choice>,
}

impl Flags {
    fn take(operand: &mut OperandField) -> Self {
        Self {
            negate: operand.negate.take(),
            absolute: operand.absolute.take(),
            invert: operand.invert.take(),
            complements_when_extended: std::mem::take(&mut operand.complements_when_extended),
            suffixes: std::mem::take(&mut operand.suffixes),
        }
    }

    fn put(self, operand: &mut OperandField) {
        operand.negate = self.negate;
        operand.absolute = self.absolute;
        operand.invert = self.invert;
        operand.complements_when_extended = self.complements_when_extended;
        operand.suffixes = self.suffixes;
    }
}
