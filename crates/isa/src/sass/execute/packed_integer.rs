//! Sums, minima and maxima of words and of pairs of 16-bit integers: `VIMNMX`, `VIMNMX3`, `VIADDMNMX`, `VIADD`.
//!
//! A pair is two integers that do not see each other: a sum wraps in its half, and each half has its own minimum.
//! CUDA's DPX functions (`__vimax3_s16x2`, `__viaddmin_u32_relu`, `__vibmax_s32`) are single instructions of this file.

use super::{bind::Spelling, integer};
use crate::{
    instruction::Instruction,
    lanes::Lanes,
    operand::PredicateRegister,
    semantics::{Modifiers, lane_loops::map_lanes},
    warp_register::{LANES, Mask, WarpRegister},
};

/// Sources are pairs of 16-bit integers.
pub const PAIRS: u64 = 1 << Modifiers::FREE;

/// Signedness, clamping at zero, and whether words are pairs.
pub(super) fn bits(spelling: &Spelling<'_>) -> u64 {
    let unsigned = spelling.has("U32") || spelling.has("U16x2");
    let pairs = ["U16x2", "S16x2", "16x2"]
        .iter()
        .any(|word| spelling.has(word));
    (if unsigned { 0 } else { Modifiers::SIGNED })
        | spelling.bits("RELU", Modifiers::RELU)
        | if pairs { PAIRS } else { 0 }
}

/// What a word stands for: itself, or its halves, lower one first.
#[derive(Clone, Copy)]
struct Parts {
    pairs: bool,
    signed: bool,
}

impl Parts {
    fn of(i: &Instruction) -> Self {
        Self {
            pairs: i.modifiers & PAIRS != 0,
            signed: i.modifiers & Modifiers::SIGNED != 0,
        }
    }

    fn extend(self, part: u32) -> i64 {
        match (self.pairs, self.signed) {
            (false, false) => i64::from(part),
            (false, true) => i64::from(part as i32),
            (true, false) => i64::from(part as u16),
            (true, true) => i64::from(part as i16),
        }
    }

    fn split(self, word: u32) -> [i64; 2] {
        [word, word >> 16].map(|part| self.extend(part))
    }

    fn join(self, [low, high]: [i64; 2]) -> u32 {
        if self.pairs {
            low as u32 & 0xffff | (high as u32) << 16
        } else {
            low as u32
        }
    }

    /// The sum as this type has it.
    fn add(self, a: i64, b: i64) -> i64 {
        self.extend(a.wrapping_add(b) as u32)
    }
}

fn sources(lanes: &Lanes<'_>, i: &Instruction) -> [WarpRegister; 3] {
    [0, 1, 2].map(|n| lanes.integer(i.sources[n]))
}

/// The smaller or the larger, not below zero with `.RELU`.
fn choose(a: i64, b: i64, smaller: bool, relu: bool) -> i64 {
    let chosen = if smaller { a.min(b) } else { a.max(b) };
    if relu { chosen.max(0) } else { chosen }
}

/// `VIMNMX`: the smaller where `predicates[0]` holds, else the larger. Predicates say whether the result is the
/// first source: of a word, or of the lower and the upper half.
#[inline(always)]
pub fn minimum_maximum(lanes: &mut Lanes<'_>, i: &Instruction) {
    let alone = i.predicate_destinations == [PredicateRegister::True; 2];
    if alone && i.modifiers & PAIRS == 0 {
        return integer::minimum_maximum(lanes, i);
    }
    choose_parts(lanes, i);
}

#[inline(never)]
fn choose_parts(lanes: &mut Lanes<'_>, i: &Instruction) {
    let parts = Parts::of(i);
    let relu = i.modifiers & Modifiers::RELU != 0;
    let smaller = lanes.predicate(i.predicates[0]);
    let [a, b, _] = sources(lanes, i);
    let mut first: [Mask; 2] = [0; 2];
    let mut row = WarpRegister::ZERO;
    for n in 0..LANES {
        let smaller = smaller >> n & 1 == 1;
        let (x, y) = (parts.split(a.0[n]), parts.split(b.0[n]));
        let chosen = [0, 1].map(|part| choose(x[part], y[part], smaller, relu));
        for (part, first) in first.iter_mut().enumerate() {
            // A word speaks for both predicates.
            let of = if parts.pairs { part } else { 0 };
            *first |= u32::from(chosen[of] == x[of]) << n;
        }
        row.0[n] = parts.join(chosen);
    }
    lanes.write(i.destination, 0, &row);
    // Of two answers to one predicate the first stays: compilers name one predicate twice where they want the first.
    let answers = i.predicate_destinations.into_iter().zip(first);
    for (register, mask) in answers.rev() {
        lanes.set_predicate(register, mask);
    }
}

/// `VIMNMX3`: the smallest of three where `predicates[0]` holds, else the largest.
#[inline(always)]
pub fn minimum_maximum3(lanes: &mut Lanes<'_>, i: &Instruction) {
    let parts = Parts::of(i);
    let relu = i.modifiers & Modifiers::RELU != 0;
    let smaller = lanes.predicate(i.predicates[0]);
    let [a, b, c] = sources(lanes, i);
    let row = map_lanes(|n| {
        let smaller = smaller >> n & 1 == 1;
        let [x, y, z] = [a.0[n], b.0[n], c.0[n]].map(|word| parts.split(word));
        parts.join([0, 1].map(|part| {
            let first = choose(x[part], y[part], smaller, false);
            choose(first, z[part], smaller, relu)
        }))
    });
    lanes.write(i.destination, 0, &row);
}

/// `VIADDMNMX`: `a + b`, then the smaller or larger of it and `c`.
#[inline(always)]
pub fn add_minimum_maximum(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & PAIRS == 0 {
        return integer::add_minimum_maximum(lanes, i);
    }
    let parts = Parts::of(i);
    let relu = i.modifiers & Modifiers::RELU != 0;
    let smaller = lanes.predicate(i.predicates[0]);
    let [a, b, c] = pair_sources(lanes, i);
    let row = map_lanes(|n| {
        let smaller = smaller >> n & 1 == 1;
        let [x, y, z] = [a.0[n], b.0[n], c.0[n]].map(|word| parts.split(word));
        parts.join([0, 1].map(|part| choose(parts.add(x[part], y[part]), z[part], smaller, relu)))
    });
    lanes.write(i.destination, 0, &row);
}

/// `VIADD`: `a + b`.
#[inline(always)]
pub fn add(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & PAIRS == 0 {
        return integer::add2(lanes, i);
    }
    let parts = Parts::of(i);
    let [a, b, _] = pair_sources(lanes, i);
    let row = map_lanes(|n| {
        let (x, y) = (parts.split(a.0[n]), parts.split(b.0[n]));
        parts.join([0, 1].map(|part| parts.add(x[part], y[part])))
    });
    lanes.write(i.destination, 0, &row);
}

/// Sources whose signs are changed half by half.
fn pair_sources(lanes: &Lanes<'_>, i: &Instruction) -> [WarpRegister; 3] {
    [0, 1, 2].map(|n| {
        let source = i.sources[n];
        let raw = lanes.raw(source.operand, 0);
        if source.negate {
            map_lanes(|n| {
                let half = |word: u32| word.wrapping_neg() & 0xffff;
                half(raw.0[n]) | half(raw.0[n] >> 16) << 16
            })
        } else {
            raw
        }
    })
}
