//! Code is verified before it runs.
//!
//! A front end takes bytes as they are; what they name is checked here, when a launch can reach it
//! for the first time. The walk goes from the kernel along its calls, section by section. An
//! instruction that names a register, predicate, convergence barrier, constant or target that the
//! kernel does not have becomes [`Operation::Illegal`]: it faults when it is executed, as on
//! hardware, and code that is never executed harms nobody. Functions that only an address in a
//! register could reach count as code of the kernel if all of them fits it; a jump to anywhere else
//! faults.
//!
//! An SM may therefore index registers, predicates and barriers as instructions say.
//!
//! Start reading at [`Verifier::kernel`].

mod code_set;
mod needs;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Range, sync::Arc};

pub use code_set::CodeSet;
pub use needs::Needs;

use crate::{
    instruction::{Flow, Instruction, Operation},
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
    pub code: CodeSet,
}

/// What is known of one section.
#[derive(Clone, Debug, Default)]
struct Section {
    needs: Needs,
    /// Sections that it calls, branches to or falls into.
    next: Vec<usize>,
    /// Whether a register may say where it goes.
    indirect: bool,
    /// Instructions whose target is no code at all.
    astray: Vec<u32>,
    /// Where its code ends and the filling begins that nothing runs into.
    end: u32,
}

