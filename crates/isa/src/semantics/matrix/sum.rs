//! Sums of floating-point products as a tensor core adds them; `unit.rs` has the numbers.
//!
//! All is done in integers on eight columns at a time, which hosts turn into vectors: a product is an
//! integer of 22 bits, an exponent and a sign.
//!
//! Start reading at [`multiply`].

use super::{
    shape::{Accumulator, Input, Multiply},
    unit::{LEAST_EXPONENT, Summation, TensorCore, summation},
};

/// Columns that are computed together.
pub(super) const COLUMNS: usize = 8;

/// Exponent of zero: it never is the largest.
const NOTHING: i32 = -(1 << 20);

/// Fraction bits of a decoded factor, of any format.
const FACTOR: u32 = 10;

/// Not a number, as these units write it.
const NAN_SINGLE: u32 = 0x7fff_ffff;
const NAN_HALF: u32 = 0x7fff;

/// `significand × 2^(exponent - fraction bits)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    significand: i32,
    exponent: i32,
}

/// A number that is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    Infinity { negative: bool },
    NotANumber,
}

/// A format's fields: bits of exponent and fraction.
const fn fields(input: Input) -> (u32, u32) {
    match input {
        Input::F16 => (5, 10),
        Input::Bf16 => (8, 7),
        Input::E4m3 => (4, 3),
        Input::E5m2 => (5, 2),
        // TF32 after its 13 unused bits are dropped.
        _ => (8, 10),
    }
}

/// A factor as a number with ten fraction bits; what is not finite reads as zero.
#[inline(always)]
fn factor(input: Input, bits: u32) -> (Number, bool) {
    let (exponent_bits, fraction_bits) = fields(input);
    let bits = if matches!(input, Input::Tf32) {
        bits >> 13
    } else {
        bits
    };
    let fraction = bits & ((1 << fraction_bits) - 1);
    let field = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    let negative = bits >> (exponent_bits + fraction_bits) & 1 == 1;
    let top = (1 << exponent_bits) - 1;
    let special = match input {
        Input::E4m3 => field == top && fraction == 7,
        _ => field == top,
    };
    let bias = (1 << (exponent_bits - 1)) - 1;
    let hidden = if field == 0 { 0 } else { 1 << fraction_bits };
    let magnitude = ((fraction | hidden) << (FACTOR - fraction_bits)) as i32;
    let number = if special || magnitude == 0 {
        Number {
            significand: 0,
            exponent: NOTHING,
        }
    } else {
        Number {
            significand: if negative { -magnitude } else { magnitude },
            exponent: field.max(1) as i32 - bias,
        }
    };
    (number, special)
}

/// What a factor is if it is not finite.
fn special(input: Input, bits: u32) -> Option<Special> {
    let (exponent_bits, fraction_bits) = fields(input);
    let bits = if matches!(input, Input::Tf32) {
        bits >> 13
    } else {
        bits
    };
    factor(
        input,
        if matches!(input, Input::Tf32) {
            bits << 13
        } else {
            bits
        },
    )
    .1
    .then(|| {
        if input == Input::E4m3 || bits & ((1 << fraction_bits) - 1) != 0 {
            Special::NotANumber
        } else {
            Special::Infinity {
                negative: bits >> (exponent_bits + fraction_bits) & 1 == 1,
            }
        }
    })
}

/// Decoded factors of a matrix.
struct Factors {
    significands: Vec<i32>,
    exponents: Vec<i32>,
    /// Whether any is not finite.
    special: bool,
}

impl Factors {
    #[inline(always)]
    fn new(input: Input, bits: &[u32]) -> Self {
        match input {
            Input::F16 => Self::decode::<5, 10, 0>(bits, 0),
            Input::Bf16 => Self::decode::<8, 7, 0>(bits, 0),
            Input::E4m3 => Self::decode::<4, 3, 0>(bits, 7),
            Input::E5m2 => Self::decode::<5, 2, 0>(bits, 0),
            _ => Self::decode::<8, 10, 13>(bits, 0),
        }
    }

