//! Half precision and bfloat16, single and packed. PTX ISA, "Half Precision Floating Point
//! Instructions".
//!
//! A single value is the low half of its register; computing the undefined high half as well
//! costs nothing, so that both forms share their semantics.

use super::prelude::*;
use crate::{
    WarpRegister,
    semantics::{
        float16::{Kind, pack, unpack},
        transcendental as unit,
    },
};

const H: Kind = Kind::Half;
const B: Kind = Kind::Brain;

/// A function of the special function unit.
macro_rules! special {
    ($kind:expr, $function:path) => {
        semantics!(
            (|l: &mut Lanes<'_>, i: &Instruction| {
                let result = $function(&widened(l, i, $kind, 0));
                let row = map_lanes(|n| u32::from(unit::narrow($kind, result[n])));
                l.write(i.destination, 0, &row);
            })
        )
    };
}

/// The same of both halves.
macro_rules! special_pair {
    ($kind:expr, $function:path) => {
        semantics!(
            (|l: &mut Lanes<'_>, i: &Instruction| {
                let low = $function(&widened(l, i, $kind, 0));
                let high = $function(&widened(l, i, $kind, 1));
                let row =
                    map_lanes(|n| pack([low[n], high[n]].map(|half| unit::narrow($kind, half))));
                l.write(i.destination, 0, &row);
            })
        )
    };
}

