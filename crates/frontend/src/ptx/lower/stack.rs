//! Room on the stack of a size that the program computes: `alloca`, `stacksave`, `stackrestore`.
//!
//! The stack is that of recursive calls, and grows upwards. A function gives back at its end what it took.

use lockstep_isa::{
    ptx::{Type, class},
    semantics,
    semantics::lane_loops::{Semantics, binary},
};

use super::{Lowering, STACK_ROW};
use crate::ptx::{
    error::Error,
    ir::{Place, Uniformity},
    syntax::{Instruction, Operand},
};

/// Whether an opcode moves the stack pointer, or asks where it is.
pub(in crate::ptx) fn is_stack_opcode(opcode: &str) -> bool {
    matches!(opcode, "alloca" | "stacksave" | "stackrestore")
}

/// Alignment of `alloca` without one.
const ALIGNMENT: u64 = 8;

const ALIGN_UP: Semantics = semantics!(binary; |at, alignment| {
    at.saturating_add(alignment - 1) & alignment.wrapping_neg()
});
/// Ends beyond local memory, where no access is allowed, if there is no room.
const MOVE_UP: Semantics = semantics!(binary; |at, bytes| at.saturating_add(bytes));

impl<'p, 'a> Lowering<'p, 'a> {
    pub(super) fn stack(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let kind = match i.modifiers.as_slice() {
            ["u32"] => Type::B32,
            ["u64"] => Type::B64,
            _ => return self.wrong("a pointer to the stack has the type `.u32` or `.u64`"),
        };
        match i.opcode {
            "alloca" => self.allocate_on_stack(i, kind),
            "stacksave" => {
                self.expect_operands(&i.operands, 1..=1)?;
                self.write_pointer(&i.operands[0], Place::Fixed(STACK_ROW))
            }
            _ => {
                self.expect_operands(&i.operands, 1..=1)?;
                let mut code = self.compute(MOVE_UP, class::INTEGER);
                code.instruction.sources[0] = self.value(&mut code, &i.operands[0], kind)?.into();
                code.instruction.sources[1] = lockstep_isa::Operand::Immediate(0).into();
                code.instruction.destination = Some(code.write(Place::Fixed(STACK_ROW), 1));
                self.push(code);
                Ok(())
            }
        }
    }

    fn allocate_on_stack(&mut self, i: &'p Instruction<'a>, kind: Type) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=3)?;
        let alignment = match i.operands.get(2) {
            Some(operand) => self.literal(operand, Type::B32)?.unwrap_or(0),
            None => ALIGNMENT,
        };
        if !alignment.is_power_of_two() || alignment > 1 << 30 {
            return self.wrong("the alignment of `alloca` is a power of two");
        }
        let start = self.new_register(32);
        let mut align = self.compute(ALIGN_UP, class::INTEGER);
        align.instruction.sources[0] = align.read(Place::Fixed(STACK_ROW), 1).into();
        align.instruction.sources[1] = lockstep_isa::Operand::Immediate(alignment).into();
        align.instruction.destination = Some(align.write(start.place(), 1));
        align.uniformity = Uniformity::Divergent;
        self.push(align);
        let mut advance = self.compute(MOVE_UP, class::INTEGER);
        advance.instruction.sources[0] = advance.read(start.place(), 1).into();
        advance.instruction.sources[1] = self.value(&mut advance, &i.operands[1], kind)?.into();
        advance.instruction.destination = Some(advance.write(Place::Fixed(STACK_ROW), 1));
        self.push(advance);
        self.write_pointer(&i.operands[0], start.place())
    }

    /// Writes a word to a pointer of one or two.
    fn write_pointer(&mut self, pointer: &Operand<'a>, word: Place) -> Result<(), Error> {
        let pointer = self.register_operand(pointer)?;
        let narrow = self.new_register(32);
        self.copy_word(narrow.place(), word);
        self.last().uniformity = Uniformity::Divergent;
        if pointer.words() == 2 {
            self.extend(pointer, narrow, false);
        } else {
            self.copy_word(pointer.place(), narrow.place());
        }
        Ok(())
    }

    /// Notes where the stack ends as a function is entered, if it takes room there.
    pub(super) fn note_stack(&mut self) {
        if self.symbols.calls.moves_stack(self.body.function) {
            let noted = self.new_register(32);
            self.copy_word(noted.place(), Place::Fixed(STACK_ROW));
            self.last().uniformity = Uniformity::Divergent;
            self.stack_at_entry = Some(noted);
        }
    }

    /// Gives back what a function took.
    pub(super) fn give_stack_back(&mut self) {
        if let Some(noted) = self.stack_at_entry {
            self.copy_word(Place::Fixed(STACK_ROW), noted.place());
        }
    }
}
