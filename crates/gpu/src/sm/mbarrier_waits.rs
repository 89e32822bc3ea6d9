//! Warps that wait at barriers in shared memory (`mbarrier.try_wait`), and what changes barriers later than
//! the instruction that asked for it.
//!
//! A warp whose phase has not ended is held. It tests again when a phase of its barrier ends or its time
//! is over, whichever comes first, so waiting costs no time of the host.
//!
//! Start reading at [`SmState::change_mbarrier`].

use lockstep_isa::memory::AfterCopies;
use lockstep_isa::semantics::mbarrier::{self, Change};
use serde::{Deserialize, Serialize};

use super::cta::Block;
use super::issue_model::IssueModel;
use super::lsu::access::too_many;
use super::mbarrier_table::BYTES;
use super::now::{Now, PENDING};
use super::report;
use super::state::SmState;
use crate::fault::FaultKind;

/// What one instruction says of barriers, besides values.
#[derive(Clone, Debug)]
pub struct MbarrierPort {
    /// Barriers of which a phase has ended.
    pub ended: Vec<u32>,
    /// Barriers that the last test found open.
    pub places: Vec<u32>,
    /// What happens when copies are complete.
    pub after_copies: Vec<CopyArrival>,
    /// Cycles for which a test waits.
    pub wait: u64,
}

impl MbarrierPort {
    /// Nothing happened yet.
    #[must_use]
    pub fn new(wait: u64) -> Self {
        Self {
            ended: Vec::new(),
            places: Vec::new(),
            after_copies: Vec::new(),
            wait,
        }
    }

    /// Notes where lanes wait, each barrier once.
    pub fn set_places(&mut self, places: impl Iterator<Item = u32>) {
        self.places.clear();
        for place in places {
            if !self.places.contains(&place) {
                self.places.push(place);
            }
        }
    }
}

/// A change of a barrier that waits for copies to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyArrival {
    /// Slot of the block.
    pub block: u8,
    /// Where the barrier is.
    pub place: u32,
    /// Lanes that asked for it.
    pub lanes: u32,
    /// What happens for each.
    pub then: AfterCopies,
}

/// A warp that waits at barriers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MbarrierWait {
    slot: u8,
    block: u8,
    places: Vec<u32>,
}

/// All that is under way at the barriers of an SM.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MbarrierWaits {
    waits: Vec<MbarrierWait>,
    /// Changes that come at a cycle, in the order in which they were asked for.
    later: Vec<(u64, CopyArrival)>,
    /// When the first of them comes.
    due: Option<u64>,
}

impl MbarrierWaits {
    /// When the next change comes.
    #[must_use]
    #[inline]
    pub fn due(&self) -> u64 {
        self.due.unwrap_or(PENDING)
    }

    /// A warp waits at barriers.
    pub fn note(&mut self, slot: u8, block: u8, places: &[u32]) {
        self.waits.push(MbarrierWait {
            slot,
            block,
            places: places.to_vec(),
        });
    }

    /// Warps wait no longer, a bit a slot.
    pub fn let_go(&mut self, slots: u64) {
        self.waits.retain(|wait| slots >> wait.slot & 1 == 0);
    }

    /// Takes out those who wait for one of these barriers of a block, a bit a slot.
    fn woken(&mut self, block: u8, ended: &[u32]) -> u64 {
        let mut woken = 0;
        for wait in &self.waits {
            let concerned = wait.places.iter().any(|place| ended.contains(place));
            if wait.block == block && concerned {
                woken |= 1 << wait.slot;
            }
        }
        self.let_go(woken);
        woken
    }

    fn push(&mut self, at: u64, arrival: CopyArrival) {
        self.later.push((at, arrival));
        self.due = Some(self.due().min(at));
    }

    /// Takes the changes that are due.
    fn take_due(&mut self, cycle: u64) -> Vec<CopyArrival> {
        let mut due = Vec::new();
        self.later.retain(|(at, arrival)| {
            if *at <= cycle {
                due.push(*arrival);
            }
            *at > cycle
        });
        self.due = self.later.iter().map(|(at, _)| *at).min();
        due
    }
}

impl SmState {
    /// Changes a barrier of a block, now: what asynchronous copies call when bytes have come (`transactions`
    /// negative) or were announced.
    ///
    /// # Errors
    /// If the block is gone or has no such place, or more arrive than were pending.
    pub fn change_mbarrier<M: IssueModel>(
        &mut self,
        model: &mut M,
        block: u8,
        place: u32,
        change: Change,
        now: Now,
    ) -> Result<(), FaultKind> {
        let known = self.blocks.blocks[usize::from(block)].as_mut();
        let inside = |block: &&mut Box<Block>| place as usize + BYTES <= block.shared.len();
        let Some(owner) = known.filter(inside) else {
            let sentence = format!("an mbarrier at shared {place:#x}, which no block has any more");
            return Err(FaultKind::Mbarrier(sentence));
        };
        let Some((_, ended)) = owner.mbarriers.change(place, change, &owner.shared) else {
            return Err(FaultKind::Mbarrier(too_many(place, change)));
        };
        if ended {
            self.wake_at_mbarriers(model, block, &[place], now);
        }
        Ok(())
    }

