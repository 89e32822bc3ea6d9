//! `WARPSYNC.COLLECTIVE` and `ENDCOLLECTIVE`: what lanes do together that wait for each other at several places.
//!
//! A compiler writes a shuffle or a vote whose lanes may have diverged like this, the same registers at every place:
//!
//! ```text
//!     BSSY B0, out
//!     WARPSYNC.COLLECTIVE R4, after
//!     VOTE.ANY R4, PT, P0
//!     ENDCOLLECTIVE
//! after:
//!     BSYNC B0
//! ```
//!
//! When the last lane of the mask has come, all go to the place that was waited at first and execute what follows once.
//! `ENDCOLLECTIVE` sends each to the place that its own instruction named.

use super::Convergence;
use super::path::{DivergentPath, PathState};
use crate::warp_register::{LANES, Mask, lanes_of};

impl Convergence {
    /// The given active lanes wait for those of `mask`, which they agree on, and go to `target` afterwards. Others that
    /// are with them execute the instruction for themselves.
    pub fn collective(&mut self, lanes: Mask, mask: Mask, target: u32) {
        let others = self.active & !lanes;
        if others != 0 {
            self.set_sibling(DivergentPath::ready(self.pc, others));
            self.active = lanes;
        }
        if mask & self.live & !lanes == 0 {
            self.note_target(lanes, target);
            return self.advance();
        }
        self.park_at_meeting(PathState::Collective { mask, target });
        self.release_collectives();
        self.schedule_next();
    }

    /// The active lanes go where their own instruction said.
    pub fn end_collective(&mut self) {
        let Some(targets) = self.collective_targets.as_deref() else {
            return self.advance();
        };
        let mut groups: Vec<DivergentPath> = Vec::new();
        for lane in lanes_of(self.active) {
            let pc = targets[lane];
            match groups.iter_mut().find(|group| group.pc == pc) {
                Some(group) => group.lanes |= 1 << lane,
                None => groups.push(DivergentPath::ready(pc, 1 << lane)),
            }
        }
        // Those that waited first, whose code this is, go on last.
        let next = self.pc + 1;
        groups.sort_by_key(|group| group.pc != next);
        let Some(first) = groups.pop() else {
            return;
        };
        (self.pc, self.active) = (first.pc, first.lanes);
        for group in groups.into_iter().rev() {
            self.set_sibling(group);
        }
    }

    /// Collectives whose lanes have all come or ended are executed.
    pub(super) fn release_collectives(&mut self) {
        let mut index = 0;
        while index < self.paths.len() {
            let DivergentPath { pc, state, .. } = self.paths[index];
            index += 1;
            let PathState::Collective { mask, .. } = state else {
                continue;
            };
            let arrived = self.lanes_where(|path| of_mask(path, mask));
            if mask & self.live & !arrived != 0 {
                continue;
            }
            for path in std::mem::take(&mut self.paths) {
                match path.state {
                    PathState::Collective { mask: of, target } if of == mask => {
                        self.note_target(path.lanes, target);
                    }
                    _ => self.paths.push(path),
                }
            }
            self.paths.push(DivergentPath::ready(pc + 1, arrived));
            index = 0;
        }
    }

    /// The lanes that waited first at a collective all of whose lanes have come.
    pub(super) fn first_of_complete_collective(&self, state: PathState) -> Option<Mask> {
        let PathState::Collective { mask, .. } = state else {
            return None;
        };
        let arrived = self.lanes_where(|path| of_mask(path, mask));
        let first = self.paths.iter().find(|path| of_mask(path, mask))?;
        (mask & self.live & !arrived == 0).then_some(first.lanes)
    }

    /// Lanes that wait at a collective for any of these. At a barrier they are not waited for, since they cannot come
    /// first: a compiler uses one barrier around a collective and around the lock that a lane takes on its way there.
    pub(super) fn lanes_that_await(&self, lanes: Mask) -> Mask {
        self.lanes_where(
            |path| matches!(path.state, PathState::Collective { mask, .. } if mask & lanes != 0),
        )
    }

    /// Lanes that have been waiting at a barrier when the last of those whom they wait for came to a collective, and waits
    /// for them there, execute the barrier again: asked when a path spins, which may be for what they hold.
    pub(super) fn free_awaited_lanes(&mut self) {
        let at_barriers = self.lanes_at_barriers();
        for index in 0..self.paths.len() {
            let DivergentPath { lanes, state, .. } = self.paths[index];
            let PathState::Barrier(barrier) = state else {
                continue;
            };
            let missing = self.barrier(barrier) & !at_barriers;
            if missing != 0 && missing & !self.lanes_that_await(lanes) == 0 {
                self.paths[index].state = PathState::Ready;
                self.barriers[usize::from(barrier)] &= !lanes;
            }
        }
    }

    fn note_target(&mut self, lanes: Mask, target: u32) {
        let targets = self
            .collective_targets
            .get_or_insert_with(|| Box::new([0; LANES]));
        for lane in lanes_of(lanes) {
            targets[lane] = target;
        }
    }
}

/// Whether a path waits for a collective of these lanes.
fn of_mask(path: &DivergentPath, lanes: Mask) -> bool {
    matches!(path.state, PathState::Collective { mask, .. } if mask == lanes)
}
