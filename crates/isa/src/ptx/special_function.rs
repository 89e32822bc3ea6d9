//! Approximations of the special function unit. PTX ISA, `rcp`, `sqrt`, `rsqrt`, `sin`, `cos`,
//! `lg2`, `ex2`, `tanh`.

use super::prelude::*;
use crate::{
    WarpRegister, operands, operands64,
    semantics::{
        float64,
        transcendental::{self as unit, ptx},
    },
};

entries! {
    "rcp.approx.f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; ptx::reciprocal_full);
    "rcp.approx.ftz.f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; unit::reciprocal);
    "sqrt.approx.f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; ptx::square_root_full);
    "sqrt.approx.ftz.f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; unit::square_root);
    "rsqrt.approx.f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; ptx::reciprocal_square_root_full);
    "rsqrt.approx.ftz.f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; unit::reciprocal_square_root);
    "sin.approx[.ftz].f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; ptx::sine);
    "cos.approx[.ftz].f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; ptx::cosine);
    "lg2.approx.f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; ptx::logarithm_full);
    "lg2.approx.ftz.f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; unit::logarithm);
    "ex2.approx.f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; ptx::exponential_full);
    "ex2.approx.ftz.f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; unit::exponential);
    "tanh.approx.f32" SPECIAL [Write(F32), Read(F32)] semantics!(rows; unit::hyperbolic_tangent);
    "div.approx.f32" SPECIAL [Write(F32), Read(F32), Read(F32)] semantics!(row_pairs; ptx::divide);
    "div.approx.ftz.f32" SPECIAL [Write(F32), Read(F32), Read(F32)] semantics!(row_pairs; ptx::divide_flushed);
    "div.full.f32" SPECIAL [Write(F32), Read(F32), Read(F32)] semantics!(row_pairs; ptx::divide_full);
    "div.full.ftz.f32" SPECIAL [Write(F32), Read(F32), Read(F32)] semantics!(row_pairs; ptx::divide_full_flushed);
    "rcp.approx.ftz.f64" SPECIAL_DOUBLE [Write(F64), Read(F64)] semantics!(upper; unit::reciprocal_high);
    "rsqrt.approx.ftz.f64" SPECIAL_DOUBLE [Write(F64), Read(F64)] semantics!(upper; unit::reciprocal_square_root_high);
    "rsqrt.approx.f64" SPECIAL_DOUBLE [Write(F64), Read(F64)]
        semantics!(double_unary; |a| ptx::reciprocal_square_root64(a, float64::fma); |a| ptx::reciprocal_square_root64(a, float64::fma_host));
}

/// A function of all lanes at once.
#[inline(always)]
fn rows(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(&[u32; 32]) -> [u32; 32]) {
    operands!(l, i; a = float_at 0);
    let row = WarpRegister(f(&a.0));
    l.write(i.destination, 0, &row);
}

/// A function of all lanes of two operands at once.
#[inline(always)]
fn row_pairs(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(&[u32; 32], &[u32; 32]) -> [u32; 32]) {
    operands!(l, i; a = float_at 0, b = float_at 1);
    let row = WarpRegister(f(&a.0, &b.0));
    l.write(i.destination, 0, &row);
}

/// Works on upper words; lower words are zero.
#[inline(always)]
fn upper(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(&[u32; 32]) -> [u32; 32]) {
    operands64!(l, i; a = float64_at 0);
    let row = f(&map_lanes(|n| (a.at(n) >> 32) as u32).0);
    l.write64(i.destination, &map_lanes64(|n| u64::from(row[n]) << 32));
}
