//! Instructions in which lanes see each other. PTX ISA, `shfl`, `vote`, `match`, `redux`,
//! `activemask`, `elect`.
//!
//! The member mask of `.sync` forms is a source; the front end reconverges its lanes first.

use super::prelude::*;
use crate::{
    WarpRegister,
    semantics::warp::{self as op, Reduction, ShuffleMode, Vote},
    warp_register::{LANES, Mask, lanes_of},
};

entries! {
    "shfl.sync.up.b32" SHUFFLE [WriteWithPredicate(B32), Read(B32), Read(B32), Read(B32), Read(B32)] semantics!(shuffle; ShuffleMode::Up);
    "shfl.sync.down.b32" SHUFFLE [WriteWithPredicate(B32), Read(B32), Read(B32), Read(B32), Read(B32)] semantics!(shuffle; ShuffleMode::Down);
    "shfl.sync.bfly.b32" SHUFFLE [WriteWithPredicate(B32), Read(B32), Read(B32), Read(B32), Read(B32)] semantics!(shuffle; ShuffleMode::Butterfly);
    "shfl.sync.idx.b32" SHUFFLE [WriteWithPredicate(B32), Read(B32), Read(B32), Read(B32), Read(B32)] semantics!(shuffle; ShuffleMode::Index);
    "shfl.up.b32" SHUFFLE [WriteWithPredicate(B32), Read(B32), Read(B32), Read(B32)] semantics!(shuffle; ShuffleMode::Up);
    "shfl.down.b32" SHUFFLE [WriteWithPredicate(B32), Read(B32), Read(B32), Read(B32)] semantics!(shuffle; ShuffleMode::Down);
    "shfl.bfly.b32" SHUFFLE [WriteWithPredicate(B32), Read(B32), Read(B32), Read(B32)] semantics!(shuffle; ShuffleMode::Butterfly);
    "shfl.idx.b32" SHUFFLE [WriteWithPredicate(B32), Read(B32), Read(B32), Read(B32)] semantics!(shuffle; ShuffleMode::Index);

    "vote.sync.all.pred" VOTE [WritePredicate, ReadPredicate, Read(B32)] semantics!(vote; (Vote::All, true));
    "vote.sync.any.pred" VOTE [WritePredicate, ReadPredicate, Read(B32)] semantics!(vote; (Vote::Any, true));
    "vote.sync.uni.pred" VOTE [WritePredicate, ReadPredicate, Read(B32)] semantics!(vote; (Vote::Uniform, true));
    "vote.sync.ballot.b32" VOTE [Write(B32), ReadPredicate, Read(B32)] semantics!(ballot; true);
    "vote.all.pred" VOTE [WritePredicate, ReadPredicate] semantics!(vote; (Vote::All, false));
    "vote.any.pred" VOTE [WritePredicate, ReadPredicate] semantics!(vote; (Vote::Any, false));
    "vote.uni.pred" VOTE [WritePredicate, ReadPredicate] semantics!(vote; (Vote::Uniform, false));
    "vote.ballot.b32" VOTE [Write(B32), ReadPredicate] semantics!(ballot; false);
    "activemask.b32" VOTE [Write(B32)] semantics!(active);
    "match.any.sync.b32" MATCH [Write(B32), Read(B32), Read(B32)] semantics!(match_any; false);
    "match.any.sync.b64" MATCH [Write(B32), Read(B64), Read(B32)] semantics!(match_any; true);
    "match.all.sync.b32" MATCH [WriteWithPredicate(B32), Read(B32), Read(B32)] semantics!(match_all; false);
    "match.all.sync.b64" MATCH [WriteWithPredicate(B32), Read(B64), Read(B32)] semantics!(match_all; true);
    "redux.sync.add(.u32.s32)" REDUCE [Write(B32), Read(B32), Read(B32)] semantics!(reduce; Reduction::Add);
    "redux.sync.min.u32" REDUCE [Write(B32), Read(B32), Read(B32)] semantics!(reduce; Reduction::Min);
    "redux.sync.max.u32" REDUCE [Write(B32), Read(B32), Read(B32)] semantics!(reduce; Reduction::Max);
    "redux.sync.min.s32" REDUCE [Write(B32), Read(B32), Read(B32)] semantics!(reduce; Reduction::MinSigned);
    "redux.sync.max.s32" REDUCE [Write(B32), Read(B32), Read(B32)] semantics!(reduce; Reduction::MaxSigned);
    "redux.sync.and.b32" REDUCE [Write(B32), Read(B32), Read(B32)] semantics!(reduce; Reduction::And);
    "redux.sync.or.b32" REDUCE [Write(B32), Read(B32), Read(B32)] semantics!(reduce; Reduction::Or);
    "redux.sync.xor.b32" REDUCE [Write(B32), Read(B32), Read(B32)] semantics!(reduce; Reduction::Xor);
    "movmatrix.sync.aligned.m8n8.trans.b16" SHUFFLE [Write(B32), Read(B32)] semantics!(transpose);
    "elect.sync" VOTE [WriteWithPredicate(B32), Read(B32)] semantics!(elect);
}

