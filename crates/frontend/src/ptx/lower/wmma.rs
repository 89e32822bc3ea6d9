//! `wmma`: whole-warp matrices whose layout in registers is the implementation's own.
//!
//! Here a fragment is a row of the tiles that `mma` multiplies: A is cut along m into tiles of 16
//! (or 8) rows, B along n into tiles of 8 columns, C and D both ways. A fragment with more
//! registers than its elements need holds them several times over, as on hardware. Loads and
//! stores become ordinary ones with addresses from the lane's number.
//!
//! Reference: PTX ISA, "Warp-level matrix load/store/multiply instructions".

use lockstep_isa::{
    Operand as Value,
    ptx::{Type, class, special_register},
    semantics,
    semantics::{
        lane_loops::{Semantics, binary, ternary64, unary},
        matrix::{Accumulator, Multiply},
    },
};

use super::{
    Lowering, Register,
    matrix::{ACCUMULATORS, INPUTS, dimensions, find},
};
use crate::ptx::{
    error::Error,
    ir::Place,
    syntax::{Instruction, Operand, Scalar, ScalarKind},
};

const GROUP: Semantics = semantics!(unary; |lane| lane >> 2);
const MEMBER: Semantics = semantics!(unary; |lane| lane & 3);
/// `a × (low half of b)`, shifted right by its high half.
const MULTIPLY_SHIFT: Semantics =
    semantics!(binary; |a, b| a.wrapping_mul(b & 0xffff) >> (b >> 16));
/// `a × b + c` on 64 bits.
const MULTIPLY_ADD: Semantics = semantics!(ternary64; |a, b, c| a.wrapping_mul(b).wrapping_add(c));

/// One of the matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matrix {
    A,
    B,
    C,
}

/// A matrix in memory and in registers.
#[derive(Clone, Copy, Debug)]
struct Fragment {
    matrix: Matrix,
    /// Rows and columns.
    rows: usize,
    columns: usize,
    /// Bits of an element.
    bits: usize,
    /// Rows are contiguous in memory.
    row_major: bool,
    /// Elements of the program in one of these, as a power of two: nibbles and bits have no address
    /// of their own and are moved a word at a time.
    packed: u32,
}

/// Elements of one register: where the first lane's are, and how lanes spread from there.
struct Word {
    row: usize,
    column: usize,
}

impl Fragment {
    fn tile_rows(&self) -> usize {
        if self.rows.is_multiple_of(16) { 16 } else { 8 }
    }

    /// Neighbouring elements in one register; a 64-bit element has a register pair.
    fn run(&self) -> usize {
        (32 / self.bits).max(1)
    }

    /// Elements run along columns of the matrix (A, C) or along rows (B).
    fn along_columns(&self) -> bool {
        self.matrix != Matrix::B
    }

    /// Registers in order, 64-bit ones counted once.
    fn words(&self) -> Vec<Word> {
        let run = self.run();
        let mut words = Vec::new();
        match self.matrix {
            Matrix::A => {
                let tile = self.tile_rows();
                for tile_row in (0..self.rows).step_by(tile) {
                    for column in (0..self.columns).step_by(4 * run) {
                        for half in (0..tile).step_by(8) {
                            let row = tile_row + half;
                            words.push(Word { row, column });
                        }
                    }
                }
            }
            Matrix::B => {
                for column in (0..self.columns).step_by(8) {
                    for row in (0..self.rows).step_by(4 * run) {
                        words.push(Word { row, column });
                    }
                }
            }
            Matrix::C => {
                let tile = self.tile_rows();
                for tile_row in (0..self.rows).step_by(tile) {
                    for column in (0..self.columns).step_by(8) {
                        for half in (0..tile).step_by(8) {
                            // Pairs along n: one register for two halves, two for wider ones.
                            for within in (0..2).step_by(run) {
                                words.push(Word {
                                    row: tile_row + half,
                                    column: column + within,
                                });
                            }
                        }
                    }
                }
            }
        }
        words
    }

    /// Step between members of a group of four lanes.
    fn member_step(&self) -> usize {
        if self.matrix == Matrix::C {
            2
        } else {
            self.run()
        }
    }

    fn default_stride(&self) -> usize {
        if self.row_major {
            self.columns
        } else {
            self.rows
        }
    }
}

