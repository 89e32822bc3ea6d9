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

/// Behind the module's code: each function of the system, and the way back through `R20`.
pub(super) fn system_functions(uniform_registers: u16, module: &mut Module) {
    for (name, kind, arguments, result) in SYSTEM_FUNCTIONS {
        system_function(name, *kind, arguments, *result, uniform_registers, module);
    }
}

fn system_function(
    name: &str,
    kind: SystemCallKind,
    arguments: &[u8],
    result: Option<u8>,
    uniform_registers: u16,
    module: &mut Module,
) {
    let row = |register: u8| uniform_registers + u16::from(register);
    module.sections.push(module.code.len() as u32);
    module
        .functions
        .push((module.code.len() as u32, name.to_owned()));
    let call = SystemCall {
        kind,
        arguments: arguments
            .iter()
            .map(|register| Operand::Register(row(*register)))
            .collect(),
        result: result.map(row),
    };
    let scheduling = SchedulingInfo {
        pseudo: true,
        ..SchedulingInfo::default()
    };
    module.code.push(Instruction::new(
        Operation::System(Box::new(call)),
        scheduling,
    ));
    let back = Operation::Flow(Flow::Return {
        address: CodeAddress::Absolute,
    });
    let mut back = Instruction::new(back, scheduling);
    back.sources[0] = Source::from(Operand::Register(row(RETURN)));
    module.code.push(back);
    module.listing.push(format!("{name} (system)"));
    module.listing.push("return".to_owned());
}

/// Instructions of what [`undefined_function`] adds.
pub(super) fn undefined_length(name: &str) -> u32 {
    if device_runtime::system_call(name).is_some() {
        2
    } else {
        1
    }
}

/// Behind those: what runs in place of a function that the module does not define. That is a call of the
/// device runtime, or an instruction that faults.
pub(super) fn undefined_function(name: &str, uniform_registers: u16, module: &mut Module) {
    if let Some(call) = device_runtime::system_call(name) {
        let kind = SystemCallKind::DeviceRuntime {
            call,
            library: false,
        };
        let arguments = argument_registers(call.argument_words());
        module.launches_kernels = true;
        return system_function(
            name,
            kind,
            &arguments,
            Some(FIRST_ARGUMENT),
            uniform_registers,
            module,
        );
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
    module.sections.push(module.code.len() as u32);
    module
        .functions
        .push((module.code.len() as u32, name.to_owned()));
    module.code.push(Instruction::new(
        Operation::Unsupported(sentence.into_boxed_str()),
        SchedulingInfo {
            pseudo: true,
            ..SchedulingInfo::default()
        },
    ));
    module.listing.push(format!("{name} (defined nowhere)"));
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
