//! Integer arithmetic on one lane. PTX ISA, "Integer Arithmetic Instructions".
//!
//! Words are unsigned; a name ends in `_signed` where signs matter. 16-bit values come with
//! undefined upper halves and are cut down here.

/// `a + b`. PTX `add`.
#[inline(always)]
#[must_use]
pub const fn add(a: u32, b: u32) -> u32 {
    a.wrapping_add(b)
}

/// `a - b`. PTX `sub`.
#[inline(always)]
#[must_use]
pub const fn sub(a: u32, b: u32) -> u32 {
    a.wrapping_sub(b)
}

/// `a + b`, clamped to the signed range. PTX `add.sat.s32`.
#[inline(always)]
#[must_use]
pub const fn add_saturating(a: u32, b: u32) -> u32 {
    (a as i32).saturating_add(b as i32) as u32
}

/// `a - b`, clamped to the signed range. PTX `sub.sat.s32`.
#[inline(always)]
#[must_use]
pub const fn sub_saturating(a: u32, b: u32) -> u32 {
    (a as i32).saturating_sub(b as i32) as u32
}

/// `a + b` on 64 bits.
#[inline(always)]
#[must_use]
pub const fn add64(a: u64, b: u64) -> u64 {
    a.wrapping_add(b)
}

/// `a - b` on 64 bits.
#[inline(always)]
#[must_use]
pub const fn sub64(a: u64, b: u64) -> u64 {
    a.wrapping_sub(b)
}

/// Sum and carry out. PTX `add.cc`, `addc`.
#[inline(always)]
#[must_use]
pub const fn add_with_carry(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let sum = a as u64 + b as u64 + carry as u64;
    (sum as u32, sum >> 32 != 0)
}

/// 64-bit sum and carry out. PTX `add.cc.u64`, `addc.u64`.
#[inline(always)]
#[must_use]
pub const fn add64_with_carry(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let sum = a as u128 + b as u128 + carry as u128;
    (sum as u64, sum >> 64 != 0)
}

/// Low half of `a × b`. PTX `mul.lo`.
#[inline(always)]
#[must_use]
pub const fn mul_low(a: u32, b: u32) -> u32 {
    a.wrapping_mul(b)
}

/// High half of the unsigned product. PTX `mul.hi.u32`.
#[inline(always)]
#[must_use]
pub const fn mul_high(a: u32, b: u32) -> u32 {
    (mul_wide(a, b) >> 32) as u32
}

/// High half of the signed product. PTX `mul.hi.s32`.
#[inline(always)]
#[must_use]
pub const fn mul_high_signed(a: u32, b: u32) -> u32 {
    (mul_wide_signed(a, b) >> 32) as u32
}

/// The whole unsigned product. PTX `mul.wide.u32`.
#[inline(always)]
#[must_use]
pub const fn mul_wide(a: u32, b: u32) -> u64 {
    a as u64 * b as u64
}

/// The whole signed product. PTX `mul.wide.s32`.
#[inline(always)]
#[must_use]
pub const fn mul_wide_signed(a: u32, b: u32) -> u64 {
    (a as i32 as i64 * b as i32 as i64) as u64
}

/// Low half of `a × b` on 64 bits.
#[inline(always)]
#[must_use]
pub const fn mul64_low(a: u64, b: u64) -> u64 {
    a.wrapping_mul(b)
}

