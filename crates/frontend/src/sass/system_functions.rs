//! Device functions that the system provides, and what runs in place of those that nobody defines.

use lockstep_isa::{
    Instruction, Module, Operand, Operation, device_runtime,
    instruction::{CodeAddress, Flow, SchedulingInfo, SystemCall, SystemCallKind},
    operand::Source,
};

use super::error::Error;

/// Device functions that the system provides: name, what it does, argument registers, result.
pub(super) const SYSTEM_FUNCTIONS: &[(&str, SystemCallKind, &[u8], Option<u8>)] = &[
    ("vprintf", SystemCallKind::Print, &[4, 6], Some(4)),
    ("malloc", SystemCallKind::Allocate, &[4], Some(4)),
    ("free", SystemCallKind::Free, &[4], None),
    (
        "__assertfail",
        SystemCallKind::AssertFail,
        &[4, 6, 8, 10, 12],
        None,
    ),
];

/// How functions begin with which kernels launched kernels before CUDA 12.
const FIRST_DEVICE_RUNTIME: &str = "cnp";

/// How functions begin with which kernels launch kernels, and what belongs to it.
const DEVICE_RUNTIME: &str = "__cuda_syscall_cnp";

/// The register with the return address.
const RETURN: u8 = 20;

/// Code of the system behind that of a module.
#[derive(Debug)]
pub(super) struct SystemCode {
    /// Its instructions and their texts.
    pub code: Vec<(Instruction, String)>,
    /// Index of its first instruction.
    start: u32,
    uniform_registers: u16,
}

/// How instructions that only we have are scheduled.
fn pseudo() -> SchedulingInfo {
    SchedulingInfo {
        pseudo: true,
        ..SchedulingInfo::default()
    }
}

impl SystemCode {
    /// None, behind so many instructions of a module.
    pub(super) fn new(start: u32, uniform_registers: u16) -> Self {
        Self {
            code: Vec::new(),
            start,
            uniform_registers,
        }
    }

    /// Each function of the system, and the way back through `R20`.
    pub(super) fn add_functions(&mut self, module: &mut Module) {
        for (name, kind, arguments, result) in SYSTEM_FUNCTIONS {
            self.add(name, *kind, arguments, *result, module);
        }
    }

    fn add(
        &mut self,
        name: &str,
        kind: SystemCallKind,
        arguments: &[u8],
        result: Option<u8>,
        module: &mut Module,
    ) {
        let row = |register: u8| self.uniform_registers + u16::from(register);
        let call = SystemCall {
            kind,
            arguments: arguments
                .iter()
                .map(|register| Operand::Register(row(*register)))
                .collect(),
            result: result.map(row),
        };
        let call = Instruction::new(Operation::System(Box::new(call)), pseudo());
        let back = Operation::Flow(Flow::Return {
            address: CodeAddress::Absolute,
        });
        let mut back = Instruction::new(back, pseudo());
        back.sources[0] = Source::from(Operand::Register(row(RETURN)));
        self.begin(name, module);
        self.code.push((call, format!("{name} (system)")));
        self.code.push((back, "return".to_owned()));
    }

    /// A function begins behind what is there.
    fn begin(&self, name: &str, module: &mut Module) {
        let start = self.start + self.code.len() as u32;
        module.sections.push(start);
        module.functions.push((start, name.to_owned()));
    }

    /// Behind those: what runs in place of a function that the module does not define. That is a call of the
    /// device runtime, or an instruction that faults.
    pub(super) fn add_undefined(&mut self, name: &str, module: &mut Module) {
        if let Some(call) = device_runtime::system_call(name) {
            let kind = SystemCallKind::DeviceRuntime {
                call,
                library: false,
            };
            let arguments = argument_registers(call.argument_words());
            module.launches_kernels = true;
            return self.add(name, kind, &arguments, Some(FIRST_ARGUMENT), module);
        }
        let sentence = if name.starts_with(FIRST_DEVICE_RUNTIME) {
            format!(
                "`{name}` belongs to dynamic parallelism as it was before CUDA 12, which is not modelled"
            )
        } else if name.starts_with(DEVICE_RUNTIME) {
            format!("`{name}` belongs to a part of dynamic parallelism that is not modelled")
        } else {
            let symbol = name.to_owned();
            Error::Unresolved { symbol }.to_string()
        };
        self.begin(name, module);
        let operation = Operation::Unsupported(sentence.into_boxed_str());
        let text = format!("{name} (defined nowhere)");
        self.code
            .push((Instruction::new(operation, pseudo()), text));
    }
}

/// Instructions of what [`SystemCode::add_undefined`] adds.
pub(super) fn undefined_length(name: &str) -> u32 {
    if device_runtime::system_call(name).is_some() {
        2
    } else {
        1
    }
}

/// The register of the first argument, and of the result.
const FIRST_ARGUMENT: u8 = 4;

/// First registers of arguments that have so many of them each: one behind the other, pairs at even numbers.
fn argument_registers(words: &[u8]) -> Vec<u8> {
    let mut next = FIRST_ARGUMENT;
    let place = |words: &u8| {
        if *words == 2 {
            next = next.next_multiple_of(2);
        }
        let at = next;
        next += words;
        at
    };
    words.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lie_where_the_compiler_puts_them() {
        // As in the library's code for sm_90.
        let buffer = device_runtime::DeviceRuntimeCall::GetParameterBufferV2;
        assert_eq!(argument_registers(buffer.argument_words()), [4, 6, 9, 12]);
        let occupancy = device_runtime::DeviceRuntimeCall::MaxActiveBlocks;
        assert_eq!(
            argument_registers(occupancy.argument_words()),
            [4, 6, 8, 10]
        );
    }
}
