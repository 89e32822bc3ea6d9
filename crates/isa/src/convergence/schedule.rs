//! Which path runs next.

use std::ops::Range;

use super::Convergence;
use super::path::{DivergentPath, PathState, ReadyAfter};

/// Taken backward branches that a path may make while others could run.
const BRANCH_BUDGET: u32 = 8;
/// The same for machine code, whose spinning loops say themselves when to let others run. An H200
/// interrupts nobody within several thousand branches, so this is only against loops that say nothing.
const NATIVE_BRANCH_BUDGET: u32 = 1 << 16;
/// Times that a path yields to its sibling before all others have their turn.
const YIELDS_TO_SIBLING: u32 = 16;
/// Times that a path yields in vain before lanes at a convergence barrier go on without it.
const FUTILE_YIELDS: u32 = 32;

/// `B6` and `B7` belong to callers: functions save and restore them.
const CALLERS_BARRIERS: usize = 6;

pub(super) fn full_branch_budget(reconverge_anywhere: bool) -> u32 {
    if reconverge_anywhere {
        BRANCH_BUDGET
    } else {
        NATIVE_BRANCH_BUDGET
    }
}

impl Convergence {
    /// Goes on to the next instruction, but lets other ready paths run first.
    ///
    /// Compilers put this into loops that wait for other lanes, and a barrier behind such a loop
    /// all the same: whoever waits at the barrier may hold the lock. Hardware no longer waits for lanes
    /// that yielded to others: those at the barrier execute it once more and go on. Only the barriers that functions
    /// keep for their callers wait for them, unless they sleep or all others spin, too. For PTX, the lanes that wait
    /// longest at a barrier go on after some turns in which no other path could run.
    pub fn yield_to_others(&mut self, sleeps: bool) {
        self.pc += 1;
        if self.reconverge_anywhere {
            self.reconverge_at_pc();
            if !self.any_runnable() {
                self.futile_yields += 1;
                if self.futile_yields >= FUTILE_YIELDS {
                    self.break_deadlock();
                }
            }
            return self.run_oldest();
        }
        if self.paths.is_empty() {
            return;
        }
        self.leave_barriers(0..CALLERS_BARRIERS);
        let others = |path: &DivergentPath| {
            path.ready_after != ReadyAfter::Yield
                && matches!(path.state, PathState::Ready | PathState::Deferred)
        };
        if sleeps || !self.paths.iter().any(others) {
            self.leave_barriers(CALLERS_BARRIERS..self.barriers.len());
        }
        if !self.any_runnable() {
            return;
        }
        self.yields += 1;
        if self.yields.is_multiple_of(YIELDS_TO_SIBLING) {
            return self.run_oldest();
        }
        let parked = DivergentPath {
            ready_after: if sleeps {
                ReadyAfter::Sleep
            } else {
                ReadyAfter::Yield
            },
            ..DivergentPath::ready(self.pc, self.active)
        };
        self.active = 0;
        self.schedule_next();
        self.set_sibling(parked);
    }

    /// Takes the active lanes out of these barriers. A barrier that does not hold them stays as it is: lanes may wait
    /// there whose record an inner call keeps in a register.
    fn leave_barriers(&mut self, barriers: Range<usize>) {
        for barrier in barriers.start..barriers.end.min(self.barriers.len()) {
            if self.barriers[barrier] & self.active != 0 {
                self.barriers[barrier] &= !self.active;
                self.open_barrier(barrier as u16);
            }
        }
        self.free_awaited_lanes();
    }

    /// Folds everything into a value that decides where lanes go: of the counts that let others run,
    /// what matters if there are others.
    pub fn fold_state(&self, start: u64, mut step: impl FnMut(u64, u64) -> u64) -> u64 {
        let mut fold = step(start, u64::from(self.pc) << 32 | u64::from(self.active));
        for path in &self.paths {
            fold = step(fold, u64::from(path.pc) << 32 | u64::from(path.lanes));
            fold = step(fold, path.state.number());
            fold = step(
                fold,
                (path.ready_after as u64) << 1 | u64::from(path.sibling),
            );
        }
        if self.any_runnable() {
            let yields = self.yields % YIELDS_TO_SIBLING;
            fold = step(
                fold,
                u64::from(self.branch_budget) << 32 | u64::from(yields),
            );
            fold = step(fold, u64::from(self.futile_yields));
        }
        for barrier in &self.barriers {
            fold = step(fold, u64::from(*barrier));
        }
        for target in self.collective_targets.iter().flat_map(|all| all.iter()) {
            fold = step(fold, u64::from(*target));
        }
        step(fold, u64::from(self.live) << 16 | u64::from(self.restored))
    }

    /// Whether lanes that do not run now could.
    #[must_use]
    pub fn others_can_run(&self) -> bool {
        !self.paths.is_empty() && self.any_runnable()
    }

