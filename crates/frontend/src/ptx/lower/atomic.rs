//! Atomics and reductions.

use lockstep_isa::{
    Operation,
    memory::{Action, AtomicOperation, AtomicType, Element, Order},
};

use super::{
    Lowering,
    memory::{MEMORY, Modifiers},
    moves::type_of,
};
use crate::ptx::{
    error::Error,
    syntax::{Instruction, Operand, Scalar, VariableSpace},
};

impl<'p, 'a> Lowering<'p, 'a> {
    pub(super) fn atomic(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        if i.modifiers.contains(&"async") {
            return self.store_async(i);
        }
        let modifiers = self.access_modifiers(i)?;
        let reduce = i.opcode == "red";
        let Some(operation) = i.modifiers.iter().find_map(|word| atomic_operation(word)) else {
            return self.wrong("an atomic needs an operation such as `.add`");
        };
        let Some(scalar) = modifiers.scalar else {
            return self.wrong("an atomic needs a type such as `.u32`");
        };
        let name = i.modifiers.last().copied().unwrap_or("");
        let Some(kind) = atomic_type(name, scalar, operation, &modifiers) else {
            return self.wrong(format!("`.{name}` has no such atomic"));
        };
        if modifiers.elements != 1 {
            return self.stop(i, "works on a vector at once, which is not modelled");
        }
        let operands = if reduce { 2..=3 } else { 3..=5 };
        self.expect_operands(&i.operands, operands)?;
        let (target, rest) = if reduce {
            (None, &i.operands[..])
        } else {
            (Some(&i.operands[0]), &i.operands[1..])
        };
        let mut code = self.code(Operation::Nothing, MEMORY);
        let address = self.address(&mut code, &rest[0])?;
        let action = if reduce {
            Action::Reduce(operation, kind)
        } else {
            Action::Atomic(operation, kind)
        };
        let element = match kind.bytes() {
            8 => Element::B64,
            2 => Element::U16,
            _ => Element::B32,
        };
        let mut access = self.access(
            action,
            self.access_space(modifiers.space),
            element,
            address,
            self.strength(&modifiers, Some(Order::Relaxed)),
            modifiers.cache,
        );
        let compare = operation == AtomicOperation::CompareAndSwap;
        if compare && rest.len() < 3 {
            return self.wrong("compare and swap needs two values");
        }
        for index in 0..if compare { 2 } else { 1 } {
            access.values[index] = self.value(&mut code, &rest[1 + index], type_of(scalar))?;
        }
        if let Some(target) = target
            && *target != Operand::Sink
        {
            let register = self.register_operand(target)?;
            if register.words() < element.words() {
                return self.wrong("the register is too narrow for the old value");
            }
            access.data[0] = Some(code.write(register.place(), element.words()));
        }
        self.push_access(code, access);
        Ok(())
    }
}

pub(super) fn atomic_operation(word: &str) -> Option<AtomicOperation> {
    Some(match word {
        "add" => AtomicOperation::Add,
        "min" => AtomicOperation::Min,
        "max" => AtomicOperation::Max,
        "inc" => AtomicOperation::Increment,
        "dec" => AtomicOperation::Decrement,
        "and" => AtomicOperation::And,
        "or" => AtomicOperation::Or,
        "xor" => AtomicOperation::Xor,
        "exch" => AtomicOperation::Exchange,
        "cas" => AtomicOperation::CompareAndSwap,
        _ => return None,
    })
}

/// The type that an atomic works on, if it has one for the operation.
fn atomic_type(
    name: &str,
    scalar: Scalar,
    operation: AtomicOperation,
    modifiers: &Modifiers,
) -> Option<AtomicType> {
    let any_bits = matches!(
        operation,
        AtomicOperation::Exchange | AtomicOperation::CompareAndSwap
    );
    Some(match (name, scalar.bits) {
        ("f16x2", _) => AtomicType::F16x2,
        ("bf16x2", _) => AtomicType::Bf16x2,
        ("f16", _) => AtomicType::F16,
        ("bf16", _) => AtomicType::Bf16,
        ("f32", _) => AtomicType::F32 {
            // Documented: global memory flushes subnormals, shared memory does not.
            flush: modifiers.space != Some(VariableSpace::Shared) && !modifiers.no_flush,
        },
        ("f64", _) if modifiers.space == Some(VariableSpace::Shared) => AtomicType::F64Quiet,
        ("f64", _) => AtomicType::F64,
        ("s32", _) => AtomicType::S32,
        ("s64", _) => AtomicType::S64,
        ("b16", _) if any_bits => AtomicType::B16,
        (_, 32) => AtomicType::U32,
        (_, 64) => AtomicType::U64,
        _ => return None,
    })
}
