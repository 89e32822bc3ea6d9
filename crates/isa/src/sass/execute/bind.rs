//! One decoded instruction made executable.

use std::fmt;

use super::{fixed_latency, flow, memory, table, warpgroup};
use crate::{
    instruction::{Control, CounterThreshold, Instruction, Operation, SchedulingInfo},
    operand::{Halves, Operand, PredicateOperand, PredicateRegister, Source},
    sass::decoded::{
        ConstantAddress, ConstantBank, Decoded, ImmediateFormat, Index, Operand as Spelled,
        TRUE_PREDICATE, UNIFORM_ZERO_REGISTER, Value, ZERO_REGISTER,
    },
};

/// Where an instruction stands in its module.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Number of uniform registers; `R0` follows them.
    pub uniform_registers: u16,
    /// Index in the module's code of the first instruction of this section.
    pub section: u32,
    /// Number of instructions in the section.
    pub length: u32,
    /// Compute capability, e.g. 90.
    pub architecture: u32,
}

/// Predicates that a warp needs, see the module's page.
pub const PREDICATES: u16 = 15;
/// Where the outcome of `BAR.RED` waits for `B2R`.
pub const BARRIER_OUTCOME: u16 = 7;
/// First uniform predicate.
pub const UNIFORM_PREDICATES: u16 = 8;

impl Frame {
    /// Register that holds the count of `BAR.RED.POPC` for `B2R`: the last of the uniform ones.
    #[must_use]
    pub const fn barrier_count(&self) -> u16 {
        self.uniform_registers - 1
    }

    /// Register that holds a half of `Rpc`, in code that moves it: before the last of the uniform ones.
    #[must_use]
    pub const fn return_pc(&self, high: bool) -> u16 {
        self.uniform_registers - if high { 2 } else { 3 }
    }

    /// Warp register of `R<index>`, or `None` for `RZ`.
    #[must_use]
    pub const fn register(&self, index: u8) -> Option<u16> {
        if index == ZERO_REGISTER {
            None
        } else {
            Some(self.uniform_registers + index as u16)
        }
    }

    /// Warp register of `UR<index>`, or `None` for `URZ`.
    #[must_use]
    pub const fn uniform(&self, index: u8) -> Option<u16> {
        if index >= UNIFORM_ZERO_REGISTER {
            None
        } else {
            Some(index as u16)
        }
    }

    /// Index in the code of an address in this section.
    ///
    /// # Errors
    /// If no instruction is there.
    pub fn index(&self, address: i64) -> Result<u32, BindError> {
        let index = address / 16;
        if address % 16 != 0 || index < 0 || index >= i64::from(self.length) {
            return Err(BindError::new(format!(
                "jumps to {address:#x}, where no instruction of its function is"
            )));
        }
        Ok(self.section + index as u32)
    }
}

/// Why an instruction cannot be bound: a broken encoding. What is merely not supported binds to
/// [`Operation::Unsupported`], so that it matters only when it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindError {
    /// A sentence that says what is wrong.
    pub what: String,
}

impl BindError {
    /// With this sentence.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for BindError {}

/// A decoded instruction with its words at hand.
pub struct Spelling<'a> {
    /// As decoded.
    pub decoded: &'a Decoded,
    /// `IMAD`, `LDG`.
    pub name: &'static str,
    /// `WIDE`, `U32`, in the order of the text.
    pub words: Vec<&'static str>,
    /// Position in the module.
    pub frame: &'a Frame,
}