impl<'p, 'a> Lowering<'p, 'a> {
    pub(super) fn wmma(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        match i.modifiers.first() {
            Some(&"mma") => self.wmma_multiply(i),
            Some(&"load" | &"store") => self.wmma_access(i),
            _ => self.wrong("`wmma` is `.load`, `.store` or `.mma`"),
        }
    }

    /// The matrix that a load or store is about.
    fn wmma_fragment(&self, i: &Instruction<'_>) -> Option<Fragment> {
        let [m, n, k] = i.modifiers.iter().find_map(|word| dimensions(word))?;
        let kind = i.modifiers.last()?;
        let (matrix, rows, columns) = match *i.modifiers.get(1)? {
            "a" => (Matrix::A, m, k),
            "b" => (Matrix::B, k, n),
            _ => (Matrix::C, m, n),
        };
        let bits = match matrix {
            Matrix::C => match find(ACCUMULATORS, kind)? {
                Accumulator::F16 => 16,
                Accumulator::F64 => 64,
                Accumulator::F32 | Accumulator::S32 => 32,
            },
            _ => find(INPUTS, kind)?.bits(),
        };
        let row_major = i.modifiers.contains(&"row");
        let mut fragment = Fragment {
            matrix,
            rows,
            columns,
            bits,
            row_major,
            packed: 0,
        };
        if bits < 8 {
            // Words run along k, in memory too.
            let each = 32 / bits;
            match matrix {
                Matrix::A if row_major => fragment.columns = columns / each,
                Matrix::B if !row_major => fragment.rows = rows / each,
                _ => return None,
            }
            fragment.bits = 32;
            fragment.packed = each.ilog2();
        }
        (rows.is_multiple_of(8) || matrix == Matrix::B).then_some(fragment)
    }

    fn wmma_access(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let Some(fragment) = self.wmma_fragment(i).filter(|found| found.bits >= 8) else {
            return self.stop(i, "moves a matrix of a form that is not modelled");
        };
        self.expect_operands(&i.operands, 2..=3)?;
        let store = i.modifiers.first() == Some(&"store");
        let (registers, address) = if store {
            (&i.operands[1], &i.operands[0])
        } else {
            (&i.operands[0], &i.operands[1])
        };
        let registers = Self::elements(registers).to_vec();
        let words = fragment.words();
        if words.is_empty() || !registers.len().is_multiple_of(words.len()) {
            return self.wrong(format!("a fragment of {} registers expected", words.len()));
        }
        let space = i
            .modifiers
            .iter()
            .copied()
            .find(|word| self.space_of(word).is_some());
        self.counted = true;
        let stride = self.stride(&fragment, i.operands.get(2))?;
        let base = self.lane_base(&fragment, address, stride)?;
        self.counted = false;
        for (index, word) in words.iter().enumerate() {
            let Operand::Name(_) = &registers[index] else {
                return self.wrong("a fragment consists of registers");
            };
            let register = self.register_operand(&registers[index])?;
            self.move_word(&fragment, word, base, stride, register, space, store)?;
        }
        if !store {
            for (index, copy) in registers.iter().enumerate().skip(words.len()) {
                let to = self.register_operand(copy)?;
                let from = self.register_operand(&registers[index % words.len()])?;
                self.copy_word(to.place(), from.place());
            }
        }
        Ok(())
    }

    /// Bytes from one row (or column) to the next, as a 64-bit register.
    fn stride(
        &mut self,
        fragment: &Fragment,
        operand: Option<&Operand<'a>>,
    ) -> Result<Register, Error> {
        let bytes = (fragment.bits / 8) as u64;
        let narrow = self.new_register(32);
        let mut code = self.compute(MULTIPLY_SHIFT, class::INTEGER);
        let shift = match operand {
            Some(operand) => {
                code.instruction.sources[0] = self.value(&mut code, operand, Type::B32)?.into();
                fragment.packed
            }
            None => {
                let stride = fragment.default_stride() as u64;
                code.instruction.sources[0] = Value::Immediate(stride).into();
                0
            }
        };
        code.instruction.sources[1] = Value::Immediate(bytes | u64::from(shift) << 16).into();
        code.instruction.destination = Some(code.write(narrow.place(), 1));
        self.push(code);
        let wide = self.new_register(64);
        self.extend(wide, narrow, false);
        Ok(wide)
    }

