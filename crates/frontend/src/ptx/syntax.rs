//! The tree that the parser makes. Names borrow from the text.

use super::error::Position;

/// A whole text.
#[derive(Debug, Default)]
pub struct Program<'a> {
    /// `.version`, × 10.
    pub version: u32,
    /// Number in `.target sm_NN`.
    pub architecture: u32,
    /// Variables of the module.
    pub variables: Vec<Variable<'a>>,
    /// Functions and kernels, declarations too.
    pub functions: Vec<Function<'a>>,
    /// `.file`: number and path.
    pub files: Vec<(u64, &'a str)>,
    /// `.alias name, target`.
    pub aliases: Vec<(&'a str, &'a str)>,
}

/// Where a variable or function can be seen from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Linkage {
    /// In its module.
    #[default]
    Internal,
    /// `.visible`, `.common`: everywhere.
    Visible,
    /// `.weak`: everywhere, unless another is there.
    Weak,
    /// `.extern`: defined elsewhere.
    Extern,
}

/// State spaces of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableSpace {
    /// `.global`
    Global,
    /// `.const`
    Constant,
    /// `.shared`
    Shared,
    /// `.local`
    Local,
    /// `.param`
    Parameter,
}

/// Scalar types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// 1 (predicate), 8, 16, 32, 64 or 128.
    pub bits: u32,
    /// Signed, unsigned, floating-point or plain bits.
    pub kind: ScalarKind,
}

/// What the bits of a scalar mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    /// Untyped.
    Bits,
    /// Unsigned.
    Unsigned,
    /// Signed.
    Signed,
    /// IEEE float.
    Float,
    /// bfloat16.
    Brain,
    /// Lane mask.
    Predicate,
}

impl Scalar {
    /// Reads a type name; packed pairs count as bits.
    pub fn from_name(name: &str) -> Option<Self> {
        let (kind, bits) = match name {
            "pred" => (ScalarKind::Predicate, 1),
            "bf16" => (ScalarKind::Brain, 16),
            "f16x2" | "bf16x2" | "tf32" | "u16x2" | "s16x2" | "u8x4" | "s8x4" => {
                (ScalarKind::Bits, 32)
            }
            "e4m3x2" | "e5m2x2" => (ScalarKind::Bits, 16),
            "texref" | "samplerref" | "surfref" => (ScalarKind::Bits, 64),
            _ => {
                let kind = match name.as_bytes().first()? {
                    b'b' => ScalarKind::Bits,
                    b'u' => ScalarKind::Unsigned,
                    b's' => ScalarKind::Signed,
                    b'f' => ScalarKind::Float,
                    _ => return None,
                };
                let bits = match &name[1..] {
                    "8" => 8,
                    "16" => 16,
                    "32" => 32,
                    "64" => 64,
                    "128" => 128,
                    _ => return None,
                };
                (kind, bits)
            }
        };
        Some(Self { bits, kind })
    }

    /// Bytes in memory.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits.div_ceil(8))
    }

    /// Sign-extends when it grows.
    pub fn signed(self) -> bool {
        self.kind == ScalarKind::Signed
    }
}

/// A variable: one element or an array.
#[derive(Debug, Clone)]
pub struct Variable<'a> {
    /// Name.
    pub name: &'a str,
    /// State space that it lives in.
    pub space: VariableSpace,
    /// Which other modules see it.
    pub linkage: Linkage,
    /// Type of an element.
    pub scalar: Scalar,
    /// Bytes in all; `None` for an array without a length.
    pub size: Option<u64>,
    /// Alignment in bytes.
    pub alignment: u64,
    /// `.attribute(.managed)`.
    pub managed: bool,
    /// `.texref`: a texture reference.
    pub texture: bool,
    /// Initial elements, by element index.
    pub initial: Vec<Initial<'a>>,
    /// Where it is declared.
    pub position: Position,
}

/// One initial element.
#[derive(Debug, Clone, PartialEq)]
pub struct Initial<'a> {
    /// Byte offset in the variable.
    pub offset: u64,
    /// The value at that offset.
    pub value: InitialValue<'a>,
}

/// An initial value.
#[derive(Debug, Clone, PartialEq)]
pub enum InitialValue<'a> {
    /// Bits of the element type.
    Bits(u64),
    /// An address: of a variable or a function, plus an offset; `generic(…)` or not.
    Address {
        /// Name of the variable or function.
        name: &'a str,
        /// Added to it.
        offset: i64,
        /// As a generic address.
        generic: bool,
        /// `mask(…)`: this byte of it alone.
        mask: Option<u64>,
    },
}

