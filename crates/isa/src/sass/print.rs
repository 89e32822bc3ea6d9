//! The text of a decoded instruction, as nvdisasm prints raw code.

use std::fmt::{self, Display, Formatter, Write};

use super::decoded::{
    ConstantAddress, ConstantBank, Decoded, Guard, Immediate, ImmediateFormat, Index,
    MemoryAddress, Operand, TRUE_PREDICATE, UNIFORM_ZERO_REGISTER, Value, ZERO_REGISTER,
};
use super::float_text::{write_float, write_nan};
use super::modifier::Modifier;
use super::special_register;

impl Display for Decoded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)?;
        f.write_str(self.opcode.name())?;
        for entry in &self.modifiers {
            write!(f, ".{}", entry.modifier.name())?;
        }
        for (position, operand) in self.operands.iter().enumerate() {
            f.write_str(if position == 0 { " " } else { ", " })?;
            self.write_operand(f, operand)?;
        }
        Ok(())
    }
}

impl Decoded {
    /// An operand as the disassembler prints it for this opcode.
    fn write_operand(&self, f: &mut Formatter<'_>, operand: &Operand) -> fmt::Result {
        match (self.opcode.name(), operand.value) {
            // Jumps name an offset only if there is one.
            (
                "BRX",
                Value::RegisterTarget {
                    register,
                    offset: 0,
                    ..
                },
            ) => write_register(f, register),
            (
                "BRXU",
                Value::RegisterTarget {
                    register,
                    offset: 0,
                    ..
                },
            ) => write_uniform(f, register),
            // Shared memory begins at zero: an address without a register has no sign.
            ("LDS" | "STS" | "ATOMS", Value::Memory(memory)) => {
                write_memory(f, &memory, (1 << 24) - 1)
            }
            ("CCTL", Value::Memory(memory)) => write_memory(f, &memory, u32::MAX.into()),
            _ => write!(f, "{operand}"),
        }
    }
}

impl Display for Guard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.predicate == TRUE_PREDICATE && !self.negate {
            return Ok(());
        }
        write!(f, "@{}", if self.negate { "!" } else { "" })?;
        write_predicate(f, self.predicate, self.uniform)?;
        f.write_char(' ')
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.negate {
            f.write_char('-')?;
        }
        if self.invert {
            let predicate = matches!(self.value, Value::Predicate(_) | Value::UniformPredicate(_));
            f.write_char(if predicate { '!' } else { '~' })?;
        }
        // Quirks of the disassembler: parts of registers stand behind the bars, but `.H1` and parts of anything else
        // between them; and constants of which a part is chosen have a space between their brackets.
        let within = |modifier: &&Modifier| {
            self.absolute && (!matches!(self.value, Value::Register(_)) || modifier.name() == "H1")
        };
        let bar = if self.absolute { "|" } else { "" };
        f.write_str(bar)?;
        match self.value {
            Value::Constant(_) if self.selects => {
                f.write_str(&self.value.to_string().replace("][", "] ["))?;
            }
            _ => write!(f, "{}", self.value)?,
        }
        for modifier in self.modifiers.iter().filter(within) {
            write!(f, ".{}", modifier.name())?;
        }
        f.write_str(bar)?;
        if self.reuse {
            f.write_str(".reuse")?;
        }
        for modifier in self.modifiers.iter().filter(|modifier| !within(modifier)) {
            write!(f, ".{}", modifier.name())?;
        }
        Ok(())
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Value::Register(register) => write_register(f, register),
            Value::UniformRegister(register) => write_uniform(f, register),
            Value::Predicate(predicate) => write_predicate(f, predicate, false),
            Value::UniformPredicate(predicate) => write_predicate(f, predicate, true),
            Value::PredicateFile { uniform } => f.write_str(if uniform { "UPR" } else { "PR" }),
            Value::ConvergenceBarrier(barrier) => write!(f, "B{barrier}"),
            Value::Counter(counter) => write!(f, "SB{counter}"),
            Value::CounterSet(set) => {
                let names: Vec<_> = (0..6)
                    .rev()
                    .filter(|i| set >> i & 1 != 0)
                    .map(|i| i.to_string())
                    .collect();
                write!(f, "{{{}}}", names.join(","))
            }
            Value::GroupScoreboard => f.write_str("gsb0"),
            Value::SpecialRegister(number) => special_register::write_name(f, number),
            Value::Immediate(immediate) => immediate.fmt(f),
            Value::Constant(constant) => constant.fmt(f),
            Value::Memory(memory) => memory.fmt(f),
            Value::MatrixDescriptor(register) => {
                f.write_str("gdesc[")?;
                write_uniform(f, register)?;
                f.write_char(']')
            }
            Value::Descriptor(register) => {
                f.write_str("desc[")?;
                write_uniform(f, register)?;
                f.write_char(']')
            }
            Value::Target(address) => write_signed(f, address),
            Value::AbsoluteTarget(address) => write!(f, "{address:#x}"),
            Value::RegisterTarget {
                register,
                uniform,
                offset,
            } => {
                if uniform {
                    write_uniform(f, register)?;
                } else {
                    write_register(f, register)?;
                }
                f.write_char(' ')?;
                write_signed(f, offset)
            }
            Value::Word(word, part) => {
                f.write_str(word.name())?;
                part.map_or(Ok(()), |part| write!(f, ".{}", part.name()))
            }
            Value::Swizzle(signs) => (0..4).rev().try_for_each(|lane| {
                f.write_str(["PP", "PN", "NP", "ZP"][usize::from(signs >> (2 * lane) & 3)])
            }),
        }
    }
}

