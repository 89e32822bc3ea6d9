//! Video instructions on the lanes of a warp: the modifiers are an encoded [`Video`]. PTX ISA, "Video Instructions".

use super::prelude::*;
use crate::semantics::video::Video;

/// Any of them: three words in, one out.
pub const VIDEO: Semantics = semantics!(video);

fn video(l: &mut Lanes<'_>, i: &Instruction) {
    let what = Video::decode(i.modifiers);
    ternary(l, i, |a, b, c| what.apply(a, b, c));
}
