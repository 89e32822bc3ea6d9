//! Instructions before registers have rows.
//!
//! A [`Code`] is an [`Instruction`] whose register numbers are indices into its own list of
//! [`Place`]s, and whose predicate numbers are indices into its own list of flags. Passes look at
//! the lists; the last one puts rows in.

use lockstep_isa::{
    Instruction, Operand, Operation,
    instruction::{Flow, Mix, SchedulingInfo, Unit},
    operand::{PredicateOperand, PredicateRegister},
};

/// A register of a function: `%r1`, a temporary, a parameter of a call.
pub type RegisterId = u32;
/// A predicate of a function.
pub type FlagId = u32;
/// A label of a function.
pub type LabelId = u32;

/// What a register number of an instruction stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A word of a register.
    Virtual {
        /// The virtual register.
        register: RegisterId,
        /// One of its 32-bit words.
        word: u16,
    },
    /// A row that calls pass arguments through.
    Fixed(u16),
}

/// One use of a register.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// The place that is read.
    pub place: Place,
    /// Words from there on.
    pub rows: u16,
    /// Written rather than read.
    pub write: bool,
}

/// Whether a value is the same in all lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Uniformity {
    /// Uniform if the operands are.
    #[default]
    AsOperands,
    /// May differ between lanes whatever the operands are.
    Divergent,
}

/// Where control may go besides the next instruction.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Target {
    /// Nowhere.
    #[default]
    None,
    /// To a label.
    Label(LabelId),
    /// To one of the labels of a jump table.
    Table(usize),
    /// Into a function, by its index in the program, and back.
    Function(usize),
    /// Into a function that a register names, and back.
    AnyFunction,
}

/// One instruction of a function.
#[derive(Clone, Debug)]
pub struct Code<'a> {
    /// The instruction, register numbers local.
    pub instruction: Instruction,
    /// What the register numbers stand for.
    pub uses: Vec<Use>,
    /// What the predicate numbers stand for, and whether they are written.
    pub flags: Vec<(FlagId, bool)>,
    /// Jumps and calls.
    pub target: Target,
    /// Whether its result may differ between lanes.
    pub uniformity: Uniformity,
    /// All lanes of the warp jump the same way (`.uni`).
    pub uniform_jump: bool,
    /// Reads or writes memory in a way that other threads may answer.
    pub communicates: bool,
    /// A call that may come back to the function before it returns.
    pub reenters: bool,
    /// The lanes that must have reconverged here, as a mask in this source (`*.sync`).
    pub converged_lanes: Option<Operand>,
    /// The statement, for messages; empty for instructions that passes add.
    pub text: &'a str,
    /// Index into the source lines.
    pub line: u32,
    /// Numbers that are known only when everything has its place.
    pub fixups: Vec<Fixup>,
    /// Not an instruction but a place for some, filled in by `recursion`.
    pub mark: Option<Mark>,
}

/// Where registers go to the stack and come back from it, by number of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Before the call.
    Save(u32),
    /// After it.
    Restore(u32),
}

/// A number that is added to an immediate, or to an address, at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixup {
    /// The operand that it is added to.
    pub field: Field,
    /// The amount, known once registers are allocated.
    pub amount: Amount,
}

/// A part of an instruction that holds a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// An immediate source.
    Source(u8),
    /// The offset of a memory access.
    Offset,
}

/// A number that is known at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// The code address of a function.
    Function(usize),
    /// Where the function's local variables begin.
    LocalBase,
    /// Where a jump table begins.
    Table(usize),
    /// Where the kernel's stack begins.
    Stack,
    /// Bytes of the function's local variables on the stack.
    Frame {
        /// Taken away rather than added.
        back: bool,
    },
}