/// High half of the unsigned 128-bit product. PTX `mul.hi.u64`.
#[inline(always)]
#[must_use]
pub const fn mul64_high(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// High half of the signed 128-bit product. PTX `mul.hi.s64`.
#[inline(always)]
#[must_use]
pub const fn mul64_high_signed(a: u64, b: u64) -> u64 {
    ((a as i64 as i128 * b as i64 as i128) >> 64) as u64
}

/// `a × b + c`, low half. PTX `mad.lo`.
#[inline(always)]
#[must_use]
pub const fn mad_low(a: u32, b: u32, c: u32) -> u32 {
    a.wrapping_mul(b).wrapping_add(c)
}

/// `a × b + c` with a 64-bit product and addend. PTX `mad.wide.u32`.
#[inline(always)]
#[must_use]
pub const fn mad_wide(a: u32, b: u32, c: u64) -> u64 {
    mul_wide(a, b).wrapping_add(c)
}

/// Signed `mad.wide`.
#[inline(always)]
#[must_use]
pub const fn mad_wide_signed(a: u32, b: u32, c: u64) -> u64 {
    mul_wide_signed(a, b).wrapping_add(c)
}

/// The low 24 bits of each operand as unsigned numbers.
const fn low24(a: u32) -> u64 {
    (a & 0xff_ffff) as u64
}

/// The low 24 bits of each operand as signed numbers.
const fn low24_signed(a: u32) -> i64 {
    ((a << 8) as i32 >> 8) as i64
}

/// Low 32 of the 48 bits of a 24-bit product. PTX `mul24.lo.u32`.
#[inline(always)]
#[must_use]
pub const fn mul24_low(a: u32, b: u32) -> u32 {
    (low24(a) * low24(b)) as u32
}

/// High 32 of the 48 bits. PTX `mul24.hi.u32`.
#[inline(always)]
#[must_use]
pub const fn mul24_high(a: u32, b: u32) -> u32 {
    ((low24(a) * low24(b)) >> 16) as u32
}

/// PTX `mul24.lo.s32`.
#[inline(always)]
#[must_use]
pub const fn mul24_low_signed(a: u32, b: u32) -> u32 {
    (low24_signed(a) * low24_signed(b)) as u32
}

/// PTX `mul24.hi.s32`.
#[inline(always)]
#[must_use]
pub const fn mul24_high_signed(a: u32, b: u32) -> u32 {
    ((low24_signed(a) * low24_signed(b)) >> 16) as u32
}

/// `a ÷ b`; division by zero gives all ones, as GPUs do. PTX `div.u32`.
#[inline(always)]
#[must_use]
pub const fn div(a: u32, b: u32) -> u32 {
    match a.checked_div(b) {
        Some(quotient) => quotient,
        None => u32::MAX,
    }
}

/// Signed quotient, toward zero; division by zero gives all ones, and `MIN ÷ -1` wraps.
/// PTX `div.s32`.
#[inline(always)]
#[must_use]
pub const fn div_signed(a: u32, b: u32) -> u32 {
    if b == 0 {
        u32::MAX
    } else {
        (a as i32).wrapping_div(b as i32) as u32
    }
}

/// Remainder; by zero it is all ones. PTX `rem.u32`.
#[inline(always)]
#[must_use]
pub const fn rem(a: u32, b: u32) -> u32 {
    match a.checked_rem(b) {
        Some(remainder) => remainder,
        None => u32::MAX,
    }
}

/// Signed remainder, with the sign of the dividend. PTX `rem.s32`.
#[inline(always)]
#[must_use]
pub const fn rem_signed(a: u32, b: u32) -> u32 {
    if b == 0 {
        u32::MAX
    } else {
        (a as i32).wrapping_rem(b as i32) as u32
    }
}

/// PTX `div.u64`.
#[inline(always)]
#[must_use]
pub const fn div64(a: u64, b: u64) -> u64 {
    match a.checked_div(b) {
        Some(quotient) => quotient,
        None => u64::MAX,
    }
}

/// PTX `div.s64`.
#[inline(always)]
#[must_use]
pub const fn div64_signed(a: u64, b: u64) -> u64 {
    if b == 0 {
        u64::MAX
    } else {
        (a as i64).wrapping_div(b as i64) as u64
    }
}

/// PTX `rem.u64`.
#[inline(always)]
#[must_use]
pub const fn rem64(a: u64, b: u64) -> u64 {
    match a.checked_rem(b) {
        Some(remainder) => remainder,
        None => u64::MAX,
    }
}

/// PTX `rem.s64`.
#[inline(always)]
#[must_use]
pub const fn rem64_signed(a: u64, b: u64) -> u64 {
    if b == 0 {
        u64::MAX
    } else {
        (a as i64).wrapping_rem(b as i64) as u64
    }
}

/// Magnitude; the lowest number stays itself. PTX `abs.s32`.
#[inline(always)]
#[must_use]
pub const fn abs(a: u32) -> u32 {
    (a as i32).wrapping_abs() as u32
}

/// PTX `abs.s64`.
#[inline(always)]
#[must_use]
pub const fn abs64(a: u64) -> u64 {
    (a as i64).wrapping_abs() as u64
}

/// PTX `neg.s32`.
#[inline(always)]
#[must_use]
pub const fn neg(a: u32) -> u32 {
    a.wrapping_neg()
}

/// PTX `neg.s64`.
#[inline(always)]
#[must_use]
pub const fn neg64(a: u64) -> u64 {
    a.wrapping_neg()
}

macro_rules! extremes {
    ($($min:ident $max:ident $word:ty as $number:ty: $reference:literal;)*) => {$(
        #[doc = concat!("The smaller. PTX `min", $reference, "`.")]
        #[inline(always)]
        #[must_use]
        pub const fn $min(a: $word, b: $word) -> $word {
            if (a as $number) < (b as $number) { a } else { b }
        }

        #[doc = concat!("The larger. PTX `max", $reference, "`.")]
        #[inline(always)]
        #[must_use]
        pub const fn $max(a: $word, b: $word) -> $word {
            if (a as $number) > (b as $number) { a } else { b }
        }
    )*};
}

extremes! {
    min max u32 as u32: ".u32";
    min_signed max_signed u32 as i32: ".s32";
    min64 max64 u64 as u64: ".u64";
    min64_signed max64_signed u64 as i64: ".s64";
    min16 max16 u32 as u16: ".u16";
    min16_signed max16_signed u32 as i16: ".s16";
}

/// `|a - b| + c`. PTX `sad.u32`.
#[inline(always)]
#[must_use]
pub const fn sad(a: u32, b: u32, c: u32) -> u32 {
    c.wrapping_add(a.abs_diff(b))
}

/// PTX `sad.s32`.
#[inline(always)]
#[must_use]
pub const fn sad_signed(a: u32, b: u32, c: u32) -> u32 {
    c.wrapping_add((a as i32).abs_diff(b as i32))
}

/// PTX `sad.u64`.
#[inline(always)]
#[must_use]
pub const fn sad64(a: u64, b: u64, c: u64) -> u64 {
    c.wrapping_add(a.abs_diff(b))
}

/// PTX `sad.s64`.
#[inline(always)]
#[must_use]
pub const fn sad64_signed(a: u64, b: u64, c: u64) -> u64 {
    c.wrapping_add((a as i64).abs_diff(b as i64))
}

/// Zero-extends the low half.
#[inline(always)]
#[must_use]
pub const fn low16(a: u32) -> u32 {
    a & 0xffff
}

/// Sign-extends the low half.
#[inline(always)]
#[must_use]
pub const fn low16_signed(a: u32) -> u32 {
    a as i16 as i32 as u32
}

/// One byte of a word, extended.
const fn byte(a: u32, index: u32, signed: bool) -> i32 {
    let byte = (a >> (8 * index)) as u8;
    if signed {
        byte as i8 as i32
    } else {
        byte as i32
    }
}

/// One half of a word, extended.
const fn half(a: u32, index: u32, signed: bool) -> i32 {
    let half = (a >> (16 * index)) as u16;
    if signed {
        half as i16 as i32
    } else {
        half as i32
    }
}

/// Four products of bytes, summed onto `c`. PTX `dp4a`.
#[inline(always)]
#[must_use]
pub const fn dp4a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let mut sum = c;
    let mut index = 0;
    while index < 4 {
        let product = byte(a, index, a_signed) * byte(b, index, b_signed);
        sum = sum.wrapping_add(product as u32);
        index += 1;
    }
    sum
}

