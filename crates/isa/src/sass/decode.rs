//! From a 128-bit word to a [`Decoded`] instruction, by the tables.

use smallvec::SmallVec;

use super::architecture::Architecture;
use super::decoded::{
    ConstantAddress, ConstantBank, Decoded, Guard, Immediate, ImmediateFormat, Index,
    MemoryAddress, ModifierValue, Operand, TRUE_PREDICATE, UNIFORM_ZERO_REGISTER, Value,
    ZERO_REGISTER,
};
use super::modifier::Modifier;
use super::table::{Alias, Choice, Entry, Field, MemoryPiece, OperandField, Piece, Place, TABLE};
use super::word::{WORD_BYTES, Word};

/// A word that no row describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no {architecture} instruction is known for {:#034x} at {address:#x} \
     (opcode bits {:#05x}); if the program carries PTX, run it with --frontend ptx",
    word.0,
    word.operation()
)]
pub struct UnknownEncoding {
    /// Whose tables were asked.
    pub architecture: Architecture,
    /// Where the word lies.
    pub address: u64,
    /// The instruction word.
    pub word: Word,
}

/// Decodes the instruction `word` that lies at `address` of its section.
///
/// # Errors
///
/// [`UnknownEncoding`] when no row describes the word, or a field has a value without meaning.
pub fn decode(
    architecture: Architecture,
    address: u64,
    word: Word,
) -> Result<Decoded, UnknownEncoding> {
    TABLE
        .candidates(architecture, word.operation())
        .find_map(|entry| {
            Reader {
                architecture,
                address,
                word,
            }
            .entry(entry)
        })
        .ok_or(UnknownEncoding {
            architecture,
            address,
            word,
        })
}

struct Reader {
    architecture: Architecture,
    address: u64,
    word: Word,
}

impl Reader {
    fn entry(&self, entry: &Entry) -> Option<Decoded> {
        if !entry
            .conditions
            .iter()
            .all(|condition| condition.holds(self.word))
        {
            return None;
        }
        let mut modifiers = SmallVec::new();
        for choice in &entry.modifiers {
            for &modifier in choice.read(self.word)? {
                modifiers.push(ModifierValue {
                    field: choice.name,
                    modifier,
                });
            }
        }
        let mut operands = SmallVec::new();
        for field in &entry.operands {
            if field
                .conditions
                .iter()
                .all(|condition| condition.holds(self.word))
            {
                let operand = self.operand(field)?;
                if !(field.optional && is_neutral(&operand)) {
                    operands.push(operand);
                }
            }
        }
        let mut decoded = Decoded {
            opcode: entry.opcode,
            operation: self.word.operation(),
            address: self.address,
            guard: Guard {
                predicate: self.word.field(12, 3) as u8,
                negate: self.word.bit(15),
                uniform: entry.uniform_guard,
            },
            modifiers,
            operands,
            control: self.word.control(),
        };
        if entry.alias == Some(Alias::Imad) {
            name_imad(&mut decoded);
        }
        Some(decoded)
    }

    fn operand(&self, field: &OperandField) -> Option<Operand> {
        let mut operand = Operand::from(self.value(&field.place)?);
        let set = |bit: Option<u8>| bit.is_some_and(|bit| self.word.bit(bit));
        operand.absolute = set(field.absolute);
        operand.invert = set(field.invert);
        operand.reuse = set(field.reuse)
            || (self.architecture == Architecture::Sm70 && set(field.reuse_on_volta));
        if field.complements_when_extended && self.word.bit(74) {
            operand.invert = set(field.negate);
        } else {
            operand.negate = set(field.negate);
        }
        operand.selects = !field.suffixes.is_empty();
        for choice in &field.suffixes {
            operand.modifiers.extend_from_slice(choice.read(self.word)?);
        }
        Some(operand)
    }

