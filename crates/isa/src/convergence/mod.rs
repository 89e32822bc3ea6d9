//! Divergence and reconvergence of the lanes of a warp.
//!
//! Lanes with one program counter form a *divergent path*; one path runs at a time. A divergent
//! branch splits a path in two; convergence barriers (SASS `BSSY`/`BSYNC`, inserted by a pass for
//! PTX) reconverge them. A path that waits costs nothing. A path that spins yields to the others
//! after a while, so that a lane which holds a lock can always release it.
//!
//! | file | what |
//! |---|---|
//! | `path.rs` | one divergent path: program counter, lanes, why it waits |
//! | `branch.rs` | divergence: branches, direct and indirect |
//! | `barrier.rs` | reconvergence: Volta's convergence barriers |
//! | `collective.rs` | `WARPSYNC.COLLECTIVE`, `ENDCOLLECTIVE` |
//! | `sync.rs` | `WARPSYNC`, and waiting for something outside the warp |
//! | `schedule.rs` | which path runs next |
//!
//! Modelled: independent thread scheduling as programs can observe it. For machine code also the
//! order in which hardware picks paths, as instruction counts of an H200 show it (no document
//! gives it; `validation/microbench/divergence.cu` has the kernels, decision 0007 the reasoning):
//! - Of the two sides of a branch the smaller one runs first, at a tie the one that falls through.
//! - The other side is its *sibling*. When the running path waits or ends, the sibling runs next.
//!   There is only one: another branch meanwhile drops the older sibling among the rest.
//! - Of the rest, the youngest is scheduled, with every lane that is there, those that wait for the
//!   barrier there too: lanes that it records wait on, all others go on.
//! - Recorded lanes that wait anywhere count as arrived.
//! - Lanes that yield while others are there are no longer waited for, but at the barriers of callers.
//! - Lanes at a barrier of the block arrive for their warp when none of the others is ready.
//! - A barrier that came back from a register is executed once more before its lanes go on. Its lanes
//!   that wait at earlier instructions, at which it or another barrier does not hold them any more,
//!   are *deferred*: they run when no path is ready, or as soon as the next barrier that records them
//!   is complete.
//! - A path that was scheduled alone and finds company at such a barrier goes on at once.

mod barrier;
mod branch;
mod collective;
mod path;
mod schedule;
mod sync;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::warp_register::{LANES, Mask};

pub use path::{DivergentPath, PathState};
use schedule::full_branch_budget;
pub use sync::LAST_WARP_BARRIER;

/// Instructions that hardware issues once more without an effect; they count all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reissued {
    /// Warp instructions.
    pub instructions: u32,
    /// Lanes at them, summed.
    pub lanes: u32,
}

/// Control state of one warp: its running path, the other paths, and its convergence barriers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Convergence {
    /// Program counter of the running path.
    pc: u32,
    /// Lanes of the running path; empty when nothing can run.
    active: Mask,
    /// The other paths, oldest first.
    paths: Vec<DivergentPath>,
    /// Lanes that each convergence barrier records.
    barriers: Vec<Mask>,
    /// Lanes that have not ended.
    live: Mask,
    /// Taken backward branches that the running path may still make while others could run.
    branch_budget: u32,
    /// How often the running path yielded and no other could run.
    futile_yields: u32,
    /// How often the running path yielded to others.
    yields: u32,
    /// Where the running path was scheduled among the rest. A barrier is the only instruction that
    /// asks, and only right after.
    scheduled_at: u32,
    /// Whether it was the only one that could run then.
    scheduled_alone: bool,
    /// Barriers that were written back from registers, a bit each.
    restored: u16,
    /// Whether paths that happen to reach one instruction reconverge there (PTX; hardware does not).
    reconverge_anywhere: bool,
    /// What was issued again and is not counted yet.
    reissued: Reissued,
    /// Where each lane goes on after a collective; none was executed if this is empty.
    collective_targets: Option<Box<[u32; LANES]>>,
}