/// Two products of a half of `a` and a byte of `b` (the low or the high two), summed onto `c`.
/// PTX `dp2a`.
#[inline(always)]
#[must_use]
pub const fn dp2a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, high: bool) -> u32 {
    let first = if high { 2 } else { 0 };
    let mut sum = c;
    let mut index = 0;
    while index < 2 {
        let product = half(a, index, a_signed).wrapping_mul(byte(b, first + index, b_signed));
        sum = sum.wrapping_add(product as u32);
        index += 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_examples() {
        assert_eq!(add_saturating(i32::MAX as u32, 1), i32::MAX as u32);
        assert_eq!(add_with_carry(u32::MAX, 0, true), (0, true));
        assert_eq!(add64_with_carry(u64::MAX, 1, true), (1, true));
        assert_eq!(mul24_high_signed(0xff_ffff, 2), u32::MAX); // -1 × 2 = -2, its bits 47..16
        assert_eq!(mul24_low(0xff00_0003, 5), 15);
        assert_eq!(div(7, 0), u32::MAX);
        assert_eq!(div_signed(i32::MIN as u32, u32::MAX), i32::MIN as u32);
        assert_eq!(rem_signed(-7i32 as u32, 3) as i32, -1);
        assert_eq!(rem(7, 0), u32::MAX);
        assert_eq!(abs(i32::MIN as u32), i32::MIN as u32);
        assert_eq!(min_signed(u32::MAX, 1), u32::MAX);
        assert_eq!(min(u32::MAX, 1), 1);
        assert_eq!(max16_signed(0x1_ffff, 0x2_0001), 0x2_0001);
        assert_eq!(sad_signed(-3i32 as u32, 4, 10), 17);
        assert_eq!(
            dp4a(0xff01_0203, 0x0101_0101, 0, false, true),
            255 + 1 + 2 + 3
        );
        assert_eq!(dp4a(0xff01_0203, 0x0101_0101, 0, true, true), 5);
        assert_eq!(
            dp2a(0x0002_0003, 0x0405_0607, 1, false, false, true),
            1 + 3 * 5 + 2 * 4
        );
        assert_eq!(
            dp2a(0x0002_0003, 0x0405_0607, 1, false, false, false),
            1 + 3 * 7 + 2 * 6
        );
    }

    proptest! {
        #[test]
        fn products_agree_with_wide_ones(a: u32, b: u32, c: u64) {
            let unsigned = u128::from(a) * u128::from(b);
            let signed = i128::from(a as i32) * i128::from(b as i32);
            prop_assert_eq!(u128::from(mul_wide(a, b)), unsigned);
            prop_assert_eq!(i128::from(mul_wide_signed(a, b) as i64), signed);
            prop_assert_eq!(mul_high_signed(a, b), (signed >> 32) as u32);
            prop_assert_eq!(mul_high(a, b), (unsigned >> 32) as u32);
            prop_assert_eq!(mul_low(a, b), signed as u32);
            prop_assert_eq!(mad_wide_signed(a, b, c), signed.wrapping_add(i128::from(c)) as u64);
            prop_assert_eq!(mad_wide(a, b, c), unsigned.wrapping_add(u128::from(c)) as u64);
        }

        #[test]
        fn quotient_and_remainder_make_the_dividend(a: u64, b in 1u64..) {
            prop_assert_eq!(div64(a, b) * b + rem64(a, b), a);
            let back = mul64_low(div64_signed(a, b), b).wrapping_add(rem64_signed(a, b));
            prop_assert_eq!(back, a);
        }

        #[test]
        fn a_carry_chain_is_a_wide_sum(a: u64, b: u64) {
            let (low, carry) = add_with_carry(a as u32, b as u32, false);
            let (high, out) = add_with_carry((a >> 32) as u32, (b >> 32) as u32, carry);
            prop_assert_eq!(u64::from(high) << 32 | u64::from(low), a.wrapping_add(b));
            prop_assert_eq!(out, a.checked_add(b).is_none());
        }
    }
}
