//! Operands of statements to operands of instructions.

use lockstep_isa::{
    Operand as Value,
    operand::PredicateOperand,
    ptx::{Type, special_register},
    semantics::float16::Kind,
};

use super::{Lowering, RESERVED_SHARED, Register};
use crate::ptx::{
    error::Error,
    ir::{Code, FlagId},
    syntax::Operand,
};

/// Where the registers that name the system's part of shared memory point to within it.
/// `%reserved_smem_offset_cap` is its size.
fn reserved_place(name: &str) -> Option<ReservedPlace> {
    Some(match name.strip_prefix("%reserved_smem_offset_")? {
        "begin" | "0" => ReservedPlace::Offset(0),
        "1" => ReservedPlace::Offset(RESERVED_SHARED / 2),
        "end" => ReservedPlace::Offset(RESERVED_SHARED),
        "cap" => ReservedPlace::Size,
        _ => return None,
    })
}

/// What a register of the reserved part tells.
#[derive(Clone, Copy)]
pub(super) enum ReservedPlace {
    /// This many bytes from its beginning.
    Offset(u32),
    /// Its size.
    Size,
}

impl<'p, 'a> Lowering<'p, 'a> {
    /// A register operand.
    pub(super) fn register_operand(&mut self, operand: &Operand<'a>) -> Result<Register, Error> {
        match operand {
            Operand::Name(name) => self.register(name),
            _ => self.wrong("an operand must be a register here"),
        }
    }

    /// A value of a type, named in `code`.
    pub(super) fn value(
        &mut self,
        code: &mut Code<'a>,
        operand: &Operand<'a>,
        kind: Type,
    ) -> Result<Value, Error> {
        if let Some(bits) = self.literal(operand, kind)? {
            return Ok(Value::Immediate(bits));
        }
        if let Operand::Name(name) = operand
            && let Some(place) = reserved_place(name)
        {
            self.body.reserved_shared = true;
            let sum = self.reserved_address(place);
            return Ok(code.read(sum.place(), 1));
        }
        let register = match operand {
            Operand::Name(name) if special_register::find(name).is_some() => {
                self.read_special(name)?
            }
            Operand::Name(name) | Operand::Offset(name, _) if self.is_address(name) => {
                let offset = match operand {
                    Operand::Offset(_, offset) => *offset,
                    _ => 0,
                };
                return self.variable_address(code, name, offset);
            }
            _ => self.register_operand(operand)?,
        };
        if register.words() < kind.words() {
            return self.wrong(format!(
                "a register of {} bits stands where {} bits are read",
                register.scalar.bits,
                kind.bits()
            ));
        }
        Ok(code.read(register.place(), kind.words()))
    }

    /// The bits of a literal, or nothing if the operand is no literal.
    pub(super) fn literal(&self, operand: &Operand<'a>, kind: Type) -> Result<Option<u64>, Error> {
        let bits = match (operand, kind) {
            (Operand::Integer(value), Type::F32) if *value == 0 => 0,
            (Operand::Integer(_), Type::F32 | Type::F64) => {
                return self
                    .wrong("an integer stands where a float is read; write it as 0f… or 0d…");
            }
            (Operand::Integer(value), _) => *value as u64,
            (Operand::Name("WARP_SZ"), _) => 32,
            (Operand::Single(bits), Type::F64) => f64::from(f32::from_bits(*bits)).to_bits(),
            (Operand::Single(bits), Type::F16) => u64::from(Kind::Half.narrow(*bits)),
            (Operand::Single(bits), _) => u64::from(*bits),
            (Operand::Double(bits), Type::F32) => {
                u64::from((f64::from_bits(*bits) as f32).to_bits())
            }
            (Operand::Double(bits), Type::F16) => {
                u64::from(Kind::Half.narrow((f64::from_bits(*bits) as f32).to_bits()))
            }
            (Operand::Double(bits), _) => *bits,
            _ => return Ok(None),
        };
        Ok(Some(bits))
    }

    /// Reads a special register into a temporary.
    pub(super) fn read_special(&mut self, name: &str) -> Result<Register, Error> {
        let Some(special) = special_register::find(name) else {
            return self.unknown(name, "a special register");
        };
        let register = self.new_register(special.bits);
        let code = self.special(special, register);
        self.push(code);
        Ok(register)
    }

    /// A predicate operand, `p` or `!p`; integers 0 and 1 are constants.
    pub(super) fn predicate(
        &mut self,
        code: &mut Code<'a>,
        operand: &Operand<'a>,
    ) -> Result<PredicateOperand, Error> {
        match operand {
            Operand::Name(name) => {
                let flag = self.flag(name)?;
                Ok(code.read_flag(flag, false))
            }
            Operand::Negated(inner) => {
                let inner = self.predicate(code, inner)?;
                Ok(PredicateOperand {
                    negate: !inner.negate,
                    ..inner
                })
            }
            Operand::Integer(value) => Ok(if *value == 0 {
                PredicateOperand::FALSE
            } else {
                PredicateOperand::TRUE
            }),
            _ => self.wrong("an operand must be a predicate here"),
        }
    }

    /// A predicate that is written; `_` drops it.
    pub(super) fn written_flag(&mut self, operand: &Operand<'a>) -> Result<Option<FlagId>, Error> {
        match operand {
            Operand::Sink => Ok(None),
            Operand::Name(name) => self.flag(name).map(Some),
            _ => self.wrong("a predicate must be written here"),
        }
    }

    /// The elements of a vector operand, or the operand itself.
    pub(super) fn elements<'o>(operand: &'o Operand<'a>) -> &'o [Operand<'a>] {
        match operand {
            Operand::Vector(elements) => elements,
            other => std::slice::from_ref(other),
        }
    }

    /// Checks a count of operands.
    pub(super) fn expect_operands(
        &self,
        operands: &[Operand<'a>],
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<(), Error> {
        if range.contains(&operands.len()) {
            return Ok(());
        }
        self.wrong(format!(
            "{} operands given, {} to {} expected",
            operands.len(),
            range.start(),
            range.end()
        ))
    }
}
