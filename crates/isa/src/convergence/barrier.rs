//! Reconvergence at the convergence barriers that Volta introduced: `BSSY`, `BSYNC`, `BREAK`, `BMOV`.

use super::Convergence;
use super::path::{DivergentPath, PathState, defer, take_out};
use crate::warp_register::Mask;

impl Convergence {
    /// Adds the active lanes to a barrier. Lanes that another path recorded stay in it: two
    /// paths may be in one region at once, and each must find its own lanes again.
    pub fn converge_set(&mut self, barrier: u16) {
        self.barriers[usize::from(barrier)] |= self.active;
        self.restored &= !bit(barrier);
        self.advance();
    }

    /// Waits until every lane recorded in the barrier has come, then they go on together and the
    /// barrier is empty. Gives the lanes that had been waiting and are counted with the last ones.
    pub fn converge_wait(&mut self, barrier: u16) -> Mask {
        if self.reconverge_anywhere {
            self.converge_wait_virtual(barrier);
            return 0;
        }
        let index = usize::from(barrier);
        let scheduled = std::mem::replace(&mut self.scheduled_at, u32::MAX) == self.pc;
        let (pc, waits) = (self.pc, PathState::Barrier(barrier));
        let recorded = self.barriers[index];
        let members = self.active & recorded;
        // Deferred lanes come with whoever is scheduled, but have not come for one who just arrives.
        let deferred = self.lanes_where(|path| scheduled && path.state == PathState::Deferred);
        let missing = recorded & !self.active & !self.lanes_at_barriers() & !deferred;
        let meeting = if members == 0 || missing == 0 {
            0
        } else {
            missing & self.lanes_that_await(members)
        };
        if members != 0 && missing & !meeting != 0 {
            return self.wait_for_members(barrier, scheduled);
        }
        // A path that was scheduled among the rest brings along whoever waits at its instruction,
        // lanes of outer calls too.
        let wanted = match (scheduled, members) {
            (true, _) => Mask::MAX,
            (false, 0) => 0,
            (false, _) => recorded,
        };
        let deferred_before =
            |path: &DivergentPath| path.state == PathState::Deferred && path.pc != pc;
        let owed = recorded & self.lanes_where(deferred_before);
        let mut joined = 0;
        self.paths.retain_mut(|path| {
            if path.pc == pc && (path.state == waits || path.state == PathState::Deferred) {
                joined |= path.lanes & wanted;
                path.lanes &= !wanted;
            }
            path.lanes != 0
        });
        let restored = self.restored & bit(barrier) != 0;
        // Nobody came along, though some of its lanes wait elsewhere.
        let lone = joined == 0 && recorded & !self.active != 0;
        self.active |= joined;
        let counted = if scheduled { joined } else { 0 };
        if members == 0 {
            self.barriers[index] &= !joined;
        } else {
            // Lanes at a collective recorded themselves for the barrier behind it.
            self.barriers[index] = meeting;
            self.restored &= !bit(barrier);
            if restored && !(scheduled && self.scheduled_alone && !lone) {
                self.defer_members_elsewhere(barrier, recorded);
                self.defer_members(barrier, recorded);
                if owed != 0 {
                    self.run_deferred_first(owed);
                    return counted;
                }
                self.reissued.instructions += 1;
                self.reissued.lanes += self.active.count_ones();
            }
        }
        self.pc += 1;
        counted
    }

    /// The recorded ones among the active lanes wait, the others go on: a function that calls itself keeps
    /// the lanes of outer calls in registers meanwhile. A path that was scheduled executes the barrier with
    /// everyone who waits there; gives those, who count.
    pub(super) fn wait_for_members(&mut self, barrier: u16, scheduled: bool) -> Mask {
        let (pc, waits) = (self.pc, PathState::Barrier(barrier));
        let recorded = self.barriers[usize::from(barrier)];
        let here = |path: &DivergentPath| scheduled && path.state == waits && path.pc == pc;
        let counted = self.lanes_where(here);
        for path in self.paths.iter_mut().filter(|path| here(path)) {
            path.lanes &= recorded;
        }
        self.paths.retain(|path| path.lanes != 0);
        let strangers = (self.active | counted) & !recorded;
        self.active &= recorded;
        self.park(waits);
        if strangers == 0 {
            self.schedule_next();
        } else {
            (self.pc, self.active) = (pc + 1, strangers);
        }
        counted
    }

    /// The running path completed a barrier whose lanes were in part deferred before: these run first, and it
    /// executes the barrier again when it is its turn.
    pub(super) fn run_deferred_first(&mut self, owed: Mask) {
        let due =
            |path: &DivergentPath| path.state == PathState::Deferred && path.lanes & owed != 0;
        let Some(index) = self.paths.iter().position(due) else {
            return;
        };
        let first = self.paths.remove(index);
        self.park(PathState::Deferred);
        self.scheduled_alone = false;
        self.run_path(first);
    }

    /// Lanes of a barrier that wait for another one, which does not hold them any more, at an earlier
    /// instruction: they have their turn when no path is ready.
    pub(super) fn defer_members_elsewhere(&mut self, barrier: u16, lanes: Mask) {
        let (pc, barriers) = (self.pc, &self.barriers);
        defer(&mut self.paths, |path| match path.state {
            PathState::Barrier(other) if other != barrier => {
                path.pc < pc
                    && path.lanes & lanes != 0
                    && path.lanes & barriers[usize::from(other)] == 0
            }
            _ => false,
        });
    }