impl Code<'_> {
    /// An instruction without operands.
    pub fn new(operation: Operation, shape: SchedulingInfo) -> Self {
        Self {
            instruction: Instruction::new(operation, shape),
            uses: Vec::new(),
            flags: Vec::new(),
            target: Target::None,
            uniformity: Uniformity::AsOperands,
            uniform_jump: false,
            communicates: false,
            reenters: false,
            converged_lanes: None,
            text: "",
            line: 0,
            fixups: Vec::new(),
            mark: None,
        }
    }

    /// A free instruction of control flow, as passes insert them.
    pub fn free(flow: Flow) -> Self {
        Self::new(
            Operation::Flow(flow),
            SchedulingInfo {
                unit: Unit::Branch,
                mix: Mix::Control,
                pseudo: true,
                ..SchedulingInfo::default()
            },
        )
    }

    /// The flow, if this is control flow.
    pub fn flow(&self) -> Option<Flow> {
        match self.instruction.operation {
            Operation::Flow(flow) => Some(flow),
            _ => None,
        }
    }

    /// Executed by all lanes that come here.
    pub fn unguarded(&self) -> bool {
        self.instruction.guard == PredicateOperand::TRUE
    }

    /// Names a register for reading; gives the operand.
    pub fn read(&mut self, place: Place, rows: u16) -> Operand {
        Operand::Register(self.local(place, rows, false))
    }

    /// Names a register for writing; gives its number.
    pub fn write(&mut self, place: Place, rows: u16) -> u16 {
        self.local(place, rows, true)
    }

    fn local(&mut self, place: Place, rows: u16, write: bool) -> u16 {
        self.uses.push(Use { place, rows, write });
        (self.uses.len() - 1) as u16
    }

    /// Names a predicate for reading.
    pub fn read_flag(&mut self, flag: FlagId, negate: bool) -> PredicateOperand {
        self.flags.push((flag, false));
        PredicateOperand {
            register: PredicateRegister::Lanes((self.flags.len() - 1) as u16),
            negate,
        }
    }

    /// Names a predicate for writing.
    pub fn write_flag(&mut self, flag: FlagId) -> PredicateRegister {
        self.flags.push((flag, true));
        PredicateRegister::Lanes((self.flags.len() - 1) as u16)
    }

    /// Puts rows and predicate registers in.
    pub fn resolve(&mut self, row: impl Fn(Place) -> u16, flag: impl Fn(FlagId) -> u16) {
        let uses = &self.uses;
        let flags = &self.flags;
        let number = |local: u16| row(uses[usize::from(local)].place);
        let operand = |operand: &mut Operand| {
            if let Operand::Register(local) = operand {
                *local = number(*local);
            }
        };
        let predicate = |register: &mut PredicateRegister| {
            if let PredicateRegister::Lanes(local) = register {
                *local = flag(flags[usize::from(*local)].0);
            }
        };
        let instruction = &mut self.instruction;
        for source in &mut instruction.sources {
            operand(&mut source.operand);
        }
        if let Some(destination) = &mut instruction.destination {
            *destination = number(*destination);
        }
        predicate(&mut instruction.guard.register);
        for read in &mut instruction.predicates {
            predicate(&mut read.register);
        }
        for written in &mut instruction.predicate_destinations {
            predicate(written);
        }
        match &mut instruction.operation {
            Operation::Memory(memory) => {
                operand(&mut memory.address.base);
                operand(&mut memory.address.uniform);
                memory.values.iter_mut().for_each(operand);
                for data in memory.data.iter_mut().flatten() {
                    *data = number(*data);
                }
            }
            Operation::Bulk(bulk) => {
                bulk.operands_mut().for_each(|(value, _)| operand(value));
            }
            Operation::Texture(texture) => {
                texture.operands_mut().for_each(operand);
                for data in texture.data.iter_mut().flatten() {
                    *data = number(*data);
                }
            }
            Operation::System(call) => {
                call.arguments.iter_mut().for_each(operand);
                if let Some(result) = &mut call.result {
                    *result = number(*result);
                }
            }
            _ => {}
        }
    }
}

/// A function after lowering.
#[derive(Debug)]
pub struct Body<'a> {
    /// Index of the function in the program.
    pub function: usize,
    /// Instructions in order; labels say where they stand.
    pub code: Vec<Code<'a>>,
    /// Index of the instruction that each label stands before.
    pub labels: Vec<usize>,
    /// Jump tables.
    pub tables: Vec<Vec<LabelId>>,
    /// Words of each register.
    pub registers: Vec<u16>,
    /// Number of predicates.
    pub flags: u32,
    /// Bytes of the function's own local variables.
    pub local_bytes: u64,
    /// Bytes of the kernel's own shared variables.
    pub shared_bytes: u64,
    /// Calls that may come back to the function before they return.
    pub recursive_calls: u32,
    /// Variables of the module in shared memory that it names.
    pub shared_variables: Vec<usize>,
    /// Largest named barrier plus one, if all are constant.
    pub barriers: u32,
    /// Uses the system's part of shared memory.
    pub reserved_shared: bool,
    /// Uses a barrier whose number is in a register.
    pub any_barrier: bool,
}
