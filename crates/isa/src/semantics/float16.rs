//! Half precision and bfloat16 on one lane: single values and packed pairs, as bits. PTX ISA,
//! "Half Precision Floating Point Instructions".
//!
//! Sums and products are made in single precision and rounded again, which is exact because 24
//! bits are more than twice 11 plus two; `fma` goes through double precision rounded to odd.

use super::{
    float32::{self, add_to_odd},
    float64,
    soft::{self, BF16, F16, F32, F64, Rounding},
};

/// One of the two 16-bit formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// IEEE half precision.
    Half,
    /// bfloat16.
    Brain,
}

/// The NaN that a tensor copy puts where its box leaves the tensor; its sign does not matter.
pub const OUT_OF_BOUNDS: u16 = 0x7ff7;

/// The NaN of both formats.
pub const NAN: u16 = 0x7fff;

/// Half to single precision, exact.
#[inline(always)]
#[must_use]
pub fn half_to_float(a: u16) -> u32 {
    let bits = u32::from(a);
    let magnitude = bits & 0x7fff;
    // Scaling by 2^112 turns half's exponents, subnormals too, into single's.
    let scaled = (f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000)).to_bits();
    let value = if magnitude > 0x7c00 {
        return float32::NAN;
    } else if magnitude == 0x7c00 {
        0x7f80_0000
    } else {
        scaled
    };
    value | (bits & 0x8000) << 16
}

/// Single to half precision, to nearest even. PTX `cvt.rn.f16.f32`.
#[inline(always)]
#[must_use]
pub fn float_to_half(a: u32) -> u16 {
    let sign = (a >> 16 & 0x8000) as u16;
    let magnitude = a & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return NAN;
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00; // 65536 and above
    }
    let value = if magnitude < 0x3880_0000 {
        // Below 2^-14: adding one half aligns the fraction; the host rounds.
        (f32::from_bits(magnitude) + 0.5).to_bits() - 0x3f00_0000
    } else {
        let odd = magnitude >> 13 & 1;
        (magnitude - 0x3800_0000 + 0xfff + odd) >> 13
    };
    sign | value as u16
}

/// bfloat16 to single precision, exact; NaNs made canonical.
#[inline(always)]
#[must_use]
pub const fn brain_to_float(a: u16) -> u32 {
    let bits = (a as u32) << 16;
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        float32::NAN
    } else {
        bits
    }
}

/// Single precision to bfloat16, to nearest even. PTX `cvt.rn.bf16.f32`.
#[inline(always)]
#[must_use]
pub const fn float_to_brain(a: u32) -> u16 {
    if a & 0x7fff_ffff > 0x7f80_0000 {
        return NAN;
    }
    ((a + 0x7fff + (a >> 16 & 1)) >> 16) as u16
}

impl Kind {
    /// To single precision, exact.
    #[inline(always)]
    #[must_use]
    pub fn widen(self, a: u16) -> u32 {
        match self {
            Self::Half => half_to_float(a),
            Self::Brain => brain_to_float(a),
        }
    }

    /// From single precision, to nearest even.
    #[inline(always)]
    #[must_use]
    pub fn narrow(self, a: u32) -> u16 {
        match self {
            Self::Half => float_to_half(a),
            Self::Brain => float_to_brain(a),
        }
    }

    const fn format(self) -> soft::Format {
        match self {
            Self::Half => F16,
            Self::Brain => BF16,
        }
    }

    /// From single precision in any direction.
    #[must_use]
    pub fn narrow_rounded(self, a: u32, rounding: Rounding) -> u16 {
        match rounding {
            Rounding::Nearest => self.narrow(a),
            _ => soft::convert(F32, self.format(), u64::from(a), rounding) as u16,
        }
    }

    /// From double precision in any direction. A NaN becomes quiet and keeps sign and payload.
    #[must_use]
    pub fn narrow_double(self, a: u64, rounding: Rounding) -> u16 {
        if float64::is_nan(a) {
            let sign = (a >> 48) as u16 & 0x8000;
            return match self {
                Self::Half => sign | 0x7e00 | (a >> 42) as u16 & 0x3ff,
                Self::Brain => sign | 0x7fc0 | (a >> 45) as u16 & 0x7f,
            };
        }
        soft::convert(F64, self.format(), a, rounding) as u16
    }

    /// Subnormals become zero of the same sign.
    #[inline(always)]
    #[must_use]
    pub const fn flush(self, a: u16) -> u16 {
        let smallest = match self {
            Self::Half => 0x0400,
            Self::Brain => 0x0080,
        };
        if a & 0x7fff < smallest { a & 0x8000 } else { a }
    }

    /// `a + b`. PTX `add.f16`, `add.bf16`.
    #[inline(always)]
    #[must_use]
    pub fn add(self, a: u16, b: u16) -> u16 {
        self.narrow(float32::add(self.widen(a), self.widen(b)))
    }

    /// `a × b`. PTX `mul.f16`.
    #[inline(always)]
    #[must_use]
    pub fn mul(self, a: u16, b: u16) -> u16 {
        self.narrow(float32::mul(self.widen(a), self.widen(b)))
    }