    /// Paths with any of these lanes that wait at a barrier, not behind the program counter, have their
    /// turn when no path is ready.
    pub(super) fn defer_members(&mut self, barrier: u16, lanes: Mask) {
        let (pc, waits) = (self.pc, PathState::Barrier(barrier));
        defer(&mut self.paths, |path| {
            path.state == waits && path.lanes & lanes != 0 && path.pc <= pc
        });
    }

    /// The same for PTX. Lanes that are not recorded go on at once.
    pub(super) fn converge_wait_virtual(&mut self, barrier: u16) {
        let recorded = self.barriers[usize::from(barrier)];
        let members = self.active & recorded;
        if recorded & !self.active == 0 || members == 0 {
            self.barriers[usize::from(barrier)] &= !members;
            return self.advance();
        }
        if members != self.active {
            let strangers = self.active & !recorded;
            self.set_sibling(DivergentPath::ready(self.pc + 1, strangers));
            self.active = members;
        }
        self.park(PathState::Barrier(barrier));
        self.release_barrier(barrier);
        self.schedule_next();
    }

    /// Lanes that wait at any convergence barrier.
    pub(super) fn lanes_at_barriers(&self) -> Mask {
        self.lanes_where(|path| matches!(path.state, PathState::Barrier(_)))
    }

    /// These lanes take no part in the barrier any more.
    pub fn converge_break(&mut self, barrier: u16, lanes: Mask) {
        self.barriers[usize::from(barrier)] &= !(lanes & self.active);
        self.release_barrier(barrier);
        self.advance();
    }

    /// Lanes recorded in a barrier.
    #[must_use]
    pub fn barrier(&self, barrier: u16) -> Mask {
        self.barriers
            .get(usize::from(barrier))
            .copied()
            .unwrap_or(0)
    }

    /// Forgets the lanes recorded in a barrier; those that wait there stay until they are recorded
    /// again (SASS `BMOV.CLEAR` at the start of a function).
    pub fn clear_barrier(&mut self, barrier: u16) {
        if let Some(recorded) = self.barriers.get_mut(usize::from(barrier)) {
            *recorded = 0;
        }
    }

    /// Overwrites the lanes recorded in a barrier (SASS `BMOV`).
    pub fn set_barrier(&mut self, barrier: u16, lanes: Mask) {
        if let Some(recorded) = self.barriers.get_mut(usize::from(barrier)) {
            *recorded = lanes & self.live;
            self.restored |= bit(barrier);
            self.release_barrier(barrier);
        }
    }

    /// Lanes that wait at a barrier for nobody any more execute it again.
    pub(super) fn open_barrier(&mut self, barrier: u16) {
        let waits = PathState::Barrier(barrier);
        let arrived = self.lanes_where(|path| path.state == waits);
        if arrived == 0 || self.barriers[usize::from(barrier)] & !arrived != 0 {
            return;
        }
        self.barriers[usize::from(barrier)] = 0;
        let opened = take_out(&mut self.paths, |path| path.state == waits);
        self.paths.extend(opened);
    }

    /// Of the paths that wait at a convergence barrier for nobody who could still come, the oldest goes
    /// on; for machine code those at the lowest instruction execute it again. Says whether there was one.
    pub(super) fn break_deadlock(&mut self) -> bool {
        self.futile_yields = 0;
        if self.reconverge_anywhere {
            for path in &mut self.paths {
                if let PathState::Barrier(barrier) = path.state {
                    self.barriers[usize::from(barrier)] &= !path.lanes;
                    path.state = PathState::Ready;
                    path.pc += 1;
                    return true;
                }
            }
            return false;
        }
        // Lanes that wait for each other within the warp come nowhere, unless something outside lets others go on.
        let coming = if self.paths.iter().any(DivergentPath::waits_outside) {
            self.lanes_where(|path| match path.state {
                PathState::Barrier(_) => false,
                PathState::External(_) => path.waits_outside(),
                _ => true,
            })
        } else {
            0
        };
        let vain = self.paths.iter().filter_map(|path| match path.state {
            PathState::Barrier(barrier) if self.barrier(barrier) & coming == 0 => {
                Some((barrier, path.pc))
            }
            _ => None,
        });
        let Some((barrier, pc)) = vain.min_by_key(|(_, pc)| *pc) else {
            return false;
        };
        let here =
            |path: &DivergentPath| path.state == PathState::Barrier(barrier) && path.pc == pc;
        let lanes = self.lanes_where(here);
        self.paths.retain(|path| !here(path));
        self.paths.insert(0, DivergentPath::ready(pc, lanes));
        self.barriers[usize::from(barrier)] &= !lanes;
        true
    }

    /// If everyone whom the barrier waits for is there, lets them go on, together where they wait at
    /// one instruction.
    pub(super) fn release_barrier(&mut self, barrier: u16) {
        let waits = PathState::Barrier(barrier);
        let recorded = self.barriers[usize::from(barrier)];
        let arrived = self.lanes_where(|path| path.state == waits);
        if recorded == 0 || recorded & !arrived != 0 {
            return;
        }
        self.barriers[usize::from(barrier)] = 0;
        if self.restored & bit(barrier) != 0 {
            return self.defer_members(barrier, recorded);
        }
        self.release(|path| if path.state == waits { recorded } else { 0 });
    }
}

fn bit(barrier: u16) -> u16 {
    1u16.checked_shl(u32::from(barrier)).unwrap_or(0)
}
