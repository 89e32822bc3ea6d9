//! The special function unit: reciprocal, roots, exponential, logarithm, sine, cosine, tangent.
//!
//! PTX documents maximal errors for `.approx`, not results. Here each function is computed in
//! double precision from its own series and rounded once, which stays well inside those bounds
//! (tests hold it to 2^-22 relative, where the manual allows 2^-22 to 2^-20.5) and is the same
//! on every host. Equality with the hardware's tables, bit for bit, is not claimed.
//!
//! Reference: PTX ISA, `rcp`, `sqrt`, `rsqrt`, `sin`, `cos`, `lg2`, `ex2`, `tanh`; SASS `MUFU`.

use super::{convert::round_to_integer, float32::canonical, soft::Rounding};

fn float(a: u32) -> f64 {
    f64::from(f32::from_bits(a))
}

fn narrow(value: f64) -> u32 {
    canonical(value as f32)
}

/// `c[0] + c[1] x + c[2] x² + …`, always in the same order of operations.
#[inline(always)]
fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// `1 ÷ a`. PTX `rcp.approx.f32`, `MUFU.RCP`.
#[must_use]
pub fn reciprocal(a: u32) -> u32 {
    narrow(1.0 / float(a))
}

/// `√a`. PTX `sqrt.approx.f32`, `MUFU.SQRT`.
#[must_use]
pub fn square_root(a: u32) -> u32 {
    narrow(float(a).sqrt())
}

/// `1 ÷ √a`. PTX `rsqrt.approx.f32`, `MUFU.RSQ`.
#[must_use]
pub fn reciprocal_square_root(a: u32) -> u32 {
    narrow(1.0 / float(a).sqrt())
}

/// `a ÷ b` by reciprocal. PTX `div.approx.f32`: for |b| above 2^126 a finite `a` gives zero.
#[must_use]
pub fn divide(a: u32, b: u32) -> u32 {
    let (x, y) = (float(a), float(b));
    if y.abs() > 85_070_591_730_234_615_865_843_651_857_942_052_864.0 && y.is_finite() {
        let sign = (a ^ b) & 1 << 31;
        return if x.is_finite() {
            sign
        } else {
            canonical(f32::NAN)
        };
    }
    narrow(x / y)
}

/// `a ÷ b` over the full range, within two units in the last place. PTX `div.full.f32`.
#[must_use]
pub fn divide_full(a: u32, b: u32) -> u32 {
    narrow(float(a) / float(b))
}

/// Coefficients of 2^x around zero: ln(2)^n / n!.
const EXP2: [f64; 13] = {
    let mut table = [1.0; 13];
    let mut n = 1;
    while n < 13 {
        table[n] = table[n - 1] * core::f64::consts::LN_2 / n as f64;
        n += 1;
    }
    table
};

/// `2^x` for any double in single precision's reach.
pub(crate) fn exp2(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let x = x.clamp(-1000.0, 1000.0);
    let whole = round_to_integer(x, Rounding::Nearest);
    let scale = f64::from_bits(((whole as i64 + 1023) as u64) << 52);
    polynomial(x - whole, &EXP2) * scale
}

/// `2^a`. PTX `ex2.approx.f32`, `MUFU.EX2`.
#[must_use]
pub fn exponential(a: u32) -> u32 {
    narrow(exp2(float(a)))
}

/// Coefficients of 2 ÷ ln 2 × artanh(s) ÷ s in s².
const LOG2: [f64; 12] = {
    let mut table = [0.0; 12];
    let mut n = 0;
    while n < 12 {
        table[n] = 2.0 * core::f64::consts::LOG2_E / (2 * n + 1) as f64;
        n += 1;
    }
    table
};

/// `log2(a)`. PTX `lg2.approx.f32`, `MUFU.LG2`.
#[must_use]
pub fn logarithm(a: u32) -> u32 {
    let x = float(a);
    if x == 0.0 {
        return 0xff80_0000;
    }
    if x.is_nan() || x < 0.0 {
        return canonical(f32::NAN);
    }
    if x.is_infinite() {
        return 0x7f80_0000;
    }
    // Every single precision number is normal as a double.
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > core::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    narrow(exponent as f64 + s * polynomial(s * s, &LOG2))
}

