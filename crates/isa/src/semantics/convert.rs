//! Conversions on one lane, as bits. PTX ISA, `cvt`.
//!
//! Integers are 64-bit with their sign or zero extension; [`Integer`] says what range they are
//! clamped to. Floats name their [`soft::Format`] where several are possible.

use super::{
    float32, float64,
    soft::{self, F32, F64, Rounding},
};

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer {
    /// 8, 16, 32 or 64.
    pub bits: u32,
    /// Two's complement.
    pub signed: bool,
}

impl Integer {
    /// Smallest value.
    #[must_use]
    pub const fn lowest(self) -> i128 {
        if self.signed {
            -(1 << (self.bits - 1))
        } else {
            0
        }
    }

    /// Largest value.
    #[must_use]
    pub const fn highest(self) -> i128 {
        if self.signed {
            (1 << (self.bits - 1)) - 1
        } else {
            (1 << self.bits) - 1
        }
    }

    /// The value in the low bits of a word.
    #[must_use]
    #[inline(always)]
    pub const fn read(self, word: u64) -> i128 {
        let unused = 64 - self.bits;
        if self.signed {
            (((word << unused) as i64) >> unused) as i128
        } else {
            ((word << unused) >> unused) as i128
        }
    }

    /// Integer to integer: cut off, or clamped (`.sat`); the result is extended as this type.
    #[must_use]
    #[inline(always)]
    pub const fn convert(self, value: i128, saturate: bool) -> u64 {
        if saturate {
            let (low, high) = (self.lowest(), self.highest());
            let value = if value < low {
                low
            } else if value > high {
                high
            } else {
                value
            };
            value as u64
        } else {
            self.read(value as u64) as u64
        }
    }
}

/// `value` rounded to an integer, as a float. PTX `cvt.rni`, `.rzi`, `.rmi`, `.rpi`.
///
/// Adding and taking away 1.5 × 2^52 rounds to nearest even; the rest are one step from it.
#[inline(always)]
#[must_use]
pub fn round_to_integer(value: f64, rounding: Rounding) -> f64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let magnitude = f64::from_bits(value.to_bits() & !(1 << 63));
    let nearest = (value + MAGIC) - MAGIC;
    let step = match rounding {
        Rounding::Nearest => 0.0,
        Rounding::Down => {
            if nearest > value {
                -1.0
            } else {
                0.0
            }
        }
        Rounding::Up => {
            if nearest < value {
                1.0
            } else {
                0.0
            }
        }
        Rounding::Zero => {
            if value >= 0.0 && nearest > value {
                -1.0
            } else if value < 0.0 && nearest < value {
                1.0
            } else {
                0.0
            }
        }
        Rounding::NearestAway => {
            if magnitude - f64::from_bits(nearest.to_bits() & !(1 << 63)) == 0.5 {
                if value < 0.0 { -1.0 } else { 1.0 }
            } else {
                0.0
            }
        }
    };
    let sign = value.to_bits() & 1 << 63;
    let rounded = f64::from_bits((nearest + step).to_bits() & !(1 << 63) | sign);
    // From 2^51 on the trick fails; from 2^52 on every double is an integer.
    if magnitude < 2_251_799_813_685_248.0 {
        rounded
    } else if magnitude < 4_503_599_627_370_496.0 {
        round_large(value, rounding)
    } else {
        value
    }
}

/// Doubles between 2^51 and 2^52 have one fraction bit.
fn round_large(value: f64, rounding: Rounding) -> f64 {
    let whole = value as i64;
    let fraction = value - whole as f64;
    let step = match rounding {
        _ if fraction == 0.0 => 0,
        Rounding::Zero => 0,
        Rounding::Down => -i64::from(value < 0.0),
        Rounding::Up => i64::from(value > 0.0),
        Rounding::NearestAway => {
            if value < 0.0 {
                -1
            } else {
                1
            }
        }
        Rounding::Nearest => {
            if whole & 1 == 0 {
                0
            } else if value < 0.0 {
                -1
            } else {
                1
            }
        }
    };
    (whole + step) as f64
}

