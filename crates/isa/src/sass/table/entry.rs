//! What a row of the tables becomes: one opcode in one operand form, field by field.

use smallvec::SmallVec;

use super::super::{decoded::ImmediateFormat, modifier::Modifier, opcode::Opcode, word::Word};

/// Bits of one value, lowest part first: (low bit, width).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field(pub SmallVec<[(u8, u8); 2]>);

impl Field {
    /// The value of this field in `word`.
    #[must_use]
    pub fn read(&self, word: Word) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        for &(low, width) in &self.0 {
            value |= word.field(low, width) << shift;
            shift += width;
        }
        value
    }
}

/// A field that must have a value, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub(super) field: Field,
    pub(super) value: u64,
    /// The field must differ from the value instead.
    pub(super) differs: bool,
}

impl Condition {
    /// Whether `word` meets it.
    #[must_use]
    pub fn holds(&self, word: Word) -> bool {
        (self.field.read(word) == self.value) != self.differs
    }
}

/// A field whose value is a word, or several, or nothing.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What the set is called; the word itself for a single bit.
    pub name: &'static str,
    /// Where it is encoded; empty for a word that is always printed.
    pub field: Field,
    /// By value; `None` is no encoding.
    pub values: Vec<Option<SmallVec<[Modifier; 2]>>>,
}

impl Choice {
    /// The words of `word`'s value, or `None` when it has no meaning.
    #[must_use]
    pub fn read(&self, word: Word) -> Option<&[Modifier]> {
        let value = usize::try_from(self.field.read(word)).ok()?;
        self.values.get(value)?.as_deref()
    }
}

/// One piece of a memory operand.
#[derive(Clone, Debug)]
pub enum Piece {
    /// The register of each lane, and how it is read.
    Base(u8, Option<Choice>),
    /// A uniform register.
    Uniform(u8, Option<Choice>),
    /// A signed offset.
    Offset(Field),
    /// A memory descriptor, and whether it is printed.
    Descriptor(u8, bool),
}

/// A piece with what governs it.
#[derive(Clone, Debug)]
pub struct MemoryPiece {
    /// The piece itself.
    pub piece: Piece,
    /// Present only when all hold.
    pub conditions: Vec<Condition>,
    /// Absent at its neutral value.
    pub optional: bool,
}

/// Where an operand's value comes from.
#[derive(Clone, Debug)]
pub enum Place {
    /// 8 bits.
    Register(u8),
    /// 6 bits.
    Uniform(u8),
    /// 3 bits.
    Predicate(u8),
    /// 3 bits.
    UniformPredicate(u8),
    /// 3 bits, complemented, so that zero means true.
    ComplementedPredicate {
        /// Lowest bit.
        low: u8,
        /// A uniform predicate.
        uniform: bool,
    },
    /// All predicates.
    PredicateFile {
        /// The uniform ones.
        uniform: bool,
    },
    /// 4 bits.
    Barrier(u8),
    /// 3 bits; 6 and 7 name nothing.
    Counter(u8),
    /// 6 bits.
    CounterSet(u8),
    /// 3 bits; only 0 exists, 7 is none.
    GroupScoreboard(u8),
    /// 8 bits.
    Special(u8),
    /// A number.
    Number(Field, ImmediateFormat),
    /// A number that is bfloat16 where the bit is set.
    Halves(Field, u8),
    /// `c[bank][offset]`: word offset at 40, bank at 54; bit 91 makes it `cx[UR]`.
    SourceConstant,
    /// Byte offset at 38, bank at 54, and the register that indexes it.
    IndexedConstant(Option<Box<Place>>),
    /// An address.
    Memory(Vec<MemoryPiece>),
    /// 6 bits, `gdesc[UR]`.
    MatrixDescriptor(u8),
    /// 6 bits, `desc[UR]`.
    Descriptor(u8),
    /// A word.
    Word(Choice),
    /// 8 bits: which sign each lane of two quads gives to its sources.
    Swizzle(u8),
    /// 48 bits at 34 in units of 4 bytes; on sm_90 the lowest 8 of them lie at 16.
    Target,
    /// 58 bits at 24 in bytes.
    ByteTarget,
    /// 30 bits at 34 in units of 4 bytes.
    NearTarget,
    /// The 48 bits as an absolute address.
    AbsoluteTarget,
    /// A register at 24 plus the 48 bits.
    RegisterTarget {
        /// The register is uniform.
        uniform: bool,
        /// The offset is relative to the next instruction.
        relative: bool,
    },
}

/// One operand of an entry.
#[derive(Clone, Debug)]
pub struct OperandField {
    /// Where its value comes from.
    pub place: Place,
    /// Present only when all hold.
    pub conditions: Vec<Condition>,
    /// Absent at its neutral value.
    pub optional: bool,
    /// Bit of the minus.
    pub negate: Option<u8>,
    /// Bit of the absolute value.
    pub absolute: Option<u8>,
    /// Bit of `!` or `~`.
    pub invert: Option<u8>,
    /// The minus complements when bit 74 is set.
    pub complements_when_extended: bool,
    /// Bit of the register cache.
    pub reuse: Option<u8>,
    /// Another bit that says the same on sm_70.
    pub reuse_on_volta: Option<u8>,
    /// Words behind it.
    pub suffixes: Vec<Choice>,
}

/// A rule that adds a word to what the bits say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alias {
    /// IMAD that moves, shifts or adds.
    Imad,
}

/// One opcode in one operand form.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The opcode.
    pub opcode: Opcode,
    /// It applies only when all hold.
    pub conditions: Vec<Condition>,
    /// The guard is a uniform predicate.
    pub uniform_guard: bool,
    /// In printed order.
    pub modifiers: Vec<Choice>,
    /// In printed order.
    pub operands: Vec<OperandField>,
    /// A spelling that depends on operand values.
    pub alias: Option<Alias>,
}
