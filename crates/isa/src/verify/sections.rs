//! Pieces of code that were linked as one: what each needs of a kernel, and where it leads.
//!
//! A piece is looked at when a walk first comes there, so that code which nobody calls is never decoded.

use std::{collections::BTreeMap, ops::Range, sync::OnceLock};

use super::Needs;
use crate::{
    instruction::{Flow, Instruction, Operation},
    module::Module,
};

/// What is known of one section.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    pub needs: Needs,
    /// Where it goes in other sections, by calls and branches.
    targets: Vec<u32>,
    /// Whether a register may say where it goes.
    indirect: bool,
    /// Instructions whose target is no code at all.
    pub astray: Vec<u32>,
    /// Where its code ends and the filling begins that nothing of it runs into.
    filling: u32,
    /// Whether its own branches, or a kernel, lead into the filling.
    lands_in_filling: bool,
    /// Whether execution may go on behind its last instruction.
    runs_off: bool,
}

/// The sections of a module, each looked at when it is needed.
#[derive(Debug)]
pub(super) struct Sections(Vec<OnceLock<Section>>);

/// What can be come to from a section without a register that says where.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Sections, and whether execution may come into what fills them up.
    pub reached: BTreeMap<usize, bool>,
    /// Whether a register may say where some of them go.
    pub indirect: bool,
}

impl Sections {
    pub(super) fn of(module: &Module) -> Self {
        Self(
            (0..module.section_count())
                .map(|_| OnceLock::new())
                .collect(),
        )
    }

    /// Number of sections.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, module: &Module, number: usize) -> &Section {
        self.0[number].get_or_init(|| look_at(module, number))
    }

    /// Where code ends that may be executed, by what a walk found.
    pub(super) fn end(&self, module: &Module, number: usize, overrun: bool) -> u32 {
        match overrun {
            true => module.section(number).end,
            false => self.get(module, number).filling,
        }
    }

    /// Follows calls, branches and what is fallen into, from the start of a section on.
    pub(super) fn walk(&self, module: &Module, start: usize) -> Walk {
        let mut walk = Walk::default();
        let mut work = vec![(start, None)];
        while let Some((number, landing)) = work.pop() {
            let section = self.get(module, number);
            let overrun = section.lands_in_filling || landing >= Some(section.filling);
            let known = walk.reached.get(&number).copied();
            if known.is_some_and(|known| known || !overrun) {
                continue;
            }
            walk.reached.insert(number, overrun);
            walk.indirect |= section.indirect;
            if known.is_none() {
                let targets = section.targets.iter();
                work.extend(targets.map(|target| (module.section_of(*target), Some(*target))));
            }
            let ends = self.end(module, number, overrun) < module.section(number).end;
            if number + 1 < self.count() && section.runs_off && !ends {
                work.push((number + 1, None));
            }
        }
        walk
    }
}

fn look_at(module: &Module, number: usize) -> Section {
    let extent = module.section(number);
    let filling = filling(module, extent.clone());
    // What lands in the filling runs off the end.
    let behind = filling..extent.end;
    let entries = module.kernels.iter().map(|kernel| kernel.entry);
    let mut section = Section {
        filling,
        lands_in_filling: entries.into_iter().any(|entry| behind.contains(&entry)),
        runs_off: runs_off(module, &extent),
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
                section.lands_in_filling |= behind.contains(&target);
                if target as usize >= module.code.len() {
                    section.astray.push(index);
                } else if !extent.contains(&target) {
                    section.targets.push(target);
                }
            }
            Flow::BranchIndirect { .. } | Flow::CallIndirect { .. } | Flow::Return { .. } => {
                section.indirect = true;
            }
            _ => {}
        }
    }
    section.targets.sort_unstable();
    section.targets.dedup();
    section
}

/// Where the instructions begin that only fill up a section: compilers end one with an exit or a
/// branch. The end of the section if there are none, or if execution may run into them.
fn filling(module: &Module, extent: Range<u32>) -> u32 {
    let last = extent.clone().rev().find(|index| {
        let operation = &module.code[*index as usize].operation;
        !matches!(operation, Operation::Nothing)
    });
    match last {
        Some(last) if ends(&module.code[last as usize]) => last + 1,
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