    /// `a × b + c` in a fresh register; `a` is a register, `b` a number.
    fn scaled(&mut self, a: Register, b: u64, c: Register) -> Register {
        let sum = self.new_register(64);
        let mut code = self.compute(MULTIPLY_ADD, class::INTEGER);
        code.instruction.sources[0] = code.read(a.place(), 2).into();
        code.instruction.sources[1] = Value::Immediate(b).into();
        code.instruction.sources[2] = code.read(c.place(), 2).into();
        code.instruction.destination = Some(code.write(sum.place(), 2));
        self.push(code);
        sum
    }

    fn part_of_lane(&mut self, semantics: Semantics, lane: Register) -> Register {
        let part = self.new_register(32);
        let mut code = self.compute(semantics, class::INTEGER);
        code.instruction.sources[0] = code.read(lane.place(), 1).into();
        code.instruction.destination = Some(code.write(part.place(), 1));
        self.push(code);
        let wide = self.new_register(64);
        self.extend(wide, part, false);
        wide
    }

    /// Address of the lane's element in a word at row 0, column 0.
    fn lane_base(
        &mut self,
        fragment: &Fragment,
        address: &Operand<'a>,
        stride: Register,
    ) -> Result<Register, Error> {
        let start = self.address_value(address)?;
        let special = special_register::find("%laneid");
        let lane = self.new_register(32);
        if let Some(special) = special {
            let code = self.special(special, lane);
            self.push(code);
        }
        let group = self.part_of_lane(GROUP, lane);
        let member = self.part_of_lane(MEMBER, lane);
        let bytes = (fragment.bits / 8) as u64;
        let step = fragment.member_step() as u64;
        // Groups of lanes go along rows in A and C, along columns in B; members the other way.
        let groups_cross = fragment.along_columns() == fragment.row_major;
        let (by_stride, times, by_bytes, scale) = if groups_cross {
            (group, 1, member, step * bytes)
        } else {
            (member, step, group, bytes)
        };
        let near = self.scaled(by_bytes, scale, start);
        // by_stride × times × stride: the product of two registers.
        let far = self.new_register(64);
        let mut code = self.compute(MULTIPLY_ADD, class::INTEGER);
        code.instruction.sources[0] = code.read(by_stride.place(), 2).into();
        code.instruction.sources[1] = code.read(stride.place(), 2).into();
        code.instruction.sources[2] = Value::Immediate(0).into();
        code.instruction.destination = Some(code.write(far.place(), 2));
        self.push(code);
        Ok(self.scaled(far, times, near))
    }

    /// The address in brackets as a 64-bit register.
    fn address_value(&mut self, operand: &Operand<'a>) -> Result<Register, Error> {
        let inner = match operand {
            Operand::Address(list) if list.len() == 1 => list[0].clone(),
            _ => return self.wrong("an address such as [%rd1+4] must stand here"),
        };
        let (name, offset) = match inner {
            Operand::Name(name) => (name, 0),
            Operand::Offset(name, offset) => (name, offset),
            _ => return self.wrong("an address such as [%rd1+4] must stand here"),
        };
        let result = self.new_register(64);
        let mut code = self.compute(MULTIPLY_ADD, class::INTEGER);
        if self.is_address(name) {
            code.instruction.sources[0] = self.variable_address(&mut code, name, 0)?.into();
        } else {
            let register = self.register(name)?;
            let wide = if register.words() == 2 {
                register
            } else {
                let wide = self.new_register(64);
                self.extend(wide, register, false);
                wide
            };
            code.instruction.sources[0] = code.read(wide.place(), 2).into();
        }
        code.instruction.sources[1] = Value::Immediate(1).into();
        code.instruction.sources[2] = Value::Immediate(offset as u64).into();
        code.instruction.destination = Some(code.write(result.place(), 2));
        self.push(code);
        Ok(result)
    }

