//! Comparison and selection. PTX ISA, "Comparison and Selection Instructions".

use super::prelude::*;
use crate::{
    semantics::{
        compare as op,
        float16::Kind,
        float32::{self, Property},
        float64,
    },
    warp_register::Mask,
};

entries! {
    "setp(@cmp)(.s32)" COMPARE [WritePredicate, Read(B32), Read(B32)] semantics!(setp; signed);
    "setp(@cmp)(.u32.b32)" COMPARE [WritePredicate, Read(B32), Read(B32)] semantics!(setp; unsigned);
    "setp(@cmp).s16" COMPARE [WritePredicate, Read(B16), Read(B16)] semantics!(setp; signed16);
    "setp(@cmp)(.u16.b16)" COMPARE [WritePredicate, Read(B16), Read(B16)] semantics!(setp; unsigned16);
    "setp(@cmp).s64" COMPARE [WritePredicate, Read(B64), Read(B64)] semantics!(setp; signed64);
    "setp(@cmp)(.u64.b64)" COMPARE [WritePredicate, Read(B64), Read(B64)] semantics!(setp; unsigned64);
    "setp(@fcmp)[.ftz].f32" COMPARE_FLOAT [WritePredicate, Read(F32), Read(F32)] semantics!(setp; single);
    "setp(@fcmp).f64" DOUBLE [WritePredicate, Read(F64), Read(F64)] semantics!(setp; double);
    "setp(@fcmp)[.ftz].f16" HALF [WritePredicate, Read(F16), Read(F16)] semantics!(setp; half);
    "setp(@fcmp).bf16" HALF [WritePredicate, Read(F16), Read(F16)] semantics!(setp; brain);
    "setp(@fcmp)[.ftz].f16x2" HALF [WritePredicate, Read(B32), Read(B32)] semantics!(setp_pair; Kind::Half);
    "setp(@fcmp).bf16x2" HALF [WritePredicate, Read(B32), Read(B32)] semantics!(setp_pair; Kind::Brain);

    "setp(@cmp)(@bool).s32" COMPARE [WritePredicate, Read(B32), Read(B32), ReadPredicate] semantics!(setp; signed);
    "setp(@cmp)(@bool)(.u32.b32)" COMPARE [WritePredicate, Read(B32), Read(B32), ReadPredicate] semantics!(setp; unsigned);
    "setp(@cmp)(@bool).s16" COMPARE [WritePredicate, Read(B16), Read(B16), ReadPredicate] semantics!(setp; signed16);
    "setp(@cmp)(@bool)(.u16.b16)" COMPARE [WritePredicate, Read(B16), Read(B16), ReadPredicate] semantics!(setp; unsigned16);
    "setp(@cmp)(@bool).s64" COMPARE [WritePredicate, Read(B64), Read(B64), ReadPredicate] semantics!(setp; signed64);
    "setp(@cmp)(@bool)(.u64.b64)" COMPARE [WritePredicate, Read(B64), Read(B64), ReadPredicate] semantics!(setp; unsigned64);
    "setp(@fcmp)(@bool)[.ftz].f32" COMPARE_FLOAT [WritePredicate, Read(F32), Read(F32), ReadPredicate] semantics!(setp; single);
    "setp(@fcmp)(@bool).f64" DOUBLE [WritePredicate, Read(F64), Read(F64), ReadPredicate] semantics!(setp; double);
    "setp(@fcmp)(@bool)[.ftz].f16" HALF [WritePredicate, Read(F16), Read(F16), ReadPredicate] semantics!(setp; half);
    "setp(@fcmp)(@bool).bf16" HALF [WritePredicate, Read(F16), Read(F16), ReadPredicate] semantics!(setp; brain);
    "setp(@fcmp)(@bool)[.ftz].f16x2" HALF [WritePredicate, Read(B32), Read(B32), ReadPredicate] semantics!(setp_pair; Kind::Half);
    "setp(@fcmp)(@bool).bf16x2" HALF [WritePredicate, Read(B32), Read(B32), ReadPredicate] semantics!(setp_pair; Kind::Brain);

    // `set` writes all ones, or 1.0 where the destination is a float.
    "set(@cmp)[@bool](.u32.s32).s32" COMPARE [Write(B32), Read(B32), Read(B32), OptionalPredicate] semantics!(set_ones; signed);
    "set(@cmp)[@bool](.u32.s32)(.u32.b32)" COMPARE [Write(B32), Read(B32), Read(B32), OptionalPredicate] semantics!(set_ones; unsigned);
    "set(@cmp)[@bool](.u32.s32).s16" COMPARE [Write(B32), Read(B16), Read(B16), OptionalPredicate] semantics!(set_ones; signed16);
    "set(@cmp)[@bool](.u32.s32)(.u16.b16)" COMPARE [Write(B32), Read(B16), Read(B16), OptionalPredicate] semantics!(set_ones; unsigned16);
    "set(@cmp)[@bool](.u32.s32).s64" COMPARE [Write(B32), Read(B64), Read(B64), OptionalPredicate] semantics!(set_ones; signed64);
    "set(@cmp)[@bool](.u32.s32)(.u64.b64)" COMPARE [Write(B32), Read(B64), Read(B64), OptionalPredicate] semantics!(set_ones; unsigned64);
    "set(@fcmp)[@bool][.ftz](.u32.s32).f32" COMPARE_FLOAT [Write(B32), Read(F32), Read(F32), OptionalPredicate] semantics!(set_ones; single);
    "set(@fcmp)[@bool](.u32.s32).f64" DOUBLE [Write(B32), Read(F64), Read(F64), OptionalPredicate] semantics!(set_ones; double);
    "set(@fcmp)[@bool][.ftz](.u32.s32.u16.s16).f16" HALF [Write(B32), Read(F16), Read(F16), OptionalPredicate] semantics!(set_ones; half);
    "set(@fcmp)[@bool](.u32.s32.u16.s16).bf16" HALF [Write(B32), Read(F16), Read(F16), OptionalPredicate] semantics!(set_ones; brain);
    "set(@cmp)[@bool].f32.s32" COMPARE [Write(F32), Read(B32), Read(B32), OptionalPredicate] semantics!(set_one; signed);
    "set(@cmp)[@bool].f32(.u32.b32)" COMPARE [Write(F32), Read(B32), Read(B32), OptionalPredicate] semantics!(set_one; unsigned);
    "set(@cmp)[@bool].f32.s16" COMPARE [Write(F32), Read(B16), Read(B16), OptionalPredicate] semantics!(set_one; signed16);
    "set(@cmp)[@bool].f32(.u16.b16)" COMPARE [Write(F32), Read(B16), Read(B16), OptionalPredicate] semantics!(set_one; unsigned16);
    "set(@cmp)[@bool].f32.s64" COMPARE [Write(F32), Read(B64), Read(B64), OptionalPredicate] semantics!(set_one; signed64);
    "set(@cmp)[@bool].f32(.u64.b64)" COMPARE [Write(F32), Read(B64), Read(B64), OptionalPredicate] semantics!(set_one; unsigned64);
    "set(@fcmp)[@bool][.ftz].f32.f32" COMPARE_FLOAT [Write(F32), Read(F32), Read(F32), OptionalPredicate] semantics!(set_one; single);
    "set(@fcmp)[@bool].f32.f64" DOUBLE [Write(F32), Read(F64), Read(F64), OptionalPredicate] semantics!(set_one; double);
    "set(@fcmp)[@bool][.ftz].f16.f16" HALF [Write(F16), Read(F16), Read(F16), OptionalPredicate] semantics!(set_half; (0x3c00, Kind::Half));
    "set(@fcmp)[@bool].bf16.bf16" HALF [Write(F16), Read(F16), Read(F16), OptionalPredicate] semantics!(set_half; (0x3f80, Kind::Brain));
    "set(@fcmp)[@bool].bf16.f16" HALF [Write(F16), Read(F16), Read(F16), OptionalPredicate] semantics!(set_half; (0x3f80, Kind::Half));
    "set(@fcmp)[@bool][.ftz].f16x2.f16x2" HALF [Write(B32), Read(B32), Read(B32), OptionalPredicate] semantics!(set_half; (0x3c00, Kind::Half));
    "set(@fcmp)[@bool].bf16x2.bf16x2" HALF [Write(B32), Read(B32), Read(B32), OptionalPredicate] semantics!(set_half; (0x3f80, Kind::Brain));
    "set(@fcmp)[@bool][.ftz](.u32.s32).f16x2" HALF [Write(B32), Read(B32), Read(B32), OptionalPredicate] semantics!(set_half; (0xffff, Kind::Half));
    "set(@fcmp)[@bool](.u32.s32).bf16x2" HALF [Write(B32), Read(B32), Read(B32), OptionalPredicate] semantics!(set_half; (0xffff, Kind::Brain));

    "selp(.b32.u32.s32)" INTEGER [Write(B32), Read(B32), Read(B32), ReadPredicate] semantics!(select);
    "selp.f32" INTEGER [Write(F32), Read(F32), Read(F32), ReadPredicate] semantics!(select);
    "selp(.b16.u16.s16)" INTEGER [Write(B16), Read(B16), Read(B16), ReadPredicate] semantics!(select);
    "selp(.b64.u64.s64)" INTEGER [Write(B64), Read(B64), Read(B64), ReadPredicate] semantics!(select64);
    "selp.f64" INTEGER [Write(F64), Read(F64), Read(F64), ReadPredicate] semantics!(select64);

    "slct(.b32.u32.s32).s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::select_by_sign(a.into(), b.into(), c) as u32);
    "slct.f32.s32" INTEGER [Write(F32), Read(F32), Read(F32), Read(B32)]
        semantics!(ternary; |a, b, c| op::select_by_sign(a.into(), b.into(), c) as u32);
    "slct(.b16.u16.s16).s32" INTEGER [Write(B16), Read(B16), Read(B16), Read(B32)]
        semantics!(ternary; |a, b, c| op::select_by_sign(a.into(), b.into(), c) as u32);
    "slct(.b64.u64.s64).s32" INTEGER [Write(B64), Read(B64), Read(B64), Read(B32)] semantics!(select_long; op::select_by_sign);
    "slct.f64.s32" INTEGER [Write(F64), Read(F64), Read(F64), Read(B32)] semantics!(select_long; op::select_by_sign);
    "slct[.ftz](.b32.u32.s32).f32" INTEGER [Write(B32), Read(B32), Read(B32), Read(F32)] semantics!(select_float);
    "slct[.ftz].f32.f32" INTEGER [Write(F32), Read(F32), Read(F32), Read(F32)] semantics!(select_float);
    "slct[.ftz](.b16.u16.s16).f32" INTEGER [Write(B16), Read(B16), Read(B16), Read(F32)] semantics!(select_float);
    "slct[.ftz](.b64.u64.s64).f32" INTEGER [Write(B64), Read(B64), Read(B64), Read(F32)] semantics!(select_long_float);
    "slct[.ftz].f64.f32" INTEGER [Write(F64), Read(F64), Read(F64), Read(F32)] semantics!(select_long_float);

    "testp.finite.f32" COMPARE_FLOAT [WritePredicate, Read(F32)] semantics!(test; Property::Finite);
    "testp.infinite.f32" COMPARE_FLOAT [WritePredicate, Read(F32)] semantics!(test; Property::Infinite);
    "testp.number.f32" COMPARE_FLOAT [WritePredicate, Read(F32)] semantics!(test; Property::Number);
    "testp.notanumber.f32" COMPARE_FLOAT [WritePredicate, Read(F32)] semantics!(test; Property::NotANumber);
    "testp.normal.f32" COMPARE_FLOAT [WritePredicate, Read(F32)] semantics!(test; Property::Normal);
    "testp.subnormal.f32" COMPARE_FLOAT [WritePredicate, Read(F32)] semantics!(test; Property::Subnormal);
    "testp.finite.f64" DOUBLE [WritePredicate, Read(F64)] semantics!(test64; Property::Finite);
    "testp.infinite.f64" DOUBLE [WritePredicate, Read(F64)] semantics!(test64; Property::Infinite);
    "testp.number.f64" DOUBLE [WritePredicate, Read(F64)] semantics!(test64; Property::Number);
    "testp.notanumber.f64" DOUBLE [WritePredicate, Read(F64)] semantics!(test64; Property::NotANumber);
    "testp.normal.f64" DOUBLE [WritePredicate, Read(F64)] semantics!(test64; Property::Normal);
    "testp.subnormal.f64" DOUBLE [WritePredicate, Read(F64)] semantics!(test64; Property::Subnormal);
}

