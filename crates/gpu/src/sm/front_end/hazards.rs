//! Which registers and predicates instructions read and write, found once.

use lockstep_isa::instruction::BlockBarrierMode;
use lockstep_isa::memory::{Action, MemoryOperation};
use lockstep_isa::operand::{PredicateOperand, PredicateRegister};
use lockstep_isa::{Instruction, Operand, Operation};

/// Registers or predicates from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First one.
    pub first: u16,
    /// Number of registers or predicates.
    pub count: u16,
}

impl Span {
    /// Each of them.
    pub fn all(&self) -> impl Iterator<Item = usize> + use<> {
        usize::from(self.first)..usize::from(self.first) + usize::from(self.count)
    }
}

/// Spans of one instruction in the common list.
#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    start: u32,
    reads: u8,
    writes: u8,
    predicate_reads: u8,
    predicate_writes: u8,
}

/// The hazards of some instructions.
#[derive(Clone, Debug, Default)]
pub struct Hazards {
    spans: Vec<Span>,
    slices: Vec<Slice>,
}

/// What one instruction reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct Hazard<'a> {
    /// Registers read.
    pub reads: &'a [Span],
    /// Registers written.
    pub writes: &'a [Span],
    /// Predicates read.
    pub predicate_reads: &'a [Span],
    /// Predicates written.
    pub predicate_writes: &'a [Span],
}

impl Hazards {
    /// Looks at every one of some instructions.
    #[must_use]
    pub fn new<'code>(code: impl IntoIterator<Item = &'code Instruction>) -> Self {
        let mut hazards = Self::default();
        for instruction in code {
            hazards.add(instruction);
        }
        hazards
    }

    /// Those of one of them.
    #[must_use]
    #[inline]
    pub fn get(&self, place: usize) -> Hazard<'_> {
        let slice = self.slices[place];
        let all = &self.spans[slice.start as usize..];
        let (reads, all) = all.split_at(usize::from(slice.reads));
        let (writes, all) = all.split_at(usize::from(slice.writes));
        let (predicate_reads, all) = all.split_at(usize::from(slice.predicate_reads));
        let predicate_writes = &all[..usize::from(slice.predicate_writes)];
        Hazard {
            reads,
            writes,
            predicate_reads,
            predicate_writes,
        }
    }

    fn add(&mut self, instruction: &Instruction) {
        let mut slice = Slice {
            start: self.spans.len() as u32,
            ..Slice::default()
        };
        let mut found = Found::default();
        found.instruction(instruction);
        for (list, count) in [
            (&found.reads, &mut slice.reads),
            (&found.writes, &mut slice.writes),
            (&found.predicate_reads, &mut slice.predicate_reads),
            (&found.predicate_writes, &mut slice.predicate_writes),
        ] {
            *count = list.len() as u8;
            self.spans.extend_from_slice(list);
        }
        self.slices.push(slice);
    }
}

#[derive(Default)]
struct Found {
    reads: Vec<Span>,
    writes: Vec<Span>,
    predicate_reads: Vec<Span>,
    predicate_writes: Vec<Span>,
}

impl Found {
    fn read(&mut self, operand: Operand, count: u16) {
        if let Operand::Register(first) = operand
            && count > 0
        {
            self.reads.push(Span { first, count });
        }
    }

    fn write(&mut self, register: Option<u16>, count: u16) {
        if let Some(first) = register
            && count > 0
        {
            self.writes.push(Span { first, count });
        }
    }

    fn read_predicate(&mut self, operand: PredicateOperand) {
        if let PredicateRegister::Lanes(first) = operand.register {
            self.predicate_reads.push(Span { first, count: 1 });
        }
    }

    fn instruction(&mut self, instruction: &Instruction) {
        self.read_predicate(instruction.guard);
        for predicate in instruction.predicates {
            self.read_predicate(predicate);
        }
        for destination in instruction.predicate_destinations {
            if let PredicateRegister::Lanes(first) = destination {
                self.predicate_writes.push(Span { first, count: 1 });
            }
        }
        for (source, count) in instruction
            .sources
            .iter()
            .zip(instruction.scheduling.source_registers)
        {
            self.read(source.operand, u16::from(count));
        }
        let count = u16::from(instruction.scheduling.destination_registers);
        self.write(instruction.destination, count);
        match &instruction.operation {
            Operation::Memory(operation) => self.memory(operation),
            Operation::Bulk(operation) => {
                for (operand, words) in operation.operands() {
                    self.read(operand, words);
                }
            }
            Operation::Texture(operation) => {
                for (operand, words) in operation.operands() {
                    self.read(operand, words);
                }
                for register in operation.data {
                    self.write(register, operation.words());
                }
            }
            Operation::System(call) => {
                for (index, operand) in call.arguments.iter().enumerate() {
                    self.read(*operand, call.kind.argument_words(index) as u16);
                }
                let count = call.kind.result_words() as u16;
                self.write(call.result, count);
            }
            Operation::Barrier(barrier) if barrier.mode == BlockBarrierMode::ReducePopulation => {
                self.write(instruction.destination, 1);
            }
            _ => {}
        }
    }

    fn memory(&mut self, operation: &MemoryOperation) {
        let address = &operation.address;
        self.read(address.base, if address.wide { 2 } else { 1 });
        let element = match operation.action {
            Action::Atomic(_, kind) | Action::Reduce(_, kind) | Action::ReduceAsync(_, kind) => {
                kind.bytes().div_ceil(4) as u16
            }
            Action::LoadMatrix { .. } | Action::StoreMatrix { .. } | Action::CopyToShared => 1,
            _ => operation.element.words(),
        };
        let value_words = match operation.action {
            Action::Mbarrier(_) => 1,
            _ => element,
        };
        for value in operation.values {
            self.read(value, value_words);
        }
        for register in operation.data {
            self.write(register, element);
        }
    }
}
