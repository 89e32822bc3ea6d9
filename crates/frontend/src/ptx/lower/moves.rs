//! `mov`: copies, packing, unpacking, special registers, addresses.

use lockstep_isa::{
    Operand as Value,
    ptx::{
        Type, class,
        special_register::{self, SpecialRegister},
    },
    semantics,
    semantics::lane_loops::{Semantics, binary, unary, unary64, widen},
};

use super::{Lowering, Register};
use crate::ptx::{
    error::Error,
    ir::{Code, Place, Uniformity},
    syntax::{Instruction, Operand, Scalar},
};

const MOVE: Semantics = semantics!(unary; |a| a);
const MOVE64: Semantics = semantics!(unary64; |a| a);
const JOIN_HALVES: Semantics = semantics!(binary; |low, high| low & 0xffff | high << 16);
const JOIN_BYTES: Semantics = semantics!(binary; |low, high| low & 0xff | (high & 0xff) << 8);
const HIGH_HALF: Semantics = semantics!(unary; |a| a >> 16);
const HIGH_BYTE: Semantics = semantics!(unary; |a| a >> 8 & 0xff);
const EXTEND: Semantics = semantics!(widen; u64::from);
const EXTEND_SIGNED: Semantics = semantics!(widen; |a| a as i32 as u64);

