//! Hopper's warp groups: `wgmma` and `setmaxnreg`.
//!
//! Reference: PTX ISA, "Asynchronous warpgroup level matrix instructions".

use lockstep_isa::{
    Operand as Value, Operation,
    instruction::{Latency, Mix, Unit},
    ptx::{Class, Type},
    semantics::matrix::{Accumulator, BitProduct, Input, Multiply, TensorCore},
    warpgroup::{GroupMultiply, Warpgroup},
};

use super::{
    Lowering,
    matrix::{ACCUMULATORS, INPUTS, dimensions, find},
};
use crate::ptx::{
    error::Error,
    ir::{Place, Uniformity},
    syntax::{Instruction, Operand},
};

const GROUP: Class = Class {
    unit: Unit::Miscellaneous,
    latency: Latency::Integer,
    mix: Mix::Other,
};
const PRODUCT: Class = Class {
    unit: Unit::Tensor,
    latency: Latency::MatrixLong,
    mix: Mix::Other,
};

/// Operands of `wgmma.mma_async` by what they are.
struct Operands<'o, 'a> {
    d: &'o Operand<'a>,
    a: &'o Operand<'a>,
    b: &'o Operand<'a>,
    metadata: Option<&'o Operand<'a>>,
    scale: &'o Operand<'a>,
    /// Signs of A and B, then the dimensions that are contiguous.
    numbers: Vec<i64>,
    selector: i64,
}

impl<'p, 'a> Lowering<'p, 'a> {
    /// `wgmma.fence`, `.commit_group`, `.wait_group`, `.mma_async`.
    pub(super) fn wgmma(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        match i.modifiers.first() {
            Some(&"fence") => self.group_instruction(Warpgroup::Arrive),
            Some(&"commit_group") => self.group_instruction(Warpgroup::Commit),
            Some(&"wait_group") => {
                self.expect_operands(&i.operands, 1..=1)?;
                let Operand::Integer(at_most) = i.operands[0] else {
                    return self.wrong("the number of groups is a literal");
                };
                self.group_instruction(Warpgroup::Wait {
                    at_most: at_most.clamp(0, 255) as u8,
                });
            }
            Some(&"mma_async") => return self.group_multiply(i),
            _ => {
                return self
                    .wrong("`wgmma` is `.fence`, `.mma_async`, `.commit_group` or `.wait_group`");
            }
        }
        Ok(())
    }

