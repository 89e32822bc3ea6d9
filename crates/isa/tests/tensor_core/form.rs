//! One form of `mma` or `wgmma`: its name as the probe spells it, and what it computes here.

use lockstep_isa::WarpRegister;
use lockstep_isa::semantics::Rounding;
use lockstep_isa::semantics::matrix::{
    Accumulator, BitProduct, Descriptor, GroupOperand, GroupPlace, Input, Multiply, TensorCore,
    multiply, multiply_group,
};

use super::generator::{Source, TYPES};

pub struct Form<'a> {
    pub shape: Multiply,
    types: [&'a str; 4],
    group: bool,
    a_in_registers: bool,
    negate: [bool; 2],
    adds_c: bool,
}

fn input(name: &str) -> Input {
    match name {
        "f16" => Input::F16,
        "bf16" => Input::Bf16,
        "tf32" => Input::Tf32,
        "f64" => Input::F64,
        "s8" => Input::S8,
        "u8" => Input::U8,
        "s4" => Input::S4,
        "u4" => Input::U4,
        "b1" => Input::B1,
        "e4m3" => Input::E4m3,
        _ => Input::E5m2,
    }
}

fn accumulator(name: &str) -> Accumulator {
    match name {
        "f16" => Accumulator::F16,
        "s32" => Accumulator::S32,
        "f64" => Accumulator::F64,
        _ => Accumulator::F32,
    }
}

impl<'a> Form<'a> {
    pub fn read(name: &'a str) -> Self {
        let words: Vec<&str> = name.split('.').collect();
        let group = words[0] == "wgmma";
        let has = |word: &str| words.contains(&word);
        let shape = words.iter().find(|w| w.starts_with('m') && w.contains('k'));
        let shape = shape.unwrap()[1..].replace(['n', 'k'], " ");
        let dimensions: Vec<usize> = shape.split(' ').map(|n| n.parse().unwrap()).collect();
        let kinds: Vec<&str> = words.iter().copied().filter(|w| is_type(w)).collect();
        let types = match kinds[..] {
            [d, a, b] => [d, a, b, d],
            [d, a, b, c] => [d, a, b, c],
            _ => panic!("{name}"),
        };
        let selector = words.iter().find_map(|w| w.strip_prefix("sel"));
        let negated = words.iter().find_map(|w| w.strip_prefix("neg"));
        let inputs = [input(types[1]), input(types[2])];
        let size = [
            if group { 16 } else { dimensions[0] },
            dimensions[1],
            dimensions[2],
        ];
        let dense = Multiply::dense(size, inputs, accumulator(types[3]), accumulator(types[0]));
        Self {
            shape: Multiply {
                saturate: has("satfinite") || has("sat"),
                bit_product: if has("xor") {
                    BitProduct::Xor
                } else {
                    BitProduct::And
                },
                sparse: has("sp"),
                selector: selector.map_or(0, |s| s.parse().unwrap()),
                rounding: match () {
                    () if has("rz") => Rounding::Zero,
                    () if has("rm") => Rounding::Down,
                    () if has("rp") => Rounding::Up,
                    () => Rounding::Nearest,
                },
                unit: if group {
                    TensorCore::HopperGroup
                } else {
                    TensorCore::Hopper
                },
                ..dense
            },
            types,
            group,
            a_in_registers: has("regA"),
            negate: match negated {
                Some("-11") => [true, false],
                Some("1-1") => [false, true],
                Some(_) => [true, true],
                None => [false, false],
            },
            adds_c: !has("noC"),
        }
    }

    /// D as the probe wrote it: words, row by row.
    pub fn compute(&self, source: &Source<'_>) -> Vec<u32> {
        let parts = if self.group { 4 } else { 1 };
        let mut words = Vec::new();
        let shared = if self.group {
            self.shared(source)
        } else {
            Vec::new()
        };
        for part in 0..parts {
            let c = self.c(source, 16 * part);
            let lanes = 32 * part as u32..32 * part as u32 + 32;
            let mut metadata = WarpRegister::ZERO;
            for (lane, word) in lanes.zip(&mut metadata.0) {
                *word = source.metadata(lane);
            }
            let a = self.a(source, 16 * part);
            let d = if self.group {
                self.group_product(part, &a, &shared, &c, &metadata)
            } else {
                multiply(self.shape, &a, &self.b(source), &c, &metadata)
            };
            self.spread(&d, &mut words);
        }
        words
    }

    fn group_product(
        &self,
        part: usize,
        a: &[WarpRegister],
        shared: &[u8],
        c: &[WarpRegister],
        metadata: &WarpRegister,
    ) -> Vec<WarpRegister> {
        let row_bytes = |k: usize, input: Input| (k * input.bits() / 8) as u64;
        let describe =
            |start: u64, row: u64| Descriptor(start >> 4 | 128 >> 4 << 16 | (8 * row) >> 4 << 32);
        let place = if self.a_in_registers {
            GroupPlace::Registers(a)
        } else {
            GroupPlace::Shared(describe(0, row_bytes(self.shape.stored_k(), self.shape.a)))
        };
        let b = GroupPlace::Shared(describe(16384, row_bytes(self.shape.k, self.shape.b)));
        let operand = |place, index: usize| GroupOperand {
            place,
            negate: self.negate[index],
            transpose: false,
        };
        let operands = [operand(place, 0), operand(b, 1)];
        multiply_group(self.shape, part, operands, shared, c, metadata).unwrap()
    }

