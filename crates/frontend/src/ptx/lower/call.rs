//! Functions: arguments, results, calls, and calls into the system.
//!
//! Arguments travel in rows that no function owns: the return address first, then the words of
//! the arguments. A function takes them into its own registers at once, and puts its results into
//! the same rows before it returns. Direct and indirect calls are alike.

use lockstep_isa::{
    Operand as Value, Operation,
    instruction::{CodeAddress, Flow, Latency, Mix, SystemCall, SystemCallKind, Unit},
    ptx::{Class, Type, class},
    semantics,
    semantics::{
        lane_loops::{Semantics, quaternary, ternary},
        logic,
    },
};

use super::{
    ARGUMENT_ROW, Lowering, PARAMETER_BASE, RETURN_ROWS, Register, STACK_ROW,
    moves::type_of,
    names::{Signature, Symbol},
};
use crate::ptx::{
    error::Error,
    image::ModuleName,
    ir::{Amount, Code, Field, Fixup, LabelId, Mark, Place, RegisterId, Spread, Target},
    recursion,
    syntax::{Instruction, Operand, Scalar, Statement, VariableSpace},
};

const CONTROL: Class = Class {
    unit: Unit::Branch,
    latency: Latency::Branch,
    mix: Mix::Control,
};
const SYSTEM: Class = Class {
    unit: Unit::Miscellaneous,
    latency: Latency::Barrier,
    mix: Mix::Other,
};
const FIELD: Semantics = semantics!(ternary; logic::bfe);
const FIELD_SIGNED: Semantics = semantics!(ternary; logic::bfe_signed);
const INSERT: Semantics = semantics!(quaternary; |[a, b, c, d]: [u32; 4]| logic::bfi(a, b, c, d));

/// Functions that the system provides.
const SYSTEM_FUNCTIONS: &[(&str, SystemCallKind)] = &[
    ("vprintf", SystemCallKind::Print),
    ("malloc", SystemCallKind::Allocate),
    ("free", SystemCallKind::Free),
    ("__assertfail", SystemCallKind::AssertFail),
];

impl<'p, 'a> Lowering<'p, 'a> {
    /// Takes the arguments and the return address.
    pub(super) fn function_prologue(&mut self) -> Result<(), Error> {
        self.counted = true;
        let function = self.function;
        let signature = self.signature(function)?;
        let address = self.new_wide(RETURN_ROWS);
        self.take_rows(address, 0, RETURN_ROWS);
        let mut next = ARGUMENT_ROW;
        for (parameter, size) in function.parameters.iter().zip(&signature.parameters) {
            let rows = size.div_ceil(4).max(1) as u16;
            let register = self.new_wide(rows);
            self.take_rows(register, next, size.div_ceil(4) as u16);
            next += size.div_ceil(4) as u16;
            let symbol = Symbol::Argument {
                register,
                size: *size,
            };
            self.scope()
                .declare(parameter.name, symbol, parameter.position)?;
        }
        for (result, size) in function.results.iter().zip(&signature.results) {
            let register = self.new_wide(size.div_ceil(4).max(1) as u16);
            self.results.push((register, *size));
            let symbol = Symbol::Argument {
                register,
                size: *size,
            };
            self.scope().declare(result.name, symbol, result.position)?;
        }
        let label = self.new_label();
        self.returns = Some((address, label));
        if self.symbols.calls.is_recursive(self.body.function) && self.has_local_variables() {
            self.enter_frame();
        }
        Ok(())
    }

    fn take_rows(&mut self, register: RegisterId, first: u16, rows: u16) {
        for word in 0..rows {
            self.copy_word(
                Place::Virtual { register, word },
                Place::Fixed(first + word),
            );
            self.last().spread = Spread::Varies;
        }
    }

    fn give_rows(&mut self, first: u16, register: RegisterId, rows: u16) {
        for word in 0..rows {
            self.copy_word(
                Place::Fixed(first + word),
                Place::Virtual { register, word },
            );
        }
    }

