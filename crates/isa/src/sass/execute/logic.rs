//! Logic, moves, selections and predicates of SASS on the registers of a warp.

use crate::{
    instruction::Instruction,
    lanes::Lanes,
    operand::{Operand, PredicateOperand, PredicateRegister},
    operands,
    semantics::{
        Modifiers,
        lane_loops::{map_lanes, mask_of},
        logic::{self, PermuteMode},
    },
    warp_register::{FULL, WarpRegister, lanes_of},
};

/// Where `LOP3` and `PLOP3` keep their look-up tables, 8 bits each.
pub const TABLE: u32 = Modifiers::FREE;
/// Second table of `PLOP3`.
pub const SECOND_TABLE: u32 = Modifiers::FREE + 8;
/// `PLOP3`: the inputs are signs of registers rather than predicates.
pub const SIGNS: u64 = 1 << (Modifiers::FREE + 16);
/// `P2R`, `R2P`: which byte of the register.
pub const BYTE: u32 = Modifiers::FREE;
/// `LOP3.PAND`: the predicate takes the and of "not zero" and the input.
pub const PREDICATE_AND: u64 = 1 << (Modifiers::FREE + 8);

/// `R2UR.OR`: lanes whose predicate says so already differ, too.
pub const DIFFERS_TOO: u64 = 1 << Modifiers::FREE;

/// How `PRMT` makes its selector: position in [`PERMUTE_MODES`].
pub const PERMUTE: u32 = Modifiers::FREE;
/// Modes of `PRMT` by the words that name them.
pub const PERMUTE_MODES: [(&str, PermuteMode); 7] = [
    ("", PermuteMode::Index),
    ("F4E", PermuteMode::ForwardExtract),
    ("B4E", PermuteMode::BackwardExtract),
    ("RC8", PermuteMode::ReplicateByte),
    ("ECL", PermuteMode::EdgeClampLeft),
    ("ECR", PermuteMode::EdgeClampRight),
    ("RC16", PermuteMode::ReplicateHalf),
];

/// `MOV`, and `R2UR` where all lanes agree.
#[inline(always)]
pub fn copy(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; source = integer_at 0);
    let row = *source;
    lanes.write(i.destination, 0, &row);
}

/// `CS2R` zeroing and 64-bit moves of uniform registers.
#[inline(always)]
pub fn copy64(lanes: &mut Lanes<'_>, i: &Instruction) {
    let values = lanes.pair(i.sources[0].operand);
    lanes.write64(i.destination, &values);
}

/// `R2UR`: the value of the lowest executing lane, for the whole warp. The predicate says in which
/// lanes it is another, so that a loop can take them in turn.
pub fn to_uniform(lanes: &mut Lanes<'_>, i: &Instruction) {
    let Some(first) = lanes_of(lanes.execute).next() else {
        return;
    };
    let values = lanes.integer(i.sources[0]);
    let row = WarpRegister::splat(values.0[first]);
    let register = i.predicate_destinations[0];
    if register != PredicateRegister::True {
        let mut differs = mask_of(|n| values.0[n] != row.0[n]);
        if i.modifiers & DIFFERS_TOO != 0 {
            differs |= lanes.predicate(PredicateOperand::of(register));
        }
        lanes.set_predicate(register, differs);
    }
    lanes.execute = FULL;
    lanes.write(i.destination, 0, &row);
}

/// `SEL`, `FSEL`: `a` where the predicate holds, else `b`. Float modifiers act on sign bits.
#[inline(always)]
pub fn select(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1);
    let mut row = *b;
    row.blend(a, lanes.predicate(i.predicates[0]));
    lanes.write(i.destination, 0, &row);
}

/// `FSEL`.
#[inline(always)]
pub fn select_float(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = float_at 0, b = float_at 1);
    let mut row = *b;
    row.blend(a, lanes.predicate(i.predicates[0]));
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
    operands!(lanes, i; a = integer_at 0, b = integer_at 1, c = integer_at 2);
    let row = match (i.modifiers >> TABLE) as u8 {
        // What programs spell as one or two operators.
        0xc0 => map_lanes(|n| a.0[n] & b.0[n]),
        0xfc => map_lanes(|n| a.0[n] | b.0[n]),
        0x3c => map_lanes(|n| a.0[n] ^ b.0[n]),
        0x0c => map_lanes(|n| !a.0[n] & b.0[n]),
        0x30 => map_lanes(|n| a.0[n] & !b.0[n]),
        0x33 => map_lanes(|n| !b.0[n]),
        0xfe => map_lanes(|n| a.0[n] | b.0[n] | c.0[n]),
        0x80 => map_lanes(|n| a.0[n] & b.0[n] & c.0[n]),
        0x96 => map_lanes(|n| a.0[n] ^ b.0[n] ^ c.0[n]),
        0xf8 => map_lanes(|n| a.0[n] | (b.0[n] & c.0[n])),
        0xea => map_lanes(|n| (a.0[n] & b.0[n]) | c.0[n]),
        0xe2 => map_lanes(|n| (a.0[n] & b.0[n]) | (!b.0[n] & c.0[n])),
        table => map_lanes(|n| logic::lop3(a.0[n], b.0[n], c.0[n], table)),
    };
    lanes.write(i.destination, 0, &row);
    if i.predicate_destinations[0] == PredicateRegister::True {
        return;
    }
    let other = lanes.predicate(i.predicates[0]);
    let some = mask_of(|n| row.0[n] != 0);
    let joined = if i.modifiers & PREDICATE_AND != 0 {
        some & other
    } else {
        some | other
    };
    lanes.set_predicate(i.predicate_destinations[0], joined);
}

