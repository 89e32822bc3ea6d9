//! Integer arithmetic. PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer
//! Arithmetic Instructions".

use super::prelude::*;
use crate::semantics::integer as op;

entries! {
    // Sums. Upper halves of 16-bit registers are undefined, so wrapping needs no care.
    "add(.s32.u32)" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::add);
    "add(.s16.u16)" INTEGER [Write(B16), Read(B16), Read(B16)] semantics!(binary; op::add);
    "add(.s64.u64)" INTEGER [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::add64);
    "add.sat.s32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::add_saturating);
    "add(.s16x2.u16x2)" INTEGER [Write(B32), Read(B32), Read(B32)]
        semantics!(binary; |a, b| pairs(a, b, |x, y| x.wrapping_add(y)));
    "sub(.s32.u32)" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::sub);
    "sub(.s16.u16)" INTEGER [Write(B16), Read(B16), Read(B16)] semantics!(binary; op::sub);
    "sub(.s64.u64)" INTEGER [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::sub64);
    "sub(.s16x2.u16x2)" INTEGER [Write(B32), Read(B32), Read(B32)]
        semantics!(binary; |a, b| pairs(a, b, |x, y| x.wrapping_sub(y)));
    "sub.sat.s32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::sub_saturating);

    // Products.
    "mul.lo(.s32.u32)" MULTIPLY [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::mul_low);
    "mul.lo(.s16.u16)" MULTIPLY [Write(B16), Read(B16), Read(B16)] semantics!(binary; op::mul_low);
    "mul.lo(.s64.u64)" WIDE [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::mul64_low);
    "mul.hi.u32" WIDE [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::mul_high);
    "mul.hi.s32" WIDE [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::mul_high_signed);
    "mul.hi.u64" WIDE [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::mul64_high);
    "mul.hi.s64" WIDE [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::mul64_high_signed);
    "mul.hi.u16" MULTIPLY [Write(B16), Read(B16), Read(B16)]
        semantics!(binary; |a, b| (op::low16(a) * op::low16(b)) >> 16);
    "mul.hi.s16" MULTIPLY [Write(B16), Read(B16), Read(B16)]
        semantics!(binary; |a, b| op::mul_low(op::low16_signed(a), op::low16_signed(b)) >> 16);
    "mul.wide.u32" WIDE [Write(B64), Read(B32), Read(B32)] semantics!(binary_wide; op::mul_wide);
    "mul.wide.s32" WIDE [Write(B64), Read(B32), Read(B32)] semantics!(binary_wide; op::mul_wide_signed);
    "mul.wide.u16" MULTIPLY [Write(B32), Read(B16), Read(B16)]
        semantics!(binary; |a, b| op::low16(a) * op::low16(b));
    "mul.wide.s16" MULTIPLY [Write(B32), Read(B16), Read(B16)]
        semantics!(binary; |a, b| op::mul_low(op::low16_signed(a), op::low16_signed(b)));
    "mul24.lo.u32" MULTIPLY [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::mul24_low);
    "mul24.lo.s32" MULTIPLY [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::mul24_low_signed);
    "mul24.hi.u32" MULTIPLY [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::mul24_high);
    "mul24.hi.s32" MULTIPLY [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::mul24_high_signed);

    // Products and sums.
    "mad.lo(.s32.u32)" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(ternary; op::mad_low);
    "mad.lo(.s16.u16)" MULTIPLY [Write(B16), Read(B16), Read(B16), Read(B16)] semantics!(ternary; op::mad_low);
    "mad.lo(.s64.u64)" WIDE [Write(B64), Read(B64), Read(B64), Read(B64)]
        semantics!(ternary64; |a, b, c| op::mul64_low(a, b).wrapping_add(c));
    "mad.hi.u16" MULTIPLY [Write(B16), Read(B16), Read(B16), Read(B16)]
        semantics!(ternary; |a, b, c| ((op::low16(a) * op::low16(b)) >> 16).wrapping_add(c));
    "mad.hi.s16" MULTIPLY [Write(B16), Read(B16), Read(B16), Read(B16)]
        semantics!(ternary; |a, b, c| (op::mul_low(op::low16_signed(a), op::low16_signed(b)) >> 16).wrapping_add(c));
    "mad.hi.u32" WIDE [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::mul_high(a, b).wrapping_add(c));
    "mad.hi.s32" WIDE [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::mul_high_signed(a, b).wrapping_add(c));
    "mad.hi.sat.s32" WIDE [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::add_saturating(op::mul_high_signed(a, b), c));
    "mad.hi.u64" WIDE [Write(B64), Read(B64), Read(B64), Read(B64)]
        semantics!(ternary64; |a, b, c| op::mul64_high(a, b).wrapping_add(c));
    "mad.hi.s64" WIDE [Write(B64), Read(B64), Read(B64), Read(B64)]
        semantics!(ternary64; |a, b, c| op::mul64_high_signed(a, b).wrapping_add(c));
    "mad.wide.u32" WIDE [Write(B64), Read(B32), Read(B32), Read(B64)] semantics!(ternary_wide; op::mad_wide);
    "mad.wide.s32" WIDE [Write(B64), Read(B32), Read(B32), Read(B64)] semantics!(ternary_wide; op::mad_wide_signed);
    "mad.wide.u16" MULTIPLY [Write(B32), Read(B16), Read(B16), Read(B32)]
        semantics!(ternary; |a, b, c| op::mad_low(op::low16(a), op::low16(b), c));
    "mad.wide.s16" MULTIPLY [Write(B32), Read(B16), Read(B16), Read(B32)]
        semantics!(ternary; |a, b, c| op::mad_low(op::low16_signed(a), op::low16_signed(b), c));
    "mad24.lo.u32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::mul24_low(a, b).wrapping_add(c));
    "mad24.lo.s32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::mul24_low_signed(a, b).wrapping_add(c));
    "mad24.hi.u32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::mul24_high(a, b).wrapping_add(c));
    "mad24.hi.s32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::mul24_high_signed(a, b).wrapping_add(c));
    "mad24.hi.sat.s32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::add_saturating(op::mul24_high_signed(a, b), c));

    // Quotients.
    "div.u32" WIDE [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::div);
    "div.s32" WIDE [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::div_signed);
    "div.u64" WIDE [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::div64);
    "div.s64" WIDE [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::div64_signed);
    "div.u16" WIDE [Write(B16), Read(B16), Read(B16)]
        semantics!(binary; |a, b| op::div(op::low16(a), op::low16(b)));
    "div.s16" WIDE [Write(B16), Read(B16), Read(B16)]
        semantics!(binary; |a, b| op::div_signed(op::low16_signed(a), op::low16_signed(b)));
    "rem.u32" WIDE [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::rem);
    "rem.s32" WIDE [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::rem_signed);
    "rem.u64" WIDE [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::rem64);
    "rem.s64" WIDE [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::rem64_signed);
    "rem.u16" WIDE [Write(B16), Read(B16), Read(B16)]
        semantics!(binary; |a, b| op::rem(op::low16(a), op::low16(b)));
    "rem.s16" WIDE [Write(B16), Read(B16), Read(B16)]
        semantics!(binary; |a, b| op::rem_signed(op::low16_signed(a), op::low16_signed(b)));

    // Signs and extremes.
    "abs.s32" INTEGER [Write(B32), Read(B32)] semantics!(unary; op::abs);
    "abs.s16" INTEGER [Write(B16), Read(B16)] semantics!(unary; |a| op::abs(op::low16_signed(a)));
    "abs.s64" INTEGER [Write(B64), Read(B64)] semantics!(unary64; op::abs64);
    "neg.s32" INTEGER [Write(B32), Read(B32)] semantics!(unary; op::neg);
    "neg.s16" INTEGER [Write(B16), Read(B16)] semantics!(unary; op::neg);
    "neg.s64" INTEGER [Write(B64), Read(B64)] semantics!(unary64; op::neg64);
    "min.u32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::min);
    "min.s32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::min_signed);
    "min.relu.s32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; min_relu);
    "min.s32.relu" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; min_relu);
    "min.u64" INTEGER [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::min64);
    "min.s64" INTEGER [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::min64_signed);
    "min.u16" INTEGER [Write(B16), Read(B16), Read(B16)] semantics!(binary; op::min16);
    "min.s16" INTEGER [Write(B16), Read(B16), Read(B16)] semantics!(binary; op::min16_signed);
    "min.u16x2" INTEGER [Write(B32), Read(B32), Read(B32)]
        semantics!(binary; |a, b| pairs(a, b, |x, y| x.min(y)));
    "min.s16x2" INTEGER [Write(B32), Read(B32), Read(B32)]
        semantics!(binary; |a, b| pairs(a, b, |x, y| (x as i16).min(y as i16) as u16));
    "min.relu.s16x2" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; min_relu_pairs);
    "min.s16x2.relu" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; min_relu_pairs);
    "max.u32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::max);
    "max.s32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::max_signed);
    "max.relu.s32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; max_relu);
    "max.s32.relu" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; max_relu);
    "max.u64" INTEGER [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::max64);
    "max.s64" INTEGER [Write(B64), Read(B64), Read(B64)] semantics!(binary64; op::max64_signed);
    "max.u16" INTEGER [Write(B16), Read(B16), Read(B16)] semantics!(binary; op::max16);
    "max.s16" INTEGER [Write(B16), Read(B16), Read(B16)] semantics!(binary; op::max16_signed);
    "max.u16x2" INTEGER [Write(B32), Read(B32), Read(B32)]
        semantics!(binary; |a, b| pairs(a, b, |x, y| x.max(y)));
    "max.s16x2" INTEGER [Write(B32), Read(B32), Read(B32)]
        semantics!(binary; |a, b| pairs(a, b, |x, y| (x as i16).max(y as i16) as u16));
    "max.relu.s16x2" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; max_relu_pairs);
    "max.s16x2.relu" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; max_relu_pairs);

    // Sums of differences and products.
    "sad.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(ternary; op::sad);
    "sad.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(ternary; op::sad_signed);
    "sad.u64" INTEGER [Write(B64), Read(B64), Read(B64), Read(B64)] semantics!(ternary64; op::sad64);
    "sad.s64" INTEGER [Write(B64), Read(B64), Read(B64), Read(B64)] semantics!(ternary64; op::sad64_signed);
    "sad.u16" INTEGER [Write(B16), Read(B16), Read(B16), Read(B16)]
        semantics!(ternary; |a, b, c| op::sad(op::low16(a), op::low16(b), c));
    "sad.s16" INTEGER [Write(B16), Read(B16), Read(B16), Read(B16)]
        semantics!(ternary; |a, b, c| op::sad_signed(op::low16_signed(a), op::low16_signed(b), c));
    "dp4a.u32.u32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp4a(a, b, c, false, false));
    "dp4a.s32.u32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp4a(a, b, c, true, false));
    "dp4a.u32.s32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp4a(a, b, c, false, true));
    "dp4a.s32.s32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp4a(a, b, c, true, true));
    "dp2a.lo.u32.u32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp2a(a, b, c, false, false, false));
    "dp2a.lo.s32.u32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp2a(a, b, c, true, false, false));
    "dp2a.lo.u32.s32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp2a(a, b, c, false, true, false));
    "dp2a.lo.s32.s32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp2a(a, b, c, true, true, false));
    "dp2a.hi.u32.u32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp2a(a, b, c, false, false, true));
    "dp2a.hi.s32.u32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp2a(a, b, c, true, false, true));
    "dp2a.hi.u32.s32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp2a(a, b, c, false, true, true));
    "dp2a.hi.s32.s32" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::dp2a(a, b, c, true, true, true));

    // Extended precision: the carry flag is a predicate.
    "add.cc(.s32.u32)" INTEGER [Write(B32), Read(B32), Read(B32), CarryOut]
        semantics!(carry; |a, b, _| op::add_with_carry(a, b, false));
    "addc(.s32.u32)" INTEGER [Write(B32), Read(B32), Read(B32), CarryIn]
        semantics!(carry; op::add_with_carry);
    "addc.cc(.s32.u32)" INTEGER [Write(B32), Read(B32), Read(B32), CarryIn, CarryOut]
        semantics!(carry; op::add_with_carry);
    "sub.cc(.s32.u32)" INTEGER [Write(B32), Read(B32), Read(B32), CarryOut]
        semantics!(carry; |a, b, _| difference(a, b, true));
    "subc(.s32.u32)" INTEGER [Write(B32), Read(B32), Read(B32), CarryIn] semantics!(carry; difference);
    "subc.cc(.s32.u32)" INTEGER [Write(B32), Read(B32), Read(B32), CarryIn, CarryOut]
        semantics!(carry; difference);
    "add.cc(.s64.u64)" INTEGER [Write(B64), Read(B64), Read(B64), CarryOut]
        semantics!(carry64; |a, b, _| op::add64_with_carry(a, b, false));
    "addc(.s64.u64)" INTEGER [Write(B64), Read(B64), Read(B64), CarryIn]
        semantics!(carry64; op::add64_with_carry);
    "addc.cc(.s64.u64)" INTEGER [Write(B64), Read(B64), Read(B64), CarryIn, CarryOut]
        semantics!(carry64; op::add64_with_carry);
    "sub.cc(.s64.u64)" INTEGER [Write(B64), Read(B64), Read(B64), CarryOut]
        semantics!(carry64; |a, b, _| difference64(a, b, true));
    "subc(.s64.u64)" INTEGER [Write(B64), Read(B64), Read(B64), CarryIn] semantics!(carry64; difference64);
    "subc.cc(.s64.u64)" INTEGER [Write(B64), Read(B64), Read(B64), CarryIn, CarryOut]
        semantics!(carry64; difference64);
    "mad.lo.cc(.s32.u32)" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32), CarryOut]
        semantics!(mad_carry; |a, b, c, _| op::add_with_carry(op::mul_low(a, b), c, false));
    "madc.lo(.s32.u32)" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32), CarryIn]
        semantics!(mad_carry; |a, b, c, carry| op::add_with_carry(op::mul_low(a, b), c, carry));
    "madc.lo.cc(.s32.u32)" MULTIPLY [Write(B32), Read(B32), Read(B32), Read(B32), CarryIn, CarryOut]
        semantics!(mad_carry; |a, b, c, carry| op::add_with_carry(op::mul_low(a, b), c, carry));
    "mad.hi.cc.u32" WIDE [Write(B32), Read(B32), Read(B32), Read(B32), CarryOut]
        semantics!(mad_carry; |a, b, c, _| op::add_with_carry(op::mul_high(a, b), c, false));
    "madc.hi.u32" WIDE [Write(B32), Read(B32), Read(B32), Read(B32), CarryIn]
        semantics!(mad_carry; |a, b, c, carry| op::add_with_carry(op::mul_high(a, b), c, carry));
    "madc.hi.cc.u32" WIDE [Write(B32), Read(B32), Read(B32), Read(B32), CarryIn, CarryOut]
        semantics!(mad_carry; |a, b, c, carry| op::add_with_carry(op::mul_high(a, b), c, carry));
    "mad.hi.cc.s32" WIDE [Write(B32), Read(B32), Read(B32), Read(B32), CarryOut]
        semantics!(mad_carry; |a, b, c, _| op::add_with_carry(op::mul_high_signed(a, b), c, false));
    "madc.hi.s32" WIDE [Write(B32), Read(B32), Read(B32), Read(B32), CarryIn]
        semantics!(mad_carry; |a, b, c, carry| op::add_with_carry(op::mul_high_signed(a, b), c, carry));
    "madc.hi.cc.s32" WIDE [Write(B32), Read(B32), Read(B32), Read(B32), CarryIn, CarryOut]
        semantics!(mad_carry; |a, b, c, carry| op::add_with_carry(op::mul_high_signed(a, b), c, carry));
    "mad.lo.cc(.s64.u64)" WIDE [Write(B64), Read(B64), Read(B64), Read(B64), CarryOut]
        semantics!(mad_carry64; |a, b, c, _| op::add64_with_carry(op::mul64_low(a, b), c, false));
    "madc.lo(.s64.u64)" WIDE [Write(B64), Read(B64), Read(B64), Read(B64), CarryIn]
        semantics!(mad_carry64; |a, b, c, carry| op::add64_with_carry(op::mul64_low(a, b), c, carry));
    "madc.lo.cc(.s64.u64)" WIDE [Write(B64), Read(B64), Read(B64), Read(B64), CarryIn, CarryOut]
        semantics!(mad_carry64; |a, b, c, carry| op::add64_with_carry(op::mul64_low(a, b), c, carry));
    "mad.hi.cc.u64" WIDE [Write(B64), Read(B64), Read(B64), Read(B64), CarryOut]
        semantics!(mad_carry64; |a, b, c, _| op::add64_with_carry(op::mul64_high(a, b), c, false));
    "madc.hi.u64" WIDE [Write(B64), Read(B64), Read(B64), Read(B64), CarryIn]
        semantics!(mad_carry64; |a, b, c, carry| op::add64_with_carry(op::mul64_high(a, b), c, carry));
    "madc.hi.cc.u64" WIDE [Write(B64), Read(B64), Read(B64), Read(B64), CarryIn, CarryOut]
        semantics!(mad_carry64; |a, b, c, carry| op::add64_with_carry(op::mul64_high(a, b), c, carry));
    "mad.hi.cc.s64" WIDE [Write(B64), Read(B64), Read(B64), Read(B64), CarryOut]
        semantics!(mad_carry64; |a, b, c, _| op::add64_with_carry(op::mul64_high_signed(a, b), c, false));
    "madc.hi.s64" WIDE [Write(B64), Read(B64), Read(B64), Read(B64), CarryIn]
        semantics!(mad_carry64; |a, b, c, carry| op::add64_with_carry(op::mul64_high_signed(a, b), c, carry));
    "madc.hi.cc.s64" WIDE [Write(B64), Read(B64), Read(B64), Read(B64), CarryIn, CarryOut]
        semantics!(mad_carry64; |a, b, c, carry| op::add64_with_carry(op::mul64_high_signed(a, b), c, carry));
}

