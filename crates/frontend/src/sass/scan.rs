//! What has to be known of all code before any of it is decoded: found by passing over the words.
//!
//! Few words are decoded for it: the opcode bits of most say that they cannot matter ([`Shape`]).

use lockstep_isa::{
    Instruction, MachineCode, Operation,
    instruction::Flow,
    sass::{
        Decoded, Shape, Value, decode,
        decoded::{Index, ZERO_REGISTER},
        word::WORD_BYTES,
    },
    warpgroup::Warpgroup,
};

use super::code::{LinkedCode, Text};

impl LinkedCode {
    /// How many uniform registers the code names, and one row more for barriers; before it two for a register of
    /// its own that some code has (`RPCMOV`).
    pub(super) fn count_uniform_registers(&self) -> u16 {
        let (mut highest, mut moves) = (0, 0);
        for text in &self.texts {
            for (index, word) in self.words_of(*text) {
                let shape = Shape::of(self.architecture, word);
                let moved = shape.moves_return_address && moves == 0;
                if !moved && shape.most_uniform(word) <= highest {
                    continue;
                }
                let address = u64::from(index - text.start) * WORD_BYTES;
                if let Ok(decoded) = decode(self.architecture, address, word) {
                    highest = highest.max(highest_uniform(&decoded));
                    if decoded.opcode.name() == "RPCMOV" {
                        moves = 2;
                    }
                }
            }
        }
        highest + moves + 1
    }

    /// Whether a section calls functions.
    pub(super) fn calls(&self, text: Text) -> bool {
        self.shaped(text, |shape| shape.calls).any(|instruction| {
            matches!(
                instruction.operation,
                Operation::Flow(Flow::Call { .. } | Flow::CallIndirect { .. })
            )
        })
    }

    /// Whether a section makes arrays whose size only the program knows (`alloca`): a number in a register is
    /// subtracted from the stack pointer.
    pub(super) fn moves_stack(&self, text: Text) -> bool {
        self.words_of(text)
            .filter(|(_, word)| word.field(16, 8) == u64::from(STACK_POINTER))
            .any(|(index, word)| {
                let address = u64::from(index - text.start) * WORD_BYTES;
                decode(self.architecture, address, word).is_ok_and(|it| moves_stack(&it))
            })
    }

    /// Registers a thread that a warp of a section may come to hold, if it asks for more than it begins
    /// with (`USETMAXREG`).
    pub(super) fn most_registers(&self, text: Text) -> Option<u16> {
        let wanted = self
            .shaped(text, |shape| shape.changes_registers)
            .filter_map(|instruction| match instruction.operation {
                Operation::Warpgroup(Warpgroup::TakeRegisters { wanted }) => Some(wanted),
                _ => None,
            });
        wanted.max().map(|most| most.min(255))
    }

    /// Instructions of a section whose words have a shape.
    fn shaped(
        &self,
        text: Text,
        wanted: impl Fn(&Shape) -> bool,
    ) -> impl Iterator<Item = Instruction> {
        self.words_of(text)
            .filter(move |(_, word)| wanted(Shape::of(self.architecture, *word)))
            .map(|(index, _)| self.instruction(index as usize))
    }
}

/// The register that compilers keep the stack pointer in.
const STACK_POINTER: u8 = 1;

/// Whether an instruction computes the stack pointer from itself and another register.
fn moves_stack(decoded: &Decoded) -> bool {
    let mut registers = decoded.operands.iter().map(|operand| operand.value);
    let writes = registers.next() == Some(Value::Register(STACK_POINTER));
    let sources: Vec<Value> = registers.collect();
    let another = |value: &Value| match *value {
        Value::Register(index) => index != STACK_POINTER && index != ZERO_REGISTER,
        Value::UniformRegister(_) => true,
        _ => false,
    };
    writes && sources.contains(&Value::Register(STACK_POINTER)) && sources.iter().any(another)
}

/// One past the highest uniform register that an instruction may touch; pairs count.
fn highest_uniform(decoded: &Decoded) -> u16 {
    let mut highest = 0;
    let mut touch = |index: u8| {
        if index < 63 {
            highest = highest.max(u16::from(index) + 2);
        }
    };
    for operand in &decoded.operands {
        match operand.value {
            Value::UniformRegister(index) => touch(index),
            Value::Memory(memory) => {
                [memory.uniform, memory.descriptor]
                    .into_iter()
                    .flatten()
                    .for_each(&mut touch);
            }
            Value::Constant(constant) => {
                if let Index::Uniform(index) = constant.index {
                    touch(index);
                }
            }
            Value::RegisterTarget {
                register,
                uniform: true,
                ..
            } => touch(register),
            Value::Descriptor(index) => touch(index),
            // Four registers describe two matrices.
            Value::MatrixDescriptor(index) => [index, index.saturating_add(2)]
                .into_iter()
                .for_each(&mut touch),
            _ => {}
        }
    }
    highest
}