    /// Bytes of an asynchronous copy have come for a barrier of a block.
    ///
    /// # Errors
    /// As [`Self::change_mbarrier`].
    pub fn complete_tx<M: IssueModel>(
        &mut self,
        model: &mut M,
        block: u8,
        place: u32,
        bytes: u32,
        now: Now,
    ) -> Result<(), FaultKind> {
        let change = Change {
            transactions: -i64::from(bytes),
            ..Change::default()
        };
        self.change_mbarrier(model, block, place, change, now)
    }

    /// Phases of barriers of a block have ended: those who wait for them test again.
    pub(super) fn wake_at_mbarriers<M: IssueModel>(
        &mut self,
        model: &mut M,
        block: u8,
        ended: &[u32],
        now: Now,
    ) {
        let woken = self.mbarriers.woken(block, ended);
        if woken != 0 {
            self.ordering.cancel_sleep(woken);
            let wake = if M::TIMED {
                self.parameters.lsu.mbarrier_wake
            } else {
                0
            };
            self.release(model, woken, now.cycle + wake);
        }
    }

    /// What an instruction did at barriers, besides values.
    #[inline(never)]
    pub(super) fn after_mbarrier<M: IssueModel>(&mut self, model: &mut M, slot: u8, now: Now) {
        let block = self.warps[usize::from(slot)].block;
        if !self.port.mbarriers.ended.is_empty() {
            let ended = std::mem::take(&mut self.port.mbarriers.ended);
            self.wake_at_mbarriers(model, block, &ended, now);
            self.port.mbarriers.ended = ended;
            self.port.mbarriers.ended.clear();
        }
        let arrivals = std::mem::take(&mut self.port.mbarriers.after_copies);
        for arrival in arrivals {
            match model.copies_complete(slot, arrival, now.cycle) {
                Some(at) if at <= now.cycle => self.arrive_after_copies(model, arrival, now),
                Some(at) => self.mbarriers.push(at, arrival),
                None => {}
            }
        }
    }

    /// A warp waits until a phase ends or its time is over, then tests again.
    #[inline(never)]
    pub(super) fn suspend_at_mbarrier(&mut self, slot: u8) {
        let warp = &self.warps[usize::from(slot)];
        let (block, until) = (warp.block, warp.suspended_until);
        let places = std::mem::take(&mut self.port.mbarriers.places);
        self.mbarriers.note(slot, block, &places);
        self.port.mbarriers.places = places;
        self.port.mbarriers.places.clear();
        self.slots.hold(slot);
        self.slots.clear_ready(slot);
        self.ordering.sleep(until, slot);
    }

    /// Copies are complete at a cycle that barriers wait for.
    pub(super) fn copies_completed<M: IssueModel>(
        &mut self,
        model: &mut M,
        arrivals: Vec<(u64, CopyArrival)>,
        now: Now,
    ) {
        for (at, arrival) in arrivals {
            if at <= now.cycle {
                self.arrive_after_copies(model, arrival, now);
            } else {
                self.mbarriers.push(at, arrival);
            }
        }
    }

    /// Makes the changes that are due.
    pub(super) fn mbarriers_due<M: IssueModel>(&mut self, model: &mut M, now: Now) {
        for arrival in self.mbarriers.take_due(now.cycle) {
            self.arrive_after_copies(model, arrival, now);
        }
    }

    fn arrive_after_copies<M: IssueModel>(
        &mut self,
        model: &mut M,
        arrival: CopyArrival,
        now: Now,
    ) {
        let CopyArrival {
            block,
            place,
            lanes,
            then,
        } = arrival;
        let change = match then {
            AfterCopies::Arrive => Change {
                arrivals: lanes.into(),
                ..Change::default()
            },
            AfterCopies::CompleteTransaction => Change {
                transactions: -i64::from(lanes),
                ..Change::default()
            },
            AfterCopies::ArriveAmpere => {
                // The state is in memory, and whoever waits there polls: nothing is to be woken.
                let owner = self.blocks.blocks[usize::from(block)].as_mut();
                let at = place as usize;
                let bytes = owner.and_then(|owner| owner.shared.get_mut(at..at + BYTES));
                if let Some(bytes) = bytes {
                    let mut state = [0; BYTES];
                    state.copy_from_slice(bytes);
                    let arrive = |state, _| mbarrier::arrive_ampere(state);
                    let state = (0..lanes).fold(u64::from_le_bytes(state), arrive);
                    bytes.copy_from_slice(&state.to_le_bytes());
                }
                return;
            }
        };
        if let Err(kind) = self.change_mbarrier(model, block, place, change, now) {
            report::fail_block(self, block, kind, now);
        }
    }
}