macro_rules! relations {
    ($($name:ident: $read:ident, |$word:ident| $number:expr;)*) => {$(
        #[inline(always)]
        fn $name(l: &Lanes<'_>, i: &Instruction) -> Mask {
            let (a, b) = (l.$read(i.sources[0]), l.$read(i.sources[1]));
            let comparison = Modifiers(i.modifiers).comparison();
            compare_lanes(
                comparison,
                |n| { let $word = word(&a, n); $number },
                |n| { let $word = word(&b, n); $number },
            )
        }
    )*};
}

relations! {
    signed: integer, |a| a as i32;
    unsigned: integer, |a| a;
    signed16: integer, |a| a as i16;
    unsigned16: integer, |a| a as u16;
    signed64: integer64, |a| a as i64;
    unsigned64: integer64, |a| a;
    double: float64, |a| f64::from_bits(a);
}

#[inline(always)]
fn half(l: &Lanes<'_>, i: &Instruction) -> Mask {
    relation_pair(l, i, Kind::Half)[0]
}

#[inline(always)]
fn brain(l: &Lanes<'_>, i: &Instruction) -> Mask {
    relation_pair(l, i, Kind::Brain)[0]
}

/// Rows of words and arrays of longs, alike.
trait Words {
    type Word;
    fn at(&self, n: usize) -> Self::Word;
}

