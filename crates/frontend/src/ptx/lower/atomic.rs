//! Atomics and reductions.

use lockstep_isa::{
    Operation,
    memory::{Action, AtomicOperation, AtomicType, Order},
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
        let reduce = matches!(i.opcode, "red" | "multimem");
        let Some(operation) = i.modifiers.iter().find_map(|word| atomic_operation(word)) else {
            return self.wrong("an atomic needs an operation such as `.add`");
        };
        let Some(scalar) = modifiers.scalar else {
            return self.wrong("an atomic needs a type such as `.u32`");
        };
        let types = i.modifiers.iter().rev();
        let mut types = types.filter(|word| atomic_operation(word).is_none());
        let name = types.next().copied().unwrap_or("");
        let Some(kind) = atomic_type(name, scalar, operation, &modifiers) else {
            return self.wrong(format!("`.{name}` has no such atomic"));
        };
        let operands = if reduce { 2..=3 } else { 3..=5 };
        self.expect_operands(&i.operands, operands)?;
        let (target, rest) = if reduce {
            (None, &i.operands[..])
        } else {
            (Some(&i.operands[0]), &i.operands[1..])
        };
        let compare = operation == AtomicOperation::CompareAndSwap;
        if compare && rest.len() < 3 {
            return self.wrong("compare and swap needs two values");
        }
        // Each element of a vector is an atomic of its own, and only the first one counts.
        let values = &rest[1..if compare { 3 } else { 2 }];
        let expected = usize::from(modifiers.elements);
        let lists = values
            .iter()
            .chain(target)
            .filter(|list| **list != Operand::Sink);
        if lists
            .clone()
            .any(|list| Self::elements(list).len() != expected)
        {
            return self.wrong(format!("{expected} elements expected"));
        }
        let written = target.map_or(&[][..], Self::elements);
        let read = values.iter().flat_map(Self::elements);
        let read = read.chain(Self::address_parts(&rest[0]));
        if expected > 1 && read.into_iter().any(|operand| written.contains(operand)) {
            return self.stop(i, "writes a register that it reads, which is not modelled");
        }
        for element in 0..expected {
            let mut code = self.code(Operation::Nothing, MEMORY);
            let mut address = self.address(&mut code, &rest[0])?;
            address.offset += (element as u32 * kind.bytes()) as i64;
            let mut access = self.access(
                if reduce {
                    Action::Reduce(operation, kind)
                } else {
                    Action::Atomic(operation, kind)
                },
                self.access_space(modifiers.space),
                kind.element(),
                address,
                self.strength(&modifiers, Some(Order::Relaxed)),
                modifiers.cache,
            );
            for (slot, value) in access.values.iter_mut().zip(values) {
                *slot = self.value(&mut code, &Self::elements(value)[element], type_of(scalar))?;
            }
            if let Some(target) = target
                && *target != Operand::Sink
                && Self::elements(target)[element] != Operand::Sink
            {
                let register = self.register_operand(&Self::elements(target)[element])?;
                if register.words() < access.element.words() {
                    return self.wrong("the register is too narrow for the old value");
                }
                access.data[0] = Some(code.write(register.place(), access.element.words()));
            }
            self.push_access(code, access);
        }
        Ok(())
    }
}

impl<'a> Lowering<'_, 'a> {
    /// What an address is made of.
    pub(super) fn address_parts<'o>(operand: &'o Operand<'a>) -> &'o [Operand<'a>] {
        match operand {
            Operand::Address(parts) => parts,
            other => std::slice::from_ref(other),
        }
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
pub(super) fn atomic_type(
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
        ("b128", _) if any_bits => AtomicType::B128,
        _ => return None,
    })
}