    /// Elements with so many bits of exponent, fraction and nothing; those with the largest exponent
    /// are not finite if their fraction is `least` or more. As [`factor`], for vectors.
    #[inline(always)]
    fn decode<const EXPONENT: u32, const FRACTION: u32, const UNUSED: u32>(
        bits: &[u32],
        least: u32,
    ) -> Self {
        let top = (1u32 << EXPONENT) - 1;
        let bias = (1i32 << (EXPONENT - 1)) - 1;
        let split = |bits: u32| {
            let bits = bits >> UNUSED;
            let fraction = bits & ((1 << FRACTION) - 1);
            let field = bits >> FRACTION & top;
            let special = field == top && fraction >= least;
            let hidden = if field == 0 { 0 } else { 1 << FRACTION };
            let magnitude = if special { 0 } else { fraction | hidden };
            (bits, field, magnitude, special)
        };
        let significands = bits.iter().map(|bits| {
            let (bits, _, magnitude, _) = split(*bits);
            let negative = -((bits >> (EXPONENT + FRACTION) & 1) as i32);
            let magnitude = (magnitude << (FACTOR - FRACTION)) as i32;
            (magnitude ^ negative) - negative
        });
        let exponents = bits.iter().map(|bits| {
            let (_, field, magnitude, _) = split(*bits);
            if magnitude == 0 {
                NOTHING
            } else {
                field.max(1) as i32 - bias
            }
        });
        Self {
            significands: significands.collect(),
            exponents: exponents.collect(),
            special: bits.iter().fold(false, |any, bits| any | split(*bits).3),
        }
    }
}

/// The addend with 23 fraction bits; what is not finite reads as zero.
#[inline(always)]
fn addend(kind: Accumulator, bits: u32) -> Number {
    let (exponent_bits, fraction_bits) = match kind {
        Accumulator::F16 => (5, 10),
        _ => (8, 23),
    };
    let fraction = bits & ((1 << fraction_bits) - 1);
    let field = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    let negative = bits >> (exponent_bits + fraction_bits) & 1 == 1;
    let hidden = if field == 0 { 0 } else { 1 << fraction_bits };
    let magnitude = ((fraction | hidden) << (23 - fraction_bits)) as i32;
    if field == (1 << exponent_bits) - 1 || magnitude == 0 {
        return Number {
            significand: 0,
            exponent: NOTHING,
        };
    }
    Number {
        significand: if negative { -magnitude } else { magnitude },
        exponent: field.max(1) as i32 - ((1 << (exponent_bits - 1)) - 1),
    }
}

/// `significand × 2^-FROM` as a multiple of `2^-TO`, `below` bits further down, toward zero.
///
/// Written without a branch, and with widths that are known, so that loops over columns become
/// vectors.
#[inline(always)]
fn align<const FROM: u32, const TO: u32>(significand: i32, below: i32) -> i32 {
    let sign = significand >> 31;
    let magnitude = ((significand ^ sign) - sign) as u32;
    let wide = if TO >= FROM {
        magnitude << (TO - FROM)
    } else {
        magnitude >> (FROM - TO)
    };
    // No number has 32 bits here.
    let shifted = (wide >> below.min(31)) as i32;
    (shifted ^ sign) - sign
}

/// Eight columns.
type Columns = [i32; COLUMNS];

#[inline(always)]
fn columns(value: impl Fn(usize) -> i32) -> Columns {
    let mut all = [0; COLUMNS];
    for (column, cell) in all.iter_mut().enumerate() {
        *cell = value(column);
    }
    all
}

/// One matrix product on its way.
struct Sums<'a> {
    rule: Summation,
    a: &'a Factors,
    /// B by eight columns.
    significands: &'a [Columns],
    exponents: &'a [Columns],
    select: Option<&'a [u16]>,
    /// Elements of A in a row.
    width: usize,
    /// Eights of columns.
    eights: usize,
    c: Accumulator,
    d: Accumulator,
}

