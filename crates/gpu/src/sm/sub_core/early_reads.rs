//! The checking mode: reads that come before the compiler's own account says that the value is there.

use lockstep_isa::operand::PredicateRegister;
use lockstep_isa::{Instruction, Mask};

use crate::fault::FaultKind;
use crate::launch::LaunchContext;
use crate::sm::problem::Problem;
use crate::sm::sub_core::control_bit_checker::{Dependence, File, Readiness};
use crate::sm::warp::Warp;

/// Enters an instruction that the warp has executed, and tells the first early read.
pub fn check(
    warp: &mut Warp,
    context: &LaunchContext,
    pc: u32,
    active: Mask,
    execute: Mask,
) -> Option<Problem> {
    let control_bit_checker = warp.control_bit_checker.as_mut()?;
    let module = &context.launch.module;
    let instruction = &module.code[pc as usize];
    let hazard = context.issue_table().hazard(pc);
    let mut early = None;
    control_bit_checker.issue(pc, instruction, &hazard, active, execute, &mut |found| {
        if early.is_none() {
            let writer = &module.code[found.writer as usize];
            early = missing(instruction, writer, found).map(|why| (found.writer, why));
        }
    });
    let (writer, why) = early?;
    let text = module.text(writer).unwrap_or_default();
    Some(Problem {
        lane: active.trailing_zeros() as usize,
        kind: FaultKind::EarlyRead(format!("what instruction {writer} `{text}` writes, {why}")),
    })
}

/// Why a value is not there yet; `None` if it is.
fn missing(reader: &Instruction, writer: &Instruction, found: Dependence) -> Option<String> {
    let distance = match found.readiness {
        Readiness::Waited => return None,
        Readiness::Outstanding(counter) => {
            return Some(format!("without a wait for its counter SB{counter}"));
        }
        Readiness::After(distance) => distance,
    };
    let guard = PredicateRegister::Lanes(found.register) == reader.guard.register;
    let fixed_latency = writer.scheduling.fixed_latency;
    let needed = match found.file {
        File::Register => fixed_latency.registers,
        File::Predicate if guard => fixed_latency.guard,
        File::Predicate => fixed_latency.predicates,
    };
    let needed = u64::from(needed.saturating_sub(reader.scheduling.fixed_latency.late_read));
    (distance < needed).then(|| {
        format!(
            "{distance} cycles after it by the stall counts, where the compiler leaves {needed}"
        )
    })
}
