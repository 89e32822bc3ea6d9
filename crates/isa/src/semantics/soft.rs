//! Floating point from integers: every format, every rounding mode, exactly.
//!
//! The slow and obviously correct way, for directed rounding, for narrow formats, and as the
//! reference that the fast ways are tested against. A value is taken apart into a sign, a
//! 128-bit significand and an exponent; arithmetic is exact up to a sticky bit; [`round`] puts
//! the result together in a format.
//!
//! Reference: IEEE 754-2019, sections 4.3 and 5.4.1.

/// Direction in which an inexact result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Rounding {
    /// `.rn`: to nearest, ties to even.
    #[default]
    Nearest,
    /// `.rz`: toward zero.
    Zero,
    /// `.rm`: toward minus infinity.
    Down,
    /// `.rp`: toward plus infinity.
    Up,
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
}

/// A binary interchange format: sign, exponent, fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the exponent field.
    pub exponent_bits: u32,
    /// Bits of the fraction field.
    pub fraction_bits: u32,
    /// What an invalid operation gives on a GPU.
    pub nan: u64,
}

/// IEEE half precision.
pub const F16: Format = Format {
    exponent_bits: 5,
    fraction_bits: 10,
    nan: 0x7fff,
};
/// The upper half of single precision.
pub const BF16: Format = Format {
    exponent_bits: 8,
    fraction_bits: 7,
    nan: 0x7fff,
};
/// Single precision.
pub const F32: Format = Format {
    exponent_bits: 8,
    fraction_bits: 23,
    nan: 0x7fff_ffff,
};
/// Single precision with ten fraction bits, kept in the upper bits of a word.
pub const TF32: Format = Format {
    exponent_bits: 8,
    fraction_bits: 10,
    nan: 0x3_ffff,
};
/// Double precision.
pub const F64: Format = Format {
    exponent_bits: 11,
    fraction_bits: 52,
    nan: 0xfff8_0000_0000_0000,
};

impl Format {
    const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    const fn sign_bit(self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    /// Plus infinity.
    #[must_use]
    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }
}

/// A number taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Not a number.
    Nan,
    /// Infinity with this sign.
    Infinity(bool),
    /// Zero with this sign.
    Zero(bool),
    /// `(-1)^negative × significand × 2^exponent`, significand not zero.
    Finite(Finite),
}

/// A finite value that is not zero; `sticky` says that a bit below the significand is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finite {
    /// Whether the sign bit is set.
    pub negative: bool,
    /// Power of two of the significand's lowest bit.
    pub exponent: i32,
    /// Integer significand.
    pub significand: u128,
    /// Something not zero was dropped below it.
    pub sticky: bool,
}

/// Takes bits of a format apart.
#[must_use]
pub fn unpack(format: Format, bits: u64) -> Number {
    let negative = bits & format.sign_bit() != 0;
    let fraction = bits & ((1 << format.fraction_bits) - 1);
    let field = (bits >> format.fraction_bits) & ((1 << format.exponent_bits) - 1);
    let lowest = 1 - format.bias() - format.fraction_bits as i32;
    let finite = |exponent: i32, significand: u64| {
        Number::Finite(Finite {
            negative,
            exponent,
            significand: u128::from(significand),
            sticky: false,
        })
    };
    if field == (1 << format.exponent_bits) - 1 {
        if fraction == 0 {
            Number::Infinity(negative)
        } else {
            Number::Nan
        }
    } else if field != 0 {
        finite(
            lowest + field as i32 - 1,
            fraction | 1 << format.fraction_bits,
        )
    } else if fraction != 0 {
        finite(lowest, fraction)
    } else {
        Number::Zero(negative)
    }
}

/// Whether a magnitude with this remainder is rounded up to the next one.
fn rounds_up(rounding: Rounding, negative: bool, odd: bool, half: bool, rest: bool) -> bool {
    match rounding {
        Rounding::Nearest => half && (rest || odd),
        Rounding::NearestAway => half,
        Rounding::Zero => false,
        Rounding::Down => negative && (half || rest),
        Rounding::Up => !negative && (half || rest),
    }
}

