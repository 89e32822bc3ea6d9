//! Bits of one lane: logic, shifts, fields, permutations. PTX ISA, "Logic and Shift
//! Instructions" and the bit instructions of "Integer Arithmetic Instructions".

/// Any function of three bits, by truth table. PTX `lop3`.
///
/// Bit `4a + 2b + c` of `table` is the result.
#[inline(always)]
#[must_use]
pub const fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let mask = [
        (table & 1) as u32,
        (table >> 1 & 1) as u32,
        (table >> 2 & 1) as u32,
        (table >> 3 & 1) as u32,
        (table >> 4 & 1) as u32,
        (table >> 5 & 1) as u32,
        (table >> 6 & 1) as u32,
        (table >> 7 & 1) as u32,
    ];
    (!a & !b & !c & mask[0].wrapping_neg())
        | (!a & !b & c & mask[1].wrapping_neg())
        | (!a & b & !c & mask[2].wrapping_neg())
        | (!a & b & c & mask[3].wrapping_neg())
        | (a & !b & !c & mask[4].wrapping_neg())
        | (a & !b & c & mask[5].wrapping_neg())
        | (a & b & !c & mask[6].wrapping_neg())
        | (a & b & c & mask[7].wrapping_neg())
}

/// Shift left; a count above the width gives zero. PTX `shl.b32`.
#[inline(always)]
#[must_use]
pub const fn shl(a: u32, count: u32) -> u32 {
    if count > 31 { 0 } else { a << (count & 31) }
}

/// Shift right; a count above the width gives zero. PTX `shr.u32`.
#[inline(always)]
#[must_use]
pub const fn shr(a: u32, count: u32) -> u32 {
    if count > 31 { 0 } else { a >> (count & 31) }
}

/// Shift right with the sign; a count above the width gives the sign. PTX `shr.s32`.
#[inline(always)]
#[must_use]
pub const fn shr_signed(a: u32, count: u32) -> u32 {
    let count = if count > 31 { 31 } else { count };
    (a as i32 >> count) as u32
}

/// PTX `shl.b64`.
#[inline(always)]
#[must_use]
pub const fn shl64(a: u64, count: u32) -> u64 {
    if count > 63 { 0 } else { a << (count & 63) }
}

/// PTX `shr.u64`.
#[inline(always)]
#[must_use]
pub const fn shr64(a: u64, count: u32) -> u64 {
    if count > 63 { 0 } else { a >> (count & 63) }
}

/// PTX `shr.s64`.
#[inline(always)]
#[must_use]
pub const fn shr64_signed(a: u64, count: u32) -> u64 {
    let count = if count > 63 { 63 } else { count };
    (a as i64 >> count) as u64
}

/// PTX `shl.b16`.
#[inline(always)]
#[must_use]
pub const fn shl16(a: u32, count: u32) -> u32 {
    if count > 15 { 0 } else { (a << count) & 0xffff }
}

/// PTX `shr.u16`.
#[inline(always)]
#[must_use]
pub const fn shr16(a: u32, count: u32) -> u32 {
    if count > 15 { 0 } else { (a & 0xffff) >> count }
}

/// PTX `shr.s16`.
#[inline(always)]
#[must_use]
pub const fn shr16_signed(a: u32, count: u32) -> u32 {
    let count = if count > 15 { 15 } else { count };
    (a as i16 >> count) as u32
}

/// High word of `high:low << count`. PTX `shf.l`.
#[inline(always)]
#[must_use]
pub const fn funnel_left(low: u32, high: u32, count: u32, wrap: bool) -> u32 {
    let pair = (high as u64) << 32 | low as u64;
    ((pair << funnel_count(count, wrap)) >> 32) as u32
}

/// Low word of `high:low >> count`. PTX `shf.r`.
#[inline(always)]
#[must_use]
pub const fn funnel_right(low: u32, high: u32, count: u32, wrap: bool) -> u32 {
    let pair = (high as u64) << 32 | low as u64;
    (pair >> funnel_count(count, wrap)) as u32
}

