//! An instruction of a trace as an SM sees it: its opcode and registers, bound through the decoder's tables.
//!
//! A trace has an opcode with its modifiers and the registers that are read and written; predicates,
//! constants, targets and numbers are missing. That is enough for the unit, the latency, the width of an access
//! and the dependences, and no more is needed where nothing is computed.
//!
//! Start reading at [`bind_line`].

use std::collections::VecDeque;

use lockstep_isa::instruction::{Control, DependencyBarrier, Flow};
use lockstep_isa::memory::{Action, AddressOperand, MemoryOperation};
use lockstep_isa::sass::decoded::{
    ConstantAddress, ConstantBank, Decoded, Guard, Immediate, ImmediateFormat, Index,
    MemoryAddress, TRUE_PREDICATE, UNIFORM_ZERO_REGISTER, ZERO_REGISTER,
};
use lockstep_isa::sass::execute::{Frame, bind};
use lockstep_isa::sass::table::{Entry, MemoryPiece, OperandField, Piece, Place, TABLE};
use lockstep_isa::sass::{Architecture, Modifier, ModifierValue, Value, Word};
use lockstep_isa::trace::ADDRESS_REGISTERS;
use lockstep_isa::{Instruction, Operand, Operation};

use crate::line::InstructionLine;

/// Uniform registers of a warp, with those that the binder uses itself; `R0` follows them.
pub const UNIFORM_REGISTERS: u16 = 67;
/// Registers that a line can name.
pub const REGISTERS: u16 = 255;
/// All registers of a warp.
pub const WARP_REGISTERS: u16 = UNIFORM_REGISTERS + REGISTERS + ADDRESS_REGISTERS;
/// `SR_TID.X`, for instructions that read a special register which the trace does not name.
const THREAD_INDEX: u8 = 33;
/// Barriers of a block; a larger number of `BAR` is one of threads.
const BARRIERS: i64 = 16;
/// Words that a multiply-add has for what it is used for, which no bits say.
const PURPOSES: &[&str] = &["MOV", "SHL", "IADD"];

/// Makes an instruction of a line.
///
/// # Errors
/// A sentence, if the architecture has no such opcode.
pub fn bind_line(
    line: &InstructionLine,
    architecture: Architecture,
    index: u32,
    code: u32,
) -> Result<Instruction, String> {
    let mut words = line.opcode.split('.');
    let name = words.next().unwrap_or_default();
    let mut words: Vec<&str> = words.collect();
    if name == "IMAD" {
        words.retain(|word| !PURPOSES.contains(word));
    }
    let registers = line.destinations.len() + line.sources.len();
    let operations = TABLE.operations(architecture);
    let operations = operations.filter(|(_, opcode)| opcode.name() == name);
    let mut candidates: Vec<(usize, Spelled<'_>)> = Vec::new();
    for (operation, _) in operations {
        for entry in TABLE.candidates(architecture, operation) {
            if entry.opcode.name() != name {
                continue;
            }
            let (modifiers, unknown) = read_words(entry, &words);
            let apart = slots(entry).abs_diff(registers);
            let spelled = Spelled {
                entry,
                operation,
                modifiers,
            };
            candidates.push((unknown * 64 + apart, spelled));
        }
    }
    // The row that fits best, and of equal ones the first; the next if that one needs what a trace lacks.
    candidates.sort_by_key(|(misfit, _)| *misfit);
    let frame = Frame {
        uniform_registers: UNIFORM_REGISTERS,
        section: 0,
        length: code.max(1),
        architecture: architecture.sm(),
    };
    let mut why = format!("is no instruction of {architecture}");
    for (_, spelled) in candidates {
        match bind(&spelled.decode(line, u64::from(index) * 16), &frame) {
            Ok(instruction) => return Ok(for_replay(instruction, line, index, code)),
            Err(error) => why = error.to_string(),
        }
    }
    Err(format!("`{}` {why}", line.opcode))
}

/// A row of the tables with the modifiers that were found.
struct Spelled<'a> {
    entry: &'a Entry,
    operation: u16,
    modifiers: Vec<ModifierValue>,
}

/// Modifiers of a row that the words spell, in the order of both; and how many words it does not know.
fn read_words(entry: &Entry, words: &[&str]) -> (Vec<ModifierValue>, usize) {
    let mut found = Vec::new();
    let mut at = 0;
    for choice in &entry.modifiers {
        let mut longest: Option<(usize, &[Modifier])> = None;
        for value in choice.values.iter().flatten() {
            let spelled = value.iter().flat_map(|one| one.name().split('.'));
            let count = spelled.clone().count();
            let fits = count > 0 && spelled.eq(words[at..].iter().copied().take(count));
            if fits && longest.is_none_or(|(most, _)| count > most) {
                longest = Some((count, value));
            }
        }
        let Some((count, value)) = longest else {
            continue;
        };
        at += count;
        found.extend(value.iter().map(|modifier| ModifierValue {
            field: choice.name,
            modifier: *modifier,
        }));
    }
    (found, words.len() - at)
}