#[inline(always)]
fn shuffle(l: &mut Lanes<'_>, i: &Instruction, mode: ShuffleMode) {
    let [mut values, b, clamp, _] = i.sources.map(|source| l.integer(source));
    // Lanes that do not execute it give zero.
    values.blend(&WarpRegister::ZERO, !l.execute);
    let (result, in_range) = op::shuffle(mode, &values.0, &b.0, &clamp.0);
    l.write(i.destination, 0, &WarpRegister(result));
    l.set_predicate(i.predicate_destinations[0], in_range);
}

/// The members that each lane names and that are here, handed to `f` once for each distinct set.
#[inline(always)]
fn by_members(l: &Lanes<'_>, masks: &WarpRegister, mut f: impl FnMut(Mask, Mask)) {
    let mut left = l.execute;
    while left != 0 {
        let named = masks.0[left.trailing_zeros() as usize];
        let same = lanes_of(left)
            .filter(|lane| masks.0[*lane] == named)
            .fold(0, |mask, lane| mask | 1 << lane);
        left &= !same;
        f(named & l.execute, same);
    }
}

/// Members for each lane: the mask in `sources[0]`, or everyone who executes.
#[inline(always)]
fn mask_row(l: &Lanes<'_>, i: &Instruction, named: bool) -> WarpRegister {
    if named {
        l.integer(i.sources[0])
    } else {
        WarpRegister::splat(Mask::MAX)
    }
}

#[inline(always)]
fn vote(l: &mut Lanes<'_>, i: &Instruction, (kind, named): (Vote, bool)) {
    let predicate = l.predicate(i.predicates[0]);
    let mut result = 0;
    by_members(l, &mask_row(l, i, named), |members, lanes| {
        if op::vote(kind, predicate, members) {
            result |= lanes;
        }
    });
    l.set_predicate(i.predicate_destinations[0], result);
}

#[inline(always)]
fn ballot(l: &mut Lanes<'_>, i: &Instruction, named: bool) {
    let predicate = l.predicate(i.predicates[0]);
    let mut row = WarpRegister::ZERO;
    by_members(l, &mask_row(l, i, named), |members, lanes| {
        lanes_of(lanes).for_each(|lane| row.0[lane] = predicate & members);
    });
    l.write(i.destination, 0, &row);
}

#[inline(always)]
fn active(l: &mut Lanes<'_>, i: &Instruction) {
    l.write(i.destination, 0, &WarpRegister::splat(l.execute));
}

#[inline(always)]
fn values(l: &Lanes<'_>, i: &Instruction, long: bool) -> [u64; LANES] {
    if long {
        l.integer64(i.sources[0])
    } else {
        l.integer(i.sources[0]).0.map(u64::from)
    }
}

#[inline(always)]
fn match_any(l: &mut Lanes<'_>, i: &Instruction, long: bool) {
    let values = values(l, i, long);
    let mut row = WarpRegister::ZERO;
    by_members(l, &l.integer(i.sources[1]), |members, lanes| {
        let matches = op::match_any(&values, members);
        lanes_of(lanes).for_each(|lane| row.0[lane] = matches[lane]);
    });
    l.write(i.destination, 0, &row);
}

#[inline(always)]
fn match_all(l: &mut Lanes<'_>, i: &Instruction, long: bool) {
    let values = values(l, i, long);
    let mut row = WarpRegister::ZERO;
    let mut equal = 0;
    by_members(l, &l.integer(i.sources[1]), |members, lanes| {
        let matches = op::match_all(&values, members);
        lanes_of(lanes).for_each(|lane| row.0[lane] = matches);
        equal |= if matches == 0 { 0 } else { lanes };
    });
    l.write(i.destination, 0, &row);
    l.set_predicate(i.predicate_destinations[0], equal);
}

#[inline(always)]
fn reduce(l: &mut Lanes<'_>, i: &Instruction, reduction: Reduction) {
    let values = l.integer(i.sources[0]);
    let mut row = WarpRegister::ZERO;
    by_members(l, &l.integer(i.sources[1]), |members, lanes| {
        let result = op::reduce(reduction, &values.0, members);
        lanes_of(lanes).for_each(|lane| row.0[lane] = result);
    });
    l.write(i.destination, 0, &row);
}

#[inline(always)]
fn elect(l: &mut Lanes<'_>, i: &Instruction) {
    let mut row = WarpRegister::ZERO;
    let mut leaders = 0;
    by_members(l, &l.integer(i.sources[0]), |members, lanes| {
        let leader = op::elect(members);
        lanes_of(lanes).for_each(|lane| row.0[lane] = leader);
        leaders |= lanes & 1 << leader;
    });
    l.write(i.destination, 0, &row);
    l.set_predicate(i.predicate_destinations[0], leaders);
}

/// Element (row, column) of an 8 × 8 matrix is half `column % 2` of lane `4 × row + column / 2`.
#[inline(always)]
fn transpose(l: &mut Lanes<'_>, i: &Instruction) {
    let from = l.integer(i.sources[0]);
    let element =
        |row: usize, column: usize| from.0[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff;
    let mut row = WarpRegister::ZERO;
    for (lane, word) in row.0.iter_mut().enumerate() {
        let (line, first) = (lane / 4, 2 * (lane % 4));
        *word = element(first, line) | element(first + 1, line) << 16;
    }
    l.write(i.destination, 0, &row);
}
