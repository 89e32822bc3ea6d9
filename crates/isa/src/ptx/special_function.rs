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

/// A function of all lanes at once. Named and not passed on, so that it becomes part of what is
/// compiled for the host's vectors.
macro_rules! rows {
    ($function:path) => {
        semantics!(
            (|l: &mut Lanes<'_>, i: &Instruction| {
                operands!(l, i; a = float_at 0);
                let row = WarpRegister($function(&a.0));
                l.write(i.destination, 0, &row);
            })
        )
    };
}

/// A function of all lanes of two operands at once.
macro_rules! row_pairs {
    ($function:path) => {
        semantics!(
            (|l: &mut Lanes<'_>, i: &Instruction| {
                operands!(l, i; a = float_at 0, b = float_at 1);
                let row = WarpRegister($function(&a.0, &b.0));
                l.write(i.destination, 0, &row);
            })
        )
    };
}

/// A function of upper words; lower words are zero.
macro_rules! upper {
    ($function:path) => {
        semantics!(
            (|l: &mut Lanes<'_>, i: &Instruction| {
                operands64!(l, i; a = float64_at 0);
                let row = $function(&map_lanes(|n| (a.at(n) >> 32) as u32).0);
                l.write64(i.destination, &map_lanes64(|n| u64::from(row[n]) << 32));
            })
        )
    };
}

entries! {
    "rcp.approx.f32" SPECIAL [Write(F32), Read(F32)] rows!(ptx::reciprocal_full);
    "rcp.approx.ftz.f32" SPECIAL [Write(F32), Read(F32)] rows!(unit::reciprocal);
    "sqrt.approx.f32" SPECIAL [Write(F32), Read(F32)] rows!(ptx::square_root_full);
    "sqrt.approx.ftz.f32" SPECIAL [Write(F32), Read(F32)] rows!(unit::square_root);
    "rsqrt.approx.f32" SPECIAL [Write(F32), Read(F32)] rows!(ptx::reciprocal_square_root_full);
    "rsqrt.approx.ftz.f32" SPECIAL [Write(F32), Read(F32)] rows!(unit::reciprocal_square_root);
    "sin.approx[.ftz].f32" SPECIAL [Write(F32), Read(F32)] rows!(ptx::sine);
    "cos.approx[.ftz].f32" SPECIAL [Write(F32), Read(F32)] rows!(ptx::cosine);
    "lg2.approx.f32" SPECIAL [Write(F32), Read(F32)] rows!(ptx::logarithm_full);
    "lg2.approx.ftz.f32" SPECIAL [Write(F32), Read(F32)] rows!(unit::logarithm);
    "ex2.approx.f32" SPECIAL [Write(F32), Read(F32)] rows!(ptx::exponential_full);
    "ex2.approx.ftz.f32" SPECIAL [Write(F32), Read(F32)] rows!(unit::exponential);
    "tanh.approx.f32" SPECIAL [Write(F32), Read(F32)] rows!(unit::hyperbolic_tangent);
    "div.approx.f32" SPECIAL [Write(F32), Read(F32), Read(F32)] row_pairs!(ptx::divide);
    "div.approx.ftz.f32" SPECIAL [Write(F32), Read(F32), Read(F32)] row_pairs!(ptx::divide_flushed);
    "div.full.f32" SPECIAL [Write(F32), Read(F32), Read(F32)] row_pairs!(ptx::divide_full);
    "div.full.ftz.f32" SPECIAL [Write(F32), Read(F32), Read(F32)] row_pairs!(ptx::divide_full_flushed);
    "rcp.approx.ftz.f64" SPECIAL_DOUBLE [Write(F64), Read(F64)] upper!(unit::reciprocal_high);
    "rsqrt.approx.ftz.f64" SPECIAL_DOUBLE [Write(F64), Read(F64)] upper!(unit::reciprocal_square_root_high);
    "rsqrt.approx.f64" SPECIAL_DOUBLE [Write(F64), Read(F64)]
        semantics!(double_unary; |a| ptx::reciprocal_square_root64(a, float64::fma); |a| ptx::reciprocal_square_root64(a, float64::fma_host));
}
