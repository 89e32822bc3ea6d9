//! Logic, moves, selections and predicates of SASS on the rows of a warp.

use crate::{
    instruction::Instruction,
    lanes::Lanes,
    row::{FULL, Row, lanes_of},
    semantics::{Modifiers, logic, rows::mask_of},
};

/// Where `LOP3` and `PLOP3` keep their look-up tables, 8 bits each.
pub const TABLE: u32 = Modifiers::FREE;
/// Second table of `PLOP3`.
pub const SECOND_TABLE: u32 = Modifiers::FREE + 8;
/// `P2R`, `R2P`: which byte of the register.
pub const BYTE: u32 = Modifiers::FREE;
/// `LOP3.PAND`: the predicate takes the and of "not zero" and the input.
pub const PREDICATE_AND: u64 = 1 << (Modifiers::FREE + 8);

/// `MOV`, and `R2UR` where all lanes agree.
#[inline(always)]
pub fn copy(lanes: &mut Lanes<'_>, i: &Instruction) {
    let row = lanes.integer(i.sources[0]);
    lanes.write(i.destination, 0, &row);
}

/// `CS2R` zeroing and 64-bit moves of uniform registers.
#[inline(always)]
pub fn copy64(lanes: &mut Lanes<'_>, i: &Instruction) {
    let values = lanes.pair(i.sources[0].operand);
    lanes.write64(i.destination, &values);
}

/// `R2UR`: the value of the lowest active lane, for the whole warp.
pub fn to_uniform(lanes: &mut Lanes<'_>, i: &Instruction) {
    let Some(first) = lanes_of(lanes.active).next() else {
        return;
    };
    let row = Row::splat(lanes.integer(i.sources[0]).0[first]);
    lanes.execute = FULL;
    lanes.write(i.destination, 0, &row);
}

/// `SEL`, `FSEL`: `a` where the predicate holds, else `b`. Float modifiers act on sign bits.
#[inline(always)]
pub fn select(lanes: &mut Lanes<'_>, i: &Instruction) {
    let (a, b) = (lanes.integer(i.sources[0]), lanes.integer(i.sources[1]));
    let mut row = b;
    row.blend(&a, lanes.predicate(i.predicates[0]));
    lanes.write(i.destination, 0, &row);
}

/// `FSEL`.
#[inline(always)]
pub fn select_float(lanes: &mut Lanes<'_>, i: &Instruction) {
    let (a, b) = (lanes.float(i.sources[0]), lanes.float(i.sources[1]));
    let mut row = b;
    row.blend(&a, lanes.predicate(i.predicates[0]));
    if Modifiers(i.modifiers).flush() {
        row.0
            .iter_mut()
            .for_each(|word| *word = crate::semantics::float32::flush(*word));
    }
    lanes.write(i.destination, 0, &row);
}

/// `LOP3.LUT`: any function of three words; the predicate says "not zero", joined with an input.
#[inline(always)]
pub fn lop3(lanes: &mut Lanes<'_>, i: &Instruction) {
    let (a, b) = (lanes.integer(i.sources[0]), lanes.integer(i.sources[1]));
    let c = lanes.integer(i.sources[2]);
    let table = (i.modifiers >> TABLE) as u8;
    let row = Row(std::array::from_fn(|n| {
        logic::lop3(a.0[n], b.0[n], c.0[n], table)
    }));
    lanes.write(i.destination, 0, &row);
    let other = lanes.predicate(i.predicates[0]);
    let some = mask_of(|n| row.0[n] != 0);
    let joined = if i.modifiers & PREDICATE_AND != 0 {
        some & other
    } else {
        some | other
    };
    lanes.set_predicate(i.predicate_destinations[0], joined);
}

/// `PLOP3.LUT`: two functions of three predicates.
#[inline(always)]
pub fn plop3(lanes: &mut Lanes<'_>, i: &Instruction) {
    let [a, b, c] = i.predicates.map(|predicate| lanes.predicate(predicate));
    let first = logic::lop3(a, b, c, (i.modifiers >> TABLE) as u8);
    let second = logic::lop3(a, b, c, (i.modifiers >> SECOND_TABLE) as u8);
    lanes.set_predicate(i.predicate_destinations[0], first);
    lanes.set_predicate(i.predicate_destinations[1], second);
}

/// `PRMT a, selector, b`.
#[inline(always)]
pub fn permute(lanes: &mut Lanes<'_>, i: &Instruction) {
    let (a, selector) = (lanes.integer(i.sources[0]), lanes.integer(i.sources[1]));
    let b = lanes.integer(i.sources[2]);
    let row = Row(std::array::from_fn(|n| {
        logic::prmt(a.0[n], b.0[n], selector.0[n])
    }));
    lanes.write(i.destination, 0, &row);
}

/// `P2R`: predicates as bits of one byte, under a mask; the rest of `sources[0]` stays.
pub fn predicates_to_register(lanes: &mut Lanes<'_>, i: &Instruction) {
    let shift = 8 * (i.modifiers >> BYTE & 3) as u32;
    let old = lanes.integer(i.sources[0]);
    let mask = lanes.integer(i.sources[1]);
    let base = i.sources[2].operand;
    let first = if let crate::Operand::Immediate(first) = base {
        first as usize
    } else {
        0
    };
    let row = Row(std::array::from_fn(|n| {
        let bits = (0..7).fold(0, |bits, k| {
            bits | (lanes
                .predicates
                .get(first + k)
                .map_or(0, |mask| mask >> n & 1))
                << k
        });
        let wanted = (mask.0[n] & 0xff) << shift;
        (old.0[n] & !wanted) | (bits << shift & wanted)
    }));
    lanes.write(i.destination, 0, &row);
}

/// `R2P`: the bits of one byte to predicates, under a mask.
pub fn register_to_predicates(lanes: &mut Lanes<'_>, i: &Instruction) {
    let shift = 8 * (i.modifiers >> BYTE & 3) as u32;
    let value = lanes.integer(i.sources[0]);
    let mask = lanes.integer(i.sources[1]).0[0];
    for k in 0..7 {
        if mask >> k & 1 == 1 {
            let bits = mask_of(|n| value.0[n] >> (shift + k) & 1 == 1);
            lanes.set_predicate(crate::operand::PredicateRegister::Lanes(k as u16), bits);
        }
    }
}