    /// The instruction pushed last does not count.
    pub(super) fn free_last(&mut self) {
        self.last().instruction.scheduling.pseudo = true;
    }

    /// A field of a word into a register of its own.
    pub(super) fn take_field(&mut self, to: Register, from: Register, place: u32, bits: u32) {
        let mut code = self.compute(FIELD, class::INTEGER);
        code.instruction.sources[0] = code.read(from.place(), 1).into();
        code.instruction.sources[1] = Value::Immediate(u64::from(place)).into();
        code.instruction.sources[2] = Value::Immediate(u64::from(bits)).into();
        code.instruction.destination = Some(code.write(to.place(), 1));
        self.push(code);
    }

    /// A register's value into a field of a word; the first one replaces the whole word.
    pub(super) fn put_field(
        &mut self,
        to: Register,
        from: Register,
        place: u32,
        bits: u32,
        first: bool,
    ) {
        if first {
            return self.copy_word(to.place(), from.place());
        }
        let mut code = self.compute(INSERT, class::INTEGER);
        code.instruction.sources[0] = code.read(from.place(), 1).into();
        code.instruction.sources[1] = code.read(to.place(), 1).into();
        code.instruction.sources[2] = Value::Immediate(u64::from(place)).into();
        code.instruction.sources[3] = Value::Immediate(u64::from(bits)).into();
        code.instruction.destination = Some(code.write(to.place(), 1));
        self.push(code);
    }

