//! Statements to instructions: names become registers, spellings become meanings.
//!
//! [`Lowering`] walks one function. Rows of `isa::ptx` serve everything that computes; moves,
//! memory, control flow, calls and matrices are in the files beside this one.

mod address;
mod atomic;
mod bulk;
mod call;
mod cluster;
mod control;
mod copy;
mod function;
mod matrix;
mod matrix_access;
mod mbarrier;
mod memory;
mod moves;
mod multimem;
mod names;
mod operands;
mod parameter;
pub(super) mod stack;
mod surface;
mod system;
mod table;
mod tensor_map;
mod texture;
mod unsupported;
mod video;
mod wgmma;
mod wmma;

use std::collections::BTreeMap;

use lockstep_isa::{
    Operand as Value, Operation,
    instruction::SchedulingInfo,
    ptx::{Class, class},
    semantics::lane_loops::Semantics,
};

use super::{
    error::Error,
    image::{Layout, Symbols},
    ir::{Amount, Body, Code, Field, Fixup, FlagId, LabelId, Place, RegisterId, Uniformity},
    syntax::{Function, Instruction, Scalar, ScalarKind, Statement, VariableSpace},
};
use names::{Scope, Symbol};

/// Where kernels find their arguments in constant bank 0.
pub(super) const PARAMETER_BASE: u32 = 0x210;
/// Bank of `.const` variables.
pub(super) const CONSTANT_BANK: u8 = 3;
/// Bank of jump tables.
pub(super) const TABLE_BANK: u8 = 4;
/// Bank of words that differ from kernel to kernel: places of shared variables.
pub(super) const KERNEL_BANK: u8 = 5;
/// Bytes of shared memory that the system lends to code which asks for them.
pub(super) const RESERVED_SHARED: u32 = 1024;
/// Rows for the return address.
pub(super) const RETURN_ROWS: u16 = 2;
/// Row of the stack pointer of recursive functions.
pub(super) const STACK_ROW: u16 = 2;
/// First row of arguments and results.
pub(super) const ARGUMENT_ROW: u16 = 3;
/// Most rows that the arguments of one call may take.
const MOST_ARGUMENT_ROWS: u64 = 1024;

/// A register with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Register {
    pub(super) id: RegisterId,
    pub(super) scalar: Scalar,
}

impl Register {
    pub(super) fn place(self) -> Place {
        self.word(0)
    }

    pub(super) fn word(self, word: u16) -> Place {
        Place::Virtual {
            register: self.id,
            word,
        }
    }

    pub(super) fn words(self) -> u16 {
        rows_of(self.scalar.bits)
    }
}

pub(super) fn rows_of(bits: u32) -> u16 {
    bits.div_ceil(32).max(1) as u16
}

/// Lowers one function.
pub(super) struct Lowering<'p, 'a> {
    symbols: &'p Symbols<'p, 'a>,
    layout: &'p Layout,
    function: &'p Function<'a>,
    scopes: Vec<Scope<'a>>,
    body: Body<'a>,
    /// Parameters of a kernel, by name.
    parameters: BTreeMap<&'a str, usize>,
    /// Registers that hold a function's results, and their bytes.
    results: Vec<(RegisterId, u64)>,
    /// Register that holds where a function returns to, and the label where it does.
    returns: Option<(RegisterId, LabelId)>,
    carry: Option<FlagId>,
    statement: Option<&'p Instruction<'a>>,
    guard: Option<(FlagId, bool)>,
    /// The statement has produced an instruction; what follows is free.
    counted: bool,
    line: u32,
    /// Place of the kernel's parameters in local memory, if one's address is taken.
    parameters_in_local: Option<u64>,
    /// Register that holds where a recursive function's local variables begin.
    frame: Option<RegisterId>,
    /// Register that holds where the stack ended when the function was entered, if it moves the end.
    stack_at_entry: Option<Register>,
}