/// `value >> shift` with the first bit dropped, and whether anything below that was not zero.
fn split(value: u128, shift: u32) -> (u128, bool, bool) {
    if shift == 0 {
        return (value, false, false);
    }
    if shift > 128 {
        return (0, false, value != 0);
    }
    let kept = value.checked_shr(shift).unwrap_or(0);
    let half = value >> (shift - 1) & 1 == 1;
    let rest = value & ((1u128 << (shift - 1)) - 1) != 0;
    (kept, half, rest)
}

/// Puts a number together in a format.
#[must_use]
pub fn round(format: Format, number: Number, rounding: Rounding) -> u64 {
    let signed = |negative: bool, bits: u64| {
        if negative {
            bits | format.sign_bit()
        } else {
            bits
        }
    };
    match number {
        Number::Nan => format.nan,
        Number::Infinity(negative) => signed(negative, format.infinity()),
        Number::Zero(negative) => signed(negative, 0),
        Number::Finite(value) => signed(value.negative, magnitude(format, value, rounding)),
    }
}

fn magnitude(format: Format, value: Finite, rounding: Rounding) -> u64 {
    let fraction_bits = format.fraction_bits as i32;
    let highest = 127 - value.significand.leading_zeros() as i32;
    let quantum = (value.exponent + highest).max(1 - format.bias()) - fraction_bits;
    let shift = quantum - value.exponent;
    let (kept, half, rest) = if shift <= 0 {
        (value.significand << -shift, false, false)
    } else {
        split(value.significand, shift as u32)
    };
    let up = rounds_up(
        rounding,
        value.negative,
        kept & 1 == 1,
        half,
        rest || value.sticky,
    );
    // The hidden bit of `kept` adds one to the exponent field, and a carry one more.
    let field = (quantum + fraction_bits + format.bias() - 1) as u128;
    let bits = (field << format.fraction_bits) + kept + u128::from(up);
    let infinity = u128::from(format.infinity());
    if bits < infinity {
        return bits as u64;
    }
    let to_infinity = match rounding {
        Rounding::Nearest | Rounding::NearestAway => true,
        Rounding::Zero => false,
        Rounding::Down => value.negative,
        Rounding::Up => !value.negative,
    };
    format.infinity() - u64::from(!to_infinity)
}

impl Finite {
    /// Moves the highest bit to position 124, which leaves room for a carry.
    fn normal(mut self) -> Self {
        let shift = self.significand.leading_zeros() as i32 - 3;
        self.significand = if shift >= 0 {
            self.significand << shift
        } else {
            self.sticky |= self.significand & ((1 << -shift) - 1) != 0;
            self.significand >> -shift
        };
        self.exponent -= shift;
        self
    }
}

fn product(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Infinity(_), Number::Zero(_)) | (Number::Zero(_), Number::Infinity(_)) => {
            Number::Nan
        }
        (Number::Infinity(s), other) | (other, Number::Infinity(s)) => {
            Number::Infinity(s != is_negative(other))
        }
        (Number::Zero(s), other) | (other, Number::Zero(s)) => {
            Number::Zero(s != is_negative(other))
        }
        (Number::Finite(x), Number::Finite(y)) => Number::Finite(Finite {
            negative: x.negative != y.negative,
            exponent: x.exponent + y.exponent,
            significand: x.significand * y.significand,
            sticky: false,
        }),
    }
}

fn is_negative(number: Number) -> bool {
    match number {
        Number::Nan => false,
        Number::Infinity(negative) | Number::Zero(negative) => negative,
        Number::Finite(value) => value.negative,
    }
}

/// Sign of an exact sum of zero.
fn zero(rounding: Rounding) -> Number {
    Number::Zero(rounding == Rounding::Down)
}

fn sum(a: Number, b: Number, rounding: Rounding) -> Number {
    match (a, b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Infinity(x), Number::Infinity(y)) => {
            if x == y {
                Number::Infinity(x)
            } else {
                Number::Nan
            }
        }
        (Number::Infinity(x), _) | (_, Number::Infinity(x)) => Number::Infinity(x),
        (Number::Zero(x), Number::Zero(y)) => {
            if x == y {
                Number::Zero(x)
            } else {
                zero(rounding)
            }
        }
        (Number::Zero(_), other) | (other, Number::Zero(_)) => other,
        (Number::Finite(x), Number::Finite(y)) => finite_sum(x.normal(), y.normal(), rounding),
    }
}

