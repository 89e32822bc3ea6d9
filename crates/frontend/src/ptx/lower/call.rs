//! Calls: arguments are passed, the call is made, results are taken. See `function.rs` for where
//! arguments travel.

use lockstep_isa::{
    Operand as Value, Operation,
    instruction::{CodeAddress, Flow, Latency, Mix, Unit},
    ptx::{Class, Type},
};

use super::{
    ARGUMENT_ROW, Lowering, RETURN_ROWS, Register,
    names::{Signature, Symbol},
};
use crate::ptx::{
    error::Error,
    image::ModuleName,
    ir::{Code, LabelId, Mark, Place, Target, Uniformity},
    syntax::{Instruction, Operand},
};

pub(super) const CONTROL: Class = Class {
    unit: Unit::Branch,
    latency: Latency::Branch,
    mix: Mix::Control,
};

impl<'p, 'a> Lowering<'p, 'a> {
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
        code.uniformity = Uniformity::Divergent;
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
}
