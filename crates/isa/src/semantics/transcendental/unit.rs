//! The datapath that all functions share: a quadratic polynomial of a table, in fixed point.
//!
//! The upper bits of the reduced argument choose a segment of the table, the 17 bits below are `x`.
//! The result is `c0 + c1·x + c2·x²`, where the products are exact, the square is cut off, and one
//! constant for each function stands for rounding (S. F. Oberman, M. Y. Siu, "A High-Performance
//! Area-Efficient Multifunction Interpolator", ARITH 2005; widths as measured on an H200).
//!
//! Everything takes the lanes of a warp at once: what does not look at a table becomes vector code.

/// A row of a table: constant, linear and quadratic coefficient.
pub type Row = (i32, i32, i32);

/// A polynomial, aligned, with the constant that rounds added.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    constant: i64,
    /// The quadratic coefficient in the upper, the linear one in the lower 32 bits: two loads for
    /// three numbers.
    slopes: i64,
}

impl Segment {
    /// Nothing is there.
    pub const ZERO: Self = Self {
        constant: 0,
        slopes: 0,
    };

    /// Constant and quadratic coefficient are shifted left, and `rounding` is added.
    pub const fn new(row: Row, constant: u32, quadratic: u32, rounding: i64) -> Self {
        Self {
            constant: ((row.0 as i64) << constant) + rounding,
            slopes: ((row.2 << quadratic) as i64) << 32 | row.1 as u32 as i64,
        }
    }

    #[inline(always)]
    fn at(&self, x: u32, square: u16) -> i64 {
        let (linear, quadratic) = (self.slopes as i32, (self.slopes >> 32) as i32);
        self.constant
            + i64::from(linear) * i64::from(x as i32)
            + i64::from(quadratic) * i64::from(square)
    }
}

/// A table as it is used. Shifts and `rounding` as for [`Segment::new`].
pub const fn segments<const N: usize>(
    rows: &[Row; N],
    constant: u32,
    quadratic: u32,
    rounding: i64,
) -> [Segment; N] {
    let mut table = [Segment::ZERO; N];
    let mut n = 0;
    while n < N {
        table[n] = Segment::new(rows[n], constant, quadratic, rounding);
        n += 1;
    }
    table
}

/// Lanes made one by one. A plain loop, as for `map_lanes`.
#[inline(always)]
pub fn each<const L: usize>(f: impl Fn(usize) -> u32) -> [u32; L] {
    let mut lanes = [0; L];
    for (n, lane) in lanes.iter_mut().enumerate() {
        *lane = f(n);
    }
    lanes
}

/// x² ÷ 2^19 as the squarer has it, for `x` in two parts of 8 and 9 bits: of the products of two
/// bits of `x`, those below 2^18 are left out before they are added.
///
/// So the lower part's own square never counts, the upper one's always does, and of their product
/// only the upper columns do. 16 bits suffice, and twice as many lanes fit a vector.
#[inline(always)]
pub fn square(upper: u16, lower: u16) -> u16 {
    let mut sum = upper.wrapping_mul(upper) >> 1;
    for bit in 1..8 {
        let mask = (upper << (15 - bit)).cast_signed() >> 15;
        sum += (lower >> (9 - bit)) & mask.cast_unsigned();
    }
    sum
}

/// [`square`] of every lane.
#[inline(always)]
fn squares<const L: usize>(x: &[u32; L]) -> [u16; L] {
    let (mut upper, mut lower) = ([0; L], [0; L]);
    for (n, x) in x.iter().enumerate() {
        upper[n] = (x >> 9) as u16;
        lower[n] = (x & 511) as u16;
    }
    let mut squares = [0; L];
    for (n, result) in squares.iter_mut().enumerate() {
        *result = square(upper[n], lower[n]);
    }
    squares
}

/// The polynomials of the chosen segments at `x`. The number of segments is a power of two.
#[inline(always)]
pub fn interpolate<const L: usize, const N: usize>(
    table: &[Segment; N],
    index: &[u32; L],
    x: &[u32; L],
) -> [i64; L] {
    const { assert!(N.is_power_of_two()) };
    let squares = squares(x);
    let mut values = [0; L];
    for (n, value) in values.iter_mut().enumerate() {
        *value = table[index[n] as usize & (N - 1)].at(x[n], squares[n]);
    }
    values
}

/// A number below 2^52 with `fraction` fraction bits, not negative, as single precision, cut off.
#[inline(always)]
pub fn normalize(value: u64, fraction: u32) -> u32 {
    // As the mantissa of 2^52 it becomes a double by one subtraction, on hosts that have no
    // vector instruction for leading zeros.
    const MANTISSA_ONLY: u64 = 0x4330_0000_0000_0000;
    let double = f64::from_bits(value | MANTISSA_ONLY) - f64::from_bits(MANTISSA_ONLY);
    let bits = double.to_bits() >> 29;
    let rebias = u64::from(1023 - 127 + fraction) << 23;
    if value == 0 {
        0
    } else {
        bits.wrapping_sub(rebias) as u32
    }
}
