//! Video instructions: one value made of parts of words, or two halves or four bytes at once. PTX ISA, "Scalar Video
//! Instructions" and "SIMD Video Instructions". An H200 has none of them; this is what compilers make of them there.

use super::compare::{Comparison, compare};

/// What is done to operands, or to each pair of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Magnitude of the difference.
    Difference,
    /// Average, halves away from zero.
    Average,
    /// Smaller.
    Min,
    /// Larger.
    Max,
    /// Shifted left.
    ShiftLeft,
    /// Shifted right.
    ShiftRight,
    /// Product, onto which the third operand is added.
    Multiply,
    /// 1 where the comparison holds, else 0.
    Set,
}

const OPERATIONS: [Operation; 10] = [
    Operation::Add,
    Operation::Subtract,
    Operation::Difference,
    Operation::Average,
    Operation::Min,
    Operation::Max,
    Operation::ShiftLeft,
    Operation::ShiftRight,
    Operation::Multiply,
    Operation::Set,
];

/// What is done with the result and the third operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// Nothing; parts of the result go into the third operand if asked.
    Merge,
    /// Sum; of each element where there are several.
    Add,
    /// Smaller.
    Min,
    /// Larger.
    Max,
}

const SECONDS: [Second; 4] = [Second::Merge, Second::Add, Second::Min, Second::Max];

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Video {
    /// What it does.
    pub operation: Operation,
    /// Of [`Operation::Set`].
    pub comparison: Comparison,
    /// 1, 2 or 4.
    pub elements: u32,
    /// Whether result, first and second operand are signed.
    pub signed: [bool; 3],
    /// Results are clamped to their type.
    pub saturate: bool,
    /// What is done with the third operand.
    pub second: Second,
    /// Shifts take their count modulo 32.
    pub wrap: bool,
    /// Bits by which a product and its sum are shifted right: 0, 7 or 15.
    pub scale: u32,
    /// One more is added to a product.
    pub plus_one: bool,
    /// Whether the product and what is added to it are negated.
    pub negate: [bool; 2],
    /// Elements of the first operand, then of the second: of one value a [`PARTS`], of several the place of each in
    /// both operands, four bits each.
    pub select: [u16; 2],
    /// Of one value the part of the third operand that it replaces, of several a bit for each that counts.
    pub write: u32,
}

/// Parts of a word, by name: where they begin and their bits. The first is all of it.
pub const PARTS: [(&str, u32, u32); 7] = [
    ("", 0, 32),
    ("b0", 0, 8),
    ("b1", 8, 8),
    ("b2", 16, 8),
    ("b3", 24, 8),
    ("h0", 0, 16),
    ("h1", 16, 16),
];

impl Video {
    /// As the modifiers of an instruction.
    #[must_use]
    pub fn encode(self) -> u64 {
        let operation = OPERATIONS.iter().position(|known| *known == self.operation);
        let second = SECONDS.iter().position(|known| *known == self.second);
        let fields = [
            (operation.unwrap_or(0) as u64, 4),
            (self.comparison as u64, 4),
            (u64::from(self.elements), 3),
            (u64::from(self.signed[0]), 1),
            (u64::from(self.signed[1]), 1),
            (u64::from(self.signed[2]), 1),
            (u64::from(self.saturate), 1),
            (second.unwrap_or(0) as u64, 2),
            (u64::from(self.wrap), 1),
            (u64::from(self.scale), 4),
            (u64::from(self.plus_one), 1),
            (u64::from(self.negate[0]), 1),
            (u64::from(self.negate[1]), 1),
            (u64::from(self.write), 4),
            (u64::from(self.select[0]), 16),
            (u64::from(self.select[1]), 16),
        ];
        let (mut word, mut at) = (0, 0);
        for (value, bits) in fields {
            word |= value << at;
            at += bits;
        }
        word
    }

