//! The beginning and the end of a function: arguments, return address, results, frame.
//!
//! Arguments travel in rows that no function owns: the return address first, then the words of
//! the arguments. A function takes them into its own registers at once, and puts its results into
//! the same rows before it returns. Direct and indirect calls are alike.

use lockstep_isa::{
    Operation,
    instruction::{CodeAddress, Flow},
};

use super::{ARGUMENT_ROW, Lowering, RETURN_ROWS, STACK_ROW, call::CONTROL, names::Symbol};
use crate::ptx::{
    error::Error,
    ir::{Amount, Code, Field, Fixup, LabelId, Place, RegisterId, Target, Uniformity},
    recursion,
    syntax::{Statement, VariableSpace},
};

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
        self.note_stack();
        Ok(())
    }

    pub(super) fn take_rows(&mut self, register: RegisterId, first: u16, rows: u16) {
        for word in 0..rows {
            self.copy_word(
                Place::Virtual { register, word },
                Place::Fixed(first + word),
            );
            self.last().uniformity = Uniformity::Divergent;
        }
    }

    pub(super) fn give_rows(&mut self, first: u16, register: RegisterId, rows: u16) {
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

    pub(super) fn last(&mut self) -> &mut Code<'a> {
        self.body
            .code
            .last_mut()
            .expect("an instruction was pushed just before")
    }

    /// Puts the results out and returns.
    pub(super) fn function_epilogue(&mut self, address: RegisterId, label: LabelId) {
        self.place_label(label);
        self.give_stack_back();
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
        self.last().uniformity = Uniformity::Divergent;
        self.extend(frame, narrow, false);
        let mut code = recursion::move_stack(0);
        code.fixups.push(Fixup {
            field: Field::Source(1),
            amount: Amount::Frame { back: false },
        });
        self.push(code);
        self.frame = Some(frame.id);
    }
}