impl Words for crate::WarpRegister {
    type Word = u32;
    #[inline(always)]
    fn at(&self, n: usize) -> u32 {
        self.0[n]
    }
}

impl Words for [u64; crate::warp_register::LANES] {
    type Word = u64;
    #[inline(always)]
    fn at(&self, n: usize) -> u64 {
        self[n]
    }
}

#[inline(always)]
fn word<T: Words>(words: &T, n: usize) -> T::Word {
    words.at(n)
}

#[inline(always)]
fn single(l: &Lanes<'_>, i: &Instruction) -> Mask {
    let (a, b) = (l.float(i.sources[0]), l.float(i.sources[1]));
    let modifiers = Modifiers(i.modifiers);
    // Flushing changes the outcome only among subnormals and zeros.
    let clean = |x: u32| {
        if modifiers.flush() {
            float32::flush(x)
        } else {
            x
        }
    };
    compare_lanes(
        modifiers.comparison(),
        |n| f32::from_bits(clean(a.0[n])),
        |n| f32::from_bits(clean(b.0[n])),
    )
}

/// `p = comparison ⊙ c`, `q = !comparison ⊙ c`.
#[inline(always)]
fn setp(l: &mut Lanes<'_>, i: &Instruction, relation: impl Fn(&Lanes<'_>, &Instruction) -> Mask) {
    let holds = relation(l, i);
    let join = Modifiers(i.modifiers).boolean();
    let c = l.predicate(i.predicates[0]);
    l.set_predicate(i.predicate_destinations[0], join.join(holds, c));
    l.set_predicate(i.predicate_destinations[1], join.join(!holds, c));
}

