//! What an atomic operation leaves in memory. PTX ISA, `atom`, `red`.

use super::{
    float16::{Kind, pack, unpack},
    float32, float64, integer,
    mbarrier::arrive_ampere,
};
use crate::memory::{AtomicOperation, AtomicType};

/// The new value of a memory word: `operation` on `old` with operand `a` and, for compare and
/// swap, `a` the comparand and `b` the new value. `None` where the type has no such operation.
#[must_use]
pub fn apply(
    operation: AtomicOperation,
    kind: AtomicType,
    old: u128,
    a: u128,
    b: u128,
) -> Option<u128> {
    match operation {
        AtomicOperation::Exchange => Some(a),
        AtomicOperation::CompareAndSwap | AtomicOperation::CompareAndTest => {
            Some(if equal(kind, old, a) { b } else { old })
        }
        _ => calculate(operation, kind, old as u64, a as u64).map(u128::from),
    }
}

/// The same for operations that work the new value out, none of which takes more than 64 bits.
fn calculate(operation: AtomicOperation, kind: AtomicType, old: u64, a: u64) -> Option<u64> {
    match operation {
        AtomicOperation::Arrive => (kind == AtomicType::U64).then(|| arrive_ampere(old)),
        _ => match kind {
            AtomicType::U32 => word(operation, old as u32, a as u32, false).map(u64::from),
            AtomicType::S32 => word(operation, old as u32, a as u32, true).map(u64::from),
            AtomicType::U64 => long(operation, old, a, false),
            AtomicType::S64 => long(operation, old, a, true),
            AtomicType::F32 { flush } => {
                single(operation, old as u32, a as u32, flush).map(u64::from)
            }
            AtomicType::F64 => (operation == AtomicOperation::Add).then(|| add_double(old, a)),
            AtomicType::F64Quiet => {
                (operation == AtomicOperation::Add).then(|| float64::add(a, old))
            }
            AtomicType::F16x2 => pair(operation, Kind::Half, old as u32, a as u32).map(u64::from),
            AtomicType::Bf16x2 => pair(operation, Kind::Brain, old as u32, a as u32).map(u64::from),
            AtomicType::F16 => half(operation, Kind::Half, old, a),
            AtomicType::Bf16 => half(operation, Kind::Brain, old, a),
            AtomicType::B16 | AtomicType::B128 => None,
        },
    }
}

/// What an operation gives back, where `a` is its operand or comparand.
#[must_use]
#[inline]
pub fn answer(operation: AtomicOperation, kind: AtomicType, old: u128, a: u128) -> u128 {
    match operation {
        AtomicOperation::CompareAndTest => u128::from(equal(kind, old, a)),
        _ => old,
    }
}

fn equal(kind: AtomicType, old: u128, a: u128) -> bool {
    let mask = u128::MAX >> (128 - 8 * kind.bytes());
    old & mask == a & mask
}

fn word(operation: AtomicOperation, old: u32, a: u32, signed: bool) -> Option<u32> {
    use AtomicOperation as Is;
    Some(match operation {
        Is::Add => old.wrapping_add(a),
        Is::Min if signed => integer::min_signed(old, a),
        Is::Max if signed => integer::max_signed(old, a),
        Is::Min => old.min(a),
        Is::Max => old.max(a),
        Is::Increment => {
            if old >= a {
                0
            } else {
                old + 1
            }
        }
        Is::Decrement => {
            if old == 0 || old > a {
                a
            } else {
                old - 1
            }
        }
        Is::And => old & a,
        Is::Or => old | a,
        Is::Xor => old ^ a,
        Is::Exchange | Is::CompareAndSwap | Is::CompareAndTest | Is::Arrive => return None,
    })
}

fn long(operation: AtomicOperation, old: u64, a: u64, signed: bool) -> Option<u64> {
    use AtomicOperation as Is;
    Some(match operation {
        Is::Add => old.wrapping_add(a),
        Is::Min if signed => integer::min64_signed(old, a),
        Is::Max if signed => integer::max64_signed(old, a),
        Is::Min => old.min(a),
        Is::Max => old.max(a),
        Is::Increment => {
            if old >= a {
                0
            } else {
                old + 1
            }
        }
        Is::Decrement => {
            if old == 0 || old > a {
                a
            } else {
                old - 1
            }
        }
        Is::And => old & a,
        Is::Or => old | a,
        Is::Xor => old ^ a,
        Is::Exchange | Is::CompareAndSwap | Is::CompareAndTest | Is::Arrive => return None,
    })
}

