//! How the lanes of a warp part and meet again.
//!
//! Lanes with one program counter form a *path*; one path runs at a time. A divergent branch
//! makes two paths of one; convergence barriers (SASS `BSSY`/`BSYNC`, inserted by a pass for
//! PTX) join them. Paths that wait cost nothing; a path that spins gives way to the others
//! after a while, so that a lane which holds a lock can always release it.
//!
//! Modelled: independent thread scheduling as programs can observe it, and, for machine code, the
//! order in which hardware picks paths, as instruction counts of an H200 show it (no document
//! gives it; `validation/microbench/divergence.cu` has the kernels, decision 0007 the reasoning):
//! - Of the two sides of a branch the smaller one runs first, at a tie the one that falls through.
//! - The other side is kept beside it, with its lanes. When the running path waits or ends, that
//!   side runs next. Only one is kept: another branch meanwhile drops the older one among the rest.
//! - Of the rest, the youngest is picked up, with every lane that is there, those that wait for the
//!   barrier there too: lanes that it records wait on, all others go on.
//! - Recorded lanes that wait anywhere count as arrived.
//! - Lanes that give way while others are there are no longer waited for.
//! - A barrier that came back from a register is executed once more before its lanes go on. Its lanes
//!   that wait at earlier instructions, at which it or another barrier does not hold them any more, are
//!   freed: they run when nobody is ready, or as soon as the next barrier that records them is complete.
//! - A path that was picked up alone and finds company at such a barrier goes on at once.

use serde::{Deserialize, Serialize};

use crate::warp_register::{LANES, Mask, lanes_of};

/// Taken backward branches that a path may make while others could run.
const PATIENCE: u32 = 8;
/// The same for machine code, whose spinning loops say themselves when to let others run: on an H200 nobody is
/// interrupted within several thousand branches, so this is only against loops that say nothing.
const NATIVE_PATIENCE: u32 = 1 << 16;
/// Times that a path lets its neighbour go first before all others have their turn.
const TURNS: u32 = 16;
/// Times that a path gives way in vain before lanes at a convergence barrier go on without it.
const VAIN_TURNS: u32 = 32;

fn full_patience(reconverge_anywhere: bool) -> u32 {
    if reconverge_anywhere {
        PATIENCE
    } else {
        NATIVE_PATIENCE
    }
}

/// Why a path does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathState {
    /// It could.
    Ready,
    /// At `ConvergeWait` of this barrier.
    Barrier(u16),
    /// At a `WarpSync` for these lanes.
    Lanes(Mask),
    /// For its turn, at a convergence barrier that no longer holds it: behind all that are ready.
    Freed,
    /// For something outside the warp, under a tag that the SM chooses (a block barrier).
    External(u32),
}

/// Lanes with one program counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DivergentPath {
    /// Next instruction.
    pub pc: u32,
    /// Who.
    pub lanes: Mask,
    /// Whether it can run.
    pub state: PathState,
    /// The other side of the last branch, which runs next.
    near: bool,
    /// It gave way by sleeping.
    slept: bool,
}

impl DivergentPath {
    fn ready(pc: u32, lanes: Mask) -> Self {
        Self {
            pc,
            lanes,
            state: PathState::Ready,
            near: false,
            slept: false,
        }
    }
}

/// Instructions that hardware executes once more without an effect; they count all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reissued {
    /// How many.
    pub instructions: u32,
    /// Lanes at them, summed.
    pub lanes: u32,
}