fn finite_sum(x: Finite, y: Finite, rounding: Rounding) -> Number {
    let (big, small) = if (x.exponent, x.significand) >= (y.exponent, y.significand) {
        (x, y)
    } else {
        (y, x)
    };
    let distance = (big.exponent - small.exponent) as u32;
    let (shifted, half, rest) = split(small.significand, distance);
    let sticky = half || rest;
    let significand = if big.negative == small.negative {
        big.significand + shifted
    } else {
        // What was dropped is taken off too: the true difference lies between this value and
        // the next, which the sticky bit says.
        big.significand - shifted - u128::from(sticky)
    };
    if significand == 0 {
        return zero(rounding);
    }
    Number::Finite(Finite {
        significand,
        sticky,
        ..big
    })
}

/// `a + b`.
#[must_use]
pub fn add(format: Format, a: u64, b: u64, rounding: Rounding) -> u64 {
    let number = sum(unpack(format, a), unpack(format, b), rounding);
    round(format, number, rounding)
}

/// `a × b`.
#[must_use]
pub fn mul(format: Format, a: u64, b: u64, rounding: Rounding) -> u64 {
    round(
        format,
        product(unpack(format, a), unpack(format, b)),
        rounding,
    )
}

/// `a × b + c`, rounded once.
#[must_use]
pub fn fma(format: Format, a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
    let number = product(unpack(format, a), unpack(format, b));
    round(format, sum(number, unpack(format, c), rounding), rounding)
}

/// `a ÷ b`.
#[must_use]
pub fn div(format: Format, a: u64, b: u64, rounding: Rounding) -> u64 {
    let number = match (unpack(format, a), unpack(format, b)) {
        (Number::Nan, _)
        | (_, Number::Nan)
        | (Number::Infinity(_), Number::Infinity(_))
        | (Number::Zero(_), Number::Zero(_)) => Number::Nan,
        (Number::Infinity(s), other) => Number::Infinity(s != is_negative(other)),
        (other, Number::Zero(s)) => Number::Infinity(s != is_negative(other)),
        (Number::Zero(s), other) => Number::Zero(s != is_negative(other)),
        (other, Number::Infinity(s)) => Number::Zero(s != is_negative(other)),
        (Number::Finite(x), Number::Finite(y)) => {
            let x = x.normal();
            let divisor = y.significand << (y.significand.leading_zeros() - 64);
            let exponent = y.exponent - (y.significand.leading_zeros() as i32 - 64);
            Number::Finite(Finite {
                negative: x.negative != y.negative,
                exponent: x.exponent - exponent,
                significand: x.significand / divisor,
                sticky: x.significand % divisor != 0,
            })
        }
    };
    round(format, number, rounding)
}

/// `√a`.
#[must_use]
pub fn sqrt(format: Format, a: u64, rounding: Rounding) -> u64 {
    let number = match unpack(format, a) {
        Number::Finite(x) if !x.negative => {
            let mut x = x.normal();
            if x.exponent % 2 != 0 {
                x.significand <<= 1;
                x.exponent -= 1;
            }
            let root = x.significand.isqrt();
            Number::Finite(Finite {
                negative: false,
                exponent: x.exponent / 2,
                significand: root,
                sticky: root * root != x.significand,
            })
        }
        Number::Finite(_) | Number::Nan | Number::Infinity(true) => Number::Nan,
        other => other,
    };
    round(format, number, rounding)
}

/// From one format to another.
#[must_use]
pub fn convert(from: Format, to: Format, a: u64, rounding: Rounding) -> u64 {
    round(to, unpack(from, a), rounding)
}

