//! Code is verified before it runs.
//!
//! A front end takes bytes as they are; what they name is checked here, when a launch can reach it
//! for the first time. The walk goes from the kernel along its calls, section by section. An
//! instruction that names a register, predicate, convergence barrier, constant or target that the
//! kernel does not have becomes [`Operation::Illegal`]: it faults when it is executed, as on
//! hardware, and code that is never executed harms nobody. Functions that only an address in a
//! register could reach count as code of the kernel if all of them fits it; a jump to anywhere else
//! faults. They are looked at when something first jumps there: a library has thousands of them.
//!
//! An SM may therefore index registers, predicates and barriers as instructions say.
//!
//! Start reading at [`Verifier::kernel`].

mod code_set;
mod jump_targets;
mod needs;
mod sections;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

pub use code_set::CodeSet;
pub use jump_targets::JumpTargets;
pub use needs::Needs;
use sections::Sections;

use crate::{
    instruction::{Instruction, Operation},
    module::{Kernel, Module},
    sass::word::WORD_BYTES,
};

/// Bytes of a constant bank that an instruction of machine code can name.
const CONSTANT_BANK: u64 = 1 << 16;

/// A kernel that may run.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// The module with illegal instructions in the place of those that the kernel cannot execute;
    /// none if there are none.
    pub patched: Option<Arc<Module>>,
    /// Where jumps may go.
    pub code: JumpTargets,
}

/// Verifies the kernels of one module, each when it is first launched.
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    sections: Option<Arc<Sections>>,
    kernels: BTreeMap<usize, Arc<Verified>>,
}

impl Verifier {
    /// The kernel with this index of the module, which is always the same one.
    ///
    /// # Panics
    /// If the module has no such kernel.
    pub fn kernel(&mut self, module: &Module, index: usize) -> Arc<Verified> {
        if let Some(known) = self.kernels.get(&index) {
            return known.clone();
        }
        let sections = self
            .sections
            .get_or_insert_with(|| Arc::new(Sections::of(module)));
        let verified = Arc::new(verify(sections, module, index));
        self.kernels.insert(index, verified.clone());
        verified
    }
}

fn verify(sections: &Arc<Sections>, module: &Module, index: usize) -> Verified {
    let kernel = &module.kernels[index];
    let walk = sections.walk(module, module.section_of(kernel.entry));
    let violations = violations(sections, module, kernel, walk.reached.keys().copied());
    Verified {
        patched: (!violations.is_empty()).then(|| Arc::new(patched(module, violations))),
        code: JumpTargets::new(sections, module, index, walk),
    }
}

/// Instructions of reached sections that the kernel cannot execute, with the reason.
fn violations(
    sections: &Sections,
    module: &Module,
    kernel: &Kernel,
    reached: impl Iterator<Item = usize>,
) -> Vec<(u32, String)> {
    let mut violations = Vec::new();
    for number in reached {
        let section = sections.get(module, number);
        if section.astray.is_empty() && fits(module, kernel, section.needs) {
            continue;
        }
        for index in module.section(number) {
            let needs = Needs::of(&module.code[index as usize]);
            let why = if section.astray.contains(&index) {
                Some("goes to where no code of its module is".to_owned())
            } else {
                violation(module, kernel, needs)
            };
            violations.extend(why.map(|why| (index, sentence(module, index, &why))));
        }
    }
    violations
}

fn fits(module: &Module, kernel: &Kernel, needs: Needs) -> bool {
    needs.registers <= u32::from(kernel.warp_registers)
        && needs.predicates <= u32::from(kernel.predicates)
        && needs.barriers <= u32::from(kernel.convergence_barriers)
        && (!module.native || needs.constant_bytes <= CONSTANT_BANK)
}

/// Why a kernel cannot execute an instruction, if it cannot.
fn violation(module: &Module, kernel: &Kernel, needs: Needs) -> Option<String> {
    if fits(module, kernel, needs) {
        return None;
    }
    let name = &kernel.name;
    Some(if needs.registers > u32::from(kernel.warp_registers) {
        // Registers of the uniform datapath come first, those of threads behind them.
        let uniform = u32::from(kernel.warp_registers).saturating_sub(kernel.registers.max(1));
        let register = needs.registers - 1 - uniform.min(needs.registers - 1);
        format!(
            "touches R{register}, and kernel `{name}` has {} registers a thread",
            kernel.registers
        )
    } else if needs.predicates > u32::from(kernel.predicates) {
        let predicate = needs.predicates - 1;
        format!(
            "touches predicate {predicate}, and kernel `{name}` has {}",
            kernel.predicates
        )
    } else if needs.barriers > u32::from(kernel.convergence_barriers) {
        let barrier = needs.barriers - 1;
        format!(
            "names convergence barrier {barrier}, and kernel `{name}` has {}",
            kernel.convergence_barriers
        )
    } else {
        format!(
            "reads byte {:#x} of a constant bank, which has {CONSTANT_BANK:#x} at most",
            needs.constant_bytes - 1
        )
    })
}

/// Names the place, what stands there, and what is wrong with it.
fn sentence(module: &Module, index: u32, why: &str) -> String {
    let after = module
        .functions
        .partition_point(|(start, _)| *start <= index);
    let (start, name) = match after.checked_sub(1) {
        Some(function) => (module.functions[function].0, &*module.functions[function].1),
        None => (0, ""),
    };
    let offset = u64::from(index - start) * WORD_BYTES;
    let text = module.text(index);
    let text = text.as_deref().unwrap_or("an instruction");
    format!("{name}+{offset:#x}: `{text}` {why}; the code is damaged or its header is")
}

/// A copy of the module with illegal instructions where something is wrong.
fn patched(module: &Module, violations: Vec<(u32, String)>) -> Module {
    let mut module = module.clone();
    for (index, sentence) in violations {
        // Where and when it would have been issued does not change.
        let mut scheduling = module.code[index as usize].scheduling;
        scheduling.source_registers = [0; 4];
        scheduling.destination_registers = 0;
        let illegal = Instruction::new(Operation::Illegal(sentence.into()), scheduling);
        module.code.replace(index as usize, illegal);
    }
    module
}