    /// Goes on to the next instruction after the path that has waited longest has run. Unlike
    /// [`Self::yield_to_others`], convergence barriers go on waiting for these lanes. Machine code keeps values of the
    /// whole warp in uniform registers and goes on until it branches back.
    pub fn let_others_run(&mut self) {
        self.pc += 1;
        if !self.reconverge_anywhere {
            self.branch_budget = 1;
            return;
        }
        self.reconverge_at_pc();
        self.run_oldest();
    }

    pub(super) fn any_runnable(&self) -> bool {
        self.paths
            .iter()
            .any(|path| matches!(path.state, PathState::Ready | PathState::Deferred))
    }

    /// Lets the oldest path that is ready run.
    pub(super) fn run_oldest(&mut self) {
        self.branch_budget = full_branch_budget(self.reconverge_anywhere);
        let oldest = |state| self.paths.iter().position(|path| path.state == state);
        if let Some(index) = oldest(PathState::Ready).or_else(|| oldest(PathState::Deferred)) {
            let path = self.paths.remove(index);
            self.park(PathState::Ready);
            (self.pc, self.active) = (path.pc, path.lanes);
            self.reconverge_at_pc();
        }
    }

    /// Puts the running path behind the others, at its program counter.
    pub(super) fn park(&mut self, state: PathState) {
        self.paths.push(DivergentPath {
            pc: self.pc,
            lanes: self.active,
            state,
            sibling: false,
            ready_after: ReadyAfter::Other,
        });
        self.active = 0;
    }

    /// Runs a path that is ready: the sibling, else the youngest; for PTX the
    /// oldest.
    pub(super) fn schedule_next(&mut self) {
        if self.active != 0 {
            return;
        }
        // Lanes at a barrier of the block wait for others that are ready, but not for those at an indirect jump.
        let at_barrier = self.arrives_as_warp() && self.is_at_block_barrier();
        let ready = |path: &DivergentPath| {
            let stays = at_barrier && path.ready_after == ReadyAfter::IndirectJump;
            path.state == PathState::Ready && !stays
        };
        let index = if self.reconverge_anywhere {
            self.paths.iter().position(ready)
        } else {
            let sibling = self
                .paths
                .iter()
                .position(|path| path.sibling && ready(path));
            let deferred = |path: &DivergentPath| path.state == PathState::Deferred;
            let (mut are_ready, mut are_deferred) = (0, 0);
            for path in &self.paths {
                are_ready += usize::from(ready(path));
                are_deferred += usize::from(deferred(path));
            }
            // Deferred lanes are no others while anybody is ready.
            self.scheduled_alone = are_ready == 1 || are_ready == 0 && are_deferred == 1;
            sibling
                .or_else(|| self.paths.iter().rposition(ready))
                .or_else(|| {
                    let mut paths = self.paths.iter();
                    paths.position(|path| !at_barrier && deferred(path))
                })
        };
        if let Some(index) = index {
            let path = self.paths.remove(index);
            self.run_path(path);
        } else if at_barrier {
            // The warp has arrived at the barrier, and lanes that wait for each other stay where they are.
        } else if self.nobody_is_coming() && self.break_deadlock() {
            // Nobody is left who could record these lanes again.
            self.schedule_next();
        }
    }

    /// Runs this path, which is none of the others any more.
    pub(super) fn run_path(&mut self, path: DivergentPath) {
        (self.pc, self.active) = (path.pc, path.lanes);
        self.branch_budget = full_branch_budget(self.reconverge_anywhere);
        if !self.reconverge_anywhere && !path.sibling {
            self.scheduled_at = path.pc;
            self.merge_runnable_at_pc();
        }
        self.reconverge_at_pc();
    }

    /// Whether no path waits for something outside the warp. PTX may record the lanes of such a path again.
    pub(super) fn nobody_is_coming(&self) -> bool {
        !self.reconverge_anywhere || !self.paths.iter().any(DivergentPath::waits_outside)
    }

    /// Takes along the rest that could run at the program counter.
    pub(super) fn merge_runnable_at_pc(&mut self) {
        let (pc, active) = (self.pc, &mut self.active);
        self.paths.retain(|path| {
            let runs = matches!(path.state, PathState::Ready | PathState::Deferred);
            let here = runs && path.pc == pc && !path.sibling;
            if here {
                *active |= path.lanes;
            }
            !here
        });
    }

    pub(super) fn reconverge_at_pc(&mut self) {
        if !self.reconverge_anywhere || self.active == 0 {
            return;
        }
        let (pc, active) = (self.pc, &mut self.active);
        self.paths.retain(|path| {
            let joins = path.state == PathState::Ready && path.pc == pc;
            if joins {
                *active |= path.lanes;
            }
            !joins
        });
    }

    /// Ready paths with one program counter that were released together are one.
    pub(super) fn merge_ready_paths(&mut self) {
        let mut index = 0;
        while index < self.paths.len() {
            let path = self.paths[index];
            if path.state == PathState::Ready
                && let Some(first) = self.paths[..index]
                    .iter_mut()
                    .find(|other| other.state == PathState::Ready && other.pc == path.pc)
            {
                first.lanes |= path.lanes;
                self.paths.remove(index);
            } else {
                index += 1;
            }
        }
    }
}