impl<'p, 'a> Lowering<'p, 'a> {
    /// Lowers the function with this index; it has a body.
    pub(super) fn run(
        symbols: &'p Symbols<'p, 'a>,
        layout: &'p Layout,
        index: usize,
        lines: &mut super::image::Lines,
    ) -> Result<Body<'a>, Error> {
        let function = &symbols.program.functions[index];
        let mut lowering = Self {
            symbols,
            layout,
            function,
            scopes: Vec::new(),
            body: Body {
                function: index,
                code: Vec::new(),
                labels: Vec::new(),
                tables: Vec::new(),
                registers: Vec::new(),
                flags: 0,
                local_bytes: 0,
                shared_bytes: 0,
                recursive_calls: 0,
                shared_variables: Vec::new(),
                barriers: 0,
                any_barrier: false,
                reserved_shared: false,
            },
            parameters: BTreeMap::new(),
            results: Vec::new(),
            returns: None,
            carry: None,
            statement: None,
            guard: None,
            counted: false,
            line: 0,
            parameters_in_local: None,
            frame: None,
            stack_at_entry: None,
        };
        lowering.prologue()?;
        if let Some(statements) = &function.body {
            lowering.block(statements, lines)?;
        }
        lowering.epilogue();
        lowering.scopes.pop();
        Ok(lowering.body)
    }

    fn block(
        &mut self,
        statements: &'p [Statement<'a>],
        lines: &mut super::image::Lines,
    ) -> Result<(), Error> {
        let mut scope = Scope::default();
        for statement in statements {
            if let Statement::Label(name, position) = statement {
                let label = self.new_label();
                scope.declare(name, Symbol::Label(label), *position)?;
            }
        }
        self.scopes.push(scope);
        for statement in statements {
            self.statement(statement, lines)?;
        }
        self.scopes.pop();
        Ok(())
    }

    fn statement(
        &mut self,
        statement: &'p Statement<'a>,
        lines: &mut super::image::Lines,
    ) -> Result<(), Error> {
        match statement {
            Statement::Label(name, _) => {
                if let Some(Symbol::Label(label)) = self.scope().symbol(name) {
                    self.place_label(label);
                }
            }
            Statement::Block(inner) => self.block(inner, lines)?,
            Statement::Registers(registers) => self.declare_registers(registers)?,
            Statement::Variable(variable) => self.declare_variable(variable)?,
            Statement::BranchTargets(name, labels) => {
                let symbol = Symbol::Targets(labels.clone());
                let position = self.function.position;
                self.scope().declare(name, symbol, position)?;
            }
            Statement::Prototype(name, prototype) => {
                let signature = self.signature(prototype)?;
                let symbol = Symbol::Prototype(signature);
                self.scope().declare(name, symbol, prototype.position)?;
            }
            Statement::Location(file, line, call) => {
                self.line = lines.number(*file, *line, *call);
            }
            Statement::Instruction(instruction) => {
                self.statement = Some(instruction);
                self.counted = false;
                self.guard = match instruction.guard {
                    Some((name, negated)) => Some((self.flag(name)?, negated)),
                    None => None,
                };
                self.instruction(instruction)?;
                self.statement = None;
                self.guard = None;
            }
        }
        Ok(())
    }

    /// One instruction, by its opcode.
    fn instruction(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        match i.opcode {
            "mov" if i.modifiers.last() != Some(&"pred") => self.mov(i),
            "ld" | "ldu" => self.load(i),
            "st" => self.store(i),
            "atom" | "red" => self.atomic(i),
            "multimem" => self.multimem(i),
            "cvta" => self.cvta(i),
            "isspacep" => self.isspacep(i),
            "prefetch" | "prefetchu" | "discard" | "applypriority" => self.prefetch(i),
            "cp" => self.copy(i),
            "tensormap" => self.tensor_map(i),
            "bra" => self.branch(i),
            "brx" => self.branch_indexed(i),
            "call" => self.call(i),
            "ret" => {
                self.ret();
                Ok(())
            }
            "exit" => {
                self.exit();
                Ok(())
            }
            "trap" | "brkpt" | "nanosleep" => self.system(i),
            "bar" | "barrier" => self.barrier(i),
            "membar" | "fence" => self.fence(i),
            "mbarrier" => self.mbarrier(i),
            "ldmatrix" | "stmatrix" => self.matrix_access(i),
            "mma" => self.mma(i),
            "wmma" => self.wmma(i),
            "mapa" => self.mapa(i),
            "getctarank" => self.cluster_rank(i),
            "griddepcontrol" => self.grid_dependency(i),
            "tex" | "tld4" => self.texture(i),
            "txq" | "suq" => self.texture_query(i),
            "suld" | "sust" | "sured" => self.surface(i),
            "wgmma" => self.wgmma(i),
            "setmaxnreg" => self.set_registers(i),
            "pmevent" | "createpolicy" => self.hint(i),
            word if stack::is_stack_opcode(word) => self.stack(i),
            _ if unsupported::sentence(i).is_some() => self.unsupported(i),
            word => match video::opcode(word) {
                Some(what) => self.video(i, what),
                None => self.by_table(i),
            },
        }
    }

    // What the parts share.

    pub(super) fn new_register(&mut self, bits: u32) -> Register {
        self.body.registers.push(rows_of(bits));
        Register {
            id: (self.body.registers.len() - 1) as RegisterId,
            scalar: Scalar {
                bits,
                kind: ScalarKind::Bits,
            },
        }
    }

    /// A register of many words: a structure that a call passes, a matrix fragment.
    pub(super) fn new_wide(&mut self, rows: u16) -> RegisterId {
        self.body.registers.push(rows);
        (self.body.registers.len() - 1) as RegisterId
    }

    pub(super) fn new_flag(&mut self) -> FlagId {
        self.body.flags += 1;
        self.body.flags - 1
    }

    fn new_label(&mut self) -> LabelId {
        self.body.labels.push(usize::MAX);
        (self.body.labels.len() - 1) as LabelId
    }

    fn place_label(&mut self, label: LabelId) {
        self.body.labels[label as usize] = self.body.code.len();
    }

    fn scope(&mut self) -> &mut Scope<'a> {
        // A function body always has its own scope while statements are read.
        self.scopes.last_mut().expect("a statement is in a block")
    }

    /// An instruction of a class, not yet pushed.
    fn code(&self, operation: Operation, class: Class) -> Code<'a> {
        Code::new(
            operation,
            SchedulingInfo {
                unit: class.unit,
                latency: class.latency,
                mix: class.mix,
                ..SchedulingInfo::default()
            },
        )
    }

    fn compute(&self, semantics: Semantics, class: Class) -> Code<'a> {
        self.code(Operation::Compute(semantics.choose()), class)
    }

    /// Appends an instruction under the statement's guard. The first of a statement counts as the
    /// instruction that the program has; the others are free.
    fn push(&mut self, mut code: Code<'a>) {
        if let Some((flag, negated)) = self.guard {
            code.instruction.guard = code.read_flag(flag, negated);
        }
        self.push_unguarded(code);
    }

    fn push_unguarded(&mut self, mut code: Code<'a>) {
        code.instruction.scheduling.pseudo |= self.counted;
        code.instruction.scheduling.line = self.line;
        code.line = self.line;
        code.text = self.statement.map_or("", |statement| statement.text);
        for (index, rows) in code
            .instruction
            .scheduling
            .source_registers
            .iter_mut()
            .enumerate()
        {
            if let Value::Register(local) = code.instruction.sources[index].operand {
                *rows = code.uses[usize::from(local)].rows.min(255) as u8;
            }
        }
        if let Some(local) = code.instruction.destination {
            let rows = code.uses[usize::from(local)].rows;
            code.instruction.scheduling.destination_registers = rows.min(255) as u8;
        }
        self.counted = true;
        self.body.code.push(code);
    }

    fn wrong<T>(&self, message: impl Into<String>) -> Result<T, Error> {
        let statement = self.statement;
        Err(Error::Meaning {
            position: statement.map_or(self.function.position, |s| s.position),
            message: message.into(),
            text: statement.map_or(self.function.name, |s| s.text).to_owned(),
        })
    }

    /// An instruction that orders or hints at something that we do not model.
    fn hint(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let mut code = self.code(Operation::Nothing, class::MOVE);
        if i.opcode == "createpolicy"
            && let Some(policy) = i.operands.first()
        {
            // Policies are words that nobody looks into; zero is one.
            let register = self.register_operand(policy)?;
            code = self.move64(register.place(), Value::Immediate(0));
        }
        self.push(code);
        Ok(())
    }

    fn unsupported(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let sentence = unsupported::sentence(i).unwrap_or("is not supported");
        self.stop_at(i, sentence);
        Ok(())
    }

    /// An instruction that stops the run when it is executed, and harms nobody before.
    fn stop_at(&mut self, i: &'p Instruction<'a>, sentence: &str) {
        let message = format!("`{}` {sentence}", i.text);
        let mut code = self.code(Operation::Unsupported(message.into()), class::MOVE);
        code.uniformity = Uniformity::Divergent;
        self.push(code);
    }

    fn prologue(&mut self) -> Result<(), Error> {
        self.scopes.push(Scope::default());
        if self.function.is_kernel {
            self.kernel_prologue()
        } else {
            self.function_prologue()
        }
    }

    fn kernel_prologue(&mut self) -> Result<(), Error> {
        for (index, parameter) in self.function.parameters.iter().enumerate() {
            self.parameters.insert(parameter.name, index);
        }
        self.parameters_in_local = self.copy_parameters()?;
        if self.symbols.calls.needs_stack(self.body.function) {
            self.counted = true;
            let mut code = self.move32(Place::Fixed(STACK_ROW), Value::Immediate(0));
            code.fixups.push(Fixup {
                field: Field::Source(0),
                amount: Amount::Stack,
            });
            self.push(code);
        }
        Ok(())
    }

    /// Falling off the end returns; a function returns at one place.
    fn epilogue(&mut self) {
        self.guard = None;
        self.counted = true;
        let falls = self
            .body
            .code
            .last()
            .is_none_or(|last| !last.unguarded() || !super::flow::ends(last));
        let labelled = self.body.labels.contains(&self.body.code.len());
        match self.returns {
            Some((address, label)) => self.function_epilogue(address, label),
            None if falls || labelled => self.exit(),
            None => {}
        }
    }

    fn space_of(&self, word: &str) -> Option<VariableSpace> {
        let word = word.split("::").next().unwrap_or(word);
        Some(match word {
            "global" => VariableSpace::Global,
            "const" => VariableSpace::Constant,
            "shared" => VariableSpace::Shared,
            "local" => VariableSpace::Local,
            "param" => VariableSpace::Parameter,
            _ => return None,
        })
    }
}
