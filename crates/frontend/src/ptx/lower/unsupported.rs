//! Instructions that parse and cannot run yet: the sentence that stops a run names them.

use lockstep_isa::ptx::REFUSED;

use crate::ptx::syntax::Instruction;

/// The rest of the sentence that begins with the instruction.
pub(super) fn sentence(i: &Instruction<'_>) -> Option<&'static str> {
    REFUSED
        .iter()
        .find(|(opcode, _)| *opcode == i.opcode)
        .map(|(_, sentence)| *sentence)
}