/// A function of each half of two words.
#[inline(always)]
fn pairs(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    let low = f(a as u16, b as u16);
    let high = f((a >> 16) as u16, (b >> 16) as u16);
    u32::from(low) | u32::from(high) << 16
}

fn min_relu(a: u32, b: u32) -> u32 {
    op::max_signed(op::min_signed(a, b), 0)
}

fn max_relu(a: u32, b: u32) -> u32 {
    op::max_signed(op::max_signed(a, b), 0)
}

fn min_relu_pairs(a: u32, b: u32) -> u32 {
    pairs(a, b, |x, y| (x as i16).min(y as i16).max(0) as u16)
}

fn max_relu_pairs(a: u32, b: u32) -> u32 {
    pairs(a, b, |x, y| (x as i16).max(y as i16).max(0) as u16)
}

/// `a - b` as hardware makes it, `a + !b + carry`: the flag holds when nothing was borrowed, as
/// code that reads it with `addc` after `sub.cc` relies on.
#[inline(always)]
fn difference(a: u32, b: u32, carry: bool) -> (u32, bool) {
    op::add_with_carry(a, !b, carry)
}

/// 64-bit difference.
#[inline(always)]
fn difference64(a: u64, b: u64, carry: bool) -> (u64, bool) {
    op::add64_with_carry(a, !b, carry)
}

