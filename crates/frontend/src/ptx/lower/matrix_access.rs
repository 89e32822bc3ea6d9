//! Matrices to and from shared memory: `ldmatrix`, `stmatrix`.

use lockstep_isa::{
    Operand as Value, Operation,
    memory::{Action, CachePolicy, Element, Space, Strength},
    ptx::Type,
};

use super::{Lowering, memory::MEMORY};
use crate::ptx::{
    error::Error,
    syntax::{Instruction, Operand},
};

impl<'p, 'a> Lowering<'p, 'a> {
    /// `ldmatrix` and `stmatrix`.
    pub(super) fn matrix_access(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=2)?;
        let has = |word: &str| i.modifiers.contains(&word);
        if !has("m8n8") || !has("b16") {
            return self.stop(i, "moves matrices of this shape, which is not modelled");
        }
        let matrices = if has("x4") {
            4
        } else if has("x2") {
            2
        } else {
            1
        };
        let transpose = has("trans");
        let store = i.opcode == "stmatrix";
        let (address, registers) = if store {
            (&i.operands[0], &i.operands[1])
        } else {
            (&i.operands[1], &i.operands[0])
        };
        let registers = Self::elements(registers);
        if registers.len() != matrices {
            return self.wrong(format!("{matrices} registers expected"));
        }
        let mut code = self.code(Operation::Nothing, MEMORY);
        let address = self.address(&mut code, address)?;
        let matrices = matrices as u8;
        let action = if store {
            Action::StoreMatrix {
                matrices,
                transpose,
            }
        } else {
            Action::LoadMatrix {
                matrices,
                transpose,
            }
        };
        let space = match self.access_modifiers(i)?.space {
            None => Space::Generic,
            Some(_) => Space::Shared,
        };
        let mut operation = self.access(
            action,
            space,
            Element::B32,
            address,
            Strength::Weak,
            CachePolicy::Default,
        );
        operation.elements = matrices;
        for (index, register) in registers.iter().enumerate() {
            if store {
                operation.values[index] = self.value(&mut code, register, Type::B32)?;
            } else if *register != Operand::Sink {
                let register = self.register_operand(register)?;
                operation.data[index] = Some(code.write(register.place(), 1));
            }
        }
        code.converged_lanes = Some(Value::Immediate(u64::from(u32::MAX)));
        self.push_access(code, operation);
        Ok(())
    }
}
