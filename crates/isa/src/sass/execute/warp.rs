//! SASS instructions in which lanes see each other, and those that ask who a lane is.

use crate::{
    instruction::Instruction,
    lanes::Lanes,
    memory::{LOCAL_WINDOW, SHARED_WINDOW},
    operand::Operand,
    semantics::{
        Modifiers,
        warp::{self, Reduction, ShuffleMode, Vote},
    },
    warp_register::{FULL, LANES, WarpRegister, lanes_of},
};

/// Mode of a shuffle, vote or reduction, in four bits.
pub const MODE: u32 = Modifiers::FREE;
/// Values are 64 bits wide (`MATCH.U64`).
pub const WIDE: u64 = 1 << (Modifiers::FREE + 4);
/// Special register of `S2R`, in eight bits.
pub const SPECIAL: u32 = Modifiers::FREE;

/// `SHFL`: `sources[0]` from the lane that `sources[1]` and the clamp in `sources[2]` name.
pub fn shuffle(lanes: &mut Lanes<'_>, i: &Instruction) {
    let mode = match i.modifiers >> MODE & 3 {
        0 => ShuffleMode::Index,
        1 => ShuffleMode::Up,
        2 => ShuffleMode::Down,
        _ => ShuffleMode::Butterfly,
    };
    let [mut values, b, clamp] = [0, 1, 2].map(|n| lanes.integer(i.sources[n]));
    // Lanes that do not execute it give zero.
    values.blend(&WarpRegister::ZERO, !lanes.execute);
    let (result, in_range) = warp::shuffle(mode, &values.0, &b.0, &clamp.0);
    lanes.write(i.destination, 0, &WarpRegister(result));
    lanes.set_predicate(i.predicate_destinations[0], in_range);
}

/// `VOTE`, `VOTEU`: the ballot of `predicates[0]` among the active lanes, and its outcome.
pub fn vote(lanes: &mut Lanes<'_>, i: &Instruction) {
    let kind = match i.modifiers >> MODE & 3 {
        0 => Vote::All,
        1 => Vote::Any,
        _ => Vote::Uniform,
    };
    let members = lanes.execute;
    let predicate = lanes.predicate(i.predicates[0]);
    let outcome = if warp::vote(kind, predicate, members) {
        FULL
    } else {
        0
    };
    if i.modifiers & WIDE != 0 {
        // The uniform form writes for the whole warp.
        lanes.execute = if members == 0 { 0 } else { FULL };
    }
    lanes.write(i.destination, 0, &WarpRegister::splat(predicate & members));
    lanes.set_predicate(i.predicate_destinations[0], outcome);
}

/// `MATCH.ANY`, `MATCH.ALL`.
pub fn match_values(lanes: &mut Lanes<'_>, i: &Instruction) {
    let values = if i.modifiers & WIDE != 0 {
        lanes.integer64(i.sources[0])
    } else {
        lanes.integer(i.sources[0]).0.map(u64::from)
    };
    let members = lanes.execute;
    if i.modifiers >> MODE & 1 == 1 {
        let all = warp::match_all(&values, members);
        lanes.write(i.destination, 0, &WarpRegister::splat(all));
        lanes.set_predicate(i.predicate_destinations[0], if all == 0 { 0 } else { FULL });
    } else {
        let row = WarpRegister(warp::match_any(&values, members));
        lanes.write(i.destination, 0, &row);
    }
}

/// `REDUX`: the active lanes' values reduced, for the whole warp.
pub fn reduce(lanes: &mut Lanes<'_>, i: &Instruction) {
    const REDUCTIONS: [Reduction; 8] = [
        Reduction::And,
        Reduction::Or,
        Reduction::Xor,
        Reduction::Add,
        Reduction::Min,
        Reduction::Max,
        Reduction::MinSigned,
        Reduction::MaxSigned,
    ];
    let reduction = REDUCTIONS[(i.modifiers >> MODE & 7) as usize];
    let members = lanes.execute;
    let value = warp::reduce(reduction, &lanes.integer(i.sources[0]).0, members);
    lanes.execute = if members == 0 { 0 } else { FULL };
    lanes.write(i.destination, 0, &WarpRegister::splat(value));
}

/// `ELECT`: a predicate that holds in the lowest active lane.
pub fn elect(lanes: &mut Lanes<'_>, i: &Instruction) {
    let members = match i.sources[0].operand {
        Operand::None => lanes.execute,
        mask => lanes.execute & lanes.raw(mask, 0).0[0],
    };
    let chosen = warp::elect(members);
    lanes.set_predicate(i.predicate_destinations[0], 1 << chosen);
    lanes.execute = if members == 0 { 0 } else { FULL };
    lanes.write(i.destination, 0, &WarpRegister::splat(chosen));
}

