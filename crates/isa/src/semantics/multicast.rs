//! What the members of a multicast object give together. PTX ISA, `multimem.ld_reduce`.
//!
//! The order in which hardware takes the members is not documented; here it is that in which they are handed over, by
//! the numbers of their GPUs.

use super::atomic;
use super::float16::{Kind, pack, unpack};
use super::float32;
use crate::memory::{Accumulation, AtomicOperation, AtomicType};

/// The values of all members, reduced to one; nothing where there are none, or where the type has no such reduction.
#[must_use]
pub fn reduce(
    operation: AtomicOperation,
    kind: AtomicType,
    accumulation: Accumulation,
    mut values: impl Iterator<Item = u128>,
) -> Option<u128> {
    if accumulation == Accumulation::Single {
        return sum_in_single(operation, kind, values);
    }
    let first = values.next()?;
    values.try_fold(first, |sum, value| {
        atomic::apply(operation, kind, sum, value, 0)
    })
}

/// Sums of 16-bit floats, or of pairs of them, that are rounded once.
fn sum_in_single(
    operation: AtomicOperation,
    kind: AtomicType,
    values: impl Iterator<Item = u128>,
) -> Option<u128> {
    let format = match kind {
        AtomicType::F16x2 | AtomicType::F16 => Kind::Half,
        AtomicType::Bf16x2 | AtomicType::Bf16 => Kind::Brain,
        _ => return None,
    };
    if operation != AtomicOperation::Add {
        return None;
    }
    let wide = values.map(|value| unpack(value as u32).map(|half| format.widen(half)));
    let sums = wide.reduce(|a, b| [float32::add(a[0], b[0]), float32::add(a[1], b[1])])?;
    let whole = pack(sums.map(|sum| format.narrow(sum)));
    let mask = u128::MAX >> (128 - 8 * kind.bytes());
    Some(u128::from(whole) & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_taken_in_their_order() {
        use AtomicOperation as Is;
        let all = |operation, kind, accumulation, values: &[u32]| {
            let values = values.iter().map(|value| u128::from(*value));
            reduce(operation, kind, accumulation, values)
        };
        let element = Accumulation::Element;
        assert_eq!(
            all(Is::Add, AtomicType::U32, element, &[1, 2, u32::MAX]),
            Some(2)
        );
        assert_eq!(
            all(Is::Min, AtomicType::S32, element, &[1, u32::MAX, 5]),
            Some(u128::from(u32::MAX))
        );
        let floats = [1e8f32, 1.0, -1e8].map(f32::to_bits);
        let kind = AtomicType::F32 { flush: false };
        assert_eq!(all(Is::Add, kind, element, &floats), Some(0), "1 is lost");
        let other = [1e8f32, -1e8, 1.0].map(f32::to_bits);
        let one = Some(u128::from(1f32.to_bits()));
        assert_eq!(all(Is::Add, kind, element, &other), one);
        assert_eq!(all(Is::Add, kind, element, &[]), None);
        assert_eq!(all(Is::And, kind, element, &floats), None);
    }

    #[test]
    fn halves_are_rounded_once_or_at_each_step() {
        // 2048 + 1 is 2048 in half precision, so three ones are lost one by one.
        let values = || [0x6800_6800u128, 0x3c00, 0x3c00, 0x3c00].into_iter();
        let sum = |accumulation| {
            reduce(
                AtomicOperation::Add,
                AtomicType::F16x2,
                accumulation,
                values(),
            )
        };
        assert_eq!(sum(Accumulation::Element), Some(0x6800_6800));
        assert_eq!(
            sum(Accumulation::Single),
            Some(0x6800_6802),
            "2051 is between 2050 and 2052, and 2052 is even"
        );
        let brain = [0x4380_u128, 0x3f80, 0x3f80].into_iter();
        let sum = reduce(
            AtomicOperation::Add,
            AtomicType::Bf16,
            Accumulation::Single,
            brain,
        );
        assert_eq!(sum, Some(0x4381), "256 + 2");
        let least = reduce(
            AtomicOperation::Min,
            AtomicType::F16x2,
            Accumulation::Single,
            values(),
        );
        assert_eq!(least, None);
    }
}