const fn funnel_count(count: u32, wrap: bool) -> u32 {
    if wrap {
        count & 31
    } else if count > 32 {
        32
    } else {
        count
    }
}

/// Bits set. PTX `popc.b32`.
#[inline(always)]
#[must_use]
pub const fn popc(a: u32) -> u32 {
    // Spelled out: without it the host's loop over lanes is not vectorised.
    let a = a - ((a >> 1) & 0x5555_5555);
    let a = (a & 0x3333_3333) + ((a >> 2) & 0x3333_3333);
    (((a + (a >> 4)) & 0x0f0f_0f0f).wrapping_mul(0x0101_0101)) >> 24
}

/// PTX `popc.b64`.
#[inline(always)]
#[must_use]
pub const fn popc64(a: u64) -> u32 {
    a.count_ones()
}

/// Leading zeros, 32 for zero. PTX `clz.b32`.
#[inline(always)]
#[must_use]
pub const fn clz(a: u32) -> u32 {
    a.leading_zeros()
}

/// PTX `clz.b64`.
#[inline(always)]
#[must_use]
pub const fn clz64(a: u64) -> u32 {
    a.leading_zeros()
}

/// Bits in reverse order. PTX `brev.b32`.
#[inline(always)]
#[must_use]
pub const fn brev(a: u32) -> u32 {
    a.reverse_bits()
}

/// PTX `brev.b64`.
#[inline(always)]
#[must_use]
pub const fn brev64(a: u64) -> u64 {
    a.reverse_bits()
}

/// Position of the highest one, or all ones. `shift_amount` gives the count of bits above it
/// instead. PTX `bfind.u32`, SASS `FLO.U32`.
#[inline(always)]
#[must_use]
pub const fn find_leading(a: u32, shift_amount: bool) -> u32 {
    match (a, shift_amount) {
        (0, _) => u32::MAX,
        (_, true) => a.leading_zeros(),
        (_, false) => 31 - a.leading_zeros(),
    }
}

/// As [`find_leading`], on the highest bit that differs from the sign. PTX `bfind.s32`.
#[inline(always)]
#[must_use]
pub const fn find_leading_signed(a: u32, shift_amount: bool) -> u32 {
    find_leading(a ^ (a as i32 >> 31) as u32, shift_amount)
}

/// PTX `bfind.u64`.
#[inline(always)]
#[must_use]
pub const fn find_leading64(a: u64, shift_amount: bool) -> u32 {
    match (a, shift_amount) {
        (0, _) => u32::MAX,
        (_, true) => a.leading_zeros(),
        (_, false) => 63 - a.leading_zeros(),
    }
}

/// PTX `bfind.s64`.
#[inline(always)]
#[must_use]
pub const fn find_leading64_signed(a: u64, shift_amount: bool) -> u32 {
    find_leading64(a ^ (a as i64 >> 63) as u64, shift_amount)
}

/// Position of the `offset`-th set bit counted from `base`, or all ones. PTX `fns`.
#[inline]
#[must_use]
pub fn find_nth_set(mask: u32, base: u32, offset: u32) -> u32 {
    let offset = offset as i32;
    if base > 31 {
        return u32::MAX;
    }
    let mut left = offset.unsigned_abs();
    if offset == 0 {
        return if mask >> base & 1 == 1 {
            base
        } else {
            u32::MAX
        };
    }
    let step = offset.signum();
    let mut position = base as i32;
    while (0..32).contains(&position) {
        if mask >> position & 1 == 1 {
            left -= 1;
            if left == 0 {
                return position as u32;
            }
        }
        position += step;
    }
    u32::MAX
}

/// Field of `length` bits at `start`; bits above the word are zero. PTX `bfe.u32`.
#[inline(always)]
#[must_use]
pub const fn bfe(a: u32, start: u32, length: u32) -> u32 {
    bfe64(a as u64, start & 255, length & 255) as u32
}

