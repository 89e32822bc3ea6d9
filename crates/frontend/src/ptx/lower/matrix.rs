//! Matrix multiply: `mma`. The older `wmma` is built from it, in `wmma.rs`.

use lockstep_isa::{
    Operand as Value,
    instruction::{Latency, Mix, Unit},
    ptx::{Class, Type, matrix::MULTIPLY},
    semantics::{
        Rounding,
        matrix::{Accumulator, BitProduct, Input, Multiply, TensorCore},
    },
};

use super::Lowering;
use crate::ptx::{
    error::Error,
    ir::{Place, RegisterId, Uniformity},
    syntax::{Instruction, Operand},
};

/// Element types by name.
pub(super) const INPUTS: &[(&str, Input)] = &[
    ("f16", Input::F16),
    ("bf16", Input::Bf16),
    ("tf32", Input::Tf32),
    ("f64", Input::F64),
    ("s8", Input::S8),
    ("u8", Input::U8),
    ("s4", Input::S4),
    ("u4", Input::U4),
    ("b1", Input::B1),
    ("e4m3", Input::E4m3),
    ("e5m2", Input::E5m2),
];

pub(super) const ACCUMULATORS: &[(&str, Accumulator)] = &[
    ("f32", Accumulator::F32),
    ("f16", Accumulator::F16),
    ("s32", Accumulator::S32),
    ("f64", Accumulator::F64),
];

pub(super) fn find<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}

