//! Parameters of kernels, arguments and results of functions: `ld.param`, `st.param`.

use lockstep_isa::{
    Operand as Value,
    ptx::class,
    semantics,
    semantics::{
        lane_loops::{Semantics, quaternary, ternary},
        logic,
    },
};

use super::{Lowering, PARAMETER_BASE, Register, moves::type_of, names::Symbol};
use crate::ptx::{
    error::Error,
    ir::{Place, RegisterId},
    syntax::{Operand, Scalar},
};

const FIELD: Semantics = semantics!(ternary; logic::bfe);
const FIELD_SIGNED: Semantics = semantics!(ternary; logic::bfe_signed);
const INSERT: Semantics = semantics!(quaternary; |[a, b, c, d]: [u32; 4]| logic::bfi(a, b, c, d));

impl<'p, 'a> Lowering<'p, 'a> {
    /// `ld.param`. False if it must be a load from bank 0.
    pub(super) fn load_parameter(
        &mut self,
        targets: &[Operand<'a>],
        address: &Operand<'a>,
        scalar: Scalar,
    ) -> Result<bool, Error> {
        let Some((name, offset)) = named_address(address) else {
            return Ok(false);
        };
        if let Some(Symbol::Argument { register, size }) = self.lookup(name) {
            for (index, target) in targets.iter().enumerate() {
                let place = offset.saturating_add(index as i64 * scalar.bytes() as i64);
                self.take_argument(target, register, size, place, scalar)?;
            }
            return Ok(true);
        }
        let Some(index) = self.parameters.get(name).copied() else {
            return Ok(false);
        };
        let base =
            (self.symbols.parameter_offsets(self.function)[index] as i64).saturating_add(offset);
        let last = base.saturating_add((targets.len() as i64) * scalar.bytes() as i64);
        if scalar.bits < 32 || scalar.bits > 64 || base < 0 || base % 4 != 0 || last > 1 << 20 {
            return Ok(false);
        }
        for (index, target) in targets.iter().enumerate() {
            if *target == Operand::Sink {
                continue;
            }
            let to = self.register_operand(target)?;
            let from = Value::Constant {
                bank: 0,
                offset: PARAMETER_BASE + base as u32 + index as u32 * scalar.bits / 8,
            };
            self.move_value(to, from, scalar)?;
        }
        Ok(true)
    }

    /// A value of a type into a register at least as wide.
    fn move_value(&mut self, to: Register, from: Value, scalar: Scalar) -> Result<(), Error> {
        match (to.words(), scalar.bits) {
            (2, 64) => {
                let code = self.move64(to.place(), from);
                self.push(code);
            }
            (1, 32) => {
                let code = self.move32(to.place(), from);
                self.push(code);
            }
            (2, 32) => {
                let narrow = self.new_register(32);
                let code = self.move32(narrow.place(), from);
                self.push(code);
                self.extend(to, narrow, scalar.signed());
            }
            _ => {
                return self.wrong(format!(
                    "a register of {} bits cannot take {} bits",
                    to.scalar.bits, scalar.bits
                ));
            }
        }
        Ok(())
    }

    fn check_argument(&self, size: u64, offset: i64, scalar: Scalar) -> Result<(), Error> {
        let bytes = scalar.bytes() as i64;
        let inside = offset >= 0 && offset.saturating_add(bytes) <= size.next_multiple_of(4) as i64;
        if !inside || offset % bytes.min(4) != 0 {
            return self.wrong(format!(
                "{bytes} bytes at offset {offset} are outside an argument of {size} bytes, or not aligned"
            ));
        }
        Ok(())
    }

    /// An element of an argument that is kept in a register.
    fn take_argument(
        &mut self,
        target: &Operand<'a>,
        register: RegisterId,
        size: u64,
        offset: i64,
        scalar: Scalar,
    ) -> Result<(), Error> {
        self.check_argument(size, offset, scalar)?;
        if *target == Operand::Sink {
            return Ok(());
        }
        let to = self.register_operand(target)?;
        let word = (offset / 4) as u16;
        let place = |word: u16| Place::Virtual { register, word };
        if scalar.bits >= 32 {
            let rows = super::rows_of(scalar.bits);
            if to.words() < rows {
                return self.wrong("the register is too narrow");
            }
            if to.words() > rows {
                let narrow = self.new_register(32);
                self.copy_word(narrow.place(), place(word));
                self.extend(to, narrow, scalar.signed());
                return Ok(());
            }
            for index in 0..rows {
                self.copy_word(to.word(index), place(word + index));
            }
            return Ok(());
        }
        let narrow = if to.words() > 1 {
            self.new_register(32)
        } else {
            to
        };
        let semantics = if scalar.signed() { FIELD_SIGNED } else { FIELD };
        let mut code = self.compute(semantics, class::INTEGER);
        code.instruction.sources[0] = code.read(place(word), 1).into();
        code.instruction.sources[1] = Value::Immediate(8 * (offset as u64 % 4)).into();
        code.instruction.sources[2] = Value::Immediate(u64::from(scalar.bits)).into();
        code.instruction.destination = Some(code.write(narrow.place(), 1));
        self.push(code);
        if to.words() > 1 {
            self.extend(to, narrow, scalar.signed());
        }
        Ok(())
    }

    /// `st.param` to an argument or a result.
    pub(super) fn store_parameter(
        &mut self,
        address: &Operand<'a>,
        values: &[Operand<'a>],
        scalar: Scalar,
    ) -> Result<(), Error> {
        let Some((name, offset)) = named_address(address) else {
            return self.wrong("`st.param` needs the name of an argument");
        };
        let Some(Symbol::Argument { register, size }) = self.lookup(name) else {
            return self.unknown(name, "an argument of a call or a result");
        };
        for (index, value) in values.iter().enumerate() {
            let offset = offset.saturating_add(index as i64 * scalar.bytes() as i64);
            self.check_argument(size, offset, scalar)?;
            let word = (offset / 4) as u16;
            let place = |word: u16| Place::Virtual { register, word };
            match scalar.bits {
                64 => {
                    let mut code = self.move64(place(word), Value::None);
                    code.instruction.sources[0] =
                        self.value(&mut code, value, type_of(scalar))?.into();
                    self.push(code);
                }
                32 => {
                    let mut code = self.move32(place(word), Value::None);
                    code.instruction.sources[0] =
                        self.value(&mut code, value, type_of(scalar))?.into();
                    self.push(code);
                }
                8 | 16 => {
                    let mut code = self.compute(INSERT, class::INTEGER);
                    code.instruction.sources[0] =
                        self.value(&mut code, value, type_of(scalar))?.into();
                    code.instruction.sources[1] = code.read(place(word), 1).into();
                    code.instruction.sources[2] = Value::Immediate(8 * (offset as u64 % 4)).into();
                    code.instruction.sources[3] = Value::Immediate(u64::from(scalar.bits)).into();
                    code.instruction.destination = Some(code.write(place(word), 1));
                    self.push(code);
                }
                _ => return self.wrong("arguments are stored in up to 64 bits at a time"),
            }
        }
        Ok(())
    }

    /// A field of a word into a register of its own.
    pub(super) fn take_field(&mut self, to: Register, from: Register, place: u32, bits: u32) {
        let mut code = self.compute(FIELD, class::INTEGER);
        code.instruction.sources[0] = code.read(from.place(), 1).into();
        code.instruction.sources[1] = Value::Immediate(u64::from(place)).into();
        code.instruction.sources[2] = Value::Immediate(u64::from(bits)).into();
        code.instruction.destination = Some(code.write(to.place(), 1));
        self.push(code);
    }

    /// A register's value into a field of a word; the first one replaces the whole word.
    pub(super) fn put_field(
        &mut self,
        to: Register,
        from: Register,
        place: u32,
        bits: u32,
        first: bool,
    ) {
        if first {
            return self.copy_word(to.place(), from.place());
        }
        let mut code = self.compute(INSERT, class::INTEGER);
        code.instruction.sources[0] = code.read(from.place(), 1).into();
        code.instruction.sources[1] = code.read(to.place(), 1).into();
        code.instruction.sources[2] = Value::Immediate(u64::from(place)).into();
        code.instruction.sources[3] = Value::Immediate(u64::from(bits)).into();
        code.instruction.destination = Some(code.write(to.place(), 1));
        self.push(code);
    }
}

/// `[name]` or `[name+offset]`.
fn named_address<'a>(operand: &Operand<'a>) -> Option<(&'a str, i64)> {
    let Operand::Address(list) = operand else {
        return None;
    };
    match list.as_slice() {
        [Operand::Name(name)] => Some((name, 0)),
        [Operand::Offset(name, offset)] => Some((name, *offset)),
        _ => None,
    }
}
