//! Logic, shifts, fields. PTX ISA, "Logic and Shift Instructions", and the bit instructions of
//! "Integer Arithmetic Instructions".

use super::prelude::*;
use crate::semantics::logic::{self as op, PermuteMode};

entries! {
    "and(.b32.b16)" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; |a, b| a & b);
    "and.b64" INTEGER [Write(B64), Read(B64), Read(B64)] semantics!(binary64; |a, b| a & b);
    "and.pred" COMPARE [WritePredicate, ReadPredicate, ReadPredicate] semantics!(predicates; |a, b| a & b);
    "or(.b32.b16)" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; |a, b| a | b);
    "or.b64" INTEGER [Write(B64), Read(B64), Read(B64)] semantics!(binary64; |a, b| a | b);
    "or.pred" COMPARE [WritePredicate, ReadPredicate, ReadPredicate] semantics!(predicates; |a, b| a | b);
    "xor(.b32.b16)" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; |a, b| a ^ b);
    "xor.b64" INTEGER [Write(B64), Read(B64), Read(B64)] semantics!(binary64; |a, b| a ^ b);
    "xor.pred" COMPARE [WritePredicate, ReadPredicate, ReadPredicate] semantics!(predicates; |a, b| a ^ b);
    "not(.b32.b16)" INTEGER [Write(B32), Read(B32)] semantics!(unary; |a: u32| !a);
    "not.b64" INTEGER [Write(B64), Read(B64)] semantics!(unary64; |a: u64| !a);
    "not.pred" COMPARE [WritePredicate, ReadPredicate] semantics!(predicates; |a: u32, _| !a);
    "mov.pred" COMPARE [WritePredicate, ReadPredicate] semantics!(predicates; |a, _| a);
    "cnot.b32" INTEGER [Write(B32), Read(B32)] semantics!(unary; |a| u32::from(a == 0));
    "cnot.b16" INTEGER [Write(B16), Read(B16)] semantics!(unary; |a| u32::from(a & 0xffff == 0));
    "cnot.b64" INTEGER [Write(B64), Read(B64)] semantics!(unary64; |a| u64::from(a == 0));
    "lop3.b32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32), Byte] semantics!(lop3);
    "lop3.or.b32" INTEGER [WriteWithPredicate(B32), Read(B32), Read(B32), Read(B32), Byte, ReadPredicate] semantics!(lop3_or);
    "lop3.and.b32" INTEGER [WriteWithPredicate(B32), Read(B32), Read(B32), Read(B32), Byte, ReadPredicate] semantics!(lop3_and);

    "shl.b32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::shl);
    "shl.b64" INTEGER [Write(B64), Read(B64), Read(B32)] semantics!(shift64; op::shl64);
    "shl.b16" INTEGER [Write(B16), Read(B16), Read(B32)] semantics!(binary; op::shl16);
    "shr(.u32.b32)" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::shr);
    "shr.s32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; op::shr_signed);
    "shr(.u64.b64)" INTEGER [Write(B64), Read(B64), Read(B32)] semantics!(shift64; op::shr64);
    "shr.s64" INTEGER [Write(B64), Read(B64), Read(B32)] semantics!(shift64; op::shr64_signed);
    "shr(.u16.b16)" INTEGER [Write(B16), Read(B16), Read(B32)] semantics!(binary; op::shr16);
    "shr.s16" INTEGER [Write(B16), Read(B16), Read(B32)] semantics!(binary; op::shr16_signed);
    "shf.l.wrap.b32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::funnel_left(a, b, c, true));
    "shf.l.clamp.b32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::funnel_left(a, b, c, false));
    "shf.r.wrap.b32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::funnel_right(a, b, c, true));
    "shf.r.clamp.b32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(ternary; |a, b, c| op::funnel_right(a, b, c, false));

    "popc.b32" COUNT [Write(B32), Read(B32)] semantics!(unary; op::popc);
    "popc.b64" COUNT [Write(B32), Read(B64)] semantics!(narrow; op::popc64);
    "clz.b32" COUNT [Write(B32), Read(B32)] semantics!(unary; op::clz);
    "clz.b64" COUNT [Write(B32), Read(B64)] semantics!(narrow; op::clz64);
    "bfind.u32" COUNT [Write(B32), Read(B32)] semantics!(unary; |a| op::find_leading(a, false));
    "bfind.s32" COUNT [Write(B32), Read(B32)] semantics!(unary; |a| op::find_leading_signed(a, false));
    "bfind.u64" COUNT [Write(B32), Read(B64)] semantics!(narrow; |a| op::find_leading64(a, false));
    "bfind.s64" COUNT [Write(B32), Read(B64)] semantics!(narrow; |a| op::find_leading64_signed(a, false));
    "bfind.shiftamt.u32" COUNT [Write(B32), Read(B32)] semantics!(unary; |a| op::find_leading(a, true));
    "bfind.shiftamt.s32" COUNT [Write(B32), Read(B32)] semantics!(unary; |a| op::find_leading_signed(a, true));
    "bfind.shiftamt.u64" COUNT [Write(B32), Read(B64)] semantics!(narrow; |a| op::find_leading64(a, true));
    "bfind.shiftamt.s64" COUNT [Write(B32), Read(B64)] semantics!(narrow; |a| op::find_leading64_signed(a, true));
    "fns.b32" COUNT [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(ternary; op::find_nth_set);
    "brev.b32" COUNT [Write(B32), Read(B32)] semantics!(unary; op::brev);
    "brev.b64" COUNT [Write(B64), Read(B64)] semantics!(unary64; op::brev64);
    "bfe.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(ternary; op::bfe);
    "bfe.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(ternary; op::bfe_signed);
    "bfe.u64" INTEGER [Write(B64), Read(B64), Read(B32), Read(B32)] semantics!(field64; op::bfe64);
    "bfe.s64" INTEGER [Write(B64), Read(B64), Read(B32), Read(B32)] semantics!(field64; op::bfe64_signed);
    "bfi.b32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(quaternary; |[a, b, c, d]: [u32; 4]| op::bfi(a, b, c, d));
    "bfi.b64" INTEGER [Write(B64), Read(B64), Read(B64), Read(B32), Read(B32)] semantics!(insert64; op::bfi64);
    "bmsk.clamp.b32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; |a, b| op::bit_mask(a, b, false));
    "bmsk.wrap.b32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; |a, b| op::bit_mask(a, b, true));
    "szext.clamp.u32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; |a, b| op::extend(a, b, false));
    "szext.wrap.u32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; |a, b| op::extend(a, b, true));
    "szext.clamp.s32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; |a, b| op::extend_signed(a, b, false));
    "szext.wrap.s32" INTEGER [Write(B32), Read(B32), Read(B32)] semantics!(binary; |a, b| op::extend_signed(a, b, true));

    "prmt.b32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(permute; PermuteMode::Index);
    "prmt.b32.f4e" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(permute; PermuteMode::ForwardExtract);
    "prmt.b32.b4e" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(permute; PermuteMode::BackwardExtract);
    "prmt.b32.rc8" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(permute; PermuteMode::ReplicateByte);
    "prmt.b32.ecl" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(permute; PermuteMode::EdgeClampLeft);
    "prmt.b32.ecr" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(permute; PermuteMode::EdgeClampRight);
    "prmt.b32.rc16" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)] semantics!(permute; PermuteMode::ReplicateHalf);
}