/// Control state of one warp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Convergence {
    /// The running path; empty when nothing can run.
    pc: u32,
    active: Mask,
    /// The others, oldest first.
    paths: Vec<DivergentPath>,
    /// Lanes that each convergence barrier waits for.
    barriers: Vec<Mask>,
    live: Mask,
    patience: u32,
    /// How often the running path gave way and nobody else could run.
    vain_turns: u32,
    /// Times that the running path let others go first.
    turns: u32,
    /// Where the running path was picked up among the rest; a barrier is the only instruction that
    /// asks, and only right after.
    picked_at: u32,
    /// It was the only one that could run.
    picked_alone: bool,
    /// Barriers that were written back from registers, a bit each.
    restored: u16,
    /// Paths that happen to reach one instruction join there (PTX; hardware does not).
    reconverge_anywhere: bool,
    /// What was executed again and is not counted yet.
    reissued: Reissued,
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
            patience: full_patience(reconverge_anywhere),
            vain_turns: 0,
            turns: 0,
            picked_at: u32::MAX,
            picked_alone: false,
            restored: 0,
            reconverge_anywhere,
            reissued: Reissued::default(),
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

    /// What was executed again since the last call.
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
            self.join_at_pc();
        }
    }

    /// Goes past instructions at which lanes neither part nor meet, as in machine code all but those that say
    /// so.
    #[inline(always)]
    pub fn advance_by(&mut self, instructions: u32) {
        debug_assert!(
            !self.reconverge_anywhere,
            "virtual code may join lanes anywhere"
        );
        self.pc += instructions;
    }

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
                self.keep(DivergentPath::ready(next, fall));
            } else {
                self.keep(DivergentPath::ready(target, taken));
                (self.pc, self.active) = (next, here & fall);
            }
        }
        if self.paths.is_empty() {
            return;
        }
        self.join_at_pc();
        if backward {
            self.spend_patience();
        }
    }

    /// Puts the other side of a branch beside the running one.
    fn keep(&mut self, path: DivergentPath) {
        for other in &mut self.paths {
            other.near = false;
        }
        self.paths.push(DivergentPath {
            near: !self.reconverge_anywhere,
            ..path
        });
    }

    /// Each active lane goes to its own target. Machine code sends one group of lanes at a time: the
    /// others stay at the instruction and execute it again.
    pub fn branch_indirect(&mut self, targets: &[u32; LANES]) {
        let (pc, lanes) = first_target(targets, self.active);
        let left = self.active & !lanes;
        if left == 0 {
            (self.pc, self.active) = (pc, lanes);
            return self.join_at_pc();
        }
        if self.reconverge_anywhere {
            (self.pc, self.active) = (pc, lanes);
            let mut left = left;
            while left != 0 {
                let (pc, lanes) = first_target(targets, left);
                left &= !lanes;
                self.keep(DivergentPath::ready(pc, lanes));
            }
            return self.join_at_pc();
        }
        // The lowest lane's target against all others; the smaller of the two sides goes.
        let (pc, lanes) = if lanes.count_ones() <= left.count_ones() {
            (pc, lanes)
        } else {
            first_target(targets, left)
        };
        self.keep(DivergentPath::ready(self.pc, self.active & !lanes));
        (self.pc, self.active) = (pc, lanes);
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
            self.converge_wait_joining(barrier);
            return 0;
        }
        let index = usize::from(barrier);
        let picked = std::mem::replace(&mut self.picked_at, u32::MAX) == self.pc;
        let (pc, waits) = (self.pc, PathState::Barrier(barrier));
        let recorded = self.barriers[index];
        let members = self.active & recorded;
        // Freed lanes come with whoever is picked up, but have not come for one who just arrives.
        let freed = self.waiting_lanes(|path| picked && path.state == PathState::Freed);
        if members != 0 && recorded & !self.active & !self.blocked() & !freed != 0 {
            return self.wait_for_members(barrier, picked);
        }
        // A path that was picked up among the rest brings along whoever waits at its instruction,
        // lanes of outer calls too.
        let wanted = match (picked, members) {
            (true, _) => Mask::MAX,
            (false, 0) => 0,
            (false, _) => recorded,
        };
        let freed_before = |path: &DivergentPath| path.state == PathState::Freed && path.pc != pc;
        let owed = recorded & self.waiting_lanes(freed_before);
        let mut joined = 0;
        self.paths.retain_mut(|path| {
            if path.pc == pc && (path.state == waits || path.state == PathState::Freed) {
                joined |= path.lanes & wanted;
                path.lanes &= !wanted;
            }
            path.lanes != 0
        });
        let restored = self.restored & bit(barrier) != 0;
        // Nobody came along, though some of its lanes wait elsewhere.
        let lone = joined == 0 && recorded & !self.active != 0;
        self.active |= joined;
        let counted = if picked { joined } else { 0 };
        if members == 0 {
            self.barriers[index] &= !joined;
        } else {
            self.barriers[index] = 0;
            self.restored &= !bit(barrier);
            if restored && !(picked && self.picked_alone && !lone) {
                self.free_members_elsewhere(barrier, recorded);
                self.free_members(barrier, recorded);
                if owed != 0 {
                    self.let_go_first(owed);
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
    /// the lanes of outer calls in registers meanwhile. A path that was picked up executes the barrier with
    /// everyone who waits there; gives those, who count.
    fn wait_for_members(&mut self, barrier: u16, picked: bool) -> Mask {
        let (pc, waits) = (self.pc, PathState::Barrier(barrier));
        let recorded = self.barriers[usize::from(barrier)];
        let here = |path: &DivergentPath| picked && path.state == waits && path.pc == pc;
        let counted = self.waiting_lanes(here);
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

    /// The running path completed a barrier whose lanes were in part freed before: these run first, and it
    /// executes the barrier again when it is its turn.
    fn let_go_first(&mut self, owed: Mask) {
        let due = |path: &DivergentPath| path.state == PathState::Freed && path.lanes & owed != 0;
        let Some(index) = self.paths.iter().position(due) else {
            return;
        };
        let first = self.paths.remove(index);
        self.park(PathState::Freed);
        self.picked_alone = false;
        self.pick_up(first);
    }

    /// Lanes of a barrier that wait for another one, which does not hold them any more, at an earlier
    /// instruction: they have their turn when nobody is ready.
    fn free_members_elsewhere(&mut self, barrier: u16, lanes: Mask) {
        let (pc, barriers) = (self.pc, &self.barriers);
        free(&mut self.paths, |path| match path.state {
            PathState::Barrier(other) if other != barrier => {
                path.pc < pc
                    && path.lanes & lanes != 0
                    && path.lanes & barriers[usize::from(other)] == 0
            }
            _ => false,
        });
    }

    /// Paths with any of these lanes that wait at a barrier, not behind the program counter, have their
    /// turn when nobody is ready.
    fn free_members(&mut self, barrier: u16, lanes: Mask) {
        let (pc, waits) = (self.pc, PathState::Barrier(barrier));
        free(&mut self.paths, |path| {
            path.state == waits && path.lanes & lanes != 0 && path.pc <= pc
        });
    }

    /// The same for PTX. Lanes that are not recorded go on at once.
    fn converge_wait_joining(&mut self, barrier: u16) {
        let recorded = self.barriers[usize::from(barrier)];
        let members = self.active & recorded;
        if recorded & !self.active == 0 || members == 0 {
            self.barriers[usize::from(barrier)] &= !members;
            return self.advance();
        }
        if members != self.active {
            let strangers = self.active & !recorded;
            self.keep(DivergentPath::ready(self.pc + 1, strangers));
            self.active = members;
        }
        self.park(PathState::Barrier(barrier));
        self.release_barrier(barrier);
        self.schedule_next();
    }

    /// Lanes that wait at any convergence barrier.
    fn blocked(&self) -> Mask {
        self.waiting_lanes(|path| matches!(path.state, PathState::Barrier(_)))
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

    /// Waits until all live lanes of `mask` wait for the same lanes, here or elsewhere; then they go on,
    /// together where they are at one instruction. Active lanes outside the mask go on by themselves.
    ///
    /// Hardware executes it once more, with all lanes that wait at it, when lanes come to it where
    /// others wait, and when nobody else is awake.
    pub fn warp_sync(&mut self, mask: Mask) {
        let wanted = mask & self.live;
        if wanted & !self.active == 0 {
            return self.advance();
        }
        let (pc, active) = (self.pc, self.active);
        let waiting =
            |path: &DivergentPath| path.pc == pc && matches!(path.state, PathState::Lanes(_));
        let asleep = |path: &DivergentPath| path.state != PathState::Ready || path.slept;
        self.park(PathState::Lanes(mask));
        let here = self.waiting_lanes(waiting);
        if !self.reconverge_anywhere && (here != active || self.paths.iter().all(asleep)) {
            self.reissued.instructions += 1;
            self.reissued.lanes += here.count_ones();
        }
        self.release_lanes();
        self.schedule_next();
    }

    fn waiting_lanes(&self, chosen: impl Fn(&DivergentPath) -> bool) -> Mask {
        self.paths
            .iter()
            .filter(|path| chosen(path))
            .fold(0, |lanes, path| lanes | path.lanes)
    }

    /// The running path waits for something outside the warp; its next instruction is the
    /// following one.
    pub fn suspend(&mut self, tag: u32) {
        self.park(PathState::External(tag));
        self.schedule_next();
    }

    /// Paths that wait under `tag` may run; gives their lanes.
    pub fn resume(&mut self, tag: u32) -> Mask {
        let mut lanes = 0;
        for path in &mut self.paths {
            if path.state == PathState::External(tag) {
                path.state = PathState::Ready;
                path.pc += 1;
                lanes |= path.lanes;
            }
        }
        self.merge_equal();
        if self.active == 0 {
            self.schedule_next();
        }
        lanes
    }

    /// Lanes that wait under `tag`.
    #[must_use]
    pub fn suspended(&self, tag: u32) -> Mask {
        self.paths
            .iter()
            .filter(|path| path.state == PathState::External(tag))
            .fold(0, |lanes, path| lanes | path.lanes)
    }

    /// Goes on to the next instruction, but lets other ready paths run first.
    ///
    /// Compilers put this into loops that wait for other lanes, and a barrier behind such a loop
    /// all the same: whoever waits at the barrier may hold the lock. Hardware no longer waits for lanes
    /// that gave way to others: those at the barrier execute it once more and go on. For PTX, after some
    /// turns in which nobody else could run, the lanes that wait longest at a barrier go on.
    pub fn yield_to_others(&mut self, sleeps: bool) {
        self.pc += 1;
        if self.reconverge_anywhere {
            self.join_at_pc();
            if !self.anyone_ready() {
                self.vain_turns += 1;
                if self.vain_turns >= VAIN_TURNS {
                    self.leave_barrier();
                }
            }
            return self.rotate();
        }
        if self.paths.is_empty() {
            return;
        }
        for barrier in 0..self.barriers.len() {
            self.barriers[barrier] &= !self.active;
            self.open(barrier as u16);
        }
        if !self.anyone_ready() {
            return;
        }
        self.turns += 1;
        if self.turns.is_multiple_of(TURNS) {
            return self.rotate();
        }
        let parked = DivergentPath {
            slept: sleeps,
            ..DivergentPath::ready(self.pc, self.active)
        };
        self.active = 0;
        self.schedule_next();
        self.keep(parked);
    }

    /// Lanes that wait at a barrier for nobody any more execute it again.
    fn open(&mut self, barrier: u16) {
        let waits = PathState::Barrier(barrier);
        let arrived = self.waiting_lanes(|path| path.state == waits);
        if arrived == 0 || self.barriers[usize::from(barrier)] & !arrived != 0 {
            return;
        }
        self.barriers[usize::from(barrier)] = 0;
        let opened = take_out(&mut self.paths, |path| path.state == waits);
        self.paths.extend(opened);
    }

    fn anyone_ready(&self) -> bool {
        self.paths
            .iter()
            .any(|path| matches!(path.state, PathState::Ready | PathState::Freed))
    }

    /// Of the paths that wait at a convergence barrier for nobody who could still come, the oldest goes
    /// on; for machine code those at the lowest instruction execute it again. Says whether there was one.
    fn leave_barrier(&mut self) -> bool {
        self.vain_turns = 0;
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
        let coming = !self.blocked();
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
        let lanes = self.waiting_lanes(here);
        self.paths.retain(|path| !here(path));
        self.paths.insert(0, DivergentPath::ready(pc, lanes));
        self.barriers[usize::from(barrier)] &= !lanes;
        true
    }

    fn spend_patience(&mut self) {
        self.patience -= 1;
        if self.patience == 0 {
            self.rotate();
        }
    }

    /// Lets the oldest path that is ready run.
    fn rotate(&mut self) {
        self.patience = full_patience(self.reconverge_anywhere);
        let oldest = |state| self.paths.iter().position(|path| path.state == state);
        if let Some(index) = oldest(PathState::Ready).or_else(|| oldest(PathState::Freed)) {
            let path = self.paths.remove(index);
            self.park(PathState::Ready);
            (self.pc, self.active) = (path.pc, path.lanes);
            self.join_at_pc();
        }
    }

    /// Puts the running path behind the others, at its program counter.
    fn park(&mut self, state: PathState) {
        self.paths.push(DivergentPath {
            pc: self.pc,
            lanes: self.active,
            state,
            near: false,
            slept: false,
        });
        self.active = 0;
    }

    /// Runs a path that is ready: the other side of the last branch, else the youngest; for PTX the
    /// oldest.
    fn schedule_next(&mut self) {
        if self.active != 0 {
            return;
        }
        let ready = |path: &DivergentPath| path.state == PathState::Ready;
        let index = if self.reconverge_anywhere {
            self.paths.iter().position(ready)
        } else {
            let near = self.paths.iter().position(|path| path.near && ready(path));
            let freed = |path: &DivergentPath| path.state == PathState::Freed;
            let (mut are_ready, mut are_freed) = (0, 0);
            for path in &self.paths {
                are_ready += usize::from(ready(path));
                are_freed += usize::from(freed(path));
            }
            // Freed lanes are no others while anybody is ready.
            self.picked_alone = are_ready == 1 || are_ready == 0 && are_freed == 1;
            near.or_else(|| self.paths.iter().rposition(ready))
                .or_else(|| self.paths.iter().position(freed))
        };
        if let Some(index) = index {
            let path = self.paths.remove(index);
            self.pick_up(path);
        } else if self.only_barriers_wait() && self.leave_barrier() {
            // Nobody is left who could record these lanes again.
            self.schedule_next();
        }
    }

    /// Runs this path, which is none of the others any more.
    fn pick_up(&mut self, path: DivergentPath) {
        (self.pc, self.active) = (path.pc, path.lanes);
        self.patience = full_patience(self.reconverge_anywhere);
        if !self.reconverge_anywhere && !path.near {
            self.picked_at = path.pc;
            self.gather();
        }
        self.join_at_pc();
    }

    /// For PTX, lanes that wait for anything else may still come to a barrier.
    fn only_barriers_wait(&self) -> bool {
        let at_barrier = |path: &DivergentPath| matches!(path.state, PathState::Barrier(_));
        !self.reconverge_anywhere || self.paths.iter().all(at_barrier)
    }

    /// Takes along the rest that could run at the program counter.
    fn gather(&mut self) {
        let (pc, active) = (self.pc, &mut self.active);
        self.paths.retain(|path| {
            let runs = matches!(path.state, PathState::Ready | PathState::Freed);
            let here = runs && path.pc == pc && !path.near;
            if here {
                *active |= path.lanes;
            }
            !here
        });
    }

    fn join_at_pc(&mut self) {
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
    fn merge_equal(&mut self) {
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

    fn release_all(&mut self) {
        if self.paths.is_empty() {
            return;
        }
        for barrier in 0..self.barriers.len() {
            self.release_barrier(barrier as u16);
        }
        self.release_lanes();
    }

    /// If everyone whom the barrier waits for is there, lets them go on, together where they wait at
    /// one instruction.
    fn release_barrier(&mut self, barrier: u16) {
        let waits = PathState::Barrier(barrier);
        let recorded = self.barriers[usize::from(barrier)];
        let arrived = self.waiting_lanes(|path| path.state == waits);
        if recorded == 0 || recorded & !arrived != 0 {
            return;
        }
        self.barriers[usize::from(barrier)] = 0;
        if self.restored & bit(barrier) != 0 {
            return self.free_members(barrier, recorded);
        }
        self.release(|path| if path.state == waits { recorded } else { 0 });
    }

    /// Lane syncs are released when all live lanes of their mask wait at one instruction, or for the same
    /// lanes at several.
    fn release_lanes(&mut self) {
        let mut index = 0;
        while index < self.paths.len() {
            let DivergentPath { pc, state, .. } = self.paths[index];
            if let PathState::Lanes(mask) = state {
                let arrived = self.waiting_lanes(|path| {
                    path.state == state
                        || path.pc == pc && matches!(path.state, PathState::Lanes(_))
                });
                if mask & self.live & !arrived == 0 {
                    self.release(|path| if path.state == state { path.lanes } else { 0 });
                    index = 0;
                    continue;
                }
            }
            index += 1;
        }
    }

    /// Makes the chosen lanes of each path ready at the instruction after theirs; those at one
    /// instruction are one path from then on.
    fn release(&mut self, chosen: impl Fn(&DivergentPath) -> Mask) {
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

/// Takes the chosen paths out, ready; those at one instruction are one.
fn take_out(
    paths: &mut Vec<DivergentPath>,
    chosen: impl Fn(&DivergentPath) -> bool,
) -> Vec<DivergentPath> {
    let mut taken: Vec<DivergentPath> = Vec::new();
    paths.retain(|path| {
        let goes = chosen(path);
        if goes {
            match taken.iter_mut().find(|other| other.pc == path.pc) {
                Some(other) => other.lanes |= path.lanes,
                None => taken.push(DivergentPath::ready(path.pc, path.lanes)),
            }
        }
        !goes
    });
    taken
}

/// The chosen paths have their turn when nobody is ready, with those that were freed there before.
fn free(paths: &mut Vec<DivergentPath>, chosen: impl Fn(&DivergentPath) -> bool) {
    for path in take_out(paths, chosen) {
        let freed = DivergentPath {
            state: PathState::Freed,
            ..path
        };
        let there =
            |other: &&mut DivergentPath| other.state == PathState::Freed && other.pc == freed.pc;
        match paths.iter_mut().find(there) {
            Some(other) => other.lanes |= freed.lanes,
            None => paths.push(freed),
        }
    }
}

fn bit(barrier: u16) -> u16 {
    1u16.checked_shl(u32::from(barrier)).unwrap_or(0)
}

/// Target of the lowest of some lanes, and those that share it.
fn first_target(targets: &[u32; LANES], lanes: Mask) -> (u32, Mask) {
    let pc = targets[lanes.trailing_zeros() as usize % LANES];
    let same = lanes_of(lanes)
        .filter(|lane| targets[*lane] == pc)
        .fold(0, |mask, lane| mask | 1 << lane);
    (pc, same)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PTX runs.
    fn warp(lanes: Mask) -> Convergence {
        Convergence::new(lanes, 0, 4, true)
    }

    /// As machine code runs.
    fn native(lanes: Mask) -> Convergence {
        Convergence::new(lanes, 0, 4, false)
    }

    #[test]
    fn the_smaller_side_of_a_branch_goes_first() {
        for (taken, first, pc) in [(0x1, 0x1, 9), (0x7, 0x8, 1), (0x3, 0xc, 1)] {
            let mut warp = native(0xf);
            warp.branch(taken, 9);
            assert_eq!((warp.pc(), warp.active()), (pc, first), "{taken:#x}");
        }
    }

    #[test]
    fn one_side_is_kept_and_the_rest_goes_by_its_place() {
        let mut warp = native(0xff);
        warp.converge_set(0); // 0
        warp.branch(0xf8, 5); // 1: lanes 0 to 2 first, at 2; lanes 3 to 7 kept
        warp.branch(0x6, 4); // 2: lane 0 first, at 3; lanes 1, 2 kept, 3 to 7 among the rest
        assert_eq!((warp.pc(), warp.active()), (3, 0x1));
        warp.branch(0x1, 5);
        assert_eq!(warp.converge_wait(0), 0); // 5
        assert_eq!((warp.pc(), warp.active()), (4, 0x6), "the other side");
        warp.advance();
        assert_eq!(warp.converge_wait(0), 0); // 5
        assert_eq!((warp.pc(), warp.active()), (5, 0xf8), "the rest");
        assert_eq!(warp.converge_wait(0), 0x7, "all are counted");
        assert_eq!((warp.pc(), warp.active()), (6, 0xff));
    }

    #[test]
    fn an_indirect_jump_goes_to_one_target_at_a_time() {
        let mut warp = native(0xf);
        let mut targets = [7; LANES];
        targets[0] = 3;
        warp.branch_indirect(&targets);
        assert_eq!((warp.pc(), warp.active()), (3, 0x1));
        warp.exit(0x1);
        assert_eq!((warp.pc(), warp.active()), (0, 0xe), "again");
        warp.branch_indirect(&targets);
        assert_eq!((warp.pc(), warp.active()), (7, 0xe));
    }

    #[test]
    fn lanes_of_an_outer_call_are_not_waited_for() {
        let mut warp = native(0x7);
        warp.converge_set(0); // 0
        warp.branch(0x1, 8); // lane 0 waits at the outer barrier
        assert_eq!(warp.converge_wait(0), 0);
        assert_eq!((warp.pc(), warp.active()), (2, 0x6));
        let outer = warp.barrier(0);
        warp.clear_barrier(0);
        warp.converge_set(0);
        warp.converge_wait(0);
        assert_eq!(
            (warp.pc(), warp.active()),
            (4, 0x6),
            "the inner call's own lanes"
        );
        warp.set_barrier(0, outer);
        warp.branch(0x6, 8);
        warp.converge_wait(0);
        assert_eq!((warp.pc(), warp.active()), (9, 0x7));
    }

    #[test]
    fn a_uniform_branch_keeps_the_warp_together() {
        let mut warp = warp(0xf);
        warp.branch(0xf, 7);
        assert_eq!((warp.pc(), warp.active()), (7, 0xf));
        assert!(warp.waiting_paths().is_empty());
    }

    #[test]
    fn lanes_that_part_meet_at_the_barrier() {
        let mut warp = warp(0xf);
        warp.converge_set(0); // 0
        warp.branch(0x3, 3); // 1: lanes 0,1 to 3; lanes 2,3 to 2
        assert_eq!((warp.pc(), warp.active()), (3, 0x3));
        warp.converge_wait(0); // 3
        assert_eq!((warp.pc(), warp.active()), (2, 0xc));
        warp.branch(0xc, 3);
        warp.converge_wait(0);
        assert_eq!((warp.pc(), warp.active()), (4, 0xf));
    }

    #[test]
    fn an_ended_lane_is_not_waited_for() {
        let mut warp = warp(0xf);
        warp.converge_set(0);
        warp.branch(0x3, 5);
        warp.converge_wait(0); // lanes 0,1 wait at 5
        warp.exit(0xc); // lanes 2,3 end at 2
        assert_eq!((warp.pc(), warp.active(), warp.live()), (6, 0x3, 0x3));
    }

    #[test]
    fn a_broken_barrier_lets_the_others_go() {
        let mut warp = warp(0xf);
        warp.converge_set(1);
        warp.branch(0x3, 9);
        warp.converge_wait(1);
        warp.converge_break(1, 0xc);
        assert_eq!((warp.pc(), warp.active()), (3, 0xc));
        warp.exit(0xc);
        assert_eq!((warp.pc(), warp.active()), (10, 0x3));
    }

    #[test]
    fn two_paths_in_one_region_each_find_their_lanes() {
        let mut warp = warp(0xf);
        warp.branch(0x3, 10); // lanes 0,1 at 10; lanes 2,3 at 1
        warp.converge_set(0);
        warp.branch(0x1, 20); // lane 0 at 20, lane 1 at 12
        warp.converge_wait(0); // lane 0 waits; lanes 2,3 run next
        assert_eq!((warp.pc(), warp.active()), (1, 0xc));
        warp.converge_set(0);
        warp.branch(0xc, 20);
        warp.converge_wait(0); // lanes 2,3 wait with lane 0; lane 1 is missing
        assert_eq!((warp.pc(), warp.active()), (12, 0x2));
        warp.branch(0x2, 20);
        warp.converge_wait(0);
        assert_eq!((warp.pc(), warp.active()), (21, 0xf));
        assert_eq!(warp.barrier(0), 0, "an open barrier keeps nobody");
    }

    #[test]
    fn a_spinning_path_gives_way() {
        let mut warp = warp(0x3);
        warp.branch(0x1, 5); // lane 0 at 5, lane 1 at 1
        warp.branch(0x1, 0);
        let mut turns = 0;
        while warp.active() == 0x1 {
            warp.branch(0x1, 0);
            turns += 1;
            assert!(turns < 100, "lane 1 starves");
        }
        assert_eq!((warp.pc(), warp.active()), (1, 0x2));
    }

    #[test]
    fn lanes_at_a_barrier_go_on_when_the_others_wait_for_them() {
        let mut warp = warp(0x3);
        warp.converge_set(0); // 0
        warp.branch(0x1, 4); // 1: lane 0 leaves the loop, lane 1 spins at 2 and 3
        warp.converge_wait(0); // 4
        let mut turns = 0;
        while warp.active() == 0x2 {
            warp.yield_to_others(false); // 2
            if warp.active() == 0x2 {
                warp.branch(0x2, 2); // 3
            }
            turns += 1;
            assert!(turns < 100, "lane 0 holds what lane 1 waits for");
        }
        assert_eq!((warp.pc(), warp.active()), (5, 0x1));
        warp.exit(0x1);
        warp.branch(0x2, 4);
        warp.converge_wait(0);
        assert_eq!((warp.pc(), warp.active()), (5, 0x2));
    }

    #[test]
    fn lane_sync_joins_what_is_apart() {
        let mut warp = warp(0x3);
        warp.branch(0x1, 4);
        warp.warp_sync(0x3); // lane 0 waits at 4
        assert_eq!((warp.pc(), warp.active()), (1, 0x2));
        warp.branch(0x2, 4);
        warp.warp_sync(0x3);
        assert_eq!((warp.pc(), warp.active()), (5, 0x3));
    }

    #[test]
    fn suspended_lanes_go_on_together() {
        let mut warp = warp(0x3);
        warp.branch(0x1, 4);
        warp.suspend(0);
        warp.branch(0x2, 4);
        warp.suspend(0);
        assert_eq!((warp.active(), warp.suspended(0)), (0, 0x3));
        assert_eq!(warp.resume(0), 0x3);
        assert_eq!((warp.pc(), warp.active()), (5, 0x3));
    }

    #[test]
    fn the_smaller_side_of_an_indirect_jump_goes_first() {
        let mut warp = native(0xff);
        let mut targets = [7; LANES];
        targets[6] = 3;
        targets[7] = 4;
        warp.branch_indirect(&targets);
        assert_eq!((warp.pc(), warp.active()), (3, 0x40), "not the many");
        warp.exit(0x40);
        assert_eq!((warp.pc(), warp.active()), (0, 0xbf), "again");
        warp.branch_indirect(&targets);
        assert_eq!((warp.pc(), warp.active()), (4, 0x80));
    }

    /// The winner of a lock waits at the barrier behind the loop until the others give way.
    #[test]
    fn lanes_that_give_way_are_not_waited_for() {
        let mut warp = native(0x7);
        warp.converge_set(0); // 0
        warp.yield_to_others(false); // 1: alone, without effect
        warp.branch(0x6, 1); // 2: lane 0 has the lock and goes first
        warp.converge_wait(0); // 3
        assert_eq!((warp.pc(), warp.active()), (1, 0x6));
        warp.yield_to_others(false); // 1
        assert_eq!((warp.pc(), warp.active()), (3, 0x1), "once more");
        warp.converge_wait(0);
        assert_eq!((warp.pc(), warp.active()), (4, 0x1));
        warp.exit(0x1);
        assert_eq!((warp.pc(), warp.active()), (2, 0x6));
        warp.branch(0x4, 1);
        warp.converge_wait(0); // 3: no member any more
        assert_eq!((warp.pc(), warp.active()), (4, 0x2));
    }

    #[test]
    fn a_barrier_from_a_register_is_executed_once_more() {
        let mut warp = native(0x7);
        warp.converge_set(0); // 0
        let mask = warp.barrier(0);
        warp.clear_barrier(0);
        warp.set_barrier(0, mask);
        warp.converge_wait(0); // 1
        assert_eq!((warp.pc(), warp.active()), (2, 0x7));
        let again = Reissued {
            instructions: 1,
            lanes: 3,
        };
        assert_eq!(warp.take_reissued(), again);
        warp.converge_set(0); // 2
        warp.converge_wait(0); // 3
        assert_eq!(
            warp.take_reissued(),
            Reissued::default(),
            "a fresh one is not"
        );
    }

    #[test]
    fn lanes_at_an_earlier_barrier_are_freed_and_run_last() {
        let mut warp = native(0xf);
        warp.converge_set(0); // 0
        warp.branch(0x1, 5); // 1: lane 0 waits at 5, the barrier of the caller
        assert_eq!(warp.converge_wait(0), 0);
        assert_eq!((warp.pc(), warp.active()), (2, 0xe));
        let outer = warp.barrier(0);
        warp.clear_barrier(0);
        warp.set_barrier(0, outer);
        warp.branch(0xe, 9); // 2
        warp.converge_wait(0); // 9: complete, with lane 0 elsewhere
        assert_eq!((warp.pc(), warp.active()), (10, 0xe));
        assert_eq!(warp.waiting_paths()[0].state, PathState::Freed);
        warp.branch(0x2, 20); // 10: lane 1 first
        warp.exit(0x2);
        assert_eq!((warp.pc(), warp.active()), (11, 0xc), "who is ready first");
        warp.exit(0xc);
        assert_eq!((warp.pc(), warp.active()), (5, 0x1));
    }

    #[test]
    fn a_loop_of_machine_code_is_not_interrupted() {
        let mut warp = native(0x3);
        warp.branch(0x2, 100); // lane 0 first at a tie
        for _ in 0..10_000 {
            warp.branch(0x1, 1);
        }
        assert_eq!(warp.active(), 0x1);
    }

    #[test]
    fn of_the_rest_the_youngest_is_next_though_larger() {
        let mut warp = native(0xff);
        warp.branch(0xc0, 40);
        warp.suspend(1); // lanes 6, 7
        warp.resume(1);
        warp.branch(0x07, 20); // lanes 3 to 5 first, at 2
        warp.branch(0x08, 50); // lane 3 first; lanes 4, 5 kept, lanes 0 to 2 among the rest with 6, 7
        warp.suspend(2);
        assert_eq!((warp.pc(), warp.active()), (3, 0x30), "the other side");
        warp.suspend(3);
        assert_eq!((warp.pc(), warp.active()), (20, 0x07), "the youngest");
        warp.suspend(4);
        assert_eq!((warp.pc(), warp.active()), (41, 0xc0), "the oldest");
    }

    #[test]
    fn who_passes_a_barrier_as_a_stranger_leaves_the_other_side_beside_it() {
        let mut warp = native(0xff);
        warp.branch(0xf8, 30); // lanes 0 to 2 first
        warp.branch(0x03, 20); // lane 2 first, at 2; lanes 0, 1 kept
        warp.branch(0x04, 30);
        warp.suspend(1);
        warp.branch(0x03, 30); // 20
        assert_eq!((warp.pc(), warp.active()), (30, 0x03));
        warp.branch(0x01, 40); // at a tie lane 1 first, at 31; lane 0 kept
        warp.set_barrier(0, 0x81);
        warp.converge_wait(0);
        assert_eq!((warp.pc(), warp.active()), (32, 0x02), "not recorded");
        warp.branch(0x02, 40);
        warp.suspend(2);
        assert_eq!((warp.pc(), warp.active()), (40, 0x01), "the other side");
    }

    #[test]
    fn who_is_picked_up_at_a_barrier_lets_strangers_who_wait_there_go_on() {
        let mut warp = native(0xff);
        warp.set_barrier(0, 0x12);
        warp.branch(0x0f, 20); // lanes 4 to 7 first at a tie
        warp.suspend(1);
        warp.branch(0x0c, 30); // lanes 0, 1 first at a tie, at 21; lanes 2, 3 kept
        warp.branch(0x01, 30); // lane 1 first, at 22; lane 0 kept
        warp.branch(0x02, 30);
        warp.converge_wait(0); // lane 1 waits for lane 4
        assert_eq!((warp.pc(), warp.active()), (30, 0x01), "the other side");
        warp.set_barrier(0, 0x8c); // as a return from a call does
        warp.suspend(2);
        assert_eq!((warp.pc(), warp.active()), (30, 0x0c), "the rest");
        assert_eq!(warp.converge_wait(0), 0x02, "counted with them");
        assert_eq!(
            (warp.pc(), warp.active()),
            (31, 0x02),
            "not recorded any more"
        );
    }

    #[test]
    fn lanes_that_were_freed_before_go_first_when_their_next_barrier_is_complete() {
        let mut warp = native(0xff);
        warp.set_barrier(0, 0x3);
        warp.branch(0x1, 5);
        warp.converge_wait(0); // lane 0 waits for lane 1
        warp.branch(0x2, 9);
        warp.converge_wait(0); // lane 1 comes and frees lane 0
        assert_eq!((warp.pc(), warp.active()), (10, 0x2));
        warp.suspend(1);
        warp.branch(0xe0, 20); // lanes 2 to 4 first at a tie, at 3
        warp.branch(0x18, 40); // lane 2 first; lanes 3, 4 kept, lanes 5 to 7 among the rest
        warp.suspend(2);
        assert_eq!((warp.pc(), warp.active()), (40, 0x18));
        warp.set_barrier(0, 0xe1);
        warp.take_reissued();
        warp.suspend(3);
        assert_eq!((warp.pc(), warp.active()), (20, 0xe0), "ready ones first");
        warp.converge_wait(0); // complete, but lane 0 was freed before
        assert_eq!((warp.pc(), warp.active()), (5, 0x1));
        warp.converge_wait(0);
        assert_eq!((warp.pc(), warp.active()), (6, 0x1), "nothing holds it");
        warp.suspend(4);
        assert_eq!((warp.pc(), warp.active()), (20, 0xe0), "once more");
        warp.converge_wait(0);
        assert_eq!((warp.pc(), warp.active()), (21, 0xe0));
        assert_eq!(
            warp.take_reissued(),
            Reissued::default(),
            "each was executed by itself"
        );
    }

    #[test]
    fn lane_syncs_at_two_places_meet() {
        let mut warp = native(0xf);
        warp.branch(0x1, 9); // lane 0 at 9, the others at 1
        warp.warp_sync(0xf);
        assert_eq!((warp.pc(), warp.active()), (1, 0xe));
        warp.warp_sync(0xf);
        assert_ne!(warp.active(), 0, "all have come");
        let others = warp.waiting_paths()[0];
        let mut places = [(warp.pc(), warp.active()), (others.pc, others.lanes)];
        places.sort_unstable();
        assert_eq!(places, [(2, 0xe), (10, 0x1)]);
    }
}