/// Coefficients of sin(x) ÷ x and cos(x) in x².
const SINE: [f64; 9] = alternating(1);
const COSINE: [f64; 9] = alternating(0);

const fn alternating(first: usize) -> [f64; 9] {
    let mut table = [1.0; 9];
    let mut n = 1;
    while n < 9 {
        let k = 2 * n + first;
        table[n] = -table[n - 1] / ((k - 1) * k) as f64;
        n += 1;
    }
    table
}

/// Sine and cosine of an angle in turns.
fn sine_and_cosine(turns: f64) -> (f64, f64) {
    let turns = turns - round_to_integer(turns, Rounding::Nearest);
    let quarter = round_to_integer(turns * 4.0, Rounding::Nearest);
    let angle = (turns - quarter * 0.25) * core::f64::consts::TAU;
    let square = angle * angle;
    let (sine, cosine) = (
        angle * polynomial(square, &SINE),
        polynomial(square, &COSINE),
    );
    match quarter as i64 & 3 {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

/// 1 ÷ 2π as the compiler multiplies by it before `MUFU.SIN`.
const TURNS_PER_RADIAN: u32 = 0x3e22_f983;

fn turns(a: u32, flush: bool) -> u32 {
    let scaled = super::float32::mul(a, TURNS_PER_RADIAN);
    if flush {
        super::float32::flush(scaled)
    } else {
        scaled
    }
}

/// Sine of an angle in turns. SASS `MUFU.SIN`, whose operand comes multiplied by 1 ÷ 2π.
#[must_use]
pub fn sine_of_turns(a: u32) -> u32 {
    if a & 0x7fff_ffff == 0 {
        return a;
    }
    narrow(sine_and_cosine(float(a)).0)
}

/// Cosine of an angle in turns. SASS `MUFU.COS`.
#[must_use]
pub fn cosine_of_turns(a: u32) -> u32 {
    narrow(sine_and_cosine(float(a)).1)
}

/// Sine of an angle in radians. PTX `sin.approx.f32`.
#[must_use]
pub fn sine(a: u32, flush: bool) -> u32 {
    sine_of_turns(turns(a, flush))
}

/// Cosine of an angle in radians. PTX `cos.approx.f32`.
#[must_use]
pub fn cosine(a: u32, flush: bool) -> u32 {
    cosine_of_turns(turns(a, flush))
}

/// Hyperbolic tangent. PTX `tanh.approx.f32`, `MUFU.TANH`.
#[must_use]
pub fn hyperbolic_tangent(a: u32) -> u32 {
    let x = float(a);
    let magnitude = x.abs();
    if magnitude < 0.01 {
        // x - x³/3 + 2x⁵/15: what the quotient below would lose to cancellation.
        let square = x * x;
        return narrow(x * polynomial(square, &[1.0, -1.0 / 3.0, 2.0 / 15.0]));
    }
    let power = exp2(magnitude.min(20.0) * 2.0 * core::f64::consts::LOG2_E);
    let value = (power - 1.0) / (power + 1.0);
    if x.is_nan() {
        canonical(f32::NAN)
    } else {
        narrow(if x < 0.0 { -value } else { value })
    }
}

/// `1 ÷ √a` in double precision. PTX `rsqrt.approx.f64`.
#[must_use]
pub fn reciprocal_square_root64(a: u64) -> u64 {
    super::float64::div_rounded(
        1f64.to_bits(),
        super::float64::sqrt_rounded(a, Rounding::Nearest),
        Rounding::Nearest,
    )
}

/// Keeps the upper word of a double, rounded.
fn upper_word(value: f64) -> u32 {
    if !value.is_finite() {
        return if value.is_nan() {
            0x7fff_ffff
        } else {
            (value.to_bits() >> 32) as u32
        };
    }
    let rounded = value.to_bits().wrapping_add(1 << 31);
    (rounded >> 32) as u32
}

/// Subnormal doubles, judged by the upper word, become zero.
fn flushed_upper(high: u32) -> f64 {
    let high = if high & 0x7ff0_0000 == 0 {
        high & 1 << 31
    } else {
        high
    };
    f64::from_bits(u64::from(high) << 32)
}

/// Upper word of 1 ÷ a from the upper word of `a`. PTX `rcp.approx.ftz.f64`, `MUFU.RCP64H`.
#[must_use]
pub fn reciprocal_high(high: u32) -> u32 {
    let result = upper_word(1.0 / flushed_upper(high));
    if result & 0x7ff0_0000 == 0 {
        result & 1 << 31
    } else {
        result
    }
}

/// Upper word of 1 ÷ √a. PTX `rsqrt.approx.ftz.f64`, `MUFU.RSQ64H`.
#[must_use]
pub fn reciprocal_square_root_high(high: u32) -> u32 {
    upper_word(1.0 / flushed_upper(high).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INFINITY: u32 = 0x7f80_0000;
    const NAN: u32 = 0x7fff_ffff;
    const SIGN: u32 = 1 << 31;

    #[test]
    fn special_values() {
        assert_eq!(reciprocal(0), INFINITY);
        assert_eq!(reciprocal(SIGN), INFINITY | SIGN);
        assert_eq!(reciprocal(INFINITY | SIGN), SIGN);
        assert_eq!(square_root(SIGN), SIGN);
        assert_eq!(square_root(0xbf80_0000), NAN);
        assert_eq!(reciprocal_square_root(SIGN), INFINITY | SIGN);
        assert_eq!(exponential(INFINITY | SIGN), 0);
        assert_eq!(exponential(INFINITY), INFINITY);
        assert_eq!(exponential(3f32.to_bits()), 8f32.to_bits());
        assert_eq!(exponential((-140f32).to_bits()), 1 << 9); // subnormal
        assert_eq!(logarithm(0), INFINITY | SIGN);
        assert_eq!(logarithm(8f32.to_bits()), 3f32.to_bits());
        assert_eq!(logarithm((-1f32).to_bits()), NAN);
        assert_eq!(sine(SIGN, false), SIGN);
        assert_eq!(cosine(0, false), 1f32.to_bits());
        assert_eq!(sine(INFINITY, false), NAN);
        assert_eq!(hyperbolic_tangent(INFINITY | SIGN), (-1f32).to_bits());
        assert_eq!(divide(1f32.to_bits(), 0x7f00_0001), 0);
        assert_eq!(reciprocal_high(0x4000_0000), 0x3fe0_0000); // 1/2
        for nan in [
            reciprocal(NAN),
            exponential(NAN),
            sine(NAN, false),
            logarithm(NAN),
        ] {
            assert_eq!(nan, NAN);
        }
    }

    /// Relative error against the standard library, which tests may use.
    fn close(ours: u32, wanted: f64) -> bool {
        let value = f64::from(f32::from_bits(ours));
        value == wanted || (value - wanted).abs() <= wanted.abs() * 2.4e-7
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]
        #[test]
        fn errors_stay_within_the_documented_bounds(x in 1e-30f32..1e30, y in -80f32..80.0) {
            let wide = f64::from(x);
            prop_assert!(close(reciprocal(x.to_bits()), 1.0 / wide));
            prop_assert!(close(reciprocal_square_root(x.to_bits()), 1.0 / wide.sqrt()));
            let logarithm = f64::from(f32::from_bits(logarithm(x.to_bits())));
            prop_assert!((logarithm - wide.log2()).abs() <= 1e-7 * wide.log2().abs().max(1.0));
            prop_assert!(close(exponential(y.to_bits()), f64::from(y).exp2()));
            prop_assert!(close(hyperbolic_tangent(y.to_bits()), f64::from(y).tanh()));
        }

        #[test]
        fn angles_within_a_turn_are_good_to_twenty_bits(x in -3.2f32..3.2) {
            let wide = f64::from(x);
            for (ours, wanted) in [
                (sine(x.to_bits(), false), wide.sin()),
                (cosine(x.to_bits(), false), wide.cos()),
            ] {
                prop_assert!((f64::from(f32::from_bits(ours)) - wanted).abs() < 6.7e-7); // 2^-20.5
            }
        }
    }
}