    /// `setmaxnreg.inc` and `.dec`, where the kernel says how many registers it begins with.
    pub(super) fn set_registers(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 1..=1)?;
        let Operand::Integer(count @ 24..=256) = i.operands[0] else {
            return self.wrong("a number of registers from 24 to 256 expected");
        };
        let count = count as u16;
        if self.function.entry_registers().is_none() {
            return self.hint(i);
        }
        self.group_instruction(if i.modifiers.contains(&"inc") {
            Warpgroup::TakeRegisters { wanted: count }
        } else {
            Warpgroup::ReleaseRegisters { keep: count }
        });
        Ok(())
    }

    fn group_instruction(&mut self, operation: Warpgroup) {
        let mut code = self.code(Operation::Warpgroup(operation), GROUP);
        code.uniformity = Uniformity::Divergent;
        code.converged_lanes = Some(Value::Immediate(u64::from(u32::MAX)));
        self.push(code);
    }

    fn group_shape(&self, i: &Instruction<'_>) -> Option<Multiply> {
        let [m, n, k] = i.modifiers.iter().find_map(|word| dimensions(word))?;
        let mut types = i
            .modifiers
            .iter()
            .copied()
            .filter(|word| find(INPUTS, word).is_some() || find(ACCUMULATORS, word).is_some());
        let d = find(ACCUMULATORS, types.next()?)?;
        let inputs = [find(INPUTS, types.next()?)?, find(INPUTS, types.next()?)?];
        let shape = Multiply {
            bit_product: BitProduct::And,
            unit: TensorCore::HopperGroup,
            ..self.described(i, Multiply::dense([16, n, k], inputs, d, d))
        };
        let fits = match inputs[0] {
            Input::F16 | Input::Bf16 => 16,
            Input::Tf32 => 8,
            Input::S8 | Input::U8 | Input::E4m3 | Input::E5m2 => 32,
            Input::B1 => 256,
            _ => return None,
        };
        let sparse = if shape.sparse { 2 } else { 1 };
        (m == 64 && k == fits * sparse && d != Accumulator::F64 && shape.is_known())
            .then_some(shape)
    }

    fn group_operands<'o>(
        &self,
        i: &'o Instruction<'a>,
        sparse: bool,
    ) -> Result<Operands<'o, 'a>, Error> {
        let count = 4 + 2 * usize::from(sparse);
        if i.operands.len() < count {
            return self.wrong(format!("at least {count} operands expected"));
        }
        let number = |operand: &Operand<'_>| match operand {
            Operand::Integer(number) => Some(*number),
            _ => None,
        };
        let mut rest = Vec::new();
        for operand in &i.operands[count..] {
            match number(operand) {
                Some(number) => rest.push(number),
                None => return self.wrong("signs and dimensions are literals"),
            }
        }
        let selector = if sparse {
            number(&i.operands[4])
        } else {
            Some(0)
        };
        let Some(selector @ 0..=3) = selector else {
            return self.wrong("the sparsity selector is a literal from 0 to 3");
        };
        Ok(Operands {
            d: &i.operands[0],
            a: &i.operands[1],
            b: &i.operands[2],
            metadata: sparse.then(|| &i.operands[3]),
            scale: &i.operands[count - 1],
            numbers: rest,
            selector,
        })
    }

    fn group_multiply(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let Some(shape) = self.group_shape(i) else {
            return self.stop(i, "is a matrix multiply of a shape that does not exist");
        };
        let operands = self.group_operands(i, shape.sparse)?;
        let shape = Multiply {
            selector: operands.selector as u8,
            ..shape
        };
        let a_in_registers = matches!(operands.a, Operand::Vector(_));
        let at = |index: usize| operands.numbers.get(index).copied();
        let negate = [at(0) == Some(-1), at(1) == Some(-1)];
        let transpose = if a_in_registers {
            [false, at(2) == Some(1)]
        } else {
            [at(2) == Some(1), at(3) == Some(1)]
        };
        let rows = shape.d_registers();
        let c = self.fragment(operands.d, rows)?;
        let a = if a_in_registers {
            Some(self.fragment(operands.a, shape.a_registers())?)
        } else {
            None
        };
        let d = self.new_wide(rows as u16);
        let operation = Operation::Warpgroup(Warpgroup::Multiply(GroupMultiply {
            a_in_registers,
            negate,
            transpose,
            commits: false,
        }));
        let mut code = self.code(operation, PRODUCT);
        code.instruction.modifiers = shape.encode();
        let virtual_place = |register| Place::Virtual { register, word: 0 };
        let a = match a {
            Some(fragment) => code.read(virtual_place(fragment), shape.a_registers() as u16),
            None => self.value(&mut code, operands.a, Type::B64)?,
        };
        let b = self.value(&mut code, operands.b, Type::B64)?;
        let c = code.read(virtual_place(c), rows as u16);
        let metadata = match operands.metadata {
            Some(operand) => self.value(&mut code, operand, Type::B32)?,
            None => Value::None,
        };
        code.instruction.sources = [a, b, c, metadata].map(Into::into);
        code.instruction.predicates[0] = self.predicate(&mut code, operands.scale)?;
        code.instruction.destination = Some(code.write(virtual_place(d), rows as u16));
        code.uniformity = Uniformity::Divergent;
        code.converged_lanes = Some(Value::Immediate(u64::from(u32::MAX)));
        self.counted = false;
        self.push(code);
        self.spread_fragment(operands.d, d, rows)
    }
}