fn single(operation: AtomicOperation, old: u32, a: u32, flush: bool) -> Option<u32> {
    let clean = |x: u32| if flush { float32::flush(x) } else { x };
    match operation {
        AtomicOperation::Add => Some(clean(float32::add(clean(old), clean(a)))),
        AtomicOperation::Min => Some(float32::min(old, a, false)),
        AtomicOperation::Max => Some(float32::max(old, a, false)),
        _ => None,
    }
}

/// A sum as L2 makes it: a NaN comes through as it is, the operand before the old value.
fn add_double(old: u64, a: u64) -> u64 {
    if float64::is_nan(a) {
        a
    } else if float64::is_nan(old) {
        old
    } else {
        float64::add(old, a)
    }
}

fn pair(operation: AtomicOperation, kind: Kind, old: u32, a: u32) -> Option<u32> {
    let (x, y) = (unpack(old), unpack(a));
    let each = |f: &dyn Fn(u16, u16) -> u16| Some(pack([f(x[0], y[0]), f(x[1], y[1])]));
    match operation {
        AtomicOperation::Add => each(&|p, q| kind.add(p, q)),
        AtomicOperation::Min => each(&|p, q| kind.min(p, q, false)),
        AtomicOperation::Max => each(&|p, q| kind.max(p, q, false)),
        _ => None,
    }
}

/// The low half of a pair.
fn half(operation: AtomicOperation, kind: Kind, old: u64, a: u64) -> Option<u64> {
    let result = pair(operation, kind, old as u32 & 0xffff, a as u32 & 0xffff)?;
    Some(u64::from(result & 0xffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_examples() {
        use AtomicOperation as Is;
        use AtomicType as Of;
        let float = |x: f32| u128::from(x.to_bits());
        let double = |x: f64| u128::from(x.to_bits());
        let cases = [
            (Is::Add, Of::U32, u128::from(u32::MAX), 1, 0, Some(0)),
            (
                Is::Min,
                Of::S32,
                5,
                u128::from(u32::MAX),
                0,
                Some(u128::from(u32::MAX)),
            ),
            (Is::Min, Of::U32, 5, u128::from(u32::MAX), 0, Some(5)),
            (Is::Increment, Of::U32, 7, 7, 0, Some(0)),
            (Is::Increment, Of::U32, 6, 7, 0, Some(7)),
            (Is::Decrement, Of::U32, 0, 7, 0, Some(7)),
            (Is::Decrement, Of::U32, 9, 7, 0, Some(7)),
            (Is::CompareAndSwap, Of::U32, 4, 4, 9, Some(9)),
            (Is::CompareAndSwap, Of::U32, 5, 4, 9, Some(5)),
            (Is::CompareAndSwap, Of::B16, 0x1_0004, 4, 9, Some(9)),
            (Is::CompareAndTest, Of::U64, 5, 4, 9, Some(5)),
            (Is::Exchange, Of::U64, 5, 6, 0, Some(6)),
            (Is::Max, Of::S64, u128::from(u64::MAX), 1, 0, Some(1)),
            (Is::Exchange, Of::B128, 5 << 64, 6 << 64, 0, Some(6 << 64)),
            (
                Is::CompareAndSwap,
                Of::B128,
                5 << 64,
                6 << 64,
                7,
                Some(5 << 64),
            ),
            (Is::CompareAndSwap, Of::B128, 5 << 64, 5 << 64, 7, Some(7)),
            (Is::Add, Of::B128, 1, 1, 0, None),
            (
                Is::Add,
                Of::F32 { flush: false },
                float(1.5),
                float(2.0),
                0,
                Some(float(3.5)),
            ),
            (Is::Add, Of::F32 { flush: true }, 5, float(0.0), 0, Some(0)),
            (
                Is::Add,
                Of::F64,
                double(1.0),
                double(2.0),
                0,
                Some(double(3.0)),
            ),
            (
                Is::Add,
                Of::F16x2,
                0x3c00_3c00,
                0x4000_3c00,
                0,
                Some(0x4200_4000),
            ),
            (Is::Add, Of::F16, 0x3c00, 0x4000, 0, Some(0x4200)),
            (Is::And, Of::F64, 1, 1, 0, None),
        ];
        for (operation, kind, old, a, b, wanted) in cases {
            assert_eq!(
                apply(operation, kind, old, a, b),
                wanted,
                "{operation:?} {kind:?}"
            );
        }
    }
}
