//! Approximations of the special function unit. PTX ISA, `rcp`, `sqrt`, `rsqrt`, `sin`, `cos`,
//! `lg2`, `ex2`, `tanh`.

use super::prelude::*;
use crate::semantics::transcendental as op;

entries! {
    "rcp.approx[.ftz].f32" SPECIAL [Write(F32), Read(F32)] semantics!(float_unary; op::reciprocal);
    "sqrt.approx[.ftz].f32" SPECIAL [Write(F32), Read(F32)] semantics!(float_unary; op::square_root);
    "rsqrt.approx[.ftz].f32" SPECIAL [Write(F32), Read(F32)] semantics!(float_unary; op::reciprocal_square_root);
    "sin.approx[.ftz].f32" SPECIAL [Write(F32), Read(F32)] semantics!(angle; op::sine);
    "cos.approx[.ftz].f32" SPECIAL [Write(F32), Read(F32)] semantics!(angle; op::cosine);
    "lg2.approx[.ftz].f32" SPECIAL [Write(F32), Read(F32)] semantics!(float_unary; op::logarithm);
    "ex2.approx[.ftz].f32" SPECIAL [Write(F32), Read(F32)] semantics!(float_unary; op::exponential);
    "tanh.approx.f32" SPECIAL [Write(F32), Read(F32)] semantics!(float_unary; op::hyperbolic_tangent);
    "rcp.approx.ftz.f64" SPECIAL_DOUBLE [Write(F64), Read(F64)] semantics!(upper; op::reciprocal_high);
    "rsqrt.approx.ftz.f64" SPECIAL_DOUBLE [Write(F64), Read(F64)] semantics!(upper; op::reciprocal_square_root_high);
    "rsqrt.approx.f64" SPECIAL_DOUBLE [Write(F64), Read(F64)] semantics!(double_unary; op::reciprocal_square_root64);
}

#[inline(always)]
fn angle(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, bool) -> u32) {
    let flush = Modifiers(i.modifiers).flush();
    float_unary(l, i, |a| f(a, flush));
}

/// Works on upper words; lower words are zero.
#[inline(always)]
fn upper(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32) -> u32) {
    double_unary(l, i, |a| u64::from(f((a >> 32) as u32)) << 32);
}