/// Registers that the text of a row names.
fn slots(entry: &Entry) -> usize {
    let required = entry
        .operands
        .iter()
        .filter(|operand| !operand.optional && is_there(operand));
    required
        .map(|operand| match &operand.place {
            Place::Register(_) | Place::RegisterTarget { uniform: false, .. } => 1,
            Place::Memory(pieces) => usize::from(has_base(pieces)),
            _ => 0,
        })
        .sum()
}

/// Whether an operand that depends on bits is there where none of them is set.
fn is_there(operand: &OperandField) -> bool {
    let mut conditions = operand.conditions.iter();
    conditions.all(|condition| condition.holds(Word(0)))
}

fn has_base(pieces: &[MemoryPiece]) -> bool {
    let mut bases = pieces.iter().map(|piece| &piece.piece);
    bases.any(|piece| matches!(piece, Piece::Base(..)))
}

impl Spelled<'_> {
    /// The instruction as if it had been decoded, with whatever does nothing where the line is silent.
    fn decode(&self, line: &InstructionLine, address: u64) -> Decoded {
        let mut registers: VecDeque<u8> = line
            .destinations
            .iter()
            .chain(&line.sources)
            .copied()
            .collect();
        let barrier = self.entry.opcode.name() == "BAR";
        let mut numbers = if barrier && line.immediate >= BARRIERS {
            VecDeque::from([1, line.immediate])
        } else {
            VecDeque::from([line.immediate])
        };
        let mut decoded = Decoded {
            opcode: self.entry.opcode,
            operation: self.operation,
            address,
            guard: Guard {
                predicate: TRUE_PREDICATE,
                negate: false,
                uniform: false,
            },
            modifiers: self.modifiers.iter().copied().collect(),
            operands: Default::default(),
            control: Control::default(),
        };
        for field in &self.entry.operands {
            let named = match field.place {
                Place::Register(_) => !registers.is_empty(),
                Place::Number(..) => barrier && !numbers.is_empty(),
                _ => false,
            };
            if field.optional && !named || !is_there(field) {
                continue;
            }
            let value = value(&field.place, &mut registers, &mut numbers);
            decoded.operands.push(value.into());
        }
        decoded
    }
}

/// What stands at a place.
fn value(place: &Place, registers: &mut VecDeque<u8>, numbers: &mut VecDeque<i64>) -> Value {
    let mut register = || registers.pop_front().unwrap_or(ZERO_REGISTER);
    match place {
        Place::Register(_) => Value::Register(register()),
        Place::RegisterTarget { uniform: false, .. } => Value::RegisterTarget {
            register: register(),
            uniform: false,
            offset: 0,
        },
        Place::RegisterTarget { .. } => Value::RegisterTarget {
            register: UNIFORM_ZERO_REGISTER,
            uniform: true,
            offset: 0,
        },
        Place::Memory(pieces) => Value::Memory(MemoryAddress {
            base: has_base(pieces).then(register),
            base_modifier: None,
            uniform: None,
            uniform_modifier: None,
            offset: 0,
            descriptor: None,
            shows_descriptor: false,
        }),
        Place::Uniform(_) => Value::UniformRegister(UNIFORM_ZERO_REGISTER),
        Place::Predicate(_) | Place::ComplementedPredicate { uniform: false, .. } => {
            Value::Predicate(TRUE_PREDICATE)
        }
        Place::UniformPredicate(_) | Place::ComplementedPredicate { .. } => {
            Value::UniformPredicate(TRUE_PREDICATE)
        }
        Place::PredicateFile { uniform } => Value::PredicateFile { uniform: *uniform },
        Place::Barrier(_) => Value::ConvergenceBarrier(0),
        Place::Counter(_) => Value::Counter(0),
        Place::CounterSet(_) => Value::CounterSet(0),
        Place::GroupScoreboard(_) => Value::GroupScoreboard,
        Place::Special(_) => Value::SpecialRegister(THREAD_INDEX),
        Place::Number(_, format) => Value::Immediate(Immediate {
            bits: numbers.pop_front().unwrap_or(0) as u64,
            format: *format,
        }),
        Place::Halves(..) => Value::Immediate(Immediate {
            bits: 0,
            format: ImmediateFormat::HalfPair,
        }),
        Place::SourceConstant | Place::IndexedConstant(_) => Value::Constant(ConstantAddress {
            bank: ConstantBank::Number(0),
            index: match place {
                Place::IndexedConstant(Some(index)) if matches!(**index, Place::Register(_)) => {
                    Index::Register(register())
                }
                _ => Index::None,
            },
            offset: 0,
        }),
        Place::MatrixDescriptor(_) => Value::MatrixDescriptor(0),
        Place::Descriptor(_) => Value::Descriptor(0),
        Place::Word(choice) => {
            let mut words = choice
                .values
                .iter()
                .flatten()
                .filter(|words| !words.is_empty());
            match words.next() {
                Some(words) => Value::Word(words[0], words.get(1).copied()),
                None => Value::Register(ZERO_REGISTER),
            }
        }
        Place::Swizzle(_) => Value::Swizzle(0),
        Place::Target | Place::ByteTarget | Place::NearTarget => Value::Target(0),
        Place::AbsoluteTarget => Value::AbsoluteTarget(0),
    }
}