impl Spelling<'_> {
    /// Whether the text carries this word.
    #[must_use]
    pub fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// Operands, in the order of the text.
    #[must_use]
    pub fn operands(&self) -> &[Spelled] {
        &self.decoded.operands
    }

    /// The given bits if the text carries this word.
    #[must_use]
    pub fn bits(&self, word: &str, bits: u64) -> u64 {
        if self.has(word) { bits } else { 0 }
    }

    /// A predicate operand.
    #[must_use]
    pub fn predicate(&self, operand: &Spelled) -> Option<PredicateOperand> {
        let register = predicate_register(operand.value)?;
        Some(PredicateOperand {
            register,
            negate: operand.invert,
        })
    }

    /// A value operand.
    ///
    /// # Errors
    /// If it is not a value that arithmetic can read.
    pub fn source(&self, operand: &Spelled) -> Result<Source, BindError> {
        let halves = operand
            .modifiers
            .iter()
            .find_map(|modifier| match modifier.name() {
                "H0_H0" => Some(Halves::Low),
                "H1_H1" => Some(Halves::High),
                "F32" => Some(Halves::Float32),
                _ => None,
            });
        Ok(Source {
            operand: self.value(operand.value)?,
            negate: operand.negate,
            absolute: operand.absolute,
            invert: operand.invert,
            halves: halves.unwrap_or_default(),
        })
    }

    fn value(&self, value: Value) -> Result<Operand, BindError> {
        let row = |row: Option<u16>| row.map_or(Operand::None, Operand::Register);
        Ok(match value {
            Value::Register(index) => row(self.frame.register(index)),
            Value::UniformRegister(index) => row(self.frame.uniform(index)),
            Value::Immediate(immediate) => Operand::Immediate(match immediate.format {
                // Functions of double precision see the upper word only.
                ImmediateFormat::DoubleHigh if self.name != "MUFU" => immediate.bits << 32,
                ImmediateFormat::UnsignedHigh | ImmediateFormat::SignedHigh => immediate.bits << 32,
                _ => immediate.bits,
            }),
            Value::Constant(ConstantAddress {
                bank: ConstantBank::Number(bank),
                index: Index::None,
                offset,
            }) => Operand::Constant {
                bank,
                offset: offset as u32,
            },
            other => {
                return Err(BindError::new(format!(
                    "reads {other:?}, which is not a value"
                )));
            }
        })
    }

    /// An instruction that stops the run when it is reached.
    #[must_use]
    pub fn unsupported(&self, why: &str) -> Instruction {
        let sentence = format!("{} {why}", self.decoded);
        Instruction::new(
            Operation::Unsupported(sentence.into_boxed_str()),
            SchedulingInfo::default(),
        )
    }
}

/// Where a predicate lives; `None` if the value is no predicate.
#[must_use]
pub fn predicate_register(value: Value) -> Option<PredicateRegister> {
    match value {
        Value::Predicate(TRUE_PREDICATE) | Value::UniformPredicate(TRUE_PREDICATE) => {
            Some(PredicateRegister::True)
        }
        Value::Predicate(index) => Some(PredicateRegister::Lanes(u16::from(index))),
        Value::UniformPredicate(index) => Some(PredicateRegister::Lanes(
            UNIFORM_PREDICATES + u16::from(index),
        )),
        _ => None,
    }
}

/// Makes a decoded instruction executable.
///
/// # Errors
/// If its operands contradict each other: the bytes are not code that a compiler wrote.
pub fn bind(decoded: &Decoded, frame: &Frame) -> Result<Instruction, BindError> {
    let name = decoded.opcode.name();
    let words = decoded
        .modifiers
        .iter()
        .flat_map(|entry| entry.modifier.name().split('.'))
        .collect();
    let spelling = Spelling {
        decoded,
        name,
        words,
        frame,
    };
    let mut instruction = if let Some(row) = table::find(name) {
        row.bind(&spelling)?
    } else if let Some(bound) = memory::bind(&spelling)? {
        bound
    } else if let Some(bound) = flow::bind(&spelling)? {
        bound
    } else if let Some(bound) = warpgroup::bind(&spelling)? {
        bound
    } else {
        spelling.unsupported("is not among the instructions that can be executed yet")
    };
    let guard = decoded.guard;
    let value = if guard.uniform {
        Value::UniformPredicate(guard.predicate)
    } else {
        Value::Predicate(guard.predicate)
    };
    instruction.guard = PredicateOperand {
        register: predicate_register(value).unwrap_or_default(),
        negate: guard.negate,
    };
    instruction.scheduling.control = Some(control(&spelling));
    instruction.scheduling.fixed_latency =
        fixed_latency::fixed_latency(name, spelling.has("WIDE"), frame.architecture);
    Ok(instruction)
}

/// The control bits, and what `DEPBAR` waits for as if they said it.
fn control(spelling: &Spelling<'_>) -> Control {
    let mut control = spelling.decoded.control;
    if spelling.name != "DEPBAR" {
        return control;
    }
    let (mut counter, mut at_most) = (None, 0);
    for operand in spelling.operands() {
        match operand.value {
            Value::Counter(index) => counter = Some(index),
            Value::Immediate(most) => at_most = most.bits as u8,
            Value::CounterSet(set) => control.wait_mask |= set,
            _ => {}
        }
    }
    match counter {
        Some(counter) if at_most > 0 => {
            control.threshold = Some(CounterThreshold { counter, at_most })
        }
        Some(counter) => control.wait_mask |= 1u8.checked_shl(u32::from(counter)).unwrap_or(0),
        None => {}
    }
    control
}