impl Convergence {
    /// A warp whose `lanes` are about to execute `entry`.
    #[must_use]
    pub fn new(lanes: Mask, entry: u32, barriers: u16, reconverge_anywhere: bool) -> Self {
        Self {
            pc: entry,
            active: lanes,
            paths: Vec::new(),
            barriers: vec![0; usize::from(barriers)],
            live: lanes,
            branch_budget: full_branch_budget(reconverge_anywhere),
            futile_yields: 0,
            yields: 0,
            scheduled_at: u32::MAX,
            scheduled_alone: false,
            restored: 0,
            reconverge_anywhere,
            reissued: Reissued::default(),
            collective_targets: None,
        }
    }

    /// As [`Self::new`], in the memory that this one has.
    pub fn restart(&mut self, lanes: Mask, entry: u32, barriers: u16, reconverge_anywhere: bool) {
        let (mut paths, mut recorded) = (
            std::mem::take(&mut self.paths),
            std::mem::take(&mut self.barriers),
        );
        paths.clear();
        recorded.clear();
        recorded.resize(usize::from(barriers), 0);
        *self = Self {
            paths,
            barriers: recorded,
            ..Self::new(lanes, entry, 0, reconverge_anywhere)
        };
    }

    /// What was issued again since the last call.
    #[inline]
    pub fn take_reissued(&mut self) -> Reissued {
        std::mem::take(&mut self.reissued)
    }

    /// Program counter of the running path; meaningless when [`Self::active`] is empty.
    #[must_use]
    #[inline(always)]
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Lanes of the running path; empty when all lanes wait or have ended.
    #[must_use]
    #[inline(always)]
    pub fn active(&self) -> Mask {
        self.active
    }

    /// Lanes that have not ended.
    #[must_use]
    #[inline]
    pub fn live(&self) -> Mask {
        self.live
    }

    /// Paths that do not run now, for reports on hung kernels.
    #[must_use]
    pub fn waiting_paths(&self) -> &[DivergentPath] {
        &self.paths
    }

    /// Goes on to the next instruction.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.pc += 1;
        if !self.paths.is_empty() {
            self.reconverge_at_pc();
        }
    }

    /// Goes past instructions at which lanes neither diverge nor reconverge: in machine code all but
    /// those that say so.
    #[inline(always)]
    pub fn advance_by(&mut self, instructions: u32) {
        debug_assert!(
            !self.reconverge_anywhere,
            "PTX may reconverge lanes anywhere"
        );
        self.pc += instructions;
    }

    /// Puts the running path where a trace says that it goes on. Only for a warp that is replayed: no path
    /// of it waits for another.
    pub fn place(&mut self, pc: u32, lanes: Mask) {
        (self.pc, self.active) = (pc, lanes & self.live);
    }

    /// The given active lanes end; the rest goes on to the next instruction.
    pub fn exit(&mut self, lanes: Mask) {
        let lanes = lanes & self.active;
        self.live &= !lanes;
        if self.live == 0 {
            // All lanes ran and nobody is left to wait.
            self.active = 0;
            return;
        }
        for barrier in &mut self.barriers {
            *barrier &= !lanes;
        }
        self.active &= !lanes;
        self.release_all();
        if self.active != 0 {
            self.advance();
        } else {
            self.schedule_next();
        }
    }

    pub(super) fn lanes_where(&self, chosen: impl Fn(&DivergentPath) -> bool) -> Mask {
        self.paths
            .iter()
            .filter(|path| chosen(path))
            .fold(0, |lanes, path| lanes | path.lanes)
    }

    pub(super) fn release_all(&mut self) {
        if self.paths.is_empty() {
            return;
        }
        for barrier in 0..self.barriers.len() {
            self.release_barrier(barrier as u16);
        }
        self.release_warp_syncs();
        self.release_collectives();
    }

    /// Makes the chosen lanes of each path ready at the instruction after theirs; those at one
    /// instruction are one path from then on.
    pub(super) fn release(&mut self, chosen: impl Fn(&DivergentPath) -> Mask) {
        let mut released: Vec<DivergentPath> = Vec::new();
        for path in &mut self.paths {
            let lanes = chosen(path) & path.lanes;
            if lanes == 0 {
                continue;
            }
            path.lanes &= !lanes;
            let pc = path.pc + 1;
            match released.iter_mut().find(|other| other.pc == pc) {
                Some(other) => other.lanes |= lanes,
                None => released.push(DivergentPath::ready(pc, lanes)),
            }
        }
        self.paths.retain(|path| path.lanes != 0);
        self.paths.extend(released);
    }
}
