//! Device functions that the system provides, and what runs in place of those that nobody defines.

use lockstep_isa::{
    Instruction, Module, Operand, Operation,
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

/// How functions begin with which kernels launch kernels.
const DEVICE_RUNTIME: &str = "__cuda_syscall_cnp";

/// Behind the module's code: each function of the system, and the way back through `R20`.
pub(super) fn system_functions(uniform_registers: u16, module: &mut Module) {
    let row = |register: u8| uniform_registers + u16::from(register);
    for (name, kind, arguments, result) in SYSTEM_FUNCTIONS {
        module.sections.push(module.code.len() as u32);
        module
            .functions
            .push((module.code.len() as u32, (*name).to_owned()));
        let call = SystemCall {
            kind: *kind,
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
        back.sources[0] = Source::from(Operand::Register(row(20)));
        module.code.push(back);
        module.listing.push(format!("{name} (system)"));
        module.listing.push("return".to_owned());
    }
}

/// Behind those: what runs in place of a function that is defined nowhere.
pub(super) fn missing_function(name: &str, module: &mut Module) {
    let sentence = if name.starts_with(DEVICE_RUNTIME) {
        format!("`{name}` belongs to dynamic parallelism, which is not modelled")
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