impl Sums<'_> {
    /// Eight elements of a row of D, from those of C.
    #[inline(always)]
    fn block<const FRACTION: u32>(&self, row: usize, eight: usize, cells: &mut [u32; COLUMNS]) {
        let mut kind = self.c;
        let all = row * self.width..(row + 1) * self.width;
        for first in all.clone().step_by(self.rule.group) {
            let group = first..(first + self.rule.group).min(all.end);
            let addends = columns(|column| addend(kind, cells[column]).significand);
            let own = columns(|column| addend(kind, cells[column]).exponent);
            let mut largest = columns(|column| own[column].max(LEAST_EXPONENT));
            for index in group.clone() {
                let exponent = self.a.exponents[index];
                let others = &self.exponents[self.place(index - all.start, index, eight)];
                largest = columns(|column| largest[column].max(exponent + others[column]));
            }
            let own = columns(|column| {
                let below = largest[column] - own[column];
                align::<23, FRACTION>(addends[column], below)
            });
            // The products fit 32 bits; the addend would be one too many.
            let mut sums = [0; COLUMNS];
            for index in group {
                let (significand, exponent) = (self.a.significands[index], self.a.exponents[index]);
                let place = self.place(index - all.start, index, eight);
                let (significands, exponents) = (&self.significands[place], &self.exponents[place]);
                sums = columns(|column| {
                    let below = largest[column] - (exponent + exponents[column]);
                    let product = significand * significands[column];
                    sums[column] + align::<{ 2 * FACTOR }, FRACTION>(product, below)
                });
            }
            for column in 0..COLUMNS {
                let sum = i64::from(sums[column]) + i64::from(own[column]);
                let lowest = largest[column] - FRACTION as i32;
                cells[column] = match self.d {
                    Accumulator::F16 => to_half(sum, lowest),
                    _ => to_single(sum, lowest, self.rule.result),
                };
            }
            kind = self.d;
        }
    }

    /// All of D, from C.
    #[inline(always)]
    fn all<const FRACTION: u32>(&self, cells: &mut [u32]) {
        let (cells, _) = cells.as_chunks_mut();
        for (at, block) in cells.iter_mut().enumerate() {
            self.block::<FRACTION>(at / self.eights, at % self.eights, block);
        }
    }

    /// The columns of B that an element of A meets: `k` is its place in the row.
    #[inline(always)]
    fn place(&self, k: usize, index: usize, eight: usize) -> usize {
        let k = match self.select {
            Some(select) => usize::from(select[index]),
            None => k,
        };
        k * self.eights + eight
    }
}

/// `sum × 2^lowest` in single precision of `fraction` fraction bits, toward zero.
#[inline(always)]
fn to_single(sum: i64, lowest: i32, fraction: u32) -> u32 {
    if sum == 0 {
        return 0;
    }
    let sign = if sum < 0 { 1u32 << 31 } else { 0 };
    let magnitude = sum.unsigned_abs();
    let top = 63 - magnitude.leading_zeros() as i32;
    let exponent = top + lowest;
    if exponent > 127 {
        return sign | 0x7f80_0000;
    }
    // Bits kept below the leading one; fewer for subnormals.
    let kept = if exponent < -126 {
        23 + exponent + 126
    } else {
        23
    };
    if kept < 0 {
        // What is too small becomes zero without a sign.
        return 0;
    }
    let bits = if top >= kept {
        (magnitude >> (top - kept)) as u32
    } else {
        (magnitude << (kept - top)) as u32
    };
    let cut = if exponent < -126 { 0 } else { 23 - fraction };
    let bits = bits >> cut << cut;
    if exponent < -126 {
        sign | bits
    } else {
        sign | ((exponent + 127) as u32) << 23 | bits & 0x7f_ffff
    }
}

/// `sum × 2^lowest` in half precision, to nearest even.
#[inline(always)]
fn to_half(sum: i64, lowest: i32) -> u32 {
    if sum == 0 {
        return 0;
    }
    let sign = if sum < 0 { 1u32 << 15 } else { 0 };
    let magnitude = sum.unsigned_abs();
    let top = 63 - magnitude.leading_zeros() as i32;
    let exponent = top + lowest;
    let kept = if exponent < -14 {
        10 + exponent + 14
    } else {
        10
    };
    let drop = top - kept;
    let rounded = if drop <= 0 {
        magnitude << -drop
    } else if drop > 40 {
        0
    } else {
        let half = 1u64 << (drop - 1);
        let odd = magnitude >> drop & 1;
        (magnitude + half - 1 + odd) >> drop
    };
    let field = if exponent < -14 {
        0
    } else {
        (exponent + 14) as u64
    };
    if rounded == 0 {
        // What is too small becomes zero without a sign.
        return 0;
    }
    // The leading one, kept, adds one to the exponent.
    let bits = (field << 10) + rounded;
    sign | (bits.min(0x7c00) as u32)
}