/// Comparison of the low and of the high halves.
#[inline(always)]
fn relation_pair(l: &Lanes<'_>, i: &Instruction, kind: Kind) -> [Mask; 2] {
    let (a, b) = (l.halves(i.sources[0]), l.halves(i.sources[1]));
    let modifiers = Modifiers(i.modifiers);
    let read = |word: u32, half: u32| {
        let bits = (word >> (16 * half)) as u16;
        let bits = if modifiers.flush() {
            kind.flush(bits)
        } else {
            bits
        };
        f32::from_bits(kind.widen(bits))
    };
    [0, 1].map(|half| {
        mask_of(|n| {
            op::compare(
                modifiers.comparison(),
                read(a.0[n], half),
                read(b.0[n], half),
            )
        })
    })
}

#[inline(always)]
fn setp_pair(l: &mut Lanes<'_>, i: &Instruction, kind: Kind) {
    let [low, high] = relation_pair(l, i, kind);
    let join = Modifiers(i.modifiers).boolean();
    let c = l.predicate(i.predicates[0]);
    l.set_predicate(i.predicate_destinations[0], join.join(low, c));
    l.set_predicate(i.predicate_destinations[1], join.join(high, c));
}

#[inline(always)]
fn write_flags(
    l: &mut Lanes<'_>,
    i: &Instruction,
    relation: impl Fn(&Lanes<'_>, &Instruction) -> Mask,
    one: u32,
) {
    let c = l.predicate(i.predicates[0]);
    let holds = Modifiers(i.modifiers).boolean().join(relation(l, i), c);
    let row = crate::WarpRegister(std::array::from_fn(|n| {
        if holds >> n & 1 == 1 { one } else { 0 }
    }));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
fn set_ones(
    l: &mut Lanes<'_>,
    i: &Instruction,
    relation: impl Fn(&Lanes<'_>, &Instruction) -> Mask,
) {
    write_flags(l, i, relation, u32::MAX);
}

#[inline(always)]
fn set_one(
    l: &mut Lanes<'_>,
    i: &Instruction,
    relation: impl Fn(&Lanes<'_>, &Instruction) -> Mask,
) {
    write_flags(l, i, relation, 0x3f80_0000);
}

#[inline(always)]
fn set_half(l: &mut Lanes<'_>, i: &Instruction, (one, kind): (u32, Kind)) {
    let c = l.predicate(i.predicates[0]);
    let join = Modifiers(i.modifiers).boolean();
    let [low, high] = relation_pair(l, i, kind).map(|holds| join.join(holds, c));
    let flag = |mask: Mask, n: usize| if mask >> n & 1 == 1 { one } else { 0 };
    let row = crate::WarpRegister(std::array::from_fn(|n| flag(low, n) | flag(high, n) << 16));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
fn select(l: &mut Lanes<'_>, i: &Instruction) {
    let (mut a, b) = (l.integer(i.sources[0]), l.integer(i.sources[1]));
    a.blend(&b, !l.predicate(i.predicates[0]));
    l.write(i.destination, 0, &a);
}

#[inline(always)]
fn select64(l: &mut Lanes<'_>, i: &Instruction) {
    let (a, b) = (l.integer64(i.sources[0]), l.integer64(i.sources[1]));
    let mask = l.predicate(i.predicates[0]);
    let values = std::array::from_fn(|n| if mask >> n & 1 == 1 { a[n] } else { b[n] });
    l.write64(i.destination, &values);
}

#[inline(always)]
fn select_long(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, u64, u32) -> u64) {
    let (a, b) = (l.integer64(i.sources[0]), l.integer64(i.sources[1]));
    let c = l.integer(i.sources[2]);
    l.write64(
        i.destination,
        &std::array::from_fn(|n| f(a[n], b[n], c.0[n])),
    );
}

/// The word whose sign decides, flushed if asked: subnormals are then not negative.
#[inline(always)]
fn decider(l: &Lanes<'_>, i: &Instruction) -> crate::WarpRegister {
    let c = l.integer(i.sources[2]);
    if Modifiers(i.modifiers).flush() {
        map_lanes(|n| float32::flush(c.0[n]))
    } else {
        c
    }
}

#[inline(always)]
fn select_float(l: &mut Lanes<'_>, i: &Instruction) {
    let (a, b) = (l.integer(i.sources[0]), l.integer(i.sources[1]));
    let c = decider(l, i);
    let row = map_lanes(|n| op::select_by_float_sign(a.0[n].into(), b.0[n].into(), c.0[n]) as u32);
    l.write(i.destination, 0, &row);
}

#[inline(always)]
fn select_long_float(l: &mut Lanes<'_>, i: &Instruction) {
    let (a, b) = (l.integer64(i.sources[0]), l.integer64(i.sources[1]));
    let c = decider(l, i);
    let values = std::array::from_fn(|n| op::select_by_float_sign(a[n], b[n], c.0[n]));
    l.write64(i.destination, &values);
}

#[inline(always)]
fn test(l: &mut Lanes<'_>, i: &Instruction, property: Property) {
    let a = l.float(i.sources[0]);
    let holds = mask_of(|n| float32::test(a.0[n], property));
    l.set_predicate(i.predicate_destinations[0], holds);
}

#[inline(always)]
fn test64(l: &mut Lanes<'_>, i: &Instruction, property: Property) {
    let a = l.float64(i.sources[0]);
    let holds = mask_of(|n| float64::test(a[n], property));
    l.set_predicate(i.predicate_destinations[0], holds);
}