    /// From the modifiers of an instruction.
    #[must_use]
    pub fn decode(word: u64) -> Self {
        let mut left = word;
        let mut take = |bits: u32| {
            let value = left & ((1 << bits) - 1);
            left >>= bits;
            value
        };
        Self {
            operation: OPERATIONS[(take(4) as usize).min(OPERATIONS.len() - 1)],
            comparison: Comparison::from_index(take(4)),
            elements: take(3) as u32,
            signed: [(); 3].map(|()| take(1) == 1),
            saturate: take(1) == 1,
            second: SECONDS[take(2) as usize],
            wrap: take(1) == 1,
            scale: take(4) as u32,
            plus_one: take(1) == 1,
            negate: [(); 2].map(|()| take(1) == 1),
            write: take(4) as u32,
            select: [(); 2].map(|()| take(16) as u16),
        }
    }

    /// What it gives.
    #[must_use]
    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        if self.elements == 1 {
            self.one(a, b, c)
        } else {
            self.each(a, b, c)
        }
    }

    fn operate(self, x: i128, y: i128) -> i128 {
        match self.operation {
            Operation::Add => x + y,
            Operation::Subtract => x - y,
            Operation::Difference => (x - y).abs(),
            Operation::Average => (x + y + i128::from(x + y >= 0)) >> 1,
            Operation::Min => x.min(y),
            Operation::Max => x.max(y),
            // Compilers keep 34 bits of what they clamp.
            Operation::ShiftLeft if self.saturate => (x << self.count(y) << 94) >> 94,
            Operation::ShiftLeft => x << self.count(y),
            Operation::ShiftRight => x >> self.count(y),
            Operation::Multiply => x * y,
            Operation::Set => i128::from(compare(self.comparison, x, y)),
        }
    }

    fn count(self, y: i128) -> u32 {
        if self.wrap {
            y as u32 & 31
        } else {
            y.clamp(0, 32) as u32
        }
    }

    fn one(self, a: u32, b: u32, c: u32) -> u32 {
        let read = |word: u32, n: usize| {
            let (_, start, bits) = PARTS[usize::from(self.select[n]).min(6)];
            // Whole factors of a product are taken as signed.
            let product = self.operation == Operation::Multiply && bits == 32;
            element(word >> start, bits, self.signed[n + 1] || product)
        };
        let value = self.operate(read(a, 0), read(b, 1));
        if self.operation == Operation::Multiply {
            return self.accumulate(value, c);
        }
        let (_, start, bits) = PARTS[(self.write as usize).min(6)];
        let value = if self.saturate {
            self.clamped(value, bits)
        } else {
            value
        };
        match self.second {
            Second::Add => (value as u32).wrapping_add(c),
            Second::Min if self.comes_first(value, c) => value as u32,
            Second::Max if !self.comes_first(value, c) => value as u32,
            Second::Min | Second::Max => c,
            Second::Merge if bits == 32 => value as u32,
            Second::Merge => {
                let field = ((1u32 << bits) - 1) << start;
                c & !field | (value as u32) << start & field
            }
        }
    }

    /// `value` as one of the result's type. What compilers make of unsigned sums looks at its sign alone, and for a
    /// part of a word they take negative numbers for large ones.
    fn clamped(self, value: i128, bits: u32) -> i128 {
        if bits < 32 {
            let highest = clamp(i128::MAX, bits, self.signed[0]);
            return if value < 0 {
                highest
            } else {
                value.min(highest)
            };
        }
        let sum = matches!(
            self.operation,
            Operation::Add | Operation::Subtract | Operation::Difference
        );
        if sum && !self.signed[0] {
            return value.max(0);
        }
        clamp(value, bits, self.signed[0])
    }

    /// Whether `value` is less than `c`, in 64 bits. Sums and shifted words enter as signed words.
    fn comes_first(self, value: i128, c: u32) -> bool {
        let whole = match self.operation {
            Operation::Min | Operation::Max | Operation::Difference => true,
            Operation::ShiftLeft | Operation::ShiftRight => !self.saturate,
            _ => false,
        };
        let value = if whole {
            value as i64
        } else {
            i64::from(value as u32 as i32)
        };
        if self.signed[0] {
            value < i64::from(c as i32)
        } else {
            (value as u64) < u64::from(c)
        }
    }

    /// A product with the third operand, which is always signed, in 64 bits.
    fn accumulate(self, product: i128, c: u32) -> u32 {
        let other = i64::from(c as i32);
        let product = product as i64;
        let product = if self.negate[0] {
            product.wrapping_neg()
        } else {
            product
        };
        let other = if self.negate[1] {
            other.wrapping_neg()
        } else {
            other
        };
        let sum = product
            .wrapping_add(other)
            .wrapping_add(i64::from(self.plus_one));
        let signed = self.signed[1] || self.signed[2] || self.negate != [false; 2];
        let sum = if signed {
            sum >> self.scale
        } else {
            (sum as u64 >> self.scale) as i64
        };
        if self.saturate {
            clamp(i128::from(sum), 32, signed) as u32
        } else {
            sum as u32
        }
    }

    fn each(self, a: u32, b: u32, c: u32) -> u32 {
        let bits = 32 / self.elements;
        let both = u64::from(b) << 32 | u64::from(a);
        let mut packed = c;
        let mut sum = c;
        for index in 0..self.elements {
            if self.write >> index & 1 == 0 {
                continue;
            }
            let read = |n: usize| {
                let place = u32::from(self.select[n] >> (4 * index) & 7);
                element((both >> (bits * place)) as u32, bits, self.signed[n + 1])
            };
            let value = self.operate(read(0), read(1));
            sum = sum.wrapping_add(value as u32);
            let value = if self.saturate {
                clamp(value, bits, self.signed[0])
            } else {
                value
            };
            let field = ((1u32 << bits) - 1) << (bits * index);
            packed = packed & !field | (value as u32) << (bits * index) & field;
        }
        if self.second == Second::Add {
            sum
        } else {
            packed
        }
    }
}

