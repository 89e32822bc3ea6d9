//! Values of operands: special ones first, in all pairs, then random ones of every size.

/// What values an operand takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// 16-bit integers, and bytes.
    Integer16,
    /// 32-bit integers.
    Integer32,
    /// 64-bit integers.
    Integer64,
    /// Pairs of 16-bit integers.
    Integer16x2,
    /// Half precision.
    Half,
    /// Pairs of half precision.
    Half2,
    /// bfloat16.
    Brain,
    /// Pairs of bfloat16.
    Brain2,
    /// Single precision.
    Single,
    /// Double precision.
    Double,
    /// The lowest bit.
    Predicate,
    /// Lanes, and clamps of shuffles.
    Lane,
    /// Counts of shifts, places and lengths of fields.
    Shift,
    /// 0 to 15.
    Few,
}

/// All kinds, in the order of the recorder's inputs.
pub const KINDS: [Kind; 14] = [
    Kind::Integer16,
    Kind::Integer32,
    Kind::Integer64,
    Kind::Integer16x2,
    Kind::Half,
    Kind::Half2,
    Kind::Brain,
    Kind::Brain2,
    Kind::Single,
    Kind::Double,
    Kind::Predicate,
    Kind::Lane,
    Kind::Shift,
    Kind::Few,
];

/// Most operands of a form.
pub const POSITIONS: usize = 4;
/// Most vectors of a form.
pub const VECTORS: usize = 4096;
/// Vectors of special values.
pub const SPECIAL: usize = 256;

const HALF: [u64; 16] = [
    0x0000, 0x8000, 0x3c00, 0xbc00, 0x0001, 0x03ff, 0x0400, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7c01,
    0xfe12, 0x3800, 0x8001, 0x6800,
];
const BRAIN: [u64; 16] = [
    0x0000, 0x8000, 0x3f80, 0xbf80, 0x0001, 0x007f, 0x0080, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x7f81,
    0xffc5, 0x3f00, 0x8001, 0x4f00,
];
const SINGLE: [u64; 16] = [
    0x0000_0000,
    0x8000_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x0000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x7f80_0001,
    0xffc0_1234,
    0x3f00_0000,
    0x8000_0001,
    0x4f00_0000,
];
const DOUBLE: [u64; 16] = [
    0x0000_0000_0000_0000,
    0x8000_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x0000_0000_0000_0001,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0xfff8_0000_0000_1234,
    0x3fe0_0000_0000_0000,
    0x8000_0000_0000_0001,
    0x41e0_0000_0000_0000,
];
/// Of a width: 0, 1, all ones, the extremes and their neighbours, patterns, small and middle numbers.
const INTEGER: [fn(u32) -> u64; 16] = [
    |_| 0,
    |_| 1,
    |_| u64::MAX,
    |_| 2,
    |bits| 1 << (bits - 1),
    |bits| (1 << (bits - 1)) - 1,
    |bits| (1 << (bits - 1)) - 2,
    |bits| (1 << (bits - 1)) + 1,
    |_| 0x5555_5555_5555_5555,
    |_| 0xaaaa_aaaa_aaaa_aaaa,
    |_| u64::MAX - 1,
    |_| 31,
    |bits| 1 << (bits / 2),
    |bits| (1 << (bits / 2)) - 1,
    |_| 0x0123_4567_89ab_cdef,
    |_| 7,
];
const SHIFT: [u64; 16] = [
    0,
    1,
    31,
    32,
    33,
    63,
    64,
    65,
    15,
    16,
    17,
    8,
    255,
    256,
    0x8000_0000,
    0xffff_ffff,
];
const LANE: [u64; 16] = [
    0,
    1,
    31,
    16,
    0x1f,
    0x101f,
    0x1c03,
    7,
    15,
    30,
    32,
    0x181f,
    0x1e01,
    2,
    3,
    0xffff_ffff,
];

