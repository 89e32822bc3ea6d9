//! What one instruction needs of the warp that executes it: how far its registers, predicates and
//! convergence barriers go.
//!
//! Widths are those that the semantics read and write, not those that dependence checks look at:
//! an instruction that passes here touches nothing beyond what it names.

use crate::{
    instruction::{CodeAddress, Flow, Instruction, Operation, SystemCall},
    memory::{Action, MemoryOperation},
    operand::{Operand, PredicateRegister},
};

/// One past the highest of each kind; 0 if none is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Warp registers.
    pub registers: u32,
    /// Predicates.
    pub predicates: u32,
    /// Convergence barriers.
    pub barriers: u32,
    /// Bytes from the start of a constant bank.
    pub constant_bytes: u64,
}

impl Needs {
    /// Those of an instruction.
    #[must_use]
    pub fn of(instruction: &Instruction) -> Self {
        let mut needs = Self::default();
        let read = instruction
            .predicates
            .iter()
            .chain([&instruction.guard])
            .map(|predicate| predicate.register);
        for register in read.chain(instruction.predicate_destinations) {
            if let PredicateRegister::Lanes(index) = register {
                needs.predicates = needs.predicates.max(u32::from(index) + 1);
            }
        }
        let scheduling = &instruction.scheduling;
        for (source, words) in instruction.sources.iter().zip(scheduling.source_registers) {
            needs.operand(source.operand, u32::from(words));
        }
        needs.register(
            instruction.destination,
            u32::from(scheduling.destination_registers),
        );
        match &instruction.operation {
            Operation::Memory(operation) => needs.memory(operation),
            Operation::Bulk(operation) => {
                for (operand, words) in operation.operands() {
                    needs.operand(operand, u32::from(words));
                }
            }
            Operation::Texture(operation) => {
                for (operand, words) in operation.operands() {
                    needs.operand(operand, u32::from(words));
                }
                for register in operation.data {
                    needs.register(register, u32::from(operation.words()));
                }
            }
            Operation::System(call) => needs.system(call),
            Operation::Flow(flow) => needs.flow(instruction, *flow),
            Operation::Nothing
            | Operation::Compute(_)
            | Operation::Barrier(_)
            | Operation::Grid(_)
            | Operation::Warpgroup(_)
            | Operation::Fence(_)
            | Operation::Unsupported(_)
            | Operation::Illegal(_) => {}
        }
        needs
    }

    /// The larger of each.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            registers: self.registers.max(other.registers),
            predicates: self.predicates.max(other.predicates),
            barriers: self.barriers.max(other.barriers),
            constant_bytes: self.constant_bytes.max(other.constant_bytes),
        }
    }

    fn register(&mut self, register: Option<u16>, words: u32) {
        if let Some(first) = register {
            self.registers = self.registers.max(u32::from(first) + words.max(1));
        }
    }

    fn operand(&mut self, operand: Operand, words: u32) {
        match operand {
            Operand::Register(first) => self.register(Some(first), words),
            Operand::Constant { offset, .. } => {
                let end = u64::from(offset) + 4 * u64::from(words.max(1));
                self.constant_bytes = self.constant_bytes.max(end);
            }
            Operand::None | Operand::Immediate(_) => {}
        }
    }

    fn memory(&mut self, operation: &MemoryOperation) {
        let address = &operation.address;
        self.operand(address.base, if address.wide { 2 } else { 1 });
        self.operand(address.uniform, if address.uniform_wide { 2 } else { 1 });
        let words = match operation.action {
            Action::Atomic(_, kind)
            | Action::Reduce(_, kind)
            | Action::LoadReduce(_, kind, _)
            | Action::ReduceAsync(_, kind) => kind.bytes().div_ceil(4),
            Action::LoadMatrix { .. } | Action::StoreMatrix { .. } | Action::CopyToShared => 1,
            _ => u32::from(operation.element.words()),
        };
        // A barrier has 64 bits; what changes it comes in words.
        let value_words = match operation.action {
            Action::Mbarrier(_) => 1,
            _ => words,
        };
        for value in operation.values {
            self.operand(value, value_words);
        }
        for register in operation.data {
            self.register(register, words);
        }
    }

    fn system(&mut self, call: &SystemCall) {
        for (index, argument) in call.arguments.iter().enumerate() {
            // Sleeps name one register, and the one behind it is always there.
            self.operand(*argument, call.kind.argument_words(index).max(2));
        }
        self.register(call.result, call.kind.result_words());
    }

    fn flow(&mut self, instruction: &Instruction, flow: Flow) {
        match flow {
            Flow::ConvergeSet { barrier }
            | Flow::ConvergeWait { barrier }
            | Flow::ConvergeBreak { barrier } => {
                self.barriers = self.barriers.max(u32::from(barrier) + 1);
            }
            Flow::BranchIndirect { address }
            | Flow::CallIndirect { address }
            | Flow::Return { address } => {
                let words = if address == CodeAddress::Absolute {
                    2
                } else {
                    1
                };
                self.operand(instruction.sources[0].operand, words);
            }
            _ => {}
        }
        if let Flow::Call { .. } | Flow::CallIndirect { .. } = flow {
            // The return address.
            self.register(instruction.destination, 2);
        }
    }
}