/// A float that already is an integer (or not a number) to an integer type: clamped to its range.
/// NaN gives zero, or the highest bit alone where a 64-bit type takes part.
#[inline(always)]
#[must_use]
pub fn whole_to_integer(value: f64, to: Integer, wide: bool) -> u64 {
    if value.is_nan() {
        return if wide {
            to.read(1 << (to.bits - 1)) as u64
        } else {
            0
        };
    }
    if to.bits == 64 {
        return if to.signed {
            value as i64 as u64
        } else {
            value as u64
        };
    }
    // 32 bits and fewer fit in an i64 exactly; the host clamps beyond.
    to.convert(i128::from(value as i64), true)
}

/// Single precision to an integer. PTX `cvt.rzi.s32.f32` and its kin.
#[inline(always)]
#[must_use]
pub fn float32_to_integer(a: u32, to: Integer, rounding: Rounding) -> u64 {
    let whole = round_to_integer(f64::from(f32::from_bits(a)), rounding);
    whole_to_integer(whole, to, to.bits == 64)
}

/// Double precision to an integer. PTX `cvt.rzi.s32.f64` and its kin.
#[inline(always)]
#[must_use]
pub fn float64_to_integer(a: u64, to: Integer, rounding: Rounding) -> u64 {
    whole_to_integer(round_to_integer(f64::from_bits(a), rounding), to, true)
}

/// An integer to single precision.
#[inline(always)]
#[must_use]
pub fn integer_to_float32(value: i128, rounding: Rounding) -> u32 {
    match rounding {
        // Every 64-bit value fits one of the two, and the host rounds each once.
        Rounding::Nearest if value < 0 => (value as i64 as f32).to_bits(),
        Rounding::Nearest => (value as u64 as f32).to_bits(),
        _ => {
            let magnitude = value.unsigned_abs() as u64;
            soft::from_integer(F32, value < 0, magnitude, rounding) as u32
        }
    }
}

/// An integer to double precision.
#[inline(always)]
#[must_use]
pub fn integer_to_float64(value: i128, rounding: Rounding) -> u64 {
    match rounding {
        Rounding::Nearest if value < 0 => (value as i64 as f64).to_bits(),
        Rounding::Nearest => (value as u64 as f64).to_bits(),
        _ => soft::from_integer(F64, value < 0, value.unsigned_abs() as u64, rounding),
    }
}

/// Double to single precision. A NaN becomes quiet and keeps its sign and the upper bits of its payload.
#[inline(always)]
#[must_use]
pub fn float64_to_float32(a: u64, rounding: Rounding) -> u32 {
    if float64::is_nan(a) {
        return (a >> 32) as u32 & 1 << 31 | 0x7fc0_0000 | (a >> 29) as u32 & 0x7f_ffff;
    }
    match rounding {
        Rounding::Nearest => (f64::from_bits(a) as f32).to_bits(),
        _ => soft::convert(F64, F32, a, rounding) as u32,
    }
}

/// Single to double precision, exact. A NaN's payload comes along.
#[inline(always)]
#[must_use]
pub fn float32_to_float64(a: u32) -> u64 {
    if a & 0x7fff_ffff > 0x7f80_0000 {
        let sign = u64::from(a >> 31) << 63;
        return sign | 0x7ff8_0000_0000_0000 | u64::from(a & 0x7f_ffff) << 29;
    }
    f64::from(f32::from_bits(a)).to_bits()
}

/// Single precision rounded to an integer, as a float. PTX `cvt.rni.f32.f32`.
#[inline(always)]
#[must_use]
pub fn float32_to_whole(a: u32, rounding: Rounding) -> u32 {
    float32::canonical(round_to_integer(f64::from(f32::from_bits(a)), rounding) as f32)
}

/// Double precision rounded to an integer, as a float. PTX `cvt.rni.f64.f64`.
#[inline(always)]
#[must_use]
pub fn float64_to_whole(a: u64, rounding: Rounding) -> u64 {
    float64::add(
        round_to_integer(f64::from_bits(a), rounding).to_bits(),
        1 << 63,
    )
}

