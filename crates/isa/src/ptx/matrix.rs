//! Matrix multiply on fragments in consecutive rows: A, B and C are sources 0 to 2, metadata of a
//! sparse A is source 3, and the modifiers are an encoded [`Multiply`]. PTX ISA, `mma`.

use super::prelude::*;
use crate::{
    Operand, WarpRegister,
    semantics::matrix::{Multiply, multiply},
};

/// `D = A × B + C`.
pub const MULTIPLY: Semantics = semantics!(multiply_rows);

fn multiply_rows(l: &mut Lanes<'_>, i: &Instruction) {
    let shape = Multiply::decode(i.modifiers);
    let fragment = |operand: Operand, rows: usize| -> Vec<WarpRegister> {
        (0..rows as u16).map(|word| l.raw(operand, word)).collect()
    };
    let a = fragment(i.sources[0].operand, shape.a_registers());
    let b = fragment(i.sources[1].operand, shape.b_registers());
    let c = fragment(i.sources[2].operand, shape.c_registers());
    let metadata = l.raw(i.sources[3].operand, 0);
    for (word, row) in multiply(shape, &a, &b, &c, &metadata).iter().enumerate() {
        l.write(i.destination, word as u16, row);
    }
}