/// Field extended by its highest bit, or by the word's where the field passes it.
/// PTX `bfe.s32`.
#[inline(always)]
#[must_use]
pub const fn bfe_signed(a: u32, start: u32, length: u32) -> u32 {
    let (start, length) = (start & 255, length & 255);
    if length == 0 {
        return 0;
    }
    bfe64_signed(a as i32 as i64 as u64, start, length) as u32
}

/// Unlike 32-bit fields, whose places are bytes, places and lengths are whole words. PTX `bfe.u64`.
#[inline(always)]
#[must_use]
pub const fn bfe64(a: u64, start: u32, length: u32) -> u64 {
    let field = if start > 63 { 0 } else { a >> start };
    if length > 63 {
        field
    } else {
        field & ((1 << length) - 1)
    }
}

/// PTX `bfe.s64`.
#[inline(always)]
#[must_use]
pub const fn bfe64_signed(a: u64, start: u32, length: u32) -> u64 {
    if length == 0 {
        return 0;
    }
    let field = (a as i64) >> (if start > 63 { 63 } else { start });
    if length > 63 {
        return field as u64;
    }
    ((field << (64 - length)) >> (64 - length)) as u64
}

/// `b` with `length` bits of `a` put in at `start`. PTX `bfi.b32`.
#[inline(always)]
#[must_use]
pub const fn bfi(a: u32, b: u32, start: u32, length: u32) -> u32 {
    bfi64(a as u64, b as u64, start & 255, length & 255) as u32
}

/// PTX `bfi.b64`.
#[inline(always)]
#[must_use]
pub const fn bfi64(a: u64, b: u64, start: u32, length: u32) -> u64 {
    if start > 63 {
        return b;
    }
    let field = if length > 63 {
        u64::MAX
    } else {
        (1 << length) - 1
    };
    (b & !(field << start)) | ((a & field) << start)
}

/// A mask of `length` ones at `start`. PTX `bmsk`; clamped unless `wrap`.
#[inline(always)]
#[must_use]
pub const fn bit_mask(start: u32, length: u32, wrap: bool) -> u32 {
    let (start, length) = if wrap {
        (start & 31, length & 31)
    } else {
        (start, length)
    };
    if start > 31 || length == 0 {
        0
    } else if length > 31 {
        u32::MAX << start
    } else {
        ((1 << length) - 1) << start
    }
}

/// Sign-extends from bit `length`. PTX `szext.s32`; a length of 0 gives 0.
#[inline(always)]
#[must_use]
pub const fn extend_signed(a: u32, length: u32, wrap: bool) -> u32 {
    let length = if wrap { length & 31 } else { length };
    if length == 0 {
        0
    } else {
        bfe_signed(a, 0, if length > 32 { 32 } else { length })
    }
}

/// Zero-extends from bit `length`. PTX `szext.u32`.
#[inline(always)]
#[must_use]
pub const fn extend(a: u32, length: u32, wrap: bool) -> u32 {
    let length = if wrap { length & 31 } else { length };
    bfe(a, 0, if length > 32 { 32 } else { length })
}

/// Bytes of `b:a` chosen by four nibbles; a nibble's high bit copies the byte's sign.
/// PTX `prmt.b32`.
#[inline(always)]
#[must_use]
pub const fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (b as u64) << 32 | a as u64;
    let mut result = 0;
    let mut index = 0;
    while index < 4 {
        let nibble = selector >> (4 * index);
        let byte = (bytes >> (8 * (nibble & 7))) as u8;
        let chosen = if nibble & 8 == 0 {
            byte
        } else {
            (byte as i8 >> 7) as u8
        };
        result |= (chosen as u32) << (8 * index);
        index += 1;
    }
    result
}