/// The word of an operand.
pub fn value(kind: Kind, position: usize, vector: usize, seed: u64) -> u64 {
    let mut random = Random::new(seed, kind, position, vector);
    if vector < SPECIAL {
        let index = match position {
            0 => vector % 16,
            1 => vector / 16,
            // Later operands walk through the list in their own order.
            2 => (vector + vector / 16 * 5 + 3) % 16,
            _ => (vector * 7 + vector / 16 * 3 + 1) % 16,
        };
        return special(kind, index, position);
    }
    match kind {
        Kind::Integer16 => integer(&mut random, 16),
        Kind::Integer32 => integer(&mut random, 32),
        Kind::Integer64 => integer(&mut random, 64),
        Kind::Integer16x2 => integer(&mut random, 16) | integer(&mut random, 16) << 16,
        Kind::Half => float(&mut random, 5, 10),
        Kind::Half2 => float(&mut random, 5, 10) | float(&mut random, 5, 10) << 16,
        Kind::Brain => float(&mut random, 8, 7),
        Kind::Brain2 => float(&mut random, 8, 7) | float(&mut random, 8, 7) << 16,
        Kind::Single => float(&mut random, 8, 23),
        Kind::Double => float(&mut random, 11, 52),
        Kind::Predicate => random.next() >> 40 & 1,
        Kind::Lane => match random.next() >> 60 {
            0 => random.next() & 0xffff_ffff,
            1..4 => random.next() >> 20 & 0x1f1f,
            _ => random.next() >> 33 & 0x1f,
        },
        Kind::Shift => match random.next() >> 61 {
            0 => random.next() >> 32,
            1 | 2 => random.next() >> 33 & 0xff,
            _ => random.next() >> 33 & 0x3f,
        },
        Kind::Few => random.next() >> 33 & 0xf,
    }
}

fn special(kind: Kind, index: usize, position: usize) -> u64 {
    // The upper half of a pair is another special value.
    let other = (index * 5 + position + 3) % 16;
    let whole = |bits: u32, index: usize| INTEGER[index](bits) & (u64::MAX >> (64 - bits));
    match kind {
        Kind::Integer16 => whole(16, index),
        Kind::Integer32 => whole(32, index),
        Kind::Integer64 => whole(64, index),
        Kind::Integer16x2 => whole(16, index) | whole(16, other) << 16,
        Kind::Half => HALF[index],
        Kind::Half2 => HALF[index] | HALF[other] << 16,
        Kind::Brain => BRAIN[index],
        Kind::Brain2 => BRAIN[index] | BRAIN[other] << 16,
        Kind::Single => SINGLE[index],
        Kind::Double => DOUBLE[index],
        Kind::Predicate => (0x5ac3 >> index & 1) as u64,
        Kind::Lane => LANE[index],
        Kind::Shift => SHIFT[index],
        Kind::Few => index as u64,
    }
}

/// Numbers of every size, of both signs.
fn integer(random: &mut Random, bits: u32) -> u64 {
    let word = random.next() >> (64 - bits);
    let choice = random.next();
    let small = word >> ((choice >> 32) as u32 % bits);
    let cut = u64::MAX >> (64 - bits);
    match choice & 7 {
        0..4 => word,
        4 | 5 => small,
        6 => small.wrapping_neg() & cut,
        // A power of two and its neighbours.
        _ => {
            (1u64 << ((choice >> 32) as u32 % bits)).wrapping_add((word & 3).wrapping_sub(1)) & cut
        }
    }
}

/// Any bits; exponents near zero, near each other, and where integers end; few bits of mantissa, for ties.
fn float(random: &mut Random, exponent_bits: u32, mantissa_bits: u32) -> u64 {
    let bits = 1 + exponent_bits + mantissa_bits;
    let word = random.next() >> (64 - bits);
    let choice = random.next();
    let bias = (1u64 << (exponent_bits - 1)) - 1;
    let sign = word >> (bits - 1) << (bits - 1);
    let mantissa = word & ((1 << mantissa_bits) - 1);
    let few = mantissa >> (mantissa_bits - 3) << (mantissa_bits - 3);
    let near = |range: u64| {
        let exponent = bias + (choice >> 32) % (2 * range) - range;
        exponent.clamp(0, 2 * bias) << mantissa_bits
    };
    let wide = if exponent_bits == 5 { 14 } else { 66 };
    match choice & 7 {
        0 | 1 => word,
        2 => sign | near(2) | mantissa,
        3 => sign | near(4) | few,
        4 => sign | near(wide) | mantissa,
        5 => sign | near(wide) | few,
        6 => sign | near(14) | few,
        // Subnormals and the smallest normals.
        _ => {
            sign | (choice >> 40 & 1) << mantissa_bits
                | mantissa >> ((choice >> 32) % u64::from(mantissa_bits))
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn new(seed: u64, kind: Kind, position: usize, vector: usize) -> Self {
        let place = (kind as u64) << 48 | (position as u64) << 40 | vector as u64;
        let mut random = Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ place);
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }
}