/// Verifies the kernels of one module, each when it is first launched.
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    /// Sections that were looked at.
    sections: BTreeMap<usize, Section>,
    kernels: BTreeMap<usize, Arc<Verified>>,
    /// Where kernels begin and direct branches go, ascending; once it is known.
    landings: Option<Vec<u32>>,
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
        let verified = Arc::new(self.verify(module, &module.kernels[index]));
        self.kernels.insert(index, verified.clone());
        verified
    }

    fn verify(&mut self, module: &Module, kernel: &Kernel) -> Verified {
        let mut reached = vec![false; count(module)];
        let mut work = vec![section_of(module, kernel.entry)];
        let mut indirect = false;
        while let Some(number) = work.pop() {
            if std::mem::replace(&mut reached[number], true) {
                continue;
            }
            let section = self.section(module, number);
            indirect |= section.indirect;
            work.extend(&section.next);
        }
        let violations = self.violations(module, kernel, &reached);
        if indirect {
            self.add_fitting(module, kernel, &mut reached);
        }
        let mut code = CodeSet::none(module.code.len());
        for number in (0..reached.len()).filter(|number| reached[*number]) {
            let end = self.section(module, number).end;
            (extent(module, number).start..end).for_each(|index| code.insert(index as usize));
        }
        Verified {
            patched: (!violations.is_empty()).then(|| Arc::new(patched(module, violations))),
            code,
        }
    }

    /// Instructions of reached sections that the kernel cannot execute, with the reason.
    fn violations(
        &mut self,
        module: &Module,
        kernel: &Kernel,
        reached: &[bool],
    ) -> Vec<(u32, String)> {
        let mut violations = Vec::new();
        for number in (0..reached.len()).filter(|number| reached[*number]) {
            let section = self.section(module, number);
            if section.astray.is_empty() && fits(module, kernel, section.needs) {
                continue;
            }
            for index in extent(module, number) {
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

    /// Adds the sections that only a register can lead to, as far as they and all that they call
    /// fit the kernel. Other kernels are not called.
    fn add_fitting(&mut self, module: &Module, kernel: &Kernel, reached: &mut [bool]) {
        let mut fitting: Vec<bool> = reached.to_vec();
        for (number, fits_here) in fitting.iter_mut().enumerate() {
            let section = self.section(module, number);
            *fits_here |= section.astray.is_empty() && fits(module, kernel, section.needs);
        }
        for other in &module.kernels {
            let number = section_of(module, other.entry);
            fitting[number] = reached[number];
        }
        let mut changed = true;
        while changed {
            changed = false;
            for number in 0..fitting.len() {
                let next = self.section(module, number).next.iter();
                if fitting[number] && !reached[number] && !next.copied().all(|n| fitting[n]) {
                    fitting[number] = false;
                    changed = true;
                }
            }
        }
        reached.copy_from_slice(&fitting);
    }

    fn section(&mut self, module: &Module, number: usize) -> &Section {
        let landings = self.landings.get_or_insert_with(|| landings(module));
        self.sections
            .entry(number)
            .or_insert_with(|| look_at(module, number, landings))
    }
}

/// Number of sections.
fn count(module: &Module) -> usize {
    module.sections.len().max(1)
}

/// Instructions of a section.
fn extent(module: &Module, number: usize) -> Range<u32> {
    let start = module.sections.get(number).copied().unwrap_or(0);
    let end = module.sections.get(number + 1).copied();
    start..end.unwrap_or(module.code.len() as u32).max(start)
}

/// The section that holds an instruction.
fn section_of(module: &Module, index: u32) -> usize {
    let after = module.sections.partition_point(|start| *start <= index);
    after.saturating_sub(1)
}

/// Where kernels begin and direct branches go, ascending.
fn landings(module: &Module) -> Vec<u32> {
    let entries = module.kernels.iter().map(|kernel| kernel.entry);
    let targets = module
        .code
        .iter()
        .filter_map(|instruction| match instruction.operation {
            Operation::Flow(
                Flow::Branch { target }
                | Flow::BranchOnDivergence { target, .. }
                | Flow::Collective { target }
                | Flow::Call { target },
            ) => Some(target),
            _ => None,
        });
    let mut all: Vec<u32> = entries.chain(targets).collect();
    all.sort_unstable();
    all
}

fn look_at(module: &Module, number: usize, landings: &[u32]) -> Section {
    let extent = extent(module, number);
    let filling = filling(module, extent.clone());
    // What lands in the filling runs off the end.
    let landing = landings.partition_point(|landing| *landing < filling);
    let lands = landings.get(landing).is_some_and(|at| *at < extent.end);
    let mut section = Section {
        end: if lands { extent.end } else { filling },
        ..Section::default()
    };
    for index in extent.clone() {
        let instruction = &module.code[index as usize];
        section.needs = section.needs.or(Needs::of(instruction));
        let Operation::Flow(flow) = instruction.operation else {
            continue;
        };
        match flow {
            Flow::Branch { target }
            | Flow::BranchOnDivergence { target, .. }
            | Flow::Collective { target }
            | Flow::Call { target } => {
                if target as usize >= module.code.len() {
                    section.astray.push(index);
                } else if !extent.contains(&target) {
                    section.next.push(section_of(module, target));
                }
            }
            Flow::BranchIndirect { .. } | Flow::CallIndirect { .. } | Flow::Return { .. } => {
                section.indirect = true;
            }
            _ => {}
        }
    }
    if number + 1 < count(module) && section.end == extent.end && runs_off(module, &extent) {
        section.next.push(number + 1);
    }
    section.next.sort_unstable();
    section.next.dedup();
    section
}

/// Where the instructions begin that only fill up a section: compilers end one with an exit or a
/// branch. The end of the section if there are none, or if execution may run into them.
fn filling(module: &Module, extent: Range<u32>) -> u32 {
    let code = &module.code[extent.start as usize..extent.end as usize];
    let last = code
        .iter()
        .rposition(|instruction| !matches!(instruction.operation, Operation::Nothing));
    match last {
        Some(last) if ends(&code[last]) => extent.start + last as u32 + 1,
        _ => extent.end,
    }
}

/// Whether execution may go on behind the last instruction of a section.
fn runs_off(module: &Module, extent: &Range<u32>) -> bool {
    let last = extent
        .end
        .checked_sub(1)
        .filter(|last| extent.contains(last));
    !last.is_some_and(|last| ends(&module.code[last as usize]))
}

/// Whether no lane goes on to the next instruction.
fn ends(instruction: &Instruction) -> bool {
    let always =
        instruction.guard == Default::default() && instruction.predicates[0] == Default::default();
    match &instruction.operation {
        Operation::Flow(Flow::Branch { .. } | Flow::BranchIndirect { .. }) => always,
        Operation::Flow(Flow::Return { .. } | Flow::Exit) => always,
        // One whose guard is false is passed over.
        Operation::Unsupported(_) | Operation::Illegal(_) => always,
        _ => false,
    }
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
    let text = module.listing.get(index as usize);
    let text = text.map_or("an instruction", String::as_str);
    format!("{name}+{offset:#x}: `{text}` {why}; the code is damaged or its header is")
}

/// A copy of the module with illegal instructions where something is wrong.
fn patched(module: &Module, violations: Vec<(u32, String)>) -> Module {
    let mut module = module.clone();
    for (index, sentence) in violations {
        let instruction = &mut module.code[index as usize];
        // Where and when it would have been issued does not change.
        let scheduling = instruction.scheduling;
        *instruction = Instruction::new(Operation::Illegal(sentence.into()), scheduling);
        instruction.scheduling.source_registers = [0; 4];
        instruction.scheduling.destination_registers = 0;
    }
    module.find_straight_line_code();
    module
}
