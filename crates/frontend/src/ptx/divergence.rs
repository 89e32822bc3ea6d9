//! Divergence analysis: what may differ between the lanes of a warp, and what depends on other
//! threads.
//!
//! One analysis serves both questions: starting from instructions that are marked, it follows
//! values into registers and predicates, and through branches into everything that is written
//! where only some lanes may be. It errs on the side of "may differ".

use lockstep_isa::instruction::Flow;

use super::{
    flow::{Graph, Tree},
    ir::{Body, Code, Place},
};

/// The result: marked registers, predicates and branches.
pub struct Divergence {
    registers: Vec<bool>,
    flags: Vec<bool>,
    /// Blocks whose last instruction is a divergent branch.
    pub branches: Vec<bool>,
    /// Blocks that only some of the lanes may reach, because of such a branch.
    pub divergent: Vec<bool>,
}

impl Divergence {
    /// Follows the marks of `seed` through the blocks of `within`.
    pub fn follow(
        body: &Body<'_>,
        graph: &Graph<'_>,
        after: &Tree,
        within: &[bool],
        seed: impl Fn(&Code<'_>) -> bool,
    ) -> Self {
        let mut divergence = Self {
            registers: vec![false; body.registers.len()],
            flags: vec![false; body.flags as usize],
            branches: vec![false; graph.blocks.len()],
            divergent: vec![false; graph.blocks.len()],
        };
        let mut changed = true;
        while changed {
            changed = false;
            for (index, block) in graph.blocks.iter().enumerate() {
                if !within[index] {
                    continue;
                }
                for code in &block.code {
                    changed |= divergence.step(code, divergence.divergent[index] || seed(code));
                }
                if let Some(last) = block.code.last()
                    && !divergence.branches[index]
                    && divergence.diverges(last)
                {
                    divergence.branches[index] = true;
                    changed = true;
                    let region = graph.reachable(block.successors(), after.above(index));
                    for (divergent, reached) in divergence.divergent.iter_mut().zip(region) {
                        *divergent |= reached;
                    }
                }
            }
        }
        divergence
    }

    /// Whether a branch depends on something marked.
    fn diverges(&self, code: &Code<'_>) -> bool {
        let branch = matches!(
            code.flow(),
            Some(Flow::Branch { .. } | Flow::BranchIndirect { .. })
        );
        branch && !code.uniform_jump && self.reads(code)
    }

    fn reads(&self, code: &Code<'_>) -> bool {
        let register = code.uses.iter().any(|used| match used.place {
            Place::Virtual { register, .. } => !used.write && self.registers[register as usize],
            Place::Fixed(_) => !used.write,
        });
        register
            || code
                .flags
                .iter()
                .any(|(flag, write)| !write && self.flags[*flag as usize])
    }

    /// Marks what an instruction writes, if it must be; true if that is news.
    fn step(&mut self, code: &Code<'_>, marked: bool) -> bool {
        if !marked && !self.reads(code) {
            return false;
        }
        let mut news = false;
        for used in code.uses.iter().filter(|used| used.write) {
            if let Place::Virtual { register, .. } = used.place {
                news |= !std::mem::replace(&mut self.registers[register as usize], true);
            }
        }
        for (flag, _) in code.flags.iter().filter(|(_, write)| *write) {
            news |= !std::mem::replace(&mut self.flags[*flag as usize], true);
        }
        news
    }
}