/// An integer, by sign and magnitude.
#[must_use]
pub fn from_integer(to: Format, negative: bool, magnitude: u64, rounding: Rounding) -> u64 {
    if magnitude == 0 {
        return 0;
    }
    let value = Finite {
        negative,
        exponent: 0,
        significand: u128::from(magnitude),
        sticky: false,
    };
    round(to, Number::Finite(value), rounding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bits that are often special: few exponents, few fraction bits.
    fn word() -> impl Strategy<Value = u32> {
        prop_oneof![
            any::<u32>(),
            (
                0u32..2,
                prop_oneof![0u32..3, 120u32..140, 250u32..256],
                0u32..8,
                0u32..22
            )
                .prop_map(|(s, e, f, k)| s << 31 | e << 23 | (f << k) & 0x7f_ffff),
        ]
    }

    fn word64() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            (
                0u64..2,
                prop_oneof![0u64..3, 1000u64..1060, 2044u64..2048],
                0u64..8,
                0u32..51
            )
                .prop_map(|(s, e, f, k)| s << 63 | e << 52 | (f << k) & ((1 << 52) - 1)),
        ]
    }

    fn same32(ours: u64, host: f32) -> bool {
        if host.is_nan() {
            ours == 0x7fff_ffff
        } else {
            ours == u64::from(host.to_bits())
        }
    }

    fn same64(ours: u64, host: f64) -> bool {
        if host.is_nan() {
            ours == F64.nan
        } else {
            ours == host.to_bits()
        }
    }

    const N: Rounding = Rounding::Nearest;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn nearest_is_the_hosts_single_precision(a in word(), b in word()) {
            let (x, y) = (f32::from_bits(a), f32::from_bits(b));
            let (a, b) = (u64::from(a), u64::from(b));
            prop_assert!(same32(add(F32, a, b, N), x + y));
            prop_assert!(same32(mul(F32, a, b, N), x * y));
            prop_assert!(same32(div(F32, a, b, N), x / y));
            prop_assert!(same32(sqrt(F32, a, N), x.sqrt()));
        }

        #[test]
        fn nearest_is_the_hosts_double_precision(a in word64(), b in word64(), c in word64()) {
            let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
            prop_assert!(same64(add(F64, a, b, N), x + y));
            prop_assert!(same64(mul(F64, a, b, N), x * y));
            prop_assert!(same64(div(F64, a, b, N), x / y));
            prop_assert!(same64(sqrt(F64, a, N), x.sqrt()));
            prop_assert!(same64(fma(F64, a, b, c, N), x.mul_add(y, z)), "{x:e} {y:e} {z:e}");
            prop_assert!(same32(convert(F64, F32, a, N), x as f32));
        }

        /// Down and up bracket the nearest result, and zero is the one of them nearer to zero.
        #[test]
        fn directed_results_bracket_the_exact_one(a in word64(), b in word64(), c in word64()) {
            let modes = [Rounding::Down, Rounding::Nearest, Rounding::Up, Rounding::Zero];
            let results = modes.map(|mode| f64::from_bits(fma(F64, a, b, c, mode)));
            if results[1].is_nan() {
                prop_assert!(results.iter().all(|value| value.is_nan()));
            } else {
                prop_assert!(results[0] <= results[1] && results[1] <= results[2]);
                let toward = if results[0] < 0.0 { results[2] } else { results[0] };
                prop_assert_eq!(results[3], toward);
                let steps = results[2].to_bits().wrapping_sub(results[0].to_bits()) as i64;
                prop_assert!(results[0] == results[2] || steps.abs() == 1);
            }
        }
    }

    #[test]
    fn directed_overflow_stops_at_the_largest_number() {
        let largest = 0x7f7f_ffff;
        assert_eq!(add(F32, largest, largest, Rounding::Zero), largest);
        assert_eq!(add(F32, largest, largest, Rounding::Down), largest);
        assert_eq!(add(F32, largest, largest, Rounding::Up), 0x7f80_0000);
    }

    #[test]
    fn subnormals_round_like_others() {
        // The smallest subnormal halved: a tie, to even is zero, up is itself.
        assert_eq!(mul(F32, 1, 0x3f00_0000, Rounding::Nearest), 0);
        assert_eq!(mul(F32, 1, 0x3f00_0000, Rounding::Up), 1);
        assert_eq!(mul(F32, 1, 0x3f00_0000, Rounding::NearestAway), 1);
    }

    #[test]
    fn a_difference_of_equals_has_the_sign_of_the_rounding() {
        let one = 0x3f80_0000;
        assert_eq!(add(F32, one, one | 1 << 31, Rounding::Nearest), 0);
        assert_eq!(add(F32, one, one | 1 << 31, Rounding::Down), 1 << 31);
    }
}