/// Takes away what only executing needs: the trace says who executes, where lanes go and what they access.
fn for_replay(
    mut instruction: Instruction,
    line: &InstructionLine,
    index: u32,
    code: u32,
) -> Instruction {
    instruction.scheduling.control = None;
    instruction.scheduling.indexed_constant = None;
    match &mut instruction.operation {
        Operation::Flow(flow) => {
            // Where lanes go is in the trace; what stays is that they might.
            let target = (index + 1).min(code.saturating_sub(1));
            *flow = Flow::Branch { target };
        }
        Operation::Memory(operation) => at_given_addresses(operation),
        // It would stop the run; nobody is to know what it does.
        Operation::Unsupported(_) | Operation::Illegal(_) => {
            instruction.operation = Operation::Nothing;
        }
        _ => {}
    }
    let counted = Control {
        stall: 1,
        write_counter: 7,
        read_counter: 7,
        ..Control::default()
    };
    match &mut instruction.scheduling.dependency_barrier {
        DependencyBarrier::None => {}
        // Groups of copies are counted as compilers have them counted, all by one counter.
        DependencyBarrier::Arrive => {
            instruction.scheduling.control = Some(Control {
                write_counter: 0,
                ..counted
            });
        }
        DependencyBarrier::Wait {
            counter,
            at_most,
            also,
        } => {
            (*counter, *at_most, *also) = (0, line.immediate.clamp(0, 63) as u8, 0);
            instruction.scheduling.control = Some(counted);
        }
    }
    instruction
}

/// Lets an access take its addresses from the registers for them.
fn at_given_addresses(operation: &mut MemoryOperation) {
    let first = WARP_REGISTERS - ADDRESS_REGISTERS;
    operation.address = AddressOperand {
        base: Operand::Register(first + 1),
        wide: true,
        shift: 0,
        uniform: Operand::None,
        uniform_wide: false,
        offset: 0,
    };
    if operation.action == Action::CopyToShared {
        operation.values = [Operand::None; 4];
        operation.values[0] = Operand::Register(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spelling::read_spelling;
    use lockstep_isa::Unit;
    use lockstep_isa::instruction::Latency;

    fn bound(text: &str) -> Instruction {
        let line = read_spelling(0, text);
        bind_line(&line, Architecture::Sm90, 0, 8).unwrap()
    }

    #[test]
    fn units_latencies_and_registers_are_those_of_the_decoder() {
        let register = |index: u16| Operand::Register(UNIFORM_REGISTERS + index);
        let multiply = bound("FFMA R5, R4, R2, R3");
        let scheduling = multiply.scheduling;
        assert_eq!(
            (scheduling.unit, scheduling.latency),
            (Unit::Fma, Latency::Float)
        );
        assert_eq!(multiply.destination, Some(UNIFORM_REGISTERS + 5));
        assert_eq!(multiply.sources[2].operand, register(3));
        let wide = bound("IMAD.WIDE R2, R0, 0x4, R8");
        assert_eq!(wide.scheduling.destination_registers, 2);
        let load = bound("LDG.E.64 R2, desc[UR4][R4.64+0x10]");
        let Operation::Memory(operation) = &load.operation else {
            panic!("{load:?}");
        };
        assert_eq!(operation.element.bytes(), 8);
        assert_eq!(load.sources[0].operand, register(4));
        assert!(matches!(
            bound("BAR.SYNC.DEFER_BLOCKING 0x0").operation,
            Operation::Barrier(_)
        ));
        assert!(matches!(
            bound("EXIT").operation,
            Operation::Flow(Flow::Branch { .. })
        ));
        assert_eq!(
            bound("MUFU.RCP R4, R5").scheduling.unit,
            Unit::Transcendental
        );
    }

    #[test]
    fn an_opcode_that_the_architecture_lacks_is_named() {
        let line = read_spelling(0, "XMAD.MRG R2, R3, R4");
        let error = bind_line(&line, Architecture::Sm90, 0, 1).unwrap_err();
        assert_eq!(error, "`XMAD.MRG` is no instruction of sm_90");
    }
}