/// `D = A × B + C` on whole matrices of bits; `cells` is C and becomes D. `select` names the row of B
/// for every element of A.
#[inline(always)]
pub(super) fn multiply(
    shape: Multiply,
    a: &[u32],
    select: Option<&[u16]>,
    b: &[u32],
    cells: &mut [u32],
) {
    let (left, right) = (Factors::new(shape.a, a), Factors::new(shape.b, b));
    let sums = Sums {
        rule: summation(shape.unit, shape.a, shape.d),
        a: &left,
        significands: right.significands.as_chunks().0,
        exponents: right.exponents.as_chunks().0,
        select,
        width: a.len() / shape.m,
        eights: shape.n / COLUMNS,
        c: shape.c,
        d: shape.d,
    };
    let before: Vec<u32> = cells.to_vec();
    match sums.rule.fraction {
        13 => sums.all::<13>(cells),
        23 => sums.all::<23>(cells),
        24 => sums.all::<24>(cells),
        _ => sums.all::<25>(cells),
    }
    let infinite = |bits: u32| special_addend(shape.c, bits).is_some();
    if left.special || right.special || before.iter().any(|bits| infinite(*bits)) {
        for (at, cell) in cells.iter_mut().enumerate() {
            if let Some(bits) = not_finite(shape, a, select, b, at, before[at]) {
                *cell = bits;
            }
        }
    }
}

/// Four products of half precision and a single-precision addend, as a unit adds them.
#[must_use]
pub fn half_dot(unit: TensorCore, a: [u32; 4], b: [u32; 4], c: u32) -> u32 {
    let shape = Multiply {
        unit,
        ..Multiply::dense(
            [1, 1, 4],
            [Input::F16; 2],
            Accumulator::F32,
            Accumulator::F32,
        )
    };
    if let Some(bits) = not_finite(shape, &a, None, &b, 0, c) {
        return bits;
    }
    let rule = summation(unit, shape.a, shape.d);
    let left = a.map(|bits| factor(shape.a, bits).0);
    let right = b.map(|bits| factor(shape.b, bits).0);
    let own = addend(shape.c, c);
    let mut largest = own.exponent.max(LEAST_EXPONENT);
    for (x, y) in left.iter().zip(&right) {
        largest = largest.max(x.exponent + y.exponent);
    }
    // Volta's unit, the only one that adds four at once, keeps 23 bits.
    const FRACTION: u32 = 23;
    let below = largest - own.exponent;
    let mut sum = i64::from(align::<23, FRACTION>(own.significand, below));
    for (x, y) in left.iter().zip(&right) {
        let product = x.significand * y.significand;
        let below = largest - (x.exponent + y.exponent);
        sum += i64::from(align::<{ 2 * FACTOR }, FRACTION>(product, below));
    }
    to_single(sum, largest - FRACTION as i32, rule.result)
}

fn special_addend(kind: Accumulator, bits: u32) -> Option<Special> {
    match kind {
        Accumulator::F16 => special(Input::F16, bits),
        _ if bits >> 23 & 255 != 255 => None,
        _ if bits & 0x7f_ffff != 0 => Some(Special::NotANumber),
        _ => Some(Special::Infinity {
            negative: bits >> 31 == 1,
        }),
    }
}

/// The element at a place of D if a term of its sum is not finite.
fn not_finite(
    shape: Multiply,
    a: &[u32],
    select: Option<&[u16]>,
    b: &[u32],
    at: usize,
    addend: u32,
) -> Option<u32> {
    let (row, column) = (at / shape.n, at % shape.n);
    let width = a.len() / shape.m;
    let mut found = special_addend(shape.c, addend);
    for index in row * width..(row + 1) * width {
        let k = select.map_or(index - row * width, |select| usize::from(select[index]));
        let (x, y) = (a[index], b[k * shape.n + column]);
        let term = match (special(shape.a, x), special(shape.b, y)) {
            (None, None) => continue,
            (Some(Special::NotANumber), _) | (_, Some(Special::NotANumber)) => Special::NotANumber,
            _ if is_zero(shape.a, x) || is_zero(shape.b, y) => Special::NotANumber,
            _ => Special::Infinity {
                negative: is_negative(shape.a, x) != is_negative(shape.b, y),
            },
        };
        found = Some(match found {
            None => term,
            Some(before) if before == term => term,
            _ => Special::NotANumber,
        });
    }
    let half = shape.d == Accumulator::F16;
    Some(match (found?, half) {
        (Special::NotANumber, false) => NAN_SINGLE,
        (Special::NotANumber, true) => NAN_HALF,
        (Special::Infinity { negative }, false) => u32::from(negative) << 31 | 0x7f80_0000,
        (Special::Infinity { negative }, true) => u32::from(negative) << 15 | 0x7c00,
    })
}

fn is_zero(input: Input, bits: u32) -> bool {
    let (number, special) = factor(input, bits);
    !special && number.significand == 0
}

fn is_negative(input: Input, bits: u32) -> bool {
    let (exponent_bits, fraction_bits) = fields(input);
    let unused = if input == Input::Tf32 { 13 } else { 0 };
    bits >> (exponent_bits + fraction_bits + unused) & 1 == 1
}