#[inline(always)]
fn predicates(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32) -> u32) {
    let (a, b) = (l.predicate(i.predicates[0]), l.predicate(i.predicates[1]));
    l.set_predicate(i.predicate_destinations[0], f(a, b));
}

#[inline(always)]
fn permute(l: &mut Lanes<'_>, i: &Instruction, mode: PermuteMode) {
    ternary(l, i, |a, b, c| op::prmt(a, b, op::prmt_selector(mode, c)));
}

const fn table(i: &Instruction) -> u8 {
    (i.modifiers >> Modifiers::FREE) as u8
}

/// The tables that compilers use most, as their own loops; the rest by minterms.
#[inline(always)]
fn lop3(l: &mut Lanes<'_>, i: &Instruction) {
    match table(i) {
        0x80 => ternary(l, i, |a, b, c| a & b & c),
        0xc0 => ternary(l, i, |a, b, _| a & b),
        0xfc => ternary(l, i, |a, b, _| a | b),
        0x3c => ternary(l, i, |a, b, _| a ^ b),
        0xf8 => ternary(l, i, |a, b, c| a | (b & c)),
        0x96 => ternary(l, i, |a, b, c| a ^ b ^ c),
        0xfe => ternary(l, i, |a, b, c| a | b | c),
        0xe8 => ternary(l, i, |a, b, c| (a & b) | (a & c) | (b & c)),
        0xca => ternary(l, i, |a, b, c| (a & b) | (!a & c)),
        other => ternary(l, i, |a, b, c| op::lop3(a, b, c, other)),
    }
}

/// The predicate is "the result is not zero", joined with the operand.
#[inline(always)]
fn lop3_with(l: &mut Lanes<'_>, i: &Instruction, join: impl Fn(u32, u32) -> u32) {
    let [a, b, c, _] = i.sources.map(|source| l.integer(source));
    let table = table(i);
    let nonzero = mask_of(|n| op::lop3(a.0[n], b.0[n], c.0[n], table) != 0);
    let joined = join(nonzero, l.predicate(i.predicates[0]));
    lop3(l, i);
    l.set_predicate(i.predicate_destinations[0], joined);
}

#[inline(always)]
fn lop3_or(l: &mut Lanes<'_>, i: &Instruction) {
    lop3_with(l, i, |a, b| a | b);
}

#[inline(always)]
fn lop3_and(l: &mut Lanes<'_>, i: &Instruction) {
    lop3_with(l, i, |a, b| a & b);
}