    fn value(&self, place: &Place) -> Option<Value> {
        let word = self.word;
        let byte = |low: u8, width: u8| word.field(low, width) as u8;
        Some(match place {
            Place::Register(low) => Value::Register(byte(*low, 8)),
            Place::Uniform(low) => Value::UniformRegister(byte(*low, 6)),
            Place::Predicate(low) => Value::Predicate(byte(*low, 3)),
            Place::UniformPredicate(low) => Value::UniformPredicate(byte(*low, 3)),
            Place::ComplementedPredicate { low, uniform } => {
                let predicate = TRUE_PREDICATE ^ byte(*low, 3);
                if *uniform {
                    Value::UniformPredicate(predicate)
                } else {
                    Value::Predicate(predicate)
                }
            }
            Place::PredicateFile { uniform } => Value::PredicateFile { uniform: *uniform },
            Place::Barrier(low) => Value::ConvergenceBarrier(byte(*low, 4)),
            Place::Counter(low) => {
                let counter = byte(*low, 3);
                if counter > 5 {
                    return None;
                }
                Value::Counter(counter)
            }
            Place::CounterSet(low) => Value::CounterSet(byte(*low, 6)),
            Place::GroupScoreboard(low) => match byte(*low, 3) {
                0 => Value::GroupScoreboard,
                _ => return None,
            },
            Place::Special(low) => Value::SpecialRegister(byte(*low, 8)),
            Place::Number(field, format) => self.number(field, *format),
            Place::Halves(field, brain) => Value::Immediate(Immediate {
                bits: field.read(word),
                format: if word.bit(*brain) {
                    ImmediateFormat::BrainPair
                } else {
                    ImmediateFormat::HalfPair
                },
            }),
            Place::SourceConstant => Value::Constant(self.source_constant()),
            Place::IndexedConstant(index) => Value::Constant(self.indexed_constant(index)),
            Place::Memory(pieces) => Value::Memory(self.memory(pieces)?),
            Place::MatrixDescriptor(low) => Value::MatrixDescriptor(byte(*low, 6)),
            Place::Descriptor(low) => Value::Descriptor(byte(*low, 6)),
            Place::Word(choice) => {
                let words = choice.read(word)?;
                Value::Word(*words.first()?, words.get(1).copied())
            }
            Place::Swizzle(low) => Value::Swizzle(byte(*low, 8)),
            Place::Target => Value::Target(self.relative(self.branch_offset())),
            Place::ByteTarget => Value::Target(self.relative(word.signed_field(24, 58))),
            Place::NearTarget => Value::Target(self.relative(word.signed_field(34, 30) * 4)),
            Place::AbsoluteTarget => {
                Value::AbsoluteTarget((self.branch_offset() as u64) & ((1 << 50) - 1))
            }
            Place::RegisterTarget { uniform, relative } => Value::RegisterTarget {
                register: if *uniform { byte(24, 6) } else { byte(24, 8) },
                uniform: *uniform,
                offset: if *relative {
                    self.relative(self.branch_offset())
                } else {
                    self.branch_offset()
                },
            },
        })
    }

    fn number(&self, field: &Field, format: ImmediateFormat) -> Value {
        let bits = match (format, &field.0[..]) {
            (ImmediateFormat::Signed | ImmediateFormat::SignedHigh, &[(low, width)]) => {
                self.word.signed_field(low, width) as u64
            }
            _ => field.read(self.word),
        };
        Value::Immediate(Immediate { bits, format })
    }

    /// `c[bank][offset]`, or `cx[UR][offset]` where bit 91 is set.
    fn source_constant(&self) -> ConstantAddress {
        let word = self.word;
        ConstantAddress {
            bank: if word.bit(91) && self.architecture != Architecture::Sm70 {
                ConstantBank::Bindless(word.field(32, 6) as u8)
            } else {
                ConstantBank::Number(word.field(54, 5) as u8)
            },
            index: Index::None,
            offset: (word.field(40, 14) << 2) as i32,
        }
    }

    /// 48 bits at 34 in units of 4 bytes; sm_90 moved the lowest 8 of 56 to bit 16.
    fn branch_offset(&self) -> i64 {
        if self.architecture == Architecture::Sm90 {
            ((self.word.signed_field(34, 48) << 8) | self.word.field(16, 8) as i64) * 4
        } else {
            self.word.signed_field(34, 48) * 4
        }
    }

    fn relative(&self, offset: i64) -> i64 {
        offset.wrapping_add(self.address.wrapping_add(WORD_BYTES) as i64)
    }

    fn indexed_constant(&self, index: &Option<Box<Place>>) -> ConstantAddress {
        let index = match index.as_deref() {
            Some(Place::Register(low)) => Index::Register(self.word.field(*low, 8) as u8),
            Some(Place::Uniform(low)) => Index::Uniform(self.word.field(*low, 6) as u8),
            _ => Index::None,
        };
        ConstantAddress {
            bank: if self.word.bit(91) && !matches!(index, Index::Uniform(_)) {
                ConstantBank::Bindless(self.word.field(32, 6) as u8)
            } else {
                ConstantBank::Number(self.word.field(54, 5) as u8)
            },
            offset: if index == Index::None {
                self.word.field(38, 16) as i32
            } else {
                self.word.signed_field(38, 16) as i32
            },
            index,
        }
    }