#[inline(always)]
fn carry(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32, bool) -> (u32, bool)) {
    mad_carry(l, i, |a, b, _, carry| f(a, b, carry));
}

#[inline(always)]
fn mad_carry(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32, u32, bool) -> (u32, bool)) {
    let [a, b, c, _] = i.sources.map(|source| l.integer(source));
    let carry = l.predicate(i.predicates[0]);
    let mut result = crate::WarpRegister::ZERO;
    let mut out = 0;
    for n in 0..crate::warp_register::LANES {
        let (value, overflow) = f(a.0[n], b.0[n], c.0[n], carry >> n & 1 == 1);
        result.0[n] = value;
        out |= u32::from(overflow) << n;
    }
    l.write(i.destination, 0, &result);
    l.set_predicate(i.predicate_destinations[0], out);
}

#[inline(always)]
fn carry64(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, u64, bool) -> (u64, bool)) {
    mad_carry64(l, i, |a, b, _, carry| f(a, b, carry));
}

#[inline(always)]
fn mad_carry64(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, u64, u64, bool) -> (u64, bool)) {
    let [a, b, c, _] = i.sources.map(|source| l.integer64(source));
    let carry = l.predicate(i.predicates[0]);
    let mut result = [0; crate::warp_register::LANES];
    let mut out = 0;
    for n in 0..crate::warp_register::LANES {
        let (value, overflow) = f(a[n], b[n], c[n], carry >> n & 1 == 1);
        result[n] = value;
        out |= u32::from(overflow) << n;
    }
    l.write64(i.destination, &result);
    l.set_predicate(i.predicate_destinations[0], out);
}