impl Display for Immediate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.format {
            ImmediateFormat::Unsigned | ImmediateFormat::UnsignedHigh => {
                write!(f, "{:#x}", self.bits)
            }
            ImmediateFormat::Signed | ImmediateFormat::SignedHigh => {
                write_signed(f, self.bits as i64)
            }
            ImmediateFormat::Single => {
                let bits = self.bits as u32;
                let value = f32::from_bits(bits);
                if value.is_nan() {
                    return write_nan(f, bits >> 31 != 0, bits >> 22 & 1 != 0);
                }
                write_float(f, value.into())
            }
            ImmediateFormat::DoubleHigh => {
                let bits = self.bits << 32;
                let value = f64::from_bits(bits);
                if value.is_nan() {
                    return write_nan(f, bits >> 63 != 0, bits >> 51 & 1 != 0);
                }
                write_float(f, value)
            }
            ImmediateFormat::Half => write_half(f, self.bits as u16),
            ImmediateFormat::Brain => write_brain(f, self.bits as u16),
            ImmediateFormat::HalfPair => {
                write_half(f, (self.bits >> 16) as u16)?;
                f.write_str(", ")?;
                write_half(f, self.bits as u16)
            }
            ImmediateFormat::BrainPair => {
                write_brain(f, (self.bits >> 16) as u16)?;
                f.write_str(", ")?;
                write_brain(f, self.bits as u16)
            }
        }
    }
}

fn write_half(f: &mut Formatter<'_>, bits: u16) -> fmt::Result {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0x1f if fraction != 0.0 => return write_nan(f, bits >> 15 != 0, bits >> 9 & 1 != 0),
        0x1f => f64::INFINITY,
        0 => fraction * (-24f64).exp2(),
        _ => (1024.0 + fraction) * f64::from(exponent - 25).exp2(),
    };
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    write_float(f, magnitude * sign)
}

fn write_brain(f: &mut Formatter<'_>, bits: u16) -> fmt::Result {
    let value = f32::from_bits(u32::from(bits) << 16);
    if value.is_nan() {
        return write_nan(f, bits >> 15 != 0, bits >> 6 & 1 != 0);
    }
    write_float(f, value.into())
}