/// A kernel or function.
#[derive(Debug)]
pub struct Function<'a> {
    /// Name.
    pub name: &'a str,
    /// `.entry` rather than `.func`.
    pub is_kernel: bool,
    /// `(…)` before the name.
    pub results: Vec<Variable<'a>>,
    /// `(…)` after the name.
    pub parameters: Vec<Variable<'a>>,
    /// `.maxntid`, threads in all; 0 is none.
    pub max_threads: u32,
    /// `.minnctapersm`; 0 is none.
    pub min_blocks: u32,
    /// `.maxnreg`; 0 is none.
    pub max_registers: u32,
    /// `.reqntid`.
    pub required_threads: Option<[u32; 3]>,
    /// `.reqnctapercluster`.
    pub cluster: Option<[u32; 3]>,
    /// `.noreturn`.
    pub no_return: bool,
    /// Statements; `None` for a declaration.
    pub body: Option<Vec<Statement<'a>>>,
    /// Place of its first word in the text.
    pub position: Position,
}

impl Function<'_> {
    /// Registers a thread that its warps begin with, if it hands some of them from warp to warp
    /// (`setmaxnreg`) and says how many there are: a compiler ignores the instruction otherwise.
    #[must_use]
    pub fn entry_registers(&self) -> Option<u32> {
        /// Registers of an SM.
        const FILE: u32 = 65536;
        if !self.body.as_deref().is_some_and(moves_registers) {
            return None;
        }
        let threads = self.required_threads.map_or(self.max_threads, |[x, y, z]| {
            x.saturating_mul(y).saturating_mul(z)
        });
        match (self.max_registers, self.min_blocks, threads) {
            (0, 0, _) | (0, _, 0) => None,
            (0, blocks, threads) => {
                let all = threads
                    .div_ceil(128)
                    .saturating_mul(128)
                    .saturating_mul(blocks);
                Some((FILE / all / 8 * 8).min(255))
            }
            (registers, ..) => Some(registers),
        }
    }
}

fn moves_registers(statements: &[Statement<'_>]) -> bool {
    statements.iter().any(|statement| match statement {
        Statement::Block(inner) => moves_registers(inner),
        Statement::Instruction(instruction) => instruction.opcode == "setmaxnreg",
        _ => false,
    })
}

/// One statement of a function.
#[derive(Debug)]
pub enum Statement<'a> {
    /// `name:`
    Label(&'a str, Position),
    /// An instruction.
    Instruction(Box<Instruction<'a>>),
    /// `{ … }`
    Block(Vec<Statement<'a>>),
    /// A variable of the function.
    Variable(Box<Variable<'a>>),
    /// `.reg`
    Registers(Registers<'a>),
    /// `name: .branchtargets a, b, …;`
    BranchTargets(&'a str, Vec<&'a str>),
    /// `name: .callprototype …;`
    Prototype(&'a str, Box<Function<'a>>),
    /// `.loc`: file number and line.
    Location(u64, u32, Option<(u64, u32)>),
}

/// A declaration of registers.
#[derive(Debug)]
pub struct Registers<'a> {
    /// Type.
    pub scalar: Scalar,
    /// Elements of a vector register: 1, 2 or 4.
    pub elements: u32,
    /// Names; a number makes `name0` to `name(n-1)`.
    pub names: Vec<(&'a str, Option<u64>)>,
    /// Place of the declaration in the text.
    pub position: Position,
}

/// One instruction.
#[derive(Debug)]
pub struct Instruction<'a> {
    /// `@p` or `@!p`: name, and whether negated.
    pub guard: Option<(&'a str, bool)>,
    /// What stands before the first dot.
    pub opcode: &'a str,
    /// What follows the dots.
    pub modifiers: Vec<&'a str>,
    /// Operands.
    pub operands: Vec<Operand<'a>>,
    /// Place of its first word in the text.
    pub position: Position,
    /// As it is written.
    pub text: &'a str,
}

/// One operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand<'a> {
    /// A register, variable, function, label or special register; components joined.
    Name(&'a str),
    /// A name plus a number.
    Offset(&'a str, i64),
    /// An integer.
    Integer(i64),
    /// A single precision literal.
    Single(u32),
    /// A double precision literal.
    Double(u64),
    /// `_`
    Sink,
    /// `!p` or `-a`.
    Negated(Box<Operand<'a>>),
    /// `a|b`
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `{a, b, …}`
    Vector(Vec<Operand<'a>>),
    /// `[a]`, `[a+4]`, `[a, b]`
    Address(Vec<Operand<'a>>),
    /// `(a, b)`
    List(Vec<Operand<'a>>),
}