    fn memory(&self, pieces: &[MemoryPiece]) -> Option<MemoryAddress> {
        let mut address = MemoryAddress {
            base: None,
            base_modifier: None,
            uniform: None,
            uniform_modifier: None,
            offset: 0,
            descriptor: None,
            shows_descriptor: false,
        };
        for part in pieces {
            if !part
                .conditions
                .iter()
                .all(|condition| condition.holds(self.word))
            {
                continue;
            }
            match &part.piece {
                Piece::Base(low, suffix) => {
                    address.base = Some(self.word.field(*low, 8) as u8);
                    address.base_modifier = self.suffix(suffix)?;
                }
                Piece::Uniform(low, suffix) => {
                    let register = self.word.field(*low, 6) as u8;
                    if !(part.optional && register == UNIFORM_ZERO_REGISTER) {
                        address.uniform = Some(register);
                        address.uniform_modifier = self.suffix(suffix)?;
                    }
                }
                Piece::Offset(field) => {
                    address.offset = match field.0[..] {
                        [(low, width)] => self.word.signed_field(low, width),
                        _ => field.read(self.word) as i64,
                    };
                }
                Piece::Descriptor(low, shown) => {
                    address.descriptor = Some(self.word.field(*low, 6) as u8);
                    address.shows_descriptor = *shown;
                }
            }
        }
        // Before sm_90 a uniform address stands alone where the lanes add nothing.
        let adds_nothing = address.base == Some(ZERO_REGISTER)
            && address.base_modifier == Some(Modifier::U32)
            && address.uniform.is_some();
        if adds_nothing && self.architecture != Architecture::Sm90 {
            (address.base, address.base_modifier) = (None, None);
        }
        Some(address)
    }

    fn suffix(&self, choice: &Option<Choice>) -> Option<Option<Modifier>> {
        match choice {
            Some(choice) => single(choice, self.word),
            None => Some(None),
        }
    }
}

/// The one word of a choice, if it has one.
fn single(choice: &Choice, word: Word) -> Option<Option<Modifier>> {
    Some(choice.read(word)?.first().copied())
}

/// Whether an optional operand is left out of the text.
fn is_neutral(operand: &Operand) -> bool {
    !operand.invert
        && !operand.negate
        && match operand.value {
            Value::Register(register) => register == ZERO_REGISTER,
            Value::UniformRegister(register) => register == UNIFORM_ZERO_REGISTER,
            Value::Predicate(predicate) | Value::UniformPredicate(predicate) => {
                predicate == TRUE_PREDICATE
            }
            Value::Immediate(immediate) => immediate.bits == 0,
            Value::CounterSet(set) => set == 0,
            _ => false,
        }
}

/// IMAD is printed with what it is used for: a move, a shift, an addition.
fn name_imad(decoded: &mut Decoded) {
    if decoded.has(Modifier::X) {
        return;
    }
    let [_, a, b, c] = &decoded.operands[..] else {
        return;
    };
    if is_uniform(b) || is_uniform(c) {
        return;
    }
    let zero = Value::Register(ZERO_REGISTER);
    let factor = match b.value {
        Value::Immediate(factor) => Some(factor.bits as u32),
        _ => None,
    };
    let purpose = if a.value == zero
        || b.value == zero
        || factor == Some(0)
        || (factor == Some(1) && c.value == zero)
    {
        Modifier::MOV
    } else if c.value == zero && factor.is_some_and(is_shift) {
        Modifier::SHL
    } else if factor == Some(1) {
        Modifier::IADD
    } else {
        return;
    };
    decoded.modifiers.insert(
        0,
        ModifierValue {
            field: "purpose",
            modifier: purpose,
        },
    );
}

/// A uniform register, or a constant that one describes.
fn is_uniform(operand: &Operand) -> bool {
    matches!(
        operand.value,
        Value::UniformRegister(_)
            | Value::Constant(ConstantAddress {
                bank: ConstantBank::Bindless(_),
                ..
            })
    )
}

/// The disassembler calls these factors shifts; 2¹⁶ and 2³¹ are not among them.
fn is_shift(factor: u32) -> bool {
    factor.is_power_of_two() && !matches!(factor, 1 | 0x1_0000 | 0x8000_0000)
}