    /// Loads or stores the elements of one register.
    fn move_word(
        &mut self,
        fragment: &Fragment,
        word: &Word,
        base: Register,
        stride: Register,
        register: Register,
        space: Option<&'a str>,
        store: bool,
    ) -> Result<(), Error> {
        let bytes = fragment.bits / 8;
        let run = fragment.run();
        let contiguous = fragment.along_columns() == fragment.row_major;
        let pieces = if contiguous { 1 } else { run };
        let bits = if contiguous {
            fragment.bits * run
        } else {
            fragment.bits
        };
        let scalar = Scalar {
            bits: bits as u32,
            kind: ScalarKind::Bits,
        };
        let mut parts = Vec::new();
        for piece in 0..pieces {
            let (mut row, mut column) = (word.row, word.column);
            if fragment.along_columns() {
                column += piece;
            } else {
                row += piece;
            }
            let (lines, along) = if fragment.row_major {
                (row, column)
            } else {
                (column, row)
            };
            let counted = std::mem::replace(&mut self.counted, true);
            let line = self.scaled(stride, lines as u64, base);
            self.counted = counted;
            let part = if pieces == 1 {
                register
            } else {
                self.new_register(32)
            };
            if store && pieces > 1 {
                let counted = std::mem::replace(&mut self.counted, true);
                self.take_field(part, register, (piece * fragment.bits) as u32, scalar.bits);
                self.counted = counted;
            }
            self.access_at(line, (along * bytes) as i64, part, scalar, space, store)?;
            parts.push(part);
        }
        if !store && pieces > 1 {
            for (piece, part) in parts.iter().enumerate() {
                let place = (piece * fragment.bits) as u32;
                self.put_field(register, *part, place, scalar.bits, piece == 0);
            }
        }
        Ok(())
    }

    fn wmma_multiply(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let shape = self.wmma_shape(i);
        let Some((dimensions, shape)) = shape else {
            return self.stop(i, "multiplies matrices of a form that is not modelled");
        };
        let [m, n, _] = dimensions;
        self.expect_operands(&i.operands, 4..=4)?;
        let (m_tiles, n_tiles) = (m / shape.m, n / 8);
        let a = self.padded_fragment(&i.operands[1], m_tiles * shape.a_registers())?;
        let b = self.padded_fragment(&i.operands[2], n_tiles * shape.b_registers())?;
        let c = self.fragment(&i.operands[3], m_tiles * n_tiles * shape.c_registers())?;
        let rows = m_tiles * n_tiles * shape.d_registers();
        let d = self.new_wide(rows as u16);
        for m_tile in 0..m_tiles {
            for n_tile in 0..n_tiles {
                let tile = m_tile * n_tiles + n_tile;
                let counted = tile > 0;
                let part = self.multiply(
                    shape,
                    [
                        (a, (m_tile * shape.a_registers()) as u16),
                        (b, (n_tile * shape.b_registers()) as u16),
                        (c, (tile * shape.c_registers()) as u16),
                    ],
                    None,
                )?;
                if counted {
                    self.free_last();
                }
                for row in 0..shape.d_registers() as u16 {
                    let word = (tile * shape.d_registers()) as u16 + row;
                    let to = Place::Virtual { register: d, word };
                    let from = Place::Virtual {
                        register: part,
                        word: row,
                    };
                    self.copy_word(to, from);
                }
            }
        }
        self.spread_fragment(&i.operands[0], d, rows)
    }

    /// A fragment that may hold its elements several times over.
    fn padded_fragment(&mut self, operand: &Operand<'a>, rows: usize) -> Result<u32, Error> {
        let elements = Self::elements(operand);
        if elements.len() > rows {
            return self.fragment(&Operand::Vector(elements[..rows].to_vec()), rows);
        }
        self.fragment(operand, rows)
    }

    /// Dimensions of the whole, and the shape of one tile.
    fn wmma_shape(&self, i: &Instruction<'_>) -> Option<([usize; 3], Multiply)> {
        let whole = i.modifiers.iter().find_map(|word| dimensions(word))?;
        let [m, _, k] = whole;
        let types: Vec<&str> = i
            .modifiers
            .iter()
            .copied()
            .filter(|word| find(INPUTS, word).is_some() || find(ACCUMULATORS, word).is_some())
            .collect();
        // Half precision names only D and C: A and B are half too.
        let (d, a, b, c) = match types.as_slice() {
            [d, c] => (*d, "f16", "f16", *c),
            [d, a, b, c] => (*d, *a, *b, *c),
            _ => return None,
        };
        let rows = if m.is_multiple_of(16) { 16 } else { 8 };
        let inputs = [find(INPUTS, a)?, find(INPUTS, b)?];
        let (c, d) = (find(ACCUMULATORS, c)?, find(ACCUMULATORS, d)?);
        let shape = self.described(i, Multiply::dense([rows, 8, k], inputs, c, d));
        shape.is_known().then_some((whole, shape))
    }
}