    fn last(&mut self) -> &mut Code<'a> {
        self.body
            .code
            .last_mut()
            .expect("an instruction was pushed just before")
    }

    /// Puts the results out and returns.
    pub(super) fn function_epilogue(&mut self, address: RegisterId, label: LabelId) {
        self.place_label(label);
        if self.frame.is_some() {
            let mut code = recursion::move_stack(0);
            code.fixups.push(Fixup {
                field: Field::Source(1),
                amount: Amount::Frame { back: true },
            });
            self.push(code);
        }
        let mut next = ARGUMENT_ROW;
        for (register, size) in std::mem::take(&mut self.results) {
            let rows = size.div_ceil(4) as u16;
            self.give_rows(next, register, rows);
            next += rows;
        }
        let flow = Flow::Return {
            address: CodeAddress::Absolute,
        };
        let mut code = self.code(Operation::Flow(flow), CONTROL);
        let place = Place::Virtual {
            register: address,
            word: 0,
        };
        code.instruction.sources[0] = code.read(place, RETURN_ROWS).into();
        self.push(code);
    }

    /// `ret`: a kernel ends, a function goes to the place where it returns.
    pub(super) fn ret(&mut self) {
        match self.returns {
            None => self.exit(),
            Some((_, label)) => {
                let mut code = self.code(Operation::Flow(Flow::Branch { target: 0 }), CONTROL);
                code.target = Target::Label(label);
                self.push(code);
            }
        }
    }

    pub(super) fn exit(&mut self) {
        let code = self.code(Operation::Flow(Flow::Exit), CONTROL);
        self.push(code);
    }

    /// `ld.param`. False if it must be a load from bank 0.
    pub(super) fn load_parameter(
        &mut self,
        targets: &[Operand<'a>],
        address: &Operand<'a>,
        scalar: Scalar,
    ) -> Result<bool, Error> {
        let Some((name, offset)) = named_address(address) else {
            return Ok(false);
        };
        if let Some(Symbol::Argument { register, size }) = self.lookup(name) {
            for (index, target) in targets.iter().enumerate() {
                let place = offset.saturating_add(index as i64 * scalar.bytes() as i64);
                self.take_argument(target, register, size, place, scalar)?;
            }
            return Ok(true);
        }
        let Some(index) = self.parameters.get(name).copied() else {
            return Ok(false);
        };
        let base =
            (self.symbols.parameter_offsets(self.function)[index] as i64).saturating_add(offset);
        let last = base.saturating_add((targets.len() as i64) * scalar.bytes() as i64);
        if scalar.bits < 32 || scalar.bits > 64 || base < 0 || base % 4 != 0 || last > 1 << 20 {
            return Ok(false);
        }
        for (index, target) in targets.iter().enumerate() {
            if *target == Operand::Sink {
                continue;
            }
            let to = self.register_operand(target)?;
            let from = Value::Constant {
                bank: 0,
                offset: PARAMETER_BASE + base as u32 + index as u32 * scalar.bits / 8,
            };
            self.move_value(to, from, scalar)?;
        }
        Ok(true)
    }

    /// A value of a type into a register at least as wide.
    fn move_value(&mut self, to: Register, from: Value, scalar: Scalar) -> Result<(), Error> {
        match (to.words(), scalar.bits) {
            (2, 64) => {
                let code = self.move64(to.place(), from);
                self.push(code);
            }
            (1, 32) => {
                let code = self.move32(to.place(), from);
                self.push(code);
            }
            (2, 32) => {
                let narrow = self.new_register(32);
                let code = self.move32(narrow.place(), from);
                self.push(code);
                self.extend(to, narrow, scalar.signed());
            }
            _ => {
                return self.wrong(format!(
                    "a register of {} bits cannot take {} bits",
                    to.scalar.bits, scalar.bits
                ));
            }
        }
        Ok(())
    }

    fn check_argument(&self, size: u64, offset: i64, scalar: Scalar) -> Result<(), Error> {
        let bytes = scalar.bytes() as i64;
        let inside = offset >= 0 && offset.saturating_add(bytes) <= size.next_multiple_of(4) as i64;
        if !inside || offset % bytes.min(4) != 0 {
            return self.wrong(format!(
                "{bytes} bytes at offset {offset} are outside an argument of {size} bytes, or not aligned"
            ));
        }
        Ok(())
    }

    /// An element of an argument that is kept in a register.
    fn take_argument(
        &mut self,
        target: &Operand<'a>,
        register: RegisterId,
        size: u64,
        offset: i64,
        scalar: Scalar,
    ) -> Result<(), Error> {
        self.check_argument(size, offset, scalar)?;
        if *target == Operand::Sink {
            return Ok(());
        }
        let to = self.register_operand(target)?;
        let word = (offset / 4) as u16;
        let place = |word: u16| Place::Virtual { register, word };
        if scalar.bits >= 32 {
            let rows = super::rows_of(scalar.bits);
            if to.words() < rows {
                return self.wrong("the register is too narrow");
            }
            if to.words() > rows {
                let narrow = self.new_register(32);
                self.copy_word(narrow.place(), place(word));
                self.extend(to, narrow, scalar.signed());
                return Ok(());
            }
            for index in 0..rows {
                self.copy_word(to.word(index), place(word + index));
            }
            return Ok(());
        }
        let narrow = if to.words() > 1 {
            self.new_register(32)
        } else {
            to
        };
        let semantics = if scalar.signed() { FIELD_SIGNED } else { FIELD };
        let mut code = self.compute(semantics, class::INTEGER);
        code.instruction.sources[0] = code.read(place(word), 1).into();
        code.instruction.sources[1] = Value::Immediate(8 * (offset as u64 % 4)).into();
        code.instruction.sources[2] = Value::Immediate(u64::from(scalar.bits)).into();
        code.instruction.destination = Some(code.write(narrow.place(), 1));
        self.push(code);
        if to.words() > 1 {
            self.extend(to, narrow, scalar.signed());
        }
        Ok(())
    }

    /// `st.param` to an argument or a result.
    pub(super) fn store_parameter(
        &mut self,
        address: &Operand<'a>,
        values: &[Operand<'a>],
        scalar: Scalar,
    ) -> Result<(), Error> {
        let Some((name, offset)) = named_address(address) else {
            return self.wrong("`st.param` needs the name of an argument");
        };
        let Some(Symbol::Argument { register, size }) = self.lookup(name) else {
            return self.unknown(name, "an argument of a call or a result");
        };
        for (index, value) in values.iter().enumerate() {
            let offset = offset.saturating_add(index as i64 * scalar.bytes() as i64);
            self.check_argument(size, offset, scalar)?;
            let word = (offset / 4) as u16;
            let place = |word: u16| Place::Virtual { register, word };
            match scalar.bits {
                64 => {
                    let mut code = self.move64(place(word), Value::None);
                    code.instruction.sources[0] =
                        self.value(&mut code, value, type_of(scalar))?.into();
                    self.push(code);
                }
                32 => {
                    let mut code = self.move32(place(word), Value::None);
                    code.instruction.sources[0] =
                        self.value(&mut code, value, type_of(scalar))?.into();
                    self.push(code);
                }
                8 | 16 => {
                    let mut code = self.compute(INSERT, class::INTEGER);
                    code.instruction.sources[0] =
                        self.value(&mut code, value, type_of(scalar))?.into();
                    code.instruction.sources[1] = code.read(place(word), 1).into();
                    code.instruction.sources[2] = Value::Immediate(8 * (offset as u64 % 4)).into();
                    code.instruction.sources[3] = Value::Immediate(u64::from(scalar.bits)).into();
                    code.instruction.destination = Some(code.write(place(word), 1));
                    self.push(code);
                }
                _ => return self.wrong("arguments are stored in up to 64 bits at a time"),
            }
        }
        Ok(())
    }

    pub(super) fn call(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let mut operands = i.operands.as_slice();
        let results = match operands.first() {
            Some(Operand::List(list)) => {
                operands = &operands[1..];
                list.clone()
            }
            _ => Vec::new(),
        };
        let Some(Operand::Name(callee)) = operands.first() else {
            return self.wrong("a call needs the name of a function");
        };
        let arguments = match operands.get(1) {
            Some(Operand::List(list)) => list.clone(),
            None => Vec::new(),
            Some(_) => return self.wrong("arguments stand in parentheses"),
        };
        if let Some(Symbol::Register(register)) = self.lookup(callee) {
            let Some(Operand::Name(prototype)) = operands.get(2) else {
                return self.wrong("a call through a register needs a prototype");
            };
            return self.call_indirect(register, &results, &arguments, prototype);
        }
        let Some(ModuleName::Function(index)) = self.symbols.find(callee) else {
            return self.unknown(callee, "a function");
        };
        let function = &self.symbols.program.functions[index];
        if function.body.is_none() {
            return self.call_system(callee, &results, &arguments);
        }
        if function.is_kernel {
            return self.wrong("a kernel cannot be called");
        }
        let signature = self.signature(function)?;
        let skip = self.skip_unless_guarded();
        self.pass(&arguments, &signature.parameters)?;
        let mut code = self.code(Operation::Flow(Flow::Call { target: 0 }), CONTROL);
        code.target = Target::Function(index);
        let again = self.symbols.calls.recursive(self.body.function, index);
        self.finish_call(code, &results, &signature, again)?;
        if let Some(label) = skip {
            self.place_label(label);
        }
        Ok(())
    }

    /// A guarded call becomes a branch around a call, so that what surrounds the call needs no
    /// guard, which the callee might change.
    fn skip_unless_guarded(&mut self) -> Option<LabelId> {
        let (flag, negated) = self.guard.take()?;
        let label = self.new_label();
        let mut code = self.code(Operation::Flow(Flow::Branch { target: 0 }), CONTROL);
        code.instruction.guard = code.read_flag(flag, !negated);
        code.target = Target::Label(label);
        self.counted = true;
        self.push(code);
        Some(label)
    }

    fn has_local_variables(&self) -> bool {
        fn any(statements: &[Statement<'_>]) -> bool {
            statements.iter().any(|statement| match statement {
                Statement::Variable(variable) => variable.space == VariableSpace::Local,
                Statement::Block(inner) => any(inner),
                _ => false,
            })
        }
        self.function.body.as_deref().is_some_and(any)
    }

    /// Takes room for local variables from the stack.
    fn enter_frame(&mut self) {
        let frame = self.new_register(64);
        let narrow = self.new_register(32);
        self.copy_word(narrow.place(), Place::Fixed(STACK_ROW));
        self.last().spread = Spread::Varies;
        self.extend(frame, narrow, false);
        let mut code = recursion::move_stack(0);
        code.fixups.push(Fixup {
            field: Field::Source(1),
            amount: Amount::Frame { back: false },
        });
        self.push(code);
        self.frame = Some(frame.id);
    }

    fn call_indirect(
        &mut self,
        register: Register,
        results: &[Operand<'a>],
        arguments: &[Operand<'a>],
        prototype: &'a str,
    ) -> Result<(), Error> {
        // A list of targets (`.calltargets`) says as little as nothing about arguments, but all
        // its members have one signature.
        let signature = match self.lookup(prototype) {
            Some(Symbol::Prototype(signature)) => signature,
            Some(Symbol::Targets(names)) => {
                let first = names.first().copied().unwrap_or("");
                match self.symbols.find(first) {
                    Some(ModuleName::Function(index)) => {
                        self.signature(&self.symbols.program.functions[index])?
                    }
                    _ => return self.unknown(first, "a function"),
                }
            }
            _ => return self.unknown(prototype, "a prototype"),
        };
        if register.words() != 2 {
            return self.wrong("the address of a function has 64 bits");
        }
        let skip = self.skip_unless_guarded();
        self.pass(arguments, &signature.parameters)?;
        let flow = Flow::CallIndirect {
            address: CodeAddress::Absolute,
        };
        let mut code = self.code(Operation::Flow(flow), CONTROL);
        code.instruction.sources[0] = code.read(register.place(), 2).into();
        code.target = Target::AnyFunction;
        let again = self.symbols.calls.recursive_anywhere(self.body.function);
        self.finish_call(code, results, &signature, again)?;
        if let Some(label) = skip {
            self.place_label(label);
        }
        Ok(())
    }

    /// Puts arguments where functions look for them.
    fn pass(&mut self, arguments: &[Operand<'a>], sizes: &[u64]) -> Result<(), Error> {
        if arguments.len() != sizes.len() {
            return self.wrong(format!(
                "{} arguments given, {} expected",
                arguments.len(),
                sizes.len()
            ));
        }
        self.counted = true;
        let mut next = ARGUMENT_ROW;
        for (argument, size) in arguments.iter().zip(sizes) {
            let rows = size.div_ceil(4) as u16;
            let named = match argument {
                Operand::Name(name) => self.lookup(name),
                _ => None,
            };
            if let Some(Symbol::Argument {
                register,
                size: given,
            }) = named
            {
                if given.div_ceil(4) < u64::from(rows) {
                    return self.wrong(format!("an argument of {size} bytes expected"));
                }
                self.give_rows(next, register, rows);
            } else {
                let (kind, move_it): (_, fn(&Self, Place, Value) -> Code<'a>) = match rows {
                    1 => (Type::B32, Self::move32),
                    2 => (Type::B64, Self::move64),
                    _ => return self.wrong("a structure is passed in a `.param` variable"),
                };
                let mut code = move_it(self, Place::Fixed(next), Value::None);
                code.instruction.sources[0] = self.value(&mut code, argument, kind)?.into();
                self.push(code);
            }
            next += rows;
        }
        Ok(())
    }

    /// Pushes the call itself and takes its results.
    fn finish_call(
        &mut self,
        mut code: Code<'a>,
        results: &[Operand<'a>],
        signature: &Signature,
        again: bool,
    ) -> Result<(), Error> {
        code.communicates = true;
        code.reenters = again;
        code.spread = Spread::Varies;
        code.instruction.destination = Some(code.write(Place::Fixed(0), RETURN_ROWS));
        let number = self.body.recursive_calls;
        if again {
            self.body.recursive_calls += 1;
            self.mark(Mark::Save(number));
        }
        self.counted = false;
        self.push(code);
        if again {
            self.mark(Mark::Restore(number));
        }
        let mut next = ARGUMENT_ROW;
        for (result, size) in results.iter().zip(&signature.results) {
            let rows = size.div_ceil(4) as u16;
            let Operand::Name(name) = result else {
                return self.wrong("a result goes to a name");
            };
            let (register, room) = match self.lookup(name) {
                Some(Symbol::Argument { register, size }) => (register, size.div_ceil(4) as u16),
                Some(Symbol::Register(register)) => (register.id, register.words()),
                _ => return self.unknown(name, "an argument or register"),
            };
            if room < rows {
                return self.wrong(format!("a result of {size} bytes does not fit"));
            }
            self.take_rows(register, next, rows);
            next += rows;
        }
        Ok(())
    }

    fn mark(&mut self, mark: Mark) {
        let mut code = self.code(Operation::Nothing, CONTROL);
        code.mark = Some(mark);
        self.counted = true;
        self.push(code);
    }

    /// Functions that the system provides.
    fn call_system(
        &mut self,
        callee: &str,
        results: &[Operand<'a>],
        arguments: &[Operand<'a>],
    ) -> Result<(), Error> {
        let found = SYSTEM_FUNCTIONS.iter().find(|(name, _)| *name == callee);
        let Some((_, kind)) = found else {
            return self.wrong(format!(
                "`{callee}` is declared but no module that was given defines it"
            ));
        };
        let mut code = self.code(Operation::Nothing, SYSTEM);
        let mut call = SystemCall {
            kind: *kind,
            arguments: Vec::new(),
            result: None,
        };
        for argument in arguments {
            let named = match argument {
                Operand::Name(name) => self.lookup(name),
                _ => None,
            };
            let value = match named {
                Some(Symbol::Argument { register, size }) => {
                    let place = Place::Virtual { register, word: 0 };
                    code.read(place, size.div_ceil(4) as u16)
                }
                _ => self.value(&mut code, argument, Type::B64)?,
            };
            call.arguments.push(value);
        }
        if let Some(Operand::Name(name)) = results.first()
            && let Some(Symbol::Argument { register, size }) = self.lookup(name)
        {
            let place = Place::Virtual { register, word: 0 };
            call.result = Some(code.write(place, size.div_ceil(4) as u16));
        }
        code.instruction.operation = Operation::System(Box::new(call));
        code.spread = Spread::Varies;
        self.push(code);
        Ok(())
    }

    /// `trap`, `brkpt`, `nanosleep`.
    pub(super) fn system(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let kind = match i.opcode {
            "trap" => SystemCallKind::Trap,
            "brkpt" => SystemCallKind::Breakpoint,
            _ => SystemCallKind::Sleep,
        };
        let mut code = self.code(Operation::Nothing, SYSTEM);
        let mut arguments = Vec::new();
        for operand in &i.operands {
            arguments.push(self.value(&mut code, operand, Type::B32)?);
        }
        if kind == SystemCallKind::Sleep && arguments.len() != 1 {
            return self.wrong("`nanosleep` takes one operand");
        }
        code.instruction.operation = Operation::System(Box::new(SystemCall {
            kind,
            arguments,
            result: None,
        }));
        self.push(code);
        Ok(())
    }
}

/// `[name]` or `[name+offset]`.
fn named_address<'a>(operand: &Operand<'a>) -> Option<(&'a str, i64)> {
    let Operand::Address(list) = operand else {
        return None;
    };
    match list.as_slice() {
        [Operand::Name(name)] => Some((name, 0)),
        [Operand::Offset(name, offset)] => Some((name, *offset)),
        _ => None,
    }
}
