//! Where a register may lead the lanes of a kernel.

use std::sync::{Arc, OnceLock};

use super::{
    CodeSet, fits,
    sections::{Sections, Walk},
};
use crate::module::Module;

/// The instructions that jumps by register may go to: those that the kernel comes to by itself, and sections that fit
/// it with all that they call. Other kernels are not called.
///
/// The latter are looked at when a lane first goes there; whether one fits depends on nothing but the module.
#[derive(Clone, Debug, Default)]
pub struct JumpTargets {
    reached: CodeSet,
    others: Option<Others>,
}

/// Sections that only a register leads to.
#[derive(Clone, Debug)]
struct Others {
    sections: Arc<Sections>,
    kernel: usize,
    /// Sections that the kernel comes to by itself, ascending.
    reached: Vec<usize>,
    /// Where the code of each section ends: at its start if it does not fit.
    ends: Vec<OnceLock<u32>>,
}

impl JumpTargets {
    pub(super) fn new(
        sections: &Arc<Sections>,
        module: &Module,
        kernel: usize,
        walk: Walk,
    ) -> Self {
        let mut reached = CodeSet::none(module.code.len());
        for (number, overrun) in &walk.reached {
            let end = sections.end(module, *number, *overrun);
            (module.section(*number).start..end).for_each(|index| reached.insert(index as usize));
        }
        let others = walk.indirect.then(|| Others {
            sections: sections.clone(),
            kernel,
            reached: walk.reached.into_keys().collect(),
            ends: (0..sections.count()).map(|_| OnceLock::new()).collect(),
        });
        Self { reached, others }
    }

    /// Whether lanes may go to an instruction of the module that was verified.
    #[must_use]
    #[inline]
    pub fn holds(&self, module: &Module, index: u64) -> bool {
        self.reached.holds(index)
            || self
                .others
                .as_ref()
                .is_some_and(|others| others.hold(module, index))
    }
}

impl Others {
    fn hold(&self, module: &Module, index: u64) -> bool {
        let Some(index) = u32::try_from(index)
            .ok()
            .filter(|index| (*index as usize) < module.code.len())
        else {
            return false;
        };
        let number = module.section_of(index);
        if self.reached.binary_search(&number).is_ok() {
            return false;
        }
        let end = self.ends[number].get_or_init(|| self.end(module, number));
        (module.section(number).start..*end).contains(&index)
    }

    /// Where the code of a section ends, if it and all that it leads to fit the kernel.
    fn end(&self, module: &Module, number: usize) -> u32 {
        let walk = self.sections.walk(module, number);
        let kernel = &module.kernels[self.kernel];
        let fitting = |other: &usize| {
            let section = self.sections.get(module, *other);
            let is_kernel = |entry| module.section_of(entry) == *other;
            section.astray.is_empty()
                && fits(module, kernel, section.needs)
                && !module.kernels.iter().any(|kernel| is_kernel(kernel.entry))
        };
        let own = |other: &&usize| self.reached.binary_search(other).is_err();
        match walk.reached.keys().filter(own).all(fitting) {
            true => self.sections.end(module, number, walk.reached[&number]),
            false => module.section(number).start,
        }
    }
}
