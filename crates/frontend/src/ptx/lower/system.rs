//! Calls into the system: `vprintf`, `malloc`, `free`, `__assertfail`, `trap`, `nanosleep`.

use lockstep_isa::{
    Operation, device_runtime,
    instruction::{Latency, Mix, SystemCall, SystemCallKind, Unit},
    ptx::{Class, Type},
};

use super::{Lowering, names::Symbol};
use crate::ptx::{
    error::Error,
    ir::{Code, Place, Uniformity},
    syntax::{Instruction, Operand},
};

const SYSTEM: Class = Class {
    unit: Unit::Miscellaneous,
    latency: Latency::Barrier,
    mix: Mix::Other,
};

/// Functions that the system provides.
const SYSTEM_FUNCTIONS: &[(&str, SystemCallKind)] = &[
    ("vprintf", SystemCallKind::Print),
    ("malloc", SystemCallKind::Allocate),
    ("free", SystemCallKind::Free),
    ("__assertfail", SystemCallKind::AssertFail),
];

fn system_function(name: &str) -> Option<SystemCallKind> {
    let runtime = |call, library| SystemCallKind::DeviceRuntime { call, library };
    let known = SYSTEM_FUNCTIONS.iter().find(|(known, _)| *known == name);
    known
        .map(|(_, kind)| *kind)
        .or_else(|| device_runtime::system_call(name).map(|call| runtime(call, false)))
        .or_else(|| device_runtime::library_call(name).map(|call| runtime(call, true)))
}

impl<'p, 'a> Lowering<'p, 'a> {
    /// Functions that the system provides.
    pub(super) fn call_system(
        &mut self,
        callee: &str,
        results: &[Operand<'a>],
        arguments: &[Operand<'a>],
    ) -> Result<(), Error> {
        let Some(kind) = system_function(callee) else {
            if device_runtime::is_library_name(callee) {
                return self.unsupported_library(callee, results);
            }
            return self.wrong(format!(
                "`{callee}` is declared but no module that was given defines it"
            ));
        };
        let mut code = self.code(Operation::Nothing, SYSTEM);
        let mut call = SystemCall {
            kind,
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
        call.result = self.result_of_call(&mut code, results);
        code.instruction.operation = Operation::System(Box::new(call));
        code.uniformity = Uniformity::Divergent;
        self.push(code);
        Ok(())
    }

    /// The register of a call's result, if it has one.
    fn result_of_call(&mut self, code: &mut Code<'a>, results: &[Operand<'a>]) -> Option<u16> {
        let Some(Operand::Name(name)) = results.first() else {
            return None;
        };
        let Some(Symbol::Argument { register, size }) = self.lookup(name) else {
            return None;
        };
        let place = Place::Virtual { register, word: 0 };
        Some(code.write(place, size.div_ceil(4) as u16))
    }

    /// A function of CUDA's device library that is code of its own, which PTX does not bring along.
    fn unsupported_library(&mut self, callee: &str, results: &[Operand<'a>]) -> Result<(), Error> {
        let sentence = format!(
            "`{callee}` is code of CUDA's device library; machine code is linked with it, PTX is not"
        );
        let mut code = self.code(Operation::Unsupported(sentence.into_boxed_str()), SYSTEM);
        self.result_of_call(&mut code, results);
        code.uniformity = Uniformity::Divergent;
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
