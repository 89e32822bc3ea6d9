//! Reductions of the TMA engine: which it has, and what it takes elements of a tensor as.

use lockstep_units::TensorElement;

use crate::memory::{AtomicOperation, AtomicType};

/// What a reduction takes the elements of a tensor as; `None` if there is no reduction of them.
#[must_use]
pub const fn kind(element: TensorElement) -> Option<AtomicType> {
    Some(match element {
        TensorElement::U32 => AtomicType::U32,
        TensorElement::S32 => AtomicType::S32,
        TensorElement::U64 => AtomicType::U64,
        TensorElement::S64 => AtomicType::S64,
        TensorElement::F16 => AtomicType::F16,
        TensorElement::Bf16 => AtomicType::Bf16,
        TensorElement::F32 | TensorElement::Tf32 => AtomicType::F32 { flush: false },
        TensorElement::F32Ftz | TensorElement::Tf32Ftz => AtomicType::F32 { flush: true },
        TensorElement::F64 => AtomicType::F64,
        TensorElement::U8 | TensorElement::U16 => return None,
    })
}

/// Whether the engine has a reduction of a type; an H200 answers others with an illegal instruction.
#[must_use]
pub const fn exists(operation: AtomicOperation, kind: AtomicType) -> bool {
    use AtomicOperation as Is;
    use AtomicType::{Bf16, F16, F32, F64, S32, S64, U32, U64};
    match operation {
        Is::Add => matches!(kind, U32 | S32 | U64 | F16 | Bf16 | F32 { .. } | F64),
        Is::Min | Is::Max => matches!(kind, U32 | S32 | U64 | S64 | F16 | Bf16),
        Is::Increment | Is::Decrement => matches!(kind, U32),
        Is::And | Is::Or | Is::Xor => matches!(kind, U32 | S32 | U64),
        _ => false,
    }
}