/// Special modes of `prmt` as a selector: forward 4 extract, backward 4 extract, replicate 8,
/// edge clamp left, edge clamp right, replicate 16. PTX `prmt.mode`.
#[inline(always)]
#[must_use]
pub const fn prmt_selector(mode: PermuteMode, c: u32) -> u32 {
    let index = (c & 3) as usize;
    match mode {
        PermuteMode::Index => c & 0xffff,
        PermuteMode::ForwardExtract => [0x3210, 0x4321, 0x5432, 0x6543][index],
        PermuteMode::BackwardExtract => [0x5670, 0x6701, 0x7012, 0x0123][index],
        PermuteMode::ReplicateByte => [0x0000, 0x1111, 0x2222, 0x3333][index],
        PermuteMode::EdgeClampLeft => [0x3210, 0x3211, 0x3222, 0x3333][index],
        PermuteMode::EdgeClampRight => [0x0000, 0x1110, 0x2210, 0x3210][index],
        PermuteMode::ReplicateHalf => [0x1010, 0x3232, 0x1010, 0x3232][index],
    }
}

/// Modes of `prmt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PermuteMode {
    /// Nibbles of the selector.
    Index,
    /// `.f4e`
    ForwardExtract,
    /// `.b4e`
    BackwardExtract,
    /// `.rc8`
    ReplicateByte,
    /// `.ecl`
    EdgeClampLeft,
    /// `.ecr`
    EdgeClampRight,
    /// `.rc16`
    ReplicateHalf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_examples() {
        assert_eq!(lop3(0b1100, 0b1010, 0, 0xc0) & 15, 0b1000); // a & b
        assert_eq!(shl(1, 32), 0);
        assert_eq!(shr_signed(0x8000_0000, 40), u32::MAX);
        assert_eq!(shr16_signed(0x1_8000, 3), 0xffff_f000);
        assert_eq!(funnel_left(0x8000_0001, 0x1, 4, true), 0x18);
        assert_eq!(funnel_right(0x8000_0001, 0x1, 4, true), 0x1800_0000);
        assert_eq!(funnel_right(7, 9, 40, false), 9);
        assert_eq!(popc(0xf0f0_0001), 9);
        assert_eq!(find_leading(0x10, false), 4);
        assert_eq!(find_leading_signed(u32::MAX, false), u32::MAX);
        assert_eq!(find_leading(0x10, true), 27);
        assert_eq!(find_nth_set(0b1010_0100, 0, 2), 5);
        assert_eq!(find_nth_set(0b1010_0100, 7, -2i32 as u32), 5);
        assert_eq!(bfe(0xabcd, 4, 8), 0xbc);
        assert_eq!(bfe_signed(0xabcd, 4, 8), 0xffff_ffbc);
        assert_eq!(bfe_signed(0x8000_0000, 28, 8), 0xffff_fff8);
        assert_eq!(bfi(0xf, 0xabcd, 4, 4), 0xabfd);
        assert_eq!(bfi(0xf, 0xabcd, 32, 4), 0xabcd);
        assert_eq!(bit_mask(4, 8, false), 0xff0);
        assert_eq!(extend_signed(0x80, 8, false), 0xffff_ff80);
        assert_eq!(prmt(0x3322_1100, 0x7766_5544, 0x7531), 0x7755_3311);
        assert_eq!(prmt(0x0000_8000, 0, 0x9999), 0xffff_ffff);
        assert_eq!(prmt_selector(PermuteMode::EdgeClampLeft, 2), 0x3222);
    }

    proptest! {
        #[test]
        fn lop3_looks_every_bit_up(a: u32, b: u32, c: u32, table: u8) {
            let result = lop3(a, b, c, table);
            for bit in 0..32 {
                let index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1);
                prop_assert_eq!(result >> bit & 1, u32::from(table) >> index & 1);
            }
        }

        #[test]
        fn a_field_put_in_comes_out(a: u32, b: u32, start in 0u32..32, length in 0u32..=32) {
            let width = length.min(32 - start);
            let field = a & ((1u64 << width) - 1) as u32;
            prop_assert_eq!(bfe(bfi(a, b, start, length), start, width), field);
        }

        #[test]
        fn counts_agree_with_the_hosts(a: u32) {
            prop_assert_eq!(popc(a), a.count_ones());
        }
    }
}