/// The lowest bits of a word, extended.
const fn element(word: u32, bits: u32, signed: bool) -> i128 {
    let unused = 32 - bits;
    if signed {
        ((word << unused) as i32 >> unused) as i128
    } else {
        ((word << unused) >> unused) as i128
    }
}

fn clamp(value: i128, bits: u32, signed: bool) -> i128 {
    if signed {
        value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        value.clamp(0, (1 << bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Video = Video {
        operation: Operation::Add,
        comparison: Comparison::Less,
        elements: 4,
        signed: [false; 3],
        saturate: false,
        second: Second::Merge,
        wrap: false,
        scale: 0,
        plus_one: false,
        negate: [false; 2],
        select: [0x3210, 0x7654],
        write: 15,
    };

    #[test]
    fn worked_examples() {
        let sum = BYTES.apply(0xff01_0203, 0x0101_0101, 0);
        assert_eq!(sum, 0x0002_0304);
        let clamped = Video {
            saturate: true,
            ..BYTES
        };
        assert_eq!(clamped.apply(0xff01_0203, 0x0101_0101, 0), 0xff02_0304);
        let differences = Video {
            operation: Operation::Difference,
            second: Second::Add,
            ..BYTES
        };
        assert_eq!(differences.apply(0x0005_0a00, 0x0102_0f00, 10), 19);
        let part = Video {
            elements: 1,
            select: [4, 5],
            signed: [true; 3],
            write: 6,
            ..BYTES
        };
        assert_eq!(
            part.apply(0xff00_0000, 0x0000_0003, 0x1234_5678),
            0x0002_5678
        );
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let odd = Video {
            operation: Operation::Multiply,
            comparison: Comparison::GreaterEqual,
            elements: 1,
            signed: [true, false, true],
            scale: 15,
            plus_one: true,
            negate: [true, false],
            select: [6, 3],
            write: 2,
            ..BYTES
        };
        for video in [BYTES, odd] {
            assert_eq!(Video::decode(video.encode()), video);
        }
    }
}