/// `PLOP3.LUT`: two functions of three predicates, or of the signs of three registers.
#[inline(always)]
pub fn plop3(lanes: &mut Lanes<'_>, i: &Instruction) {
    let [a, b, c] = if i.modifiers & SIGNS == 0 {
        i.predicates.map(|predicate| lanes.predicate(predicate))
    } else {
        [0, 1, 2].map(|n| {
            let words = lanes.integer(i.sources[n]);
            mask_of(|lane| words.0[lane] >> 31 == 1)
        })
    };
    let first = logic::lop3(a, b, c, (i.modifiers >> TABLE) as u8);
    let second = logic::lop3(a, b, c, (i.modifiers >> SECOND_TABLE) as u8);
    lanes.set_predicate(i.predicate_destinations[0], first);
    lanes.set_predicate(i.predicate_destinations[1], second);
}

/// `PRMT a, selector, b`.
#[inline(always)]
pub fn permute(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0, selector = integer_at 1, b = integer_at 2);
    let mode = (i.modifiers >> PERMUTE & 7) as usize;
    let row = match i.sources[1].operand {
        _ if mode != 0 => {
            let mode = PERMUTE_MODES[mode % PERMUTE_MODES.len()].1;
            map_lanes(|n| logic::prmt(a.0[n], b.0[n], logic::prmt_selector(mode, selector.0[n])))
        }
        // Four bytes as they are, by one selector for all lanes: what compilers write.
        Operand::Immediate(chosen) if chosen & 0x8888 == 0 => {
            let from: [u32; 4] = [0, 4, 8, 12].map(|at| 8 * (chosen >> at & 7) as u32);
            map_lanes(|n| {
                let bytes = u64::from(b.0[n]) << 32 | u64::from(a.0[n]);
                let byte = |k: usize| (bytes >> from[k] & 0xff) << (8 * k);
                (byte(0) | byte(1) | byte(2) | byte(3)) as u32
            })
        }
        _ => map_lanes(|n| logic::prmt(a.0[n], b.0[n], selector.0[n])),
    };
    lanes.write(i.destination, 0, &row);
}

/// `P2R`, `UP2UR`: predicates as bits of one byte, under a mask; the rest of `sources[0]` stays.
/// `sources[2]` is the first predicate of the file.
pub fn predicates_to_register(lanes: &mut Lanes<'_>, i: &Instruction) {
    let shift = 8 * (i.modifiers >> BYTE & 3) as u32;
    operands!(lanes, i; old = integer_at 0, mask = integer_at 1);
    let first = usize::from(first_predicate(i));
    let row = map_lanes(|n| {
        let bits = (0..7).fold(0, |bits, k| {
            bits | (lanes
                .predicates
                .get(first + k)
                .map_or(0, |mask| mask >> n & 1))
                << k
        });
        let wanted = (mask.0[n] & 0xff) << shift;
        (old.0[n] & !wanted) | (bits << shift & wanted)
    });
    lanes.write(i.destination, 0, &row);
}

/// `R2P`, `UR2UP`: the bits of one byte to predicates, under a mask.
pub fn register_to_predicates(lanes: &mut Lanes<'_>, i: &Instruction) {
    let shift = 8 * (i.modifiers >> BYTE & 3) as u32;
    let value = lanes.integer(i.sources[0]);
    let mask = lanes.integer(i.sources[1]);
    for k in 0..7 {
        let index = first_predicate(i) + k as u16;
        let wanted = mask_of(|n| mask.0[n] >> k & 1 == 1);
        let bits = mask_of(|n| value.0[n] >> (shift + k) & 1 == 1);
        let old = lanes.predicates[usize::from(index)];
        let new = bits & wanted | old & !wanted;
        lanes.set_predicate(PredicateRegister::Lanes(index), new);
    }
}

/// Where the predicates that move between files begin.
fn first_predicate(i: &Instruction) -> u16 {
    match i.sources[2].operand {
        Operand::Immediate(first) => first as u16,
        _ => 0,
    }
}