/// Single precision cut to ten fraction bits. PTX `cvt.rna.tf32.f32`, `cvt.rn.tf32.f32`.
///
/// Rounding away from zero is integer arithmetic of the compiler's, which cuts NaNs as it cuts numbers.
#[must_use]
pub fn float32_to_tf32(a: u32, rounding: Rounding) -> u32 {
    if rounding == Rounding::NearestAway && f32::from_bits(a).is_nan() {
        return a & !0x1fff;
    }
    (soft::convert(F32, soft::TF32, u64::from(a), rounding) << 13) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S32: Integer = Integer {
        bits: 32,
        signed: true,
    };
    const U8: Integer = Integer {
        bits: 8,
        signed: false,
    };
    const S64: Integer = Integer {
        bits: 64,
        signed: true,
    };
    const U64: Integer = Integer {
        bits: 64,
        signed: false,
    };

    #[test]
    fn worked_examples() {
        let f = |x: f32| x.to_bits();
        assert_eq!(
            float32_to_integer(f(-2.5), S32, Rounding::Nearest) as i32,
            -2
        );
        assert_eq!(float32_to_integer(f(-2.5), S32, Rounding::Down) as i32, -3);
        assert_eq!(float32_to_integer(f(-2.5), S32, Rounding::Zero) as i32, -2);
        assert_eq!(float32_to_integer(f(-2.5), S32, Rounding::Up) as i32, -2);
        assert_eq!(float32_to_integer(f(300.0), U8, Rounding::Zero), 255);
        assert_eq!(float32_to_integer(f(-1.0), U64, Rounding::Zero), 0);
        assert_eq!(float32_to_integer(f(f32::NAN), S32, Rounding::Zero), 0);
        assert_eq!(
            float32_to_integer(f(f32::NAN), S64, Rounding::Zero),
            1 << 63
        );
        assert_eq!(
            float64_to_integer(f64::NAN.to_bits(), S32, Rounding::Zero) as u32,
            1 << 31
        );
        assert_eq!(
            float32_to_integer(f(1e20), S64, Rounding::Zero),
            i64::MAX as u64
        );
        assert_eq!(U8.convert(-5, true), 0);
        assert_eq!(U8.convert(0x1ff, false), 0xff);
        assert_eq!(S32.convert(0xffff_ffff, false) as i64, -1);
        assert_eq!(
            integer_to_float32(16_777_217, Rounding::Up),
            f(16_777_218.0)
        );
        assert_eq!(
            integer_to_float32(i128::from(u64::MAX), Rounding::Zero),
            0x5f7f_ffff
        );
        assert_eq!(
            float32_to_tf32(0x3f80_1000, Rounding::NearestAway),
            0x3f80_2000
        );
        assert_eq!(float32_to_whole(f(-0.25), Rounding::Nearest), 1 << 31);
        assert_eq!(
            float64_to_float32(1e300f64.to_bits(), Rounding::Zero),
            0x7f7f_ffff
        );
        assert_eq!(
            round_to_integer(2_251_799_813_685_249.5, Rounding::Nearest),
            2_251_799_813_685_250.0
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]
        #[test]
        fn rounding_to_integers_agrees_with_the_library(
            value in prop_oneof![
                any::<f64>(),
                -1e6f64..1e6,
                (-4000i32..4000).prop_map(|n| f64::from(n) / 4.0),
                (-1i64 << 53..1 << 53).prop_map(|n| n as f64 / 2.0),
            ],
        ) {
            let expected = [
                (Rounding::Nearest, value.round_ties_even()),
                (Rounding::Zero, value.trunc()),
                (Rounding::Down, value.floor()),
                (Rounding::Up, value.ceil()),
                (Rounding::NearestAway, value.round()),
            ];
            for (mode, wanted) in expected {
                let got = round_to_integer(value, mode);
                prop_assert!(got.to_bits() == wanted.to_bits() || got.is_nan() && wanted.is_nan(),
                    "{mode:?} {value}: {got} {wanted}");
            }
        }

        #[test]
        fn integers_to_floats_agree_with_integers(value: i64) {
            let exact = soft::from_integer(F32, value < 0, value.unsigned_abs(), Rounding::Nearest);
            prop_assert_eq!(u64::from(integer_to_float32(value.into(), Rounding::Nearest)), exact);
        }
    }
}
