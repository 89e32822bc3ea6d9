//! One divergent path of a warp.

use serde::{Deserialize, Serialize};

use super::sync::LAST_WARP_BARRIER;
use crate::warp_register::Mask;

/// Why a path does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathState {
    /// It can run and waits for its turn.
    Ready,
    /// It waits at `ConvergeWait` of this convergence barrier.
    Barrier(u16),
    /// It waits at a `WarpSync` for these lanes.
    WarpSync(Mask),
    /// It waits at a `WARPSYNC.COLLECTIVE` for these lanes, and goes to a place of its own afterwards.
    Collective {
        /// Lanes that execute together.
        mask: Mask,
        /// Where its lanes go on.
        target: u32,
    },
    /// It waits at a convergence barrier that no longer holds it, behind all paths that are ready.
    Deferred,
    /// It waits for something outside the warp, under a tag that the SM chooses (a block barrier).
    External(u32),
}

impl PathState {
    /// A number of its own for each.
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Ready => 0,
            Self::Deferred => 1,
            Self::Barrier(barrier) => 1 << 32 | u64::from(barrier),
            Self::WarpSync(lanes) => 2 << 32 | u64::from(lanes),
            Self::External(tag) => 3 << 32 | u64::from(tag),
            // Where it goes on follows from its instruction.
            Self::Collective { mask, .. } => 4 << 32 | u64::from(mask),
        }
    }
}

/// The instruction behind which a path that is ready waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadyAfter {
    /// Any other.
    Other,
    /// `NANOSLEEP`.
    Sleep,
    /// `YIELD`.
    Yield,
    /// An indirect jump that other lanes took first, and that it executes again.
    IndirectJump,
}

/// Lanes with one program counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DivergentPath {
    /// Next instruction.
    pub pc: u32,
    /// Its lanes.
    pub lanes: Mask,
    /// Whether it can run.
    pub state: PathState,
    /// Whether it is the other side of the last branch, which runs next.
    pub(super) sibling: bool,
    /// The instruction behind which it waits for its turn.
    pub(super) ready_after: ReadyAfter,
}

impl DivergentPath {
    pub(super) fn ready(pc: u32, lanes: Mask) -> Self {
        Self {
            pc,
            lanes,
            state: PathState::Ready,
            sibling: false,
            ready_after: ReadyAfter::Other,
        }
    }

    /// Whether something outside the warp may let it go on, whatever the warp's other lanes do. Barriers of the block and
    /// the cluster do not: they wait for the warp.
    pub(super) fn waits_outside(&self) -> bool {
        matches!(self.state, PathState::External(tag) if tag > LAST_WARP_BARRIER)
    }
}

/// Takes the chosen paths out, ready; those at one instruction are one.
pub(super) fn take_out(
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

/// The chosen paths run when no path is ready, together with those deferred there before.
pub(super) fn defer(paths: &mut Vec<DivergentPath>, chosen: impl Fn(&DivergentPath) -> bool) {
    for path in take_out(paths, chosen) {
        let deferred = DivergentPath {
            state: PathState::Deferred,
            ..path
        };
        let there = |other: &&mut DivergentPath| {
            other.state == PathState::Deferred && other.pc == deferred.pc
        };
        match paths.iter_mut().find(there) {
            Some(other) => other.lanes |= deferred.lanes,
            None => paths.push(deferred),
        }
    }
}