    /// `a × b + c`, rounded once. PTX `fma.rn.f16`.
    #[inline(always)]
    #[must_use]
    pub fn fma(self, a: u16, b: u16, c: u16) -> u16 {
        let wide = |x: u16| f64::from(f32::from_bits(self.widen(x)));
        let sum = add_to_odd(wide(a) * wide(b), wide(c));
        // Rounding to odd once more keeps what single precision cannot hold.
        self.narrow(double_to_float_odd(sum))
    }

    /// As [`Kind::fma`], zero where a factor is the NaN that stands for what lies outside a tensor.
    /// PTX `fma.rn.oob`.
    #[inline(always)]
    #[must_use]
    pub fn fma_in_bounds(self, a: u16, b: u16, c: u16) -> u16 {
        if [a, b]
            .map(|factor| factor & 0x7fff)
            .contains(&OUT_OF_BOUNDS)
        {
            0
        } else {
            self.fma(a, b, c)
        }
    }

    /// The smaller. PTX `min.f16`, `min.NaN.f16`.
    #[inline(always)]
    #[must_use]
    pub fn min(self, a: u16, b: u16, propagate: bool) -> u16 {
        self.narrow(float32::min(self.widen(a), self.widen(b), propagate))
    }

    /// The larger. PTX `max.f16`, `max.NaN.f16`.
    #[inline(always)]
    #[must_use]
    pub fn max(self, a: u16, b: u16, propagate: bool) -> u16 {
        self.narrow(float32::max(self.widen(a), self.widen(b), propagate))
    }

    /// Clamped to `[0, 1]`; NaN becomes zero. PTX `.sat`.
    #[inline(always)]
    #[must_use]
    pub fn saturate(self, a: u16) -> u16 {
        self.narrow(float32::saturate(self.widen(a)))
    }

    /// Negative numbers become zero, NaN stays canonical. PTX `.relu`.
    #[inline(always)]
    #[must_use]
    pub fn relu(self, a: u16) -> u16 {
        if self.widen(a) == float32::NAN {
            NAN
        } else if a & 0x8000 != 0 {
            0
        } else {
            a
        }
    }
}

/// Double to single precision, rounded to odd.
#[inline(always)]
fn double_to_float_odd(value: f64) -> u32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    if value.is_nan() {
        return float32::NAN;
    }
    // An overflow to infinity stays: both formats overflow far below or just as single does.
    if back == value || bits & 1 == 1 || nearest.is_infinite() {
        return bits;
    }
    // The neighbour on the other side of the exact value is odd.
    let grows = value.abs() > back.abs();
    if grows { bits + 1 } else { bits - 1 }
}

/// The two halves of a word.
#[inline(always)]
#[must_use]
pub const fn unpack(a: u32) -> [u16; 2] {
    [a as u16, (a >> 16) as u16]
}

/// A word of two halves, low first.
#[inline(always)]
#[must_use]
pub const fn pack(halves: [u16; 2]) -> u32 {
    halves[0] as u32 | (halves[1] as u32) << 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn conversions_agree_with_integers_for_every_half() {
        for bits in 0..=u16::MAX {
            for (kind, format) in [(Kind::Half, F16), (Kind::Brain, BF16)] {
                let exact = soft::convert(format, F32, u64::from(bits), Rounding::Nearest) as u32;
                assert_eq!(kind.widen(bits), exact, "{kind:?} {bits:#x}");
                let back = if exact == float32::NAN { NAN } else { bits };
                assert_eq!(kind.narrow(exact), back);
            }
        }
    }

    #[test]
    fn worked_examples() {
        let one = 0x3c00;
        assert_eq!(Kind::Half.add(one, one), 0x4000);
        assert_eq!(Kind::Half.fma(one, one, 0x1000), 0x3c00); // 1 + 2^-11: a tie, to even
        assert_eq!(Kind::Brain.mul(0x4000, 0x4040), 0x40c0); // 2 × 3
        assert_eq!(Kind::Half.relu(0xbc00), 0);
        assert_eq!(unpack(pack([1, 2])), [1, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn narrowing_agrees_with_integers(a: u32) {
            for (kind, format) in [(Kind::Half, F16), (Kind::Brain, BF16)] {
                let exact = soft::convert(F32, format, u64::from(a), Rounding::Nearest) as u16;
                prop_assert_eq!(kind.narrow(a), exact);
            }
        }

        #[test]
        fn arithmetic_agrees_with_integers(a: u16, b: u16, c: u16) {
            for (kind, format) in [(Kind::Half, F16), (Kind::Brain, BF16)] {
                let wide = |x: u16| u64::from(x);
                let n = Rounding::Nearest;
                prop_assert_eq!(kind.add(a, b), soft::add(format, wide(a), wide(b), n) as u16);
                prop_assert_eq!(kind.mul(a, b), soft::mul(format, wide(a), wide(b), n) as u16);
                let fma = soft::fma(format, wide(a), wide(b), wide(c), n) as u16;
                prop_assert_eq!(kind.fma(a, b, c), fma);
            }
        }
    }
}
