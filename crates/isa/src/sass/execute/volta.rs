//! Volta's matrix step: a quarter of an 8 × 8 × 4 product in each of four groups of eight lanes.
//!
//! A group is four neighbouring lanes and the four that are 16 higher. PTX documents where the
//! elements of `mma.m8n8k4` lie; the four steps of one product make the eight accumulators of a
//! lane, two a step, in their order.

use super::bind::Spelling;
use crate::{
    instruction::Instruction,
    lanes::Lanes,
    semantics::matrix::{TensorCore, half_dot},
    warp_register::{LANES, WarpRegister},
};

/// This is a step, not a whole product.
pub const STEP: u64 = 1 << 63;
const NUMBER: u32 = 60;
const A_COLUMNS: u64 = 1 << 59;
const B_COLUMNS: u64 = 1 << 58;

/// Whether the text is a step.
#[must_use]
pub fn is_step(spelling: &Spelling<'_>) -> bool {
    spelling.name == "HMMA" && spelling.has("884")
}

/// Why it cannot be executed, if it cannot.
#[must_use]
pub fn refused(spelling: &Spelling<'_>) -> Option<&'static str> {
    let singles = spelling.words.iter().filter(|word| **word == "F32").count();
    (singles != 2).then_some(
        "accumulates Volta's matrix step in half precision, which cannot be executed yet",
    )
}

/// Modifier bits.
#[must_use]
pub fn bits(spelling: &Spelling<'_>) -> u64 {
    let number = ["STEP0", "STEP1", "STEP2", "STEP3"]
        .iter()
        .position(|word| spelling.has(word))
        .unwrap_or(0) as u64;
    let columns = |index: usize| {
        spelling
            .operands()
            .get(index)
            .is_some_and(|operand| operand.modifiers.iter().any(|word| word.name() == "COL"))
    };
    STEP | number << NUMBER
        | if columns(1) { A_COLUMNS } else { 0 }
        | if columns(2) { B_COLUMNS } else { 0 }
}

/// Carries out one step.
pub fn step(lanes: &mut Lanes<'_>, i: &Instruction) {
    let pair = |source: usize| [0, 1].map(|word| lanes.raw(i.sources[source].operand, word));
    let (a, b, c) = (pair(0), pair(1), pair(2));
    let number = (i.modifiers >> NUMBER & 3) as usize;
    let mut d = [WarpRegister::ZERO; 2];
    for lane in 0..LANES {
        for word in 0..2 {
            let index = 2 * number + word;
            let row = (lane & 1) + (index & 2);
            let column = (index & 4) + (lane & 2) + (index & 1);
            let left = [0, 1, 2, 3]
                .map(|k| element(&a, lane, row, k, lane / 16, i.modifiers & A_COLUMNS != 0));
            let right = [0, 1, 2, 3].map(|k| {
                let across = i.modifiers & B_COLUMNS == 0;
                element(&b, lane, column % 4, k, column / 4, across)
            });
            d[word].0[lane] = half_dot(TensorCore::Volta, left, right, c[word].0[lane]);
        }
    }
    for (word, row) in d.iter().enumerate() {
        lanes.write(i.destination, word as u16, row);
    }
}

/// An element by its place along the outer side (0 to 3, in one half of the group) and along k. The
/// four halves of a lane run along k, or, `across`, along the outer side.
fn element(
    rows: &[WarpRegister; 2],
    lane: usize,
    outer: usize,
    k: usize,
    half: usize,
    across: bool,
) -> u32 {
    let (holder, index) = if across { (k, outer) } else { (outer, k) };
    let lane = (lane & 12) + holder + 16 * half;
    let word = rows[index / 2].0[lane];
    word >> (16 * (index % 2)) & 0xffff
}