    /// Shared memory with A and B in groups of eight rows of 16 bytes.
    fn shared(&self, source: &Source<'_>) -> Vec<u8> {
        let mut shared = vec![0; 49152];
        let stored = self.shape.stored_k();
        let n = self.shape.n;
        let mut fill = |start: usize, operand: u32, rows: usize, columns: usize| {
            let kind = self.types[1 + operand as usize];
            let bits = input(kind).bits();
            let stride = columns * bits;
            for row in 0..rows {
                for column in 0..columns {
                    let index = if operand == 0 {
                        row * columns + column
                    } else {
                        column * n + row
                    };
                    let value = source.element(kind, operand, index);
                    let byte = column * bits / 8;
                    let at = start + row / 8 * stride + byte / 16 * 128 + row % 8 * 16 + byte % 16;
                    if bits == 1 {
                        shared[at] |= (value as u8) << (column % 8);
                    } else {
                        shared[at..at + bits / 8].copy_from_slice(&value.to_le_bytes()[..bits / 8]);
                    }
                }
            }
        };
        fill(0, 0, 64, stored);
        fill(16384, 1, n, self.shape.k);
        shared
    }

    /// The fragment of A from a row on. Registers hold runs along k, two halves of m first.
    fn a(&self, source: &Source<'_>, first_row: usize) -> Vec<WarpRegister> {
        let (m, k) = (self.shape.m, self.shape.stored_k());
        let halves = m / 8;
        let mut rows = vec![WarpRegister::ZERO; self.shape.a_registers()];
        self.fill(&mut rows, |register, lane, index, run| {
            let row = first_row + lane / 4 + 8 * (register % halves);
            let column = (register / halves * 4 + lane % 4) * run + index;
            source.element(self.types[1], 0, row * k + column)
        });
        rows
    }

    fn b(&self, source: &Source<'_>) -> Vec<WarpRegister> {
        let mut rows = vec![WarpRegister::ZERO; self.shape.b_registers()];
        self.fill(&mut rows, |register, lane, index, run| {
            let row = (register * 4 + lane % 4) * run + index;
            source.element(self.types[2], 1, row * self.shape.n + lane / 4)
        });
        rows
    }

    fn fill(&self, rows: &mut [WarpRegister], element: impl Fn(usize, usize, usize, usize) -> u64) {
        let bits = self.shape.a.bits();
        for lane in 0..32 {
            if bits == 64 {
                for register in 0..rows.len() / 2 {
                    let value = element(register, lane, 0, 1);
                    rows[2 * register].0[lane] = value as u32;
                    rows[2 * register + 1].0[lane] = (value >> 32) as u32;
                }
                continue;
            }
            let run = 32 / bits;
            for (register, row) in rows.iter_mut().enumerate() {
                for index in 0..run {
                    let value = element(register, lane, index, run) as u32;
                    row.0[lane] |= value << (bits * index);
                }
            }
        }
    }

    /// (row, column) of value `index` of a lane.
    fn place(&self, lane: usize, index: usize) -> (usize, usize) {
        let halves = self.shape.m / 8;
        let row = lane / 4 + 8 * (index / 2 % halves);
        (row, index / (2 * halves) * 8 + lane % 4 * 2 + index % 2)
    }

    fn c(&self, source: &Source<'_>, first_row: usize) -> Vec<WarpRegister> {
        let mut rows = vec![WarpRegister::ZERO; self.shape.c_registers()];
        if !self.adds_c {
            return rows;
        }
        for lane in 0..32 {
            for index in 0..self.shape.m * self.shape.n / 32 {
                let (row, column) = self.place(lane, index);
                let at = (first_row + row) * self.shape.n + column;
                let value = source.element(self.types[3], 2, at);
                match self.shape.c {
                    Accumulator::F16 => {
                        rows[index / 2].0[lane] |= (value as u32) << (16 * (index % 2));
                    }
                    Accumulator::F64 => {
                        rows[2 * index].0[lane] = value as u32;
                        rows[2 * index + 1].0[lane] = (value >> 32) as u32;
                    }
                    _ => rows[index].0[lane] = value as u32,
                }
            }
        }
        rows
    }

    fn spread(&self, d: &[WarpRegister], words: &mut Vec<u32>) {
        let n = self.shape.n;
        let first = words.len();
        let each = match self.shape.d {
            Accumulator::F16 => 1,
            Accumulator::F64 => 4,
            _ => 2,
        };
        words.resize(first + self.shape.m * n * each / 2, 0);
        for lane in 0..32 {
            for index in 0..self.shape.m * n / 32 {
                let (row, column) = self.place(lane, index);
                match self.shape.d {
                    Accumulator::F16 => {
                        words[first + row * n / 2 + column / 2] = d[index / 2].0[lane];
                    }
                    Accumulator::F64 => {
                        for word in 0..2 {
                            words[first + 2 * (row * n + column) + word] =
                                d[2 * index + word].0[lane];
                        }
                    }
                    _ => words[first + row * n + column] = d[index].0[lane],
                }
            }
        }
    }
}

fn is_type(word: &str) -> bool {
    TYPES.iter().any(|(name, _)| *name == word)
}
