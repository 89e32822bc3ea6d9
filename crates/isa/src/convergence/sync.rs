//! Waiting for named lanes (`WARPSYNC`) and for something outside the warp.

use super::Convergence;
use super::path::{DivergentPath, PathState, ReadyAfter};
use crate::warp_register::{LANES, Mask, lanes_of};

/// Tags of [`Convergence::suspend`] up to this one are barriers that wait for whole warps: those of the block, and
/// behind them that of the cluster.
pub const LAST_WARP_BARRIER: u32 = 16;

impl Convergence {
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
        self.park_at_meeting(PathState::WarpSync(mask));
        self.release_warp_syncs();
        self.schedule_next();
    }

    /// Whether others wait for the lanes of `mask` at another place than this.
    #[must_use]
    pub fn others_wait_elsewhere(&self, mask: Mask) -> bool {
        let mut paths = self.paths.iter();
        paths.any(|path| path.state == PathState::WarpSync(mask) && path.pc != self.pc)
    }

    /// As [`Self::warp_sync`] for active lanes that name several masks: each waits for the lanes of its own. Those that
    /// find all theirs with them, and those that do not execute it, go on.
    pub fn warp_sync_each(&mut self, lanes: Mask, masks: &[Mask; LANES]) {
        let (pc, here) = (self.pc, self.active);
        // Lanes of a function and of calls of itself within it can be here at once: those name other masks.
        let there = |mask: Mask| {
            lanes_of(lanes & here)
                .filter(|lane| masks[*lane] == mask)
                .fold(0, |there, lane| there | 1 << lane)
        };
        let mut waits = lanes_of(lanes & here)
            .filter(|lane| masks[*lane] & self.live & !there(masks[*lane]) != 0)
            .fold(0, |waits, lane| waits | 1 << lane);
        let goes = here & !waits;
        self.active = 0;
        while waits != 0 {
            let mask = masks[waits.trailing_zeros() as usize % LANES];
            let group = lanes_of(waits)
                .filter(|lane| masks[*lane] == mask)
                .fold(0, |group, lane| group | 1 << lane);
            waits &= !group;
            self.active = group;
            self.park(PathState::WarpSync(mask));
        }
        self.release_warp_syncs();
        if goes == 0 {
            self.schedule_next();
        } else {
            (self.pc, self.active) = (pc, goes);
            self.advance();
        }
    }

    /// As [`Self::warp_sync`] for the given active lanes, which agree on the mask: what follows is executed by the lanes
    /// of the mask and nobody else (`WARPSYNC.EXCLUSIVE`). Others that are with them come again with their mask.
    pub fn warp_sync_exclusive(&mut self, lanes: Mask, mask: Mask) {
        let others = self.active & !lanes;
        if others != 0 {
            self.set_sibling(DivergentPath::ready(self.pc, others));
            self.active = lanes;
        }
        self.warp_sync(mask);
    }

    /// The running path waits for other lanes of the warp. Counts what hardware executes once more.
    pub(super) fn park_at_meeting(&mut self, state: PathState) {
        let (pc, active) = (self.pc, self.active);
        let waiting = |path: &DivergentPath| {
            let waits = matches!(
                path.state,
                PathState::WarpSync(_) | PathState::Collective { .. }
            );
            path.pc == pc && waits
        };
        let asleep = |path: &DivergentPath| {
            path.state != PathState::Ready || path.ready_after == ReadyAfter::Sleep
        };
        self.park(state);
        let here = self.lanes_where(waiting);
        if !self.reconverge_anywhere && (here != active || self.paths.iter().all(asleep)) {
            // A collective that is complete is executed again where it was waited at first.
            let again = self.first_of_complete_collective(state).unwrap_or(here);
            self.reissued.instructions += 1;
            self.reissued.lanes += again.count_ones();
        }
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
        self.merge_ready_paths();
        if self.active == 0 {
            self.schedule_next();
        }
        lanes
    }

    /// Whether lanes at a barrier of the block arrive for their warp as soon as none of the others can run: so machine
    /// code has it. Lanes of PTX arrive one by one.
    #[must_use]
    pub fn arrives_as_warp(&self) -> bool {
        !self.reconverge_anywhere
    }

    /// Whether some lanes wait at a barrier of the block, and the others can neither run nor be woken from outside.
    #[must_use]
    pub fn is_stuck_at_block_barrier(&self) -> bool {
        self.active == 0
            && self.paths.len() > 1
            && self.arrives_as_warp()
            && self.is_at_block_barrier()
            && !self.paths.iter().any(DivergentPath::waits_outside)
    }

    pub(super) fn is_at_block_barrier(&self) -> bool {
        self.paths
            .iter()
            .any(|path| matches!(path.state, PathState::External(tag) if tag < LAST_WARP_BARRIER))
    }

    /// Lanes that wait under `tag`.
    #[must_use]
    pub fn suspended(&self, tag: u32) -> Mask {
        self.paths
            .iter()
            .filter(|path| path.state == PathState::External(tag))
            .fold(0, |lanes, path| lanes | path.lanes)
    }

    /// Warp syncs are released when all live lanes of their mask wait for the same lanes.
    pub(super) fn release_warp_syncs(&mut self) {
        let mut index = 0;
        while index < self.paths.len() {
            let state = self.paths[index].state;
            if let PathState::WarpSync(mask) = state {
                let arrived = self.lanes_where(|path| path.state == state);
                if mask & self.live & !arrived == 0 {
                    self.release(|path| if path.state == state { path.lanes } else { 0 });
                    index = 0;
                    continue;
                }
            }
            index += 1;
        }
    }
}
