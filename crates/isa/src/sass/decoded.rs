//! A decoded instruction: what executing and printing both need.

use smallvec::SmallVec;

use super::modifier::Modifier;
use super::opcode::Opcode;
use crate::instruction::Control;

/// Index of the register that reads zero and ignores writes.
pub const ZERO_REGISTER: u8 = 255;
/// Index of the uniform register that reads zero.
pub const UNIFORM_ZERO_REGISTER: u8 = 63;
/// Index of the predicate that is always true.
pub const TRUE_PREDICATE: u8 = 7;

/// One instruction of one architecture.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The opcode.
    pub opcode: Opcode,
    /// Opcode and operand form bits, 12 of them, as encoded.
    pub operation: u16,
    /// Where it lies, in bytes from the start of its section.
    pub address: u64,
    /// When it is executed.
    pub guard: Guard,
    /// In the order of the text; a field at its unprinted value has no entry.
    pub modifiers: SmallVec<[ModifierValue; 8]>,
    /// In the order of the text, destinations first.
    pub operands: SmallVec<[Operand; 6]>,
    /// The compiler's scheduling bits.
    pub control: Control,
}

impl Decoded {
    /// Whether the instruction carries `modifier`.
    #[must_use]
    pub fn has(&self, modifier: Modifier) -> bool {
        self.modifiers
            .iter()
            .any(|entry| entry.modifier == modifier)
    }

    /// The modifier of the field that the table calls `field`, if it is printed.
    #[must_use]
    pub fn modifier(&self, field: &str) -> Option<Modifier> {
        self.modifiers
            .iter()
            .find(|entry| entry.field == field)
            .map(|entry| entry.modifier)
    }
}

/// A modifier and the name of the table's field that it came from.
///
/// The name tells apart equal words in one instruction, as in `IMMA.16816.S8.U8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModifierValue {
    /// Name of the field, empty for a word that the row always prints.
    pub field: &'static str,
    /// The modifier.
    pub modifier: Modifier,
}

/// The predicate in front: `@!P0`, `@UP1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Index, [`TRUE_PREDICATE`] for always.
    pub predicate: u8,
    /// Execute when the predicate is false.
    pub negate: bool,
    /// A uniform predicate.
    pub uniform: bool,
}

/// One operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The register, number or address it names.
    pub value: Value,
    /// Arithmetic minus in front.
    pub negate: bool,
    /// Absolute value.
    pub absolute: bool,
    /// `!` of a predicate, `~` of a register.
    pub invert: bool,
    /// Kept in the register cache.
    pub reuse: bool,
    /// Its encoding has a field that chooses a part, such as `.H1`.
    pub selects: bool,
    /// Words behind it: `.H0_H0`, `.B1`, `.COL`.
    pub modifiers: SmallVec<[Modifier; 2]>,
}

impl From<Value> for Operand {
    fn from(value: Value) -> Self {
        Self {
            value,
            negate: false,
            absolute: false,
            invert: false,
            reuse: false,
            selects: false,
            modifiers: SmallVec::new(),
        }
    }
}

/// What an operand names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// `R0` … `R254`, `RZ`; wider operands start here.
    Register(u8),
    /// `UR0` … `UR62`, `URZ`.
    UniformRegister(u8),
    /// `P0` … `P6`, `PT`.
    Predicate(u8),
    /// `UP0` … `UP6`, `UPT`.
    UniformPredicate(u8),
    /// All predicates at once: `PR`, `UPR`.
    PredicateFile {
        /// The uniform ones.
        uniform: bool,
    },
    /// A convergence barrier, `B0` … `B15`.
    ConvergenceBarrier(u8),
    /// A dependence counter, `SB0` … `SB5`.
    Counter(u8),
    /// A set of dependence counters, `{5,3}`, bit per counter.
    CounterSet(u8),
    /// The scoreboard of a warp group, `gsb0`.
    GroupScoreboard,
    /// `SR_TID.X` and the like, by number.
    SpecialRegister(u8),
    /// A number.
    Immediate(Immediate),
    /// `c[bank][offset]`.
    Constant(ConstantAddress),
    /// `[R2+0x10]` in the space that the opcode names.
    Memory(MemoryAddress),
    /// `gdesc[UR4]`: matrices described by uniform registers.
    MatrixDescriptor(u8),
    /// `desc[UR4]` on its own: a policy or memory descriptor.
    Descriptor(u8),
    /// A code address, in bytes from the start of the section.
    Target(i64),
    /// A code address without a register: an absolute number.
    AbsoluteTarget(u64),
    /// Register plus a constant: counted from the section's start in `RET.REL R20 0x0`, from the next
    /// instruction in `BRX R2 -0x10`.
    RegisterTarget {
        /// Holds the variable part.
        register: u8,
        /// The register is a uniform one.
        uniform: bool,
        /// Added to it.
        offset: i64,
    },
    /// A word that stands as an operand of its own: the register of `BMOV`, the texture shape.
    Word(Modifier, Option<Modifier>),
    /// What FSWZADD does to the sources of each of four lanes, two bits a lane.
    Swizzle(u8),
}

/// A number in the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Immediate {
    /// As encoded; signed formats are sign-extended to 64 bits.
    pub bits: u64,
    /// What the bits mean.
    pub format: ImmediateFormat,
}

/// What the bits of an immediate mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImmediateFormat {
    /// Printed without sign.
    Unsigned,
    /// Printed with sign.
    Signed,
    /// The upper word of 64 bits without sign, printed as that word; the lower one is zero.
    UnsignedHigh,
    /// The upper word of 64 bits with sign, printed as that word; the lower one is zero.
    SignedHigh,
    /// An IEEE half in the lower half of the word.
    Half,
    /// A bfloat16 in the lower half of the word.
    Brain,
    /// An IEEE single.
    Single,
    /// The upper half of an IEEE double; the lower half is zero.
    DoubleHigh,
    /// Two IEEE halves, the upper one printed first.
    HalfPair,
    /// Two bfloat16, the upper one printed first.
    BrainPair,
}

/// `c[bank][index+offset]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantAddress {
    /// The constant bank.
    pub bank: ConstantBank,
    /// Added to the offset at run time.
    pub index: Index,
    /// Offset in bytes.
    pub offset: i32,
}

/// A constant bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantBank {
    /// A bank by its number.
    Number(u8),
    /// By a descriptor in a uniform register pair: `cx[UR4]`.
    Bindless(u8),
}

/// A register that indexes a constant bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// No register.
    None,
    /// A register of each lane.
    Register(u8),
    /// A uniform register.
    Uniform(u8),
}

/// An address in memory: base + uniform base + offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAddress {
    /// Register of each lane.
    pub base: Option<u8>,
    /// How the base is read: `.64`, `.U32`, `.X4`.
    pub base_modifier: Option<Modifier>,
    /// Uniform register.
    pub uniform: Option<u8>,
    /// How the uniform base is read.
    pub uniform_modifier: Option<Modifier>,
    /// Offset in bytes.
    pub offset: i64,
    /// Uniform register pair with the memory descriptor.
    pub descriptor: Option<u8>,
    /// Whether the descriptor is printed; sm_80 carries it silently.
    pub shows_descriptor: bool,
}