/// `S2R`, `CS2R`, `S2UR`: a special register. 64-bit ones fill two registers.
pub fn special(lanes: &mut Lanes<'_>, i: &Instruction) {
    let index = (i.modifiers >> SPECIAL & 0xff) as u8;
    let who = lanes.identity;
    let each = |f: &dyn Fn(usize) -> u32| WarpRegister(std::array::from_fn(f));
    let row = match index {
        0x00 => each(&|lane| lane as u32),
        0x02 => WarpRegister::splat(who.warp_slots << 8),
        0x03 => WarpRegister::splat(who.warp_slot << 8),
        0x20 => {
            let [x, y, z] = [0, 1, 2].map(|axis| who.threads(axis));
            each(&|lane| x.0[lane] | y.0[lane] << 16 | z.0[lane] << 26)
        }
        0x21..=0x23 => who.threads(usize::from(index - 0x21)),
        0x25..=0x27 => WarpRegister::splat(who.block[usize::from(index - 0x25)]),
        0x2e => WarpRegister::splat((LOCAL_WINDOW >> 32) as u32),
        0x2f => WarpRegister::splat((SHARED_WINDOW >> 32) as u32),
        0x30 => WarpRegister::splat(SHARED_WINDOW as u32),
        0x34 => WarpRegister::splat(LOCAL_WINDOW as u32),
        // A thread's local memory is one piece from the start of its window (SR_LMEMLOSZ, SR_LMEMHIOFF): code that
        // compares its stack pointer with the lower end finds room down to there.
        0x36 | 0x37 => WarpRegister::ZERO,
        0x32 => WarpRegister::splat(who.total_shared),
        0x38 => each(&|lane| 1 << lane),
        0x39 => each(&|lane| (1 << lane) - 1),
        0x3a => each(&|lane| u32::MAX >> (31 - lane)),
        0x3b => each(&|lane| !(u32::MAX >> (31 - lane))),
        0x3c => each(&|lane| !((1 << lane) - 1)),
        0x43 => WarpRegister::splat(who.sm),
        0x50 => WarpRegister::splat(who.clock as u32),
        0x51 => WarpRegister::splat((who.clock >> 32) as u32),
        0x52 => WarpRegister::splat(who.nanoseconds() as u32),
        0x53 => WarpRegister::splat((who.nanoseconds() >> 32) as u32),
        0x88 => WarpRegister::splat(who.cluster_rank()),
        _ => WarpRegister::ZERO,
    };
    lanes.write(i.destination, 0, &row);
    if i.modifiers & WIDE_SPECIAL != 0 {
        let high = match index {
            0x50 => (who.clock >> 32) as u32,
            0x52 => (who.nanoseconds() >> 32) as u32,
            _ => 0,
        };
        lanes.write(i.destination, 1, &WarpRegister::splat(high));
    }
}

/// `CS2R` without `.32`: two registers.
pub const WIDE_SPECIAL: u64 = 1 << (Modifiers::FREE + 8);
/// Special registers that [`special`] answers; a program that asks for another is refused.
pub const SPECIAL_REGISTERS: &[u8] = &[
    0x00, 0x02, 0x03, 0x20, 0x21, 0x22, 0x23, 0x25, 0x26, 0x27, 0x2e, 0x2f, 0x30, 0x32, 0x34, 0x36,
    0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x43, 0x50, 0x51, 0x52, 0x53, 0x88, 0xff,
];

/// `B2R`, `BMOV` from a convergence barrier: its lanes as a word.
pub fn read_barrier(lanes: &mut Lanes<'_>, i: &Instruction) {
    let Operand::Immediate(barrier) = i.sources[0].operand else {
        return;
    };
    let recorded = lanes.convergence.barrier(barrier as u16);
    lanes.write(i.destination, 0, &WarpRegister::splat(recorded));
    if i.modifiers & CLEAR != 0 {
        lanes.convergence.clear_barrier(barrier as u16);
    }
}

/// `BMOV` to a convergence barrier: each lane's word says which lanes; the lowest active speaks.
pub fn write_barrier(lanes: &mut Lanes<'_>, i: &Instruction) {
    let Operand::Immediate(barrier) = i.sources[0].operand else {
        return;
    };
    let row = lanes.integer(i.sources[1]);
    if let Some(first) = lanes_of(lanes.execute).next() {
        lanes.convergence.set_barrier(barrier as u16, row.0[first]);
    }
}

/// `BMOV.32.CLEAR`: the barrier is emptied after it is read.
pub const CLEAR: u64 = 1 << Modifiers::FREE;

/// `LEPC`: the code address of this instruction plus an offset, in two registers. The binder puts the
/// sum in `sources[0]`.
pub fn code_address(lanes: &mut Lanes<'_>, i: &Instruction) {
    let values = lanes.pair(i.sources[0].operand);
    lanes.write64(i.destination, &values);
}

/// `MOVM.16.MT88`: an 8 × 8 matrix of 16-bit elements, transposed across lanes.
pub fn transpose_matrix(lanes: &mut Lanes<'_>, i: &Instruction) {
    let source = lanes.integer(i.sources[0]);
    let element = |row: usize, column: usize| {
        let word = source.0[row * 4 + column / 2];
        (word >> (16 * (column % 2))) & 0xffff
    };
    let row = WarpRegister(std::array::from_fn(|lane| {
        let (row, column) = (lane / 4, 2 * (lane % 4));
        element(column, row) | element(column + 1, row) << 16
    }));
    debug_assert_eq!(LANES, 32);
    lanes.write(i.destination, 0, &row);
}