entries! {
    "add[.rn][.ftz][.sat].f16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(two; (H, Kind::add));
    "add[.rn][.ftz][.sat].f16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(two; (H, Kind::add));
    "add[.rn].bf16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(two; (B, Kind::add));
    "add[.rn].bf16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(two; (B, Kind::add));
    "sub[.rn][.ftz][.sat].f16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(two; (H, subtract));
    "sub[.rn][.ftz][.sat].f16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(two; (H, subtract));
    "sub[.rn].bf16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(two; (B, subtract));
    "sub[.rn].bf16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(two; (B, subtract));
    "mul[.rn][.ftz][.sat].f16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(two; (H, Kind::mul));
    "mul[.rn][.ftz][.sat].f16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(two; (H, Kind::mul));
    "mul[.rn].bf16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(two; (B, Kind::mul));
    "mul[.rn].bf16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(two; (B, Kind::mul));
    "fma.rn[.ftz][.sat.relu].f16" HALF [Write(F16), Read(F16), Read(F16), Read(F16)] semantics!(three; (H, Kind::fma));
    "fma.rn[.ftz][.sat.relu].f16x2" HALF [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(three; (H, Kind::fma));
    "fma.rn[.relu].bf16" HALF [Write(F16), Read(F16), Read(F16), Read(F16)] semantics!(three; (B, Kind::fma));
    "fma.rn[.relu].bf16x2" HALF [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(three; (B, Kind::fma));
    "fma.rn.oob[.relu].f16" HALF [Write(F16), Read(F16), Read(F16), Read(F16)] semantics!(three; (H, Kind::fma_in_bounds));
    "fma.rn.oob[.relu].f16x2" HALF [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(three; (H, Kind::fma_in_bounds));
    "fma.rn.oob[.relu].bf16" HALF [Write(F16), Read(F16), Read(F16), Read(F16)] semantics!(three; (B, Kind::fma_in_bounds));
    "fma.rn.oob[.relu].bf16x2" HALF [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(three; (B, Kind::fma_in_bounds));
    "neg[.ftz].f16" HALF [Write(F16), Read(F16)] semantics!(one; (H, negate));
    "neg[.ftz].f16x2" HALF [Write(B32), Read(B32)] semantics!(one; (H, negate));
    "neg.bf16" HALF [Write(F16), Read(F16)] semantics!(one; (B, negate));
    "neg.bf16x2" HALF [Write(B32), Read(B32)] semantics!(one; (B, negate));
    "abs[.ftz].f16" HALF [Write(F16), Read(F16)] semantics!(one; (H, magnitude));
    "abs[.ftz].f16x2" HALF [Write(B32), Read(B32)] semantics!(one; (H, magnitude));
    "abs.bf16" HALF [Write(F16), Read(F16)] semantics!(one; (B, magnitude));
    "abs.bf16x2" HALF [Write(B32), Read(B32)] semantics!(one; (B, magnitude));
    "min[.ftz][.NaN].f16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(extreme; (H, Kind::min));
    "min[.ftz][.NaN].f16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(extreme; (H, Kind::min));
    "min[.NaN].bf16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(extreme; (B, Kind::min));
    "min[.NaN].bf16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(extreme; (B, Kind::min));
    "min[.ftz][.NaN].xorsign.abs.f16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(extreme; (H, Kind::min));
    "min[.ftz][.NaN].xorsign.abs.f16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(extreme; (H, Kind::min));
    "min[.NaN].xorsign.abs.bf16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(extreme; (B, Kind::min));
    "min[.NaN].xorsign.abs.bf16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(extreme; (B, Kind::min));
    "max[.ftz][.NaN].f16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(extreme; (H, Kind::max));
    "max[.ftz][.NaN].f16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(extreme; (H, Kind::max));
    "max[.NaN].bf16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(extreme; (B, Kind::max));
    "max[.NaN].bf16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(extreme; (B, Kind::max));
    "max[.ftz][.NaN].xorsign.abs.f16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(extreme; (H, Kind::max));
    "max[.ftz][.NaN].xorsign.abs.f16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(extreme; (H, Kind::max));
    "max[.NaN].xorsign.abs.bf16" HALF [Write(F16), Read(F16), Read(F16)] semantics!(extreme; (B, Kind::max));
    "max[.NaN].xorsign.abs.bf16x2" HALF [Write(B32), Read(B32), Read(B32)] semantics!(extreme; (B, Kind::max));
    "ex2.approx.f16" SPECIAL [Write(F16), Read(F16)] special!(H, unit::exponential);
    "ex2.approx.f16x2" SPECIAL [Write(B32), Read(B32)] special_pair!(H, unit::exponential);
    "ex2.approx.ftz.bf16" SPECIAL [Write(F16), Read(F16)] special!(B, unit::exponential);
    "ex2.approx.ftz.bf16x2" SPECIAL [Write(B32), Read(B32)] special_pair!(B, unit::exponential);
    "tanh.approx.f16" SPECIAL [Write(F16), Read(F16)] special!(H, unit::hyperbolic_tangent);
    "tanh.approx.f16x2" SPECIAL [Write(B32), Read(B32)] special_pair!(H, unit::hyperbolic_tangent);
    "tanh.approx.bf16" SPECIAL [Write(F16), Read(F16)] special!(B, unit::hyperbolic_tangent);
    "tanh.approx.bf16x2" SPECIAL [Write(B32), Read(B32)] special_pair!(B, unit::hyperbolic_tangent);
}

#[inline(always)]
fn subtract(kind: Kind, a: u16, b: u16) -> u16 {
    kind.add(a, b ^ 0x8000)
}

#[inline(always)]
fn negate(kind: Kind, a: u16) -> u16 {
    quiet(kind, a, a ^ 0x8000)
}

#[inline(always)]
fn magnitude(kind: Kind, a: u16) -> u16 {
    quiet(kind, a, a & 0x7fff)
}

/// `value`, or the NaN of the format if `a` is none of its numbers.
#[inline(always)]
fn quiet(kind: Kind, a: u16, value: u16) -> u16 {
    let infinity = match kind {
        Kind::Half => 0x7c00,
        Kind::Brain => 0x7f80,
    };
    if a & 0x7fff > infinity {
        semantics::float16::NAN
    } else {
        value
    }
}

/// The lower or upper halves of a register in single precision.
#[inline(always)]
fn widened(l: &Lanes<'_>, i: &Instruction, kind: Kind, half: usize) -> [u32; 32] {
    let a = l.halves(i.sources[0]);
    map_lanes(|n| kind.widen(unpack(a.0[n])[half])).0
}

/// Applies `f` to both halves of three operands, `.ftz`, `.sat` and `.relu` as asked.
#[inline(always)]
fn each(l: &mut Lanes<'_>, i: &Instruction, kind: Kind, f: impl Fn(u16, u16, u16) -> u16) {
    let [a, b, c, _] = i.sources.map(|source| l.halves(source));
    let modifiers = Modifiers(i.modifiers);
    let enter = |x: u16| if modifiers.flush() { kind.flush(x) } else { x };
    let finish = |x: u16| {
        let x = enter(x);
        let x = if modifiers.saturate() {
            kind.saturate(x)
        } else {
            x
        };
        if modifiers.has(Modifiers::RELU) {
            kind.relu(x)
        } else {
            x
        }
    };
    let row = WarpRegister(std::array::from_fn(|n| {
        let (x, y, z) = (unpack(a.0[n]), unpack(b.0[n]), unpack(c.0[n]));
        pack([0, 1].map(|h| finish(f(enter(x[h]), enter(y[h]), enter(z[h])))))
    }));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
fn one(l: &mut Lanes<'_>, i: &Instruction, (kind, f): (Kind, impl Fn(Kind, u16) -> u16)) {
    each(l, i, kind, |a, _, _| f(kind, a));
}

#[inline(always)]
fn two(l: &mut Lanes<'_>, i: &Instruction, (kind, f): (Kind, impl Fn(Kind, u16, u16) -> u16)) {
    each(l, i, kind, |a, b, _| f(kind, a, b));
}

#[inline(always)]
fn three(
    l: &mut Lanes<'_>,
    i: &Instruction,
    (kind, f): (Kind, impl Fn(Kind, u16, u16, u16) -> u16),
) {
    each(l, i, kind, |a, b, c| f(kind, a, b, c));
}

#[inline(always)]
fn extreme(
    l: &mut Lanes<'_>,
    i: &Instruction,
    (kind, f): (Kind, impl Fn(Kind, u16, u16, bool) -> u16),
) {
    let modifiers = Modifiers(i.modifiers);
    let propagate = modifiers.has(Modifiers::NAN);
    let crossed = modifiers.has(Modifiers::XOR_SIGN);
    each(l, i, kind, |a, b, _| {
        if !crossed {
            return f(kind, a, b, propagate);
        }
        let value = f(kind, a & 0x7fff, b & 0x7fff, propagate);
        let nan = value == semantics::float16::NAN;
        if nan {
            value
        } else {
            value | ((a ^ b) & 0x8000)
        }
    });
}
