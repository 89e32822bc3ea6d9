//! Divergence: where lanes take different ways.

use super::Convergence;
use super::path::{DivergentPath, ReadyAfter};
use crate::warp_register::{LANES, Mask, lanes_of};

impl Convergence {
    /// The lanes of `taken` go to `target`, the other active ones to the next instruction.
    #[inline]
    pub fn branch(&mut self, taken: Mask, target: u32) {
        let taken = taken & self.active;
        if taken == 0 {
            return self.advance();
        }
        let backward = target <= self.pc;
        let fall = self.active & !taken;
        let (next, here) = (self.pc + 1, self.active);
        (self.pc, self.active) = (target, taken);
        if fall != 0 {
            // Without knowledge of the hardware's order, the one that keeps short paths short: the
            // branch is usually over a body.
            let taken_first = self.reconverge_anywhere || taken.count_ones() < fall.count_ones();
            if taken_first {
                self.set_sibling(DivergentPath::ready(next, fall));
            } else {
                self.set_sibling(DivergentPath::ready(target, taken));
                (self.pc, self.active) = (next, here & fall);
            }
        }
        if self.paths.is_empty() {
            return;
        }
        self.reconverge_at_pc();
        if backward {
            self.spend_branch_budget();
        }
    }

    /// Each active lane goes to its own target. Machine code sends one group of lanes at a time: the
    /// others stay at the instruction and execute it again.
    pub fn branch_indirect(&mut self, targets: &[u32; LANES]) {
        let (pc, lanes) = first_target(targets, self.active);
        let left = self.active & !lanes;
        if left == 0 {
            (self.pc, self.active) = (pc, lanes);
            return self.reconverge_at_pc();
        }
        if self.reconverge_anywhere {
            (self.pc, self.active) = (pc, lanes);
            let mut left = left;
            while left != 0 {
                let (pc, lanes) = first_target(targets, left);
                left &= !lanes;
                self.set_sibling(DivergentPath::ready(pc, lanes));
            }
            return self.reconverge_at_pc();
        }
        // The lowest lane's target against all others; the smaller of the two sides goes.
        let (pc, lanes) = if lanes.count_ones() <= left.count_ones() {
            (pc, lanes)
        } else {
            first_target(targets, left)
        };
        self.set_sibling(DivergentPath {
            ready_after: ReadyAfter::IndirectJump,
            ..DivergentPath::ready(self.pc, self.active & !lanes)
        });
        (self.pc, self.active) = (pc, lanes);
    }

    /// Makes the other side of a branch the sibling of the running path.
    pub(super) fn set_sibling(&mut self, path: DivergentPath) {
        for other in &mut self.paths {
            other.sibling = false;
        }
        self.paths.push(DivergentPath {
            sibling: !self.reconverge_anywhere,
            ..path
        });
    }

    pub(super) fn spend_branch_budget(&mut self) {
        self.branch_budget -= 1;
        if self.branch_budget == 0 {
            if !self.reconverge_anywhere {
                self.free_awaited_lanes();
            }
            self.run_oldest();
        }
    }
}

/// Target of the lowest of some lanes, and those that share it.
fn first_target(targets: &[u32; LANES], lanes: Mask) -> (u32, Mask) {
    let pc = targets[lanes.trailing_zeros() as usize % LANES];
    let same = lanes_of(lanes)
        .filter(|lane| targets[*lane] == pc)
        .fold(0, |mask, lane| mask | 1 << lane);
    (pc, same)
}
