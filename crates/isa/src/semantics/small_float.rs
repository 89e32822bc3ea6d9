//! Eight-bit floats: E4M3 and E5M2. PTX ISA, "Alternate Floating-Point Data Formats" and `cvt`.
//!
//! E5M2 is an IEEE format with two fraction bits. E4M3 has no infinity: its largest exponent
//! holds numbers up to 448, and only `S.1111.111` is NaN.

use super::soft::{self, F16, Finite, Format, Number, Rounding};

/// Eight-bit formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Small {
    /// Four exponent bits, three fraction bits.
    E4m3,
    /// Five exponent bits, two fraction bits.
    E5m2,
}

const E5M2: Format = Format {
    exponent_bits: 5,
    fraction_bits: 2,
    nan: 0x7f,
};

/// E4M3 with one exponent bit more, so that rounding never meets a special exponent.
const E4M3_WIDE: Format = Format {
    exponent_bits: 5,
    fraction_bits: 3,
    nan: 0xff,
};

/// 448, as a magnitude of E4M3.
const E4M3_LARGEST: u64 = 0x7e;
const E4M3_NAN: u8 = 0x7f;

impl Small {
    /// From half precision bits, exact source; clamped to the largest finite number
    /// (`.satfinite`, the only way that PTX offers).
    #[must_use]
    pub fn from_number(self, number: Number, relu: bool) -> u8 {
        let negative = match number {
            Number::Nan => return 0x7f,
            Number::Infinity(s) | Number::Zero(s) => s,
            Number::Finite(value) => value.negative,
        };
        if relu && negative {
            return 0;
        }
        let sign = u8::from(negative) << 7;
        let magnitude = match number {
            Number::Zero(_) | Number::Nan => 0,
            Number::Infinity(_) => u64::MAX,
            Number::Finite(value) => self.round_magnitude(value),
        };
        let largest = match self {
            Self::E4m3 => E4M3_LARGEST,
            Self::E5m2 => E5M2.infinity() - 1,
        };
        sign | magnitude.min(largest) as u8
    }

    fn round_magnitude(self, value: Finite) -> u64 {
        let positive = Finite {
            negative: false,
            ..value
        };
        match self {
            Self::E5m2 => soft::round(E5M2, Number::Finite(positive), Rounding::Nearest),
            Self::E4m3 => {
                // The wide format's bias is 15, E4M3's 7: scale by 2^8 so that both end their
                // normal numbers at the same field, and subnormals line up.
                let scaled = Finite {
                    exponent: positive.exponent - 8,
                    ..positive
                };
                soft::round(E4M3_WIDE, Number::Finite(scaled), Rounding::Nearest)
            }
        }
    }

    /// To half precision, exact. PTX `cvt.rn.f16x2.e4m3x2`.
    #[must_use]
    pub fn to_half(self, a: u8) -> u16 {
        let sign = u16::from(a & 0x80) << 8;
        let magnitude = a & 0x7f;
        match self {
            Self::E5m2 if magnitude > 0x7c => 0x7fff,
            Self::E5m2 => sign | u16::from(magnitude) << 8,
            Self::E4m3 if magnitude == E4M3_NAN => 0x7fff,
            Self::E4m3 => {
                let number = match soft::unpack(E4M3_WIDE, u64::from(magnitude)) {
                    Number::Finite(value) => Number::Finite(Finite {
                        exponent: value.exponent + 8,
                        ..value
                    }),
                    other => other,
                };
                sign | soft::round(F16, number, Rounding::Nearest) as u16
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_survives_the_way_through_half() {
        for small in [Small::E4m3, Small::E5m2] {
            for bits in 0..=u8::MAX {
                let half = small.to_half(bits);
                let back = small.from_number(soft::unpack(F16, u64::from(half)), false);
                let infinite = small == Small::E5m2 && bits & 0x7f == 0x7c;
                match (half & 0x7fff > 0x7c00, infinite) {
                    (true, _) => assert_eq!(back, 0x7f),
                    (_, true) => assert_eq!(back & 0x7f, 0x7b),
                    _ => assert_eq!(back, bits, "{small:?} {bits:#x} {half:#x}"),
                }
            }
        }
    }

    #[test]
    fn worked_examples() {
        let from = |small: Small, value: f32| {
            let number = soft::unpack(soft::F32, u64::from(value.to_bits()));
            small.from_number(number, false)
        };
        assert_eq!(from(Small::E4m3, 1.0), 0x38);
        assert_eq!(from(Small::E4m3, 1e9), 0x7e);
        assert_eq!(from(Small::E4m3, 0.001953125), 0x01); // 2^-9
        assert_eq!(from(Small::E5m2, -1.0), 0xbc);
        assert_eq!(Small::E4m3.to_half(0x38), 0x3c00);
    }
}