impl Display for ConstantAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.bank {
            ConstantBank::Number(bank) => write!(f, "c[{bank:#x}]["),
            ConstantBank::Bindless(register) => {
                f.write_str("cx[")?;
                write_uniform(f, register)?;
                f.write_str("][")
            }
        }?;
        match self.index {
            Index::None => {
                // Offsets are 16 bits and printed with sign, though banks have 64 KiB.
                match self.bank {
                    ConstantBank::Number(_) => write_signed(f, (self.offset as i16).into())?,
                    ConstantBank::Bindless(_) => write_signed(f, self.offset.into())?,
                }
                f.write_char(']')
            }
            Index::Register(ZERO_REGISTER) if self.offset != 0 => {
                write_signed(f, self.offset.into())?;
                f.write_char(']')
            }
            Index::Register(register) => {
                write_register(f, register)?;
                write_offset(f, self.offset.into())
            }
            Index::Uniform(register) => {
                write_uniform(f, register)?;
                write_offset(f, self.offset.into())
            }
        }
    }
}

/// The rest of an address that started with a register.
fn write_offset(f: &mut Formatter<'_>, offset: i64) -> fmt::Result {
    if offset != 0 {
        f.write_char('+')?;
        write_signed(f, offset)?;
    }
    f.write_char(']')
}

impl Display for MemoryAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_memory(f, self, -1)
    }
}

/// An address; an offset that stands alone is cut to `alone`.
fn write_memory(f: &mut Formatter<'_>, address: &MemoryAddress, alone: i64) -> fmt::Result {
    if let (Some(register), true) = (address.descriptor, address.shows_descriptor) {
        f.write_str("desc[")?;
        write_uniform(f, register)?;
        f.write_char(']')?;
    }
    f.write_char('[')?;
    let mut separate = false;
    if let Some(base) = address.base {
        let hidden = base == ZERO_REGISTER
            && match address.base_modifier {
                None => address.uniform.is_some() || address.offset != 0,
                Some(Modifier::N64) => address.uniform.is_some(),
                Some(Modifier::X4 | Modifier::X8 | Modifier::X16) => {
                    address.uniform.is_none() && address.offset != 0
                }
                Some(_) => false,
            };
        if !hidden {
            write_register(f, base)?;
            let alone = base == ZERO_REGISTER && address.uniform.is_none();
            match address.base_modifier {
                // Zero, whatever its unit.
                Some(Modifier::X4 | Modifier::X8 | Modifier::X16) if alone => {}
                Some(modifier) => write!(f, ".{}", modifier.name())?,
                None => {}
            }
            separate = true;
        }
    }
    if let Some(uniform) = address.uniform {
        if separate {
            f.write_char('+')?;
        }
        write_uniform(f, uniform)?;
        if let Some(modifier) = address.uniform_modifier {
            write!(f, ".{}", modifier.name())?;
        }
        separate = true;
    }
    if separate {
        write_offset(f, address.offset)
    } else {
        write_signed(f, address.offset & alone)?;
        f.write_char(']')
    }
}

fn write_register(f: &mut Formatter<'_>, register: u8) -> fmt::Result {
    if register == ZERO_REGISTER {
        f.write_str("RZ")
    } else {
        write!(f, "R{register}")
    }
}

fn write_uniform(f: &mut Formatter<'_>, register: u8) -> fmt::Result {
    if register == UNIFORM_ZERO_REGISTER {
        f.write_str("URZ")
    } else {
        write!(f, "UR{register}")
    }
}

fn write_predicate(f: &mut Formatter<'_>, predicate: u8, uniform: bool) -> fmt::Result {
    f.write_str(if uniform { "U" } else { "" })?;
    if predicate == TRUE_PREDICATE {
        f.write_str("PT")
    } else {
        write!(f, "P{predicate}")
    }
}

fn write_signed(f: &mut Formatter<'_>, value: i64) -> fmt::Result {
    if value < 0 {
        write!(f, "-{:#x}", value.unsigned_abs())
    } else {
        write!(f, "{value:#x}")
    }
}