impl<'p, 'a> Lowering<'p, 'a> {
    /// One word to one word.
    pub(super) fn move32(&self, to: Place, from: Value) -> Code<'a> {
        self.moved(MOVE, to, 1, from)
    }

    /// Two words to two words.
    pub(super) fn move64(&self, to: Place, from: Value) -> Code<'a> {
        self.moved(MOVE64, to, 2, from)
    }

    fn moved(&self, semantics: Semantics, to: Place, rows: u16, from: Value) -> Code<'a> {
        let mut code = self.compute(semantics, class::MOVE);
        code.instruction.sources[0] = from.into();
        code.instruction.destination = Some(code.write(to, rows));
        code
    }

    /// One word from a place to another.
    pub(super) fn copy_word(&mut self, to: Place, from: Place) {
        let mut code = self.compute(MOVE, class::MOVE);
        code.instruction.sources[0] = code.read(from, 1).into();
        code.instruction.destination = Some(code.write(to, 1));
        self.push(code);
    }

    /// A 32-bit register into a 64-bit one.
    pub(super) fn extend(&mut self, to: Register, from: Register, signed: bool) {
        let semantics = if signed { EXTEND_SIGNED } else { EXTEND };
        let mut code = self.compute(semantics, class::MOVE);
        code.instruction.sources[0] = code.read(from.place(), 1).into();
        code.instruction.destination = Some(code.write(to.place(), 2));
        self.push(code);
    }

    /// Reads a special register.
    pub(super) fn special(&self, special: &'static SpecialRegister, to: Register) -> Code<'a> {
        let mut code = self.compute(special.semantics, class::SPECIAL_REGISTER);
        let rows = if special.bits == 64 { 2 } else { 1 };
        code.instruction.destination = Some(code.write(to.place(), rows));
        if !special.uniform {
            code.uniformity = Uniformity::Divergent;
        }
        code
    }

    pub(super) fn mov(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=2)?;
        let Some(scalar) = i.modifiers.last().and_then(|word| Scalar::from_name(word)) else {
            return self.by_table(i);
        };
        match (&i.operands[0], &i.operands[1]) {
            (Operand::Vector(to), from) => self.unpack(to, from, scalar),
            (to, Operand::Vector(from)) => self.pack(to, from, scalar),
            (Operand::Sink, _) => Ok(()),
            (to, from) => self.plain(to, from, scalar),
        }
    }

    fn plain(&mut self, to: &Operand<'a>, from: &Operand<'a>, scalar: Scalar) -> Result<(), Error> {
        let to = self.register_operand(to)?;
        if let Operand::Name(name) = from
            && let Some(special) = special_register::find(name)
        {
            return self.plain_special(to, special);
        }
        let kind = type_of(scalar);
        if scalar.bits == 128 {
            let from = self.register_operand(from)?;
            for word in 0..4 {
                self.copy_word(to.word(word), from.word(word));
            }
            return Ok(());
        }
        let rows = kind.words();
        if to.words() < rows {
            return self.wrong(format!(
                "a register of {} bits stands where {} bits are written",
                to.scalar.bits, scalar.bits
            ));
        }
        let semantics = if rows == 2 { MOVE64 } else { MOVE };
        let mut code = self.compute(semantics, class::MOVE);
        code.instruction.sources[0] = self.value(&mut code, from, kind)?.into();
        if to.words() > rows {
            let narrow = self.new_register(32);
            code.instruction.destination = Some(code.write(narrow.place(), 1));
            self.push(code);
            self.extend(to, narrow, scalar.signed());
            return Ok(());
        }
        code.instruction.destination = Some(code.write(to.place(), rows));
        self.push(code);
        Ok(())
    }

    /// A 64-bit special register may be read into 32 bits, and the other way round.
    fn plain_special(
        &mut self,
        to: Register,
        special: &'static SpecialRegister,
    ) -> Result<(), Error> {
        let rows = if special.bits == 64 { 2 } else { 1 };
        if to.words() == rows {
            let code = self.special(special, to);
            self.push(code);
            return Ok(());
        }
        let whole = self.new_register(special.bits);
        let code = self.special(special, whole);
        self.push(code);
        if rows == 2 {
            self.copy_word(to.place(), whole.place());
        } else {
            self.extend(to, whole, false);
        }
        Ok(())
    }

    /// `mov.b64 {a, b}, c`: the low element first.
    fn unpack(
        &mut self,
        to: &[Operand<'a>],
        from: &Operand<'a>,
        scalar: Scalar,
    ) -> Result<(), Error> {
        let from = match self.literal(from, type_of(scalar))? {
            Some(bits) => {
                let register = self.new_register(scalar.bits.min(64));
                let code = if scalar.bits == 64 {
                    self.move64(register.place(), Value::Immediate(bits))
                } else {
                    self.move32(register.place(), Value::Immediate(bits))
                };
                self.push(code);
                register
            }
            None => self.register_operand(from)?,
        };
        let bits = scalar.bits / (to.len().max(1) as u32);
        if from.words() < super::rows_of(scalar.bits) || !matches!(bits, 8 | 16 | 32 | 64) {
            return self.wrong("the elements do not make up the whole");
        }
        for (index, element) in to.iter().enumerate() {
            if *element == Operand::Sink {
                continue;
            }
            let element = self.register_operand(element)?;
            let first = index as u32 * bits;
            let word = from.word((first / 32) as u16);
            match (bits, first % 32) {
                (64, _) => {
                    let second = from.word((first / 32 + 1) as u16);
                    if element.words() < 2 {
                        return self.wrong("an element of 64 bits needs a register of 64 bits");
                    }
                    self.copy_word(element.word(0), word);
                    self.copy_word(element.word(1), second);
                }
                (32, _) | (16, 0) => self.copy_word(element.place(), word),
                (16, _) => self.pick(HIGH_HALF, element, word),
                (_, 0) => self.pick(semantics!(unary; |a| a & 0xff), element, word),
                (_, 8) => self.pick(HIGH_BYTE, element, word),
                (_, 16) => self.pick(semantics!(unary; |a| a >> 16 & 0xff), element, word),
                _ => self.pick(semantics!(unary; |a| a >> 24), element, word),
            }
        }
        Ok(())
    }

    fn pick(&mut self, semantics: Semantics, to: Register, from: Place) {
        let mut code = self.compute(semantics, class::MOVE);
        code.instruction.sources[0] = code.read(from, 1).into();
        code.instruction.destination = Some(code.write(to.place(), 1));
        self.push(code);
    }

    /// `mov.b64 c, {a, b}`.
    fn pack(
        &mut self,
        to: &Operand<'a>,
        from: &[Operand<'a>],
        scalar: Scalar,
    ) -> Result<(), Error> {
        let to = self.register_operand(to)?;
        let bits = scalar.bits / (from.len().max(1) as u32);
        if to.words() < super::rows_of(scalar.bits) {
            return self.wrong("the elements do not make up the whole");
        }
        match bits {
            64 => {
                for (index, element) in from.iter().enumerate() {
                    let mut code = self.compute(MOVE64, class::MOVE);
                    code.instruction.sources[0] = self.value(&mut code, element, Type::B64)?.into();
                    let place = to.word(2 * index as u16);
                    code.instruction.destination = Some(code.write(place, 2));
                    self.push(code);
                }
                Ok(())
            }
            32 => {
                for (index, element) in from.iter().enumerate() {
                    let mut code = self.compute(MOVE, class::MOVE);
                    code.instruction.sources[0] = self.value(&mut code, element, Type::B32)?.into();
                    let place = to.word(index as u16);
                    code.instruction.destination = Some(code.write(place, 1));
                    self.push(code);
                }
                Ok(())
            }
            16 if from.len().is_multiple_of(2) => self.join(to, from, JOIN_HALVES, Type::B16),
            8 if from.len() == 2 => self.join(to, from, JOIN_BYTES, Type::B8),
            8 if from.len() == 4 => {
                let halves = [self.new_register(32), self.new_register(32)];
                for (half, pair) in halves.iter().zip(from.chunks(2)) {
                    self.join(*half, pair, JOIN_BYTES, Type::B8)?;
                }
                let mut code = self.compute(JOIN_HALVES, class::MOVE);
                code.instruction.sources[0] = code.read(halves[0].place(), 1).into();
                code.instruction.sources[1] = code.read(halves[1].place(), 1).into();
                code.instruction.destination = Some(code.write(to.place(), 1));
                self.push(code);
                Ok(())
            }
            _ => self.wrong("the elements do not make up the whole"),
        }
    }

    /// Joins pairs of elements into words.
    fn join(
        &mut self,
        to: Register,
        from: &[Operand<'a>],
        semantics: Semantics,
        kind: Type,
    ) -> Result<(), Error> {
        for (index, pair) in from.chunks(2).enumerate() {
            let mut code = self.compute(semantics, class::MOVE);
            code.instruction.sources[0] = self.value(&mut code, &pair[0], kind)?.into();
            code.instruction.sources[1] = self.value(&mut code, &pair[1], kind)?.into();
            code.instruction.destination = Some(code.write(to.word(index as u16), 1));
            self.push(code);
        }
        Ok(())
    }
}

/// The register type of a scalar.
pub(super) fn type_of(scalar: Scalar) -> Type {
    use crate::ptx::syntax::ScalarKind;
    match (scalar.bits, scalar.kind) {
        (16, ScalarKind::Float) => Type::F16,
        (32, ScalarKind::Float) => Type::F32,
        (64, ScalarKind::Float) => Type::F64,
        (8, _) => Type::B8,
        (16, _) => Type::B16,
        (64, _) => Type::B64,
        _ => Type::B32,
    }
}
