//! What a word can name, from its opcode bits alone: enough to pass over millions of words and decode few.
//!
//! A shape is what the rows for some opcode bits have in common. It promises less than [`decode`](super::decode()): a
//! word names no more than its shape says, and may name less or be no instruction at all.

use std::sync::{LazyLock, OnceLock};

use smallvec::SmallVec;

use super::{
    architecture::{ARCHITECTURES, Architecture},
    decoded::UNIFORM_ZERO_REGISTER,
    table::{Entry, Piece, Place, TABLE},
    word::Word,
};

/// Values of the opcode bits.
const OPERATIONS: usize = 1 << 12;

/// Shapes by architecture and opcode bits, each made when it is first asked for.
static SHAPES: LazyLock<Vec<Vec<OnceLock<Shape>>>> = LazyLock::new(|| {
    let shapes = || (0..OPERATIONS).map(|_| OnceLock::new()).collect();
    ARCHITECTURES.iter().map(|_| shapes()).collect()
});

/// What the words with the same opcode bits can name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Lowest bits of the fields with uniform registers, and how many registers each may stand for.
    uniform: SmallVec<[(u8, u16); 4]>,
    /// Whether it may call a function.
    pub calls: bool,
    /// Whether it may change how many registers its warp has.
    pub changes_registers: bool,
    /// Whether it may move the register that keeps a return address of its own.
    pub moves_return_address: bool,
}

impl Shape {
    /// The shape of a word.
    #[must_use]
    pub fn of(architecture: Architecture, word: Word) -> &'static Self {
        let operation = word.operation();
        let shape = &SHAPES[architecture.index()][usize::from(operation)];
        shape.get_or_init(|| {
            let mut shape = Self::default();
            for entry in TABLE.candidates(architecture, operation) {
                shape.add(entry);
            }
            shape
        })
    }

    /// One past the highest uniform register that a word of this shape can touch.
    #[must_use]
    pub fn most_uniform(&self, word: Word) -> u16 {
        let touched =
            self.uniform
                .iter()
                .map(|(low, registers)| match word.field(*low, 6) as u16 {
                    index if index < u16::from(UNIFORM_ZERO_REGISTER) => index + registers,
                    _ => 0,
                });
        touched.max().unwrap_or(0)
    }

    fn add(&mut self, entry: &Entry) {
        match entry.opcode.name() {
            "CALL" => self.calls = true,
            "USETMAXREG" => self.changes_registers = true,
            "RPCMOV" => self.moves_return_address = true,
            _ => {}
        }
        for operand in &entry.operands {
            self.add_place(&operand.place);
        }
    }

    fn add_place(&mut self, place: &Place) {
        match place {
            Place::Uniform(low) | Place::Descriptor(low) => self.add_uniform(*low, PAIR),
            Place::MatrixDescriptor(low) => self.add_uniform(*low, 2 * PAIR),
            Place::RegisterTarget { uniform: true, .. } => self.add_uniform(TARGET, PAIR),
            Place::IndexedConstant(Some(index)) => self.add_place(index),
            Place::Memory(pieces) => {
                for part in pieces {
                    if let Piece::Uniform(low, _) | Piece::Descriptor(low, _) = &part.piece {
                        self.add_uniform(*low, PAIR);
                    }
                }
            }
            _ => {}
        }
    }

    fn add_uniform(&mut self, low: u8, registers: u16) {
        if !self.uniform.contains(&(low, registers)) {
            self.uniform.push((low, registers));
        }
    }
}

/// Any uniform register may begin a pair.
const PAIR: u16 = 2;

/// Where the register of a target lies.
const TARGET: u8 = 24;