/// `m16n8k16` to its numbers.
pub(super) fn dimensions(word: &str) -> Option<[usize; 3]> {
    let rest = word.strip_prefix('m')?;
    let (m, rest) = rest.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

impl<'p, 'a> Lowering<'p, 'a> {
    /// The shape that the modifiers describe.
    fn multiply_shape(&self, i: &Instruction<'_>) -> Option<Multiply> {
        let [m, n, k] = i.modifiers.iter().find_map(|word| dimensions(word))?;
        let types: Vec<&str> = i
            .modifiers
            .iter()
            .copied()
            .filter(|word| find(INPUTS, word).is_some() || find(ACCUMULATORS, word).is_some())
            .collect();
        let [d, a, b, c] = types.as_slice() else {
            return None;
        };
        let inputs = [find(INPUTS, a)?, find(INPUTS, b)?];
        let (c, d) = (find(ACCUMULATORS, c)?, find(ACCUMULATORS, d)?);
        let shape = self.described(i, Multiply::dense([m, n, k], inputs, c, d));
        shape.is_known().then_some(shape)
    }

    /// A shape with what modifiers say of it.
    pub(super) fn described(&self, i: &Instruction<'_>, shape: Multiply) -> Multiply {
        let has = |word: &str| i.modifiers.contains(&word);
        Multiply {
            saturate: has("satfinite"),
            bit_product: if has("and") {
                BitProduct::And
            } else {
                BitProduct::Xor
            },
            sparse: i.modifiers.iter().any(|word| word.starts_with("sp")),
            rounding: match () {
                () if has("rz") => Rounding::Zero,
                () if has("rm") => Rounding::Down,
                () if has("rp") => Rounding::Up,
                () => Rounding::Nearest,
            },
            unit: TensorCore::of_architecture(self.symbols.gpu),
            ..shape
        }
    }

    pub(super) fn mma(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let scaled = i.modifiers.iter().any(|word| word.starts_with("kind::"));
        let Some(mut shape) = self.multiply_shape(i).filter(|_| !scaled) else {
            return self.stop(i, "is a matrix multiply of a shape that is not modelled");
        };
        let count = if shape.sparse { 6 } else { 4 };
        self.expect_operands(&i.operands, count..=count)?;
        let metadata = if shape.sparse {
            let Operand::Integer(selector @ 0..=3) = i.operands[5] else {
                return self.wrong("the sparsity selector is a literal from 0 to 3");
            };
            shape.selector = selector as u8;
            Some(&i.operands[4])
        } else {
            None
        };
        let a = self.fragment(&i.operands[1], shape.a_registers())?;
        let b = self.fragment(&i.operands[2], shape.b_registers())?;
        let c = self.fragment(&i.operands[3], shape.c_registers())?;
        let d = self.multiply(shape, [(a, 0), (b, 0), (c, 0)], metadata)?;
        self.spread_fragment(&i.operands[0], d, shape.d_registers())
    }

    /// One multiplication of fragments that lie in consecutive words.
    pub(super) fn multiply(
        &mut self,
        shape: Multiply,
        fragments: [(RegisterId, u16); 3],
        metadata: Option<&Operand<'a>>,
    ) -> Result<RegisterId, Error> {
        let double = shape.a == Input::F64;
        let class = Class {
            unit: Unit::Tensor,
            latency: match (double, shape.k * shape.a.bits() > 128) {
                (true, _) => Latency::MatrixDouble,
                (false, true) => Latency::MatrixLong,
                (false, false) => Latency::MatrixShort,
            },
            mix: if double { Mix::Fp64 } else { Mix::Other },
        };
        let d = self.new_wide(shape.d_registers() as u16);
        let mut code = self.compute(MULTIPLY, class);
        code.instruction.modifiers = shape.encode();
        let rows = [
            shape.a_registers(),
            shape.b_registers(),
            shape.c_registers(),
        ];
        for (index, (register, word)) in fragments.into_iter().enumerate() {
            let place = Place::Virtual { register, word };
            code.instruction.sources[index] = code.read(place, rows[index] as u16).into();
        }
        if let Some(operand) = metadata {
            code.instruction.sources[3] = self.value(&mut code, operand, Type::B32)?.into();
        }
        let place = Place::Virtual {
            register: d,
            word: 0,
        };
        code.instruction.destination = Some(code.write(place, shape.d_registers() as u16));
        code.uniformity = Uniformity::Divergent;
        code.converged_lanes = Some(Value::Immediate(u64::from(u32::MAX)));
        self.counted = false;
        self.push(code);
        Ok(d)
    }

    /// Collects a fragment into the words of one register.
    pub(super) fn fragment(
        &mut self,
        operand: &Operand<'a>,
        rows: usize,
    ) -> Result<RegisterId, Error> {
        let elements = Self::elements(operand).to_vec();
        let register = self.new_wide(rows as u16);
        self.counted = true;
        let mut word = 0;
        for element in &elements {
            let double = match element {
                Operand::Name(name) => self.register(name)?.words() == 2,
                Operand::Double(_) => true,
                _ => false,
            };
            let place = Place::Virtual { register, word };
            let kind = if double { Type::F64 } else { Type::B32 };
            if usize::from(word + kind.words()) > rows {
                return self.wrong(format!("a fragment of {rows} words expected"));
            }
            let mut code = if double {
                self.move64(place, Value::None)
            } else {
                self.move32(place, Value::None)
            };
            code.instruction.sources[0] = self.value(&mut code, element, kind)?.into();
            self.push(code);
            word += kind.words();
        }
        if usize::from(word) != rows {
            return self.wrong(format!("a fragment of {rows} words expected, {word} given"));
        }
        Ok(register)
    }

    /// Hands the words of a register out to a fragment's registers.
    pub(super) fn spread_fragment(
        &mut self,
        operand: &Operand<'a>,
        register: RegisterId,
        rows: usize,
    ) -> Result<(), Error> {
        let mut word = 0;
        for element in Self::elements(operand).to_vec() {
            let to = self.register_operand(&element)?;
            if usize::from(word + to.words()) > rows {
                return self.wrong(format!("a fragment of {rows} words expected"));
            }
            for index in 0..to.words() {
                let from = Place::Virtual {
                    register,
                    word: word + index,
                };
                self.copy_word(to.word(index), from);
            }
            word += to.words();
        }
        if usize::from(word) != rows {
            return self.wrong(format!("a fragment of {rows} words expected, {word} given"));
        }
        Ok(())
    }
}
