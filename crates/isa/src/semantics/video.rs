//! Two halves or four bytes at once. PTX ISA, "SIMD Video Instructions".

use super::compare::{Comparison, compare};

/// What is done to each pair of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Average, rounded up away from zero as the manual says: `(a + b + 1) >> 1`.
    Average,
    /// Magnitude of the difference.
    Difference,
    /// Smaller.
    Min,
    /// Larger.
    Max,
}

/// How results of the elements leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Each in its place, cut off.
    Cut,
    /// Each in its place, clamped to its type (`.sat`).
    Clamp,
    /// Summed onto the third operand (`.add`).
    Sum,
}

/// One instruction: `elements` is 2 or 4.
#[inline(always)]
#[must_use]
pub fn apply(
    each: Each,
    elements: u32,
    signed: bool,
    finish: Finish,
    a: u32,
    b: u32,
    c: u32,
) -> u32 {
    let bits = 32 / elements;
    let read = |word: u32, index: u32| element(word, index, bits, signed);
    let (low, high) = if signed {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    };
    let mut packed = 0u32;
    let mut sum = c;
    for index in 0..elements {
        let (x, y) = (read(a, index), read(b, index));
        let value = match each {
            Each::Add => x + y,
            Each::Subtract => x - y,
            Each::Average => (x + y + 1) >> 1,
            Each::Difference => (x - y).abs(),
            Each::Min => x.min(y),
            Each::Max => x.max(y),
        };
        let kept = if finish == Finish::Clamp {
            value.clamp(low, high)
        } else {
            value
        };
        packed |= (kept as u32 & ((1 << bits) - 1)) << (bits * index);
        sum = sum.wrapping_add(value as u32);
    }
    if finish == Finish::Sum { sum } else { packed }
}

/// `vset2`, `vset4`: 1 for each pair of elements for which the comparison holds, else 0.
#[inline(always)]
#[must_use]
pub fn set(
    comparison: Comparison,
    elements: u32,
    signed: bool,
    finish: Finish,
    [a, b, c]: [u32; 3],
) -> u32 {
    let bits = 32 / elements;
    let mut packed = 0u32;
    let mut sum = c;
    for index in 0..elements {
        let [x, y] = [a, b].map(|word| element(word, index, bits, signed));
        let holds = u32::from(compare(comparison, x, y));
        packed |= holds << (bits * index);
        sum = sum.wrapping_add(holds);
    }
    if finish == Finish::Sum { sum } else { packed }
}

/// One element of a word, extended.
#[inline(always)]
const fn element(word: u32, index: u32, bits: u32, signed: bool) -> i32 {
    let field = word << (32 - bits - bits * index);
    if signed {
        field as i32 >> (32 - bits)
    } else {
        (field >> (32 - bits)) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_of_each_element_gives_ones_or_their_sum() {
        let words = [0x01ff_7f00, 0x01fe_8000, 10];
        let run = |comparison, signed, finish| set(comparison, 4, signed, finish, words);
        assert_eq!(run(Comparison::Equal, false, Finish::Cut), 0x0100_0001);
        assert_eq!(run(Comparison::Less, false, Finish::Cut), 0x0000_0100);
        assert_eq!(run(Comparison::Less, true, Finish::Cut), 0);
        assert_eq!(run(Comparison::GreaterEqual, false, Finish::Sum), 13);
        assert_eq!(
            set(
                Comparison::NotEqual,
                2,
                true,
                Finish::Cut,
                [0x0001_0002, 0x0001_0003, 0]
            ),
            1
        );
    }

    #[test]
    fn worked_examples() {
        let run =
            |each, elements, signed, finish, a, b| apply(each, elements, signed, finish, a, b, 0);
        assert_eq!(
            run(Each::Add, 4, false, Finish::Cut, 0xff01_0203, 0x0101_0101),
            0x0002_0304
        );
        assert_eq!(
            run(Each::Add, 4, false, Finish::Clamp, 0xff01_0203, 0x0101_0101),
            0xff02_0304
        );
        assert_eq!(
            run(
                Each::Difference,
                4,
                false,
                Finish::Cut,
                0x0005_0a00,
                0x0102_0f00
            ),
            0x0103_0500
        );
        assert_eq!(
            apply(
                Each::Difference,
                4,
                false,
                Finish::Sum,
                0x0005_0a00,
                0x0102_0f00,
                10
            ),
            19
        );
        assert_eq!(
            run(Each::Max, 2, true, Finish::Cut, 0xffff_0001, 0x0000_0002),
            0x0000_0002
        );
        assert_eq!(
            run(
                Each::Subtract,
                2,
                true,
                Finish::Clamp,
                0x8000_0001,
                0x0001_0002
            ),
            0x8000_ffff
        );
        assert_eq!(
            run(
                Each::Average,
                2,
                false,
                Finish::Cut,
                0x0001_0004,
                0x0002_0004
            ),
            0x0002_0004
        );
    }
}
