use super::*;
use crate::{
    instruction::{CodeAddress, Flow, SchedulingInfo},
    lanes::Lanes,
    operand::{Operand, PredicateOperand, PredicateRegister, Source},
};

fn nothing(_: &mut Lanes<'_>, _: &Instruction) {}

fn instruction(operation: Operation) -> Instruction {
    Instruction::new(operation, SchedulingInfo::default())
}

/// Writes a register.
fn writes(register: u16) -> Instruction {
    let mut one = instruction(Operation::Compute(nothing));
    one.destination = Some(register);
    one
}

fn flow(flow: Flow) -> Instruction {
    instruction(Operation::Flow(flow))
}

fn exit() -> Instruction {
    flow(Flow::Exit)
}

fn call(target: u32) -> Instruction {
    flow(Flow::Call { target })
}

fn call_by_register() -> Instruction {
    let mut one = flow(Flow::CallIndirect {
        address: CodeAddress::Absolute,
    });
    one.sources[0] = Source::from(Operand::Register(0));
    one
}

/// Sections in a row; kernel `k` with four registers is the first of them.
fn module(sections: &[&[Instruction]]) -> Module {
    let mut module = Module {
        native: true,
        kernels: vec![Kernel {
            name: "k".into(),
            registers: 4,
            warp_registers: 4,
            predicates: 2,
            convergence_barriers: 1,
            ..Kernel::default()
        }],
        ..Module::default()
    };
    let mut code = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        let start = code.len() as u32;
        module.sections.push(start);
        module.functions.push((start, format!("f{number}")));
        code.extend_from_slice(section);
    }
    module.code = code.into();
    module
}

/// Sentences of the instructions that fault, and which sections jumps may go to.
fn check(sections: &[&[Instruction]], illegal: &[&str], reached: &[usize]) {
    let module = module(sections);
    let verified = Verifier::default().kernel(&module, 0);
    let patched = verified.patched.as_deref().unwrap_or(&module);
    let found: Vec<&str> = patched
        .code
        .iter()
        .filter_map(|one| match &one.operation {
            Operation::Illegal(sentence) => Some(&**sentence),
            _ => None,
        })
        .collect();
    assert_eq!(found.len(), illegal.len(), "{found:?}");
    for (found, wanted) in found.iter().zip(illegal) {
        assert!(found.contains(wanted), "{found} does not say {wanted}");
    }
    let entered = (0..sections.len())
        .filter(|number| {
            verified
                .code
                .holds(&module, module.sections[*number].into())
        })
        .collect::<Vec<_>>();
    assert_eq!(entered, reached);
}

#[test]
fn code_that_fits_is_left_alone() {
    check(&[&[writes(3), exit()]], &[], &[0]);
}

#[test]
fn a_register_above_the_count_faults_where_it_is_named() {
    check(
        &[&[writes(0), writes(4), exit()]],
        &["f0+0x10: `an instruction` touches R4, and kernel `k` has 4 registers"],
        &[0],
    );
}

#[test]
fn the_second_register_of_a_pair_counts() {
    let mut wide = writes(3);
    wide.scheduling.destination_registers = 2;
    check(&[&[wide, exit()]], &["touches R4"], &[0]);
}

#[test]
fn predicates_barriers_and_constants_are_checked() {
    let mut predicate = writes(0);
    predicate.guard = PredicateOperand {
        register: PredicateRegister::Lanes(2),
        negate: false,
    };
    let mut constant = writes(0);
    constant.sources[1] = Source::from(Operand::Constant {
        bank: 0,
        offset: 0xffff_fffc,
    });
    let barrier = flow(Flow::ConvergeSet { barrier: 1 });
    check(
        &[&[predicate, constant, barrier, exit()]],
        &[
            "touches predicate 2, and kernel `k` has 2",
            "reads byte 0xffffffff of a constant bank",
            "names convergence barrier 1",
        ],
        &[0],
    );
}

#[test]
fn a_function_that_is_called_must_fit_too() {
    check(
        &[&[call(3), exit()], &[writes(200)], &[writes(9), exit()]],
        &["f2+0x0: `an instruction` touches R9"],
        &[0, 2],
    );
}

#[test]
fn a_target_outside_the_module_faults() {
    check(
        &[&[call(99), exit()]],
        &["where no code of its module is"],
        &[0],
    );
}

#[test]
fn what_only_a_register_leads_to_is_code_if_it_fits() {
    // The third does not fit, the fourth calls it.
    check(
        &[
            &[call_by_register(), exit()],
            &[writes(1), exit()],
            &[writes(100), exit()],
            &[call(4), exit()],
        ],
        &[],
        &[0, 1],
    );
}

#[test]
fn a_section_that_runs_off_its_end_leads_into_the_next() {
    let nop = instruction(Operation::Nothing);
    check(&[&[exit(), nop.clone()], &[writes(100), exit()]], &[], &[0]);
    let mut guarded = exit();
    guarded.guard = PredicateOperand {
        register: PredicateRegister::Lanes(0),
        negate: false,
    };
    check(
        &[&[guarded, nop.clone()], &[writes(100), exit()]],
        &["f1+0x0"],
        &[0, 1],
    );
    // A branch into what only fills up runs off as well.
    check(
        &[
            &[flow(Flow::Branch { target: 2 }), exit(), nop],
            &[writes(100), exit()],
        ],
        &["f1+0x0"],
        &[0, 1],
    );
}

/// A kernel that begins in what fills up a section, and a branch from elsewhere that goes there.
#[test]
fn filling_that_something_lands_in_is_code() {
    let filled = [exit(), instruction(Operation::Nothing)];
    let behind = [writes(9), exit()];
    let mut entered = module(&[&filled, &behind]);
    entered.kernels[0].entry = 1;
    let away = [flow(Flow::Branch { target: 2 }), exit()];
    let branched = module(&[&away[..1], &filled, &behind]);
    let sections = [(entered, 2), (branched, 3)];
    for (module, illegal) in sections {
        let verified = Verifier::default().kernel(&module, 0);
        let patched = verified.patched.as_deref().expect("a register too many");
        let at = patched
            .code
            .iter()
            .position(|one| matches!(one.operation, Operation::Illegal(_)));
        assert_eq!(at, Some(illegal));
    }
}
