//! Single and double precision. PTX ISA, "Floating Point Instructions".

use super::prelude::*;
use crate::semantics::{Rounding, float32, float64};

entries! {
    // Without a rounding, `add`, `sub`, `mul` round to nearest.
    "add[.rn][.ftz][.sat].f32" FLOAT [Write(F32), Read(F32), Read(F32)] semantics!(float_binary; float32::add);
    "add[@rnd][.ftz][.sat].f32" FLOAT [Write(F32), Read(F32), Read(F32)] semantics!(directed; float32::add_rounded);
    "sub[.rn][.ftz][.sat].f32" FLOAT [Write(F32), Read(F32), Read(F32)]
        semantics!(float_binary; |a, b| float32::add(a, float32::neg(b)));
    "sub[@rnd][.ftz][.sat].f32" FLOAT [Write(F32), Read(F32), Read(F32)]
        semantics!(directed; |a, b, r| float32::add_rounded(a, float32::neg(b), r));
    "mul[.rn][.ftz][.sat].f32" FLOAT [Write(F32), Read(F32), Read(F32)] semantics!(float_binary; float32::mul);
    "mul[@rnd][.ftz][.sat].f32" FLOAT [Write(F32), Read(F32), Read(F32)] semantics!(directed; float32::mul_rounded);
    "fma.rn[.ftz][.sat].f32" FLOAT [Write(F32), Read(F32), Read(F32), Read(F32)]
        semantics!(float_ternary; float32::fma; float32::fma_host);
    "fma(@rnd)[.ftz][.sat].f32" FLOAT [Write(F32), Read(F32), Read(F32), Read(F32)] semantics!(directed3; float32::fma_rounded);
    "mad[.rn][.ftz][.sat].f32" FLOAT [Write(F32), Read(F32), Read(F32), Read(F32)]
        semantics!(float_ternary; float32::fma; float32::fma_host);
    "mad(@rnd)[.ftz][.sat].f32" FLOAT [Write(F32), Read(F32), Read(F32), Read(F32)] semantics!(directed3; float32::fma_rounded);
    "neg[.ftz].f32" FLOAT [Write(F32), Read(F32)] semantics!(float_unary; |a| canonical(float32::neg(a)));
    "abs[.ftz].f32" FLOAT [Write(F32), Read(F32)] semantics!(float_unary; |a| canonical(float32::abs(a)));
    "copysign.f32" INTEGER [Write(F32), Read(F32), Read(F32)] semantics!(binary; float32::copy_sign);
    "min[.ftz].f32" FLOAT [Write(F32), Read(F32), Read(F32)] semantics!(float_binary; |a, b| float32::min(a, b, false));
    "max[.ftz].f32" FLOAT [Write(F32), Read(F32), Read(F32)] semantics!(float_binary; |a, b| float32::max(a, b, false));
    "min[.ftz].NaN.f32" FLOAT [Write(F32), Read(F32), Read(F32)] semantics!(float_binary; |a, b| float32::min(a, b, true));
    "max[.ftz].NaN.f32" FLOAT [Write(F32), Read(F32), Read(F32)] semantics!(float_binary; |a, b| float32::max(a, b, true));
    "min[.ftz][.NaN].xorsign.abs.f32" FLOAT [Write(F32), Read(F32), Read(F32)] semantics!(xor_sign; float32::min);
    "max[.ftz][.NaN].xorsign.abs.f32" FLOAT [Write(F32), Read(F32), Read(F32)] semantics!(xor_sign; float32::max);
    "min[.ftz][.NaN][.abs].f32" FLOAT [Write(F32), Read(F32), Read(F32), Read(F32)] semantics!(extreme3; float32::min);
    "max[.ftz][.NaN][.abs].f32" FLOAT [Write(F32), Read(F32), Read(F32), Read(F32)] semantics!(extreme3; float32::max);
    "div(@rnd)[.ftz].f32" SPECIAL [Write(F32), Read(F32), Read(F32)] semantics!(directed; float32::div_rounded);
    "rcp(@rnd)[.ftz].f32" SPECIAL [Write(F32), Read(F32)]
        semantics!(directed1; |a, r| float32::div_rounded(0x3f80_0000, a, r));
    "sqrt(@rnd)[.ftz].f32" SPECIAL [Write(F32), Read(F32)] semantics!(directed1; float32::sqrt_rounded);

    // Two single precision numbers in a 64-bit register.
    "add[@rnd][.ftz].f32x2" FLOAT [Write(B64), Read(B64), Read(B64)] semantics!(pairs; |a, b, _, r| float32::add_rounded(a, b, r));
    "sub[@rnd][.ftz].f32x2" FLOAT [Write(B64), Read(B64), Read(B64)]
        semantics!(pairs; |a, b, _, r| float32::add_rounded(a, float32::neg(b), r));
    "mul[@rnd][.ftz].f32x2" FLOAT [Write(B64), Read(B64), Read(B64)] semantics!(pairs; |a, b, _, r| float32::mul_rounded(a, b, r));
    "fma(@rnd)[.ftz].f32x2" FLOAT [Write(B64), Read(B64), Read(B64), Read(B64)] semantics!(pairs; float32::fma_rounded);

    "add[@rnd].f64" DOUBLE [Write(F64), Read(F64), Read(F64)] semantics!(double_directed; float64::add_rounded);
    "sub[@rnd].f64" DOUBLE [Write(F64), Read(F64), Read(F64)]
        semantics!(double_directed; float64::sub_rounded);
    "mul[@rnd].f64" DOUBLE [Write(F64), Read(F64), Read(F64)] semantics!(double_directed; float64::mul_rounded);
    "fma.rn.f64" DOUBLE [Write(F64), Read(F64), Read(F64), Read(F64)]
        semantics!(double_ternary; float64::fma; float64::fma_host);
    "fma(@rnd).f64" DOUBLE [Write(F64), Read(F64), Read(F64), Read(F64)] semantics!(double_directed3; float64::fma_rounded);
    "mad.rn.f64" DOUBLE [Write(F64), Read(F64), Read(F64), Read(F64)]
        semantics!(double_ternary; float64::fma; float64::fma_host);
    "mad(@rnd).f64" DOUBLE [Write(F64), Read(F64), Read(F64), Read(F64)] semantics!(double_directed3; float64::fma_rounded);
    "neg.f64" DOUBLE [Write(F64), Read(F64)] semantics!(unary64; float64::negated);
    "abs.f64" DOUBLE [Write(F64), Read(F64)] semantics!(unary64; float64::magnitude);
    "copysign.f64" INTEGER [Write(F64), Read(F64), Read(F64)] semantics!(binary64; float64::copy_sign);
    "min.f64" DOUBLE [Write(F64), Read(F64), Read(F64)] semantics!(double_binary; float64::min);
    "max.f64" DOUBLE [Write(F64), Read(F64), Read(F64)] semantics!(double_binary; float64::max);
    "div(@rnd).f64" DOUBLE [Write(F64), Read(F64), Read(F64)] semantics!(double_directed; float64::div_rounded);
    "rcp(@rnd)[.ftz].f64" DOUBLE [Write(F64), Read(F64)]
        semantics!(double_directed1; |a, r| float64::div_rounded(0x3ff0_0000_0000_0000, a, r));
    "sqrt(@rnd).f64" DOUBLE [Write(F64), Read(F64)] semantics!(double_directed1; float64::sqrt_rounded);
}

/// NaNs as sums give them, which is how a GPU changes signs.
fn canonical(a: u32) -> u32 {
    float32::canonical(f32::from_bits(a))
}

fn rounding(i: &Instruction) -> Rounding {
    Modifiers(i.modifiers).rounding()
}

#[inline(always)]
fn directed1(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, Rounding) -> u32) {
    let rounding = rounding(i);
    float_unary(l, i, |a| f(a, rounding));
}

#[inline(always)]
fn directed(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32, Rounding) -> u32) {
    let rounding = rounding(i);
    float_binary(l, i, |a, b| f(a, b, rounding));
}

#[inline(always)]
fn directed3(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32, u32, Rounding) -> u32) {
    let rounding = rounding(i);
    float_ternary(l, i, |a, b, c| f(a, b, c, rounding));
}

#[inline(always)]
fn double_directed1(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, Rounding) -> u64) {
    let rounding = rounding(i);
    double_unary(l, i, |a| f(a, rounding));
}

#[inline(always)]
fn double_directed(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, u64, Rounding) -> u64) {
    match rounding(i) {
        // A constant lets the host's own operation become a vector loop.
        Rounding::Nearest => double_binary(l, i, |a, b| f(a, b, Rounding::Nearest)),
        other => double_binary(l, i, |a, b| f(a, b, other)),
    }
}

#[inline(always)]
fn double_directed3(
    l: &mut Lanes<'_>,
    i: &Instruction,
    f: impl Fn(u64, u64, u64, Rounding) -> u64,
) {
    let rounding = rounding(i);
    double_ternary(l, i, |a, b, c| f(a, b, c, rounding));
}

#[inline(always)]
fn xor_sign(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32, bool) -> u32) {
    let propagate = Modifiers(i.modifiers).has(Modifiers::NAN);
    float_binary(l, i, |a, b| {
        float32::with_xor_sign(f(float32::abs(a), float32::abs(b), propagate), a, b)
    });
}

/// Three-operand minimum and maximum; `.abs` takes magnitudes.
#[inline(always)]
fn extreme3(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32, bool) -> u32) {
    let modifiers = Modifiers(i.modifiers);
    let propagate = modifiers.has(Modifiers::NAN);
    let magnitude = modifiers.has(Modifiers::ABSOLUTE);
    let read = |x: u32| if magnitude { float32::abs(x) } else { x };
    float_ternary(l, i, |a, b, c| {
        f(f(read(a), read(b), propagate), read(c), propagate)
    });
}

/// A function of both halves of 64-bit registers.
#[inline(always)]
fn pairs(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32, u32, Rounding) -> u32) {
    let modifiers = Modifiers(i.modifiers);
    let clean = |x: u32| {
        if modifiers.flush() {
            float32::flush(x)
        } else {
            x
        }
    };
    let half = |x: u64, n: u32| clean((x >> (32 * n)) as u32);
    ternary64(l, i, |a, b, c| {
        let one = |n: u32| clean(f(half(a, n), half(b, n), half(c, n), modifiers.rounding()));
        u64::from(one(0)) | u64::from(one(1)) << 32
    });
}
