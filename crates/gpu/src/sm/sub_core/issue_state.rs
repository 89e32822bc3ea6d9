//! What the warp schedulers of an SM know of its warps: scoreboards, and when each could issue.
//!
//! Dense arrays over the warp slots of all sub-cores; slot `n` belongs to sub-core `n` modulo their
//! number.

use serde::{Deserialize, Serialize};

use super::scheduler::Ages;
use super::scoreboard::{NO_GROUP, Scoreboard, registers};
use super::stall::Reason;
use crate::launch::LaunchContext;
use crate::sm::front_end::issue_table::{IssueInfo, Kind};
use crate::sm::now::PENDING;
use crate::sm::warp::Warp;

/// Warp slots that the arrays have room for.
const SLOTS: usize = 64;

/// The issue state of all warps.
#[derive(Clone, Debug)]
pub struct IssueState {
    /// Scoreboards by warp slot.
    pub scoreboards: Vec<Scoreboard>,
    /// Cycle from which the next instruction of each warp could issue, its unit being free.
    pub issue_at: [u64; SLOTS],
    /// Pipe of that instruction.
    pub pipes: [u8; SLOTS],
    /// When each warp came: smaller is older.
    pub ages: Ages,
    born: u64,
}

/// [`IssueState`] as it is saved.
#[derive(Serialize, Deserialize)]
pub struct Saved {
    scoreboards: Vec<Scoreboard>,
    issue_at: Vec<u64>,
    pipes: Vec<u8>,
    ages: Vec<u64>,
    born: u64,
}

impl IssueState {
    /// No warps.
    #[must_use]
    pub fn new(warps: usize) -> Self {
        Self {
            scoreboards: vec![Scoreboard::default(); warps],
            issue_at: [PENDING; SLOTS],
            pipes: [0; SLOTS],
            ages: [0; SLOTS],
            born: 0,
        }
    }

    /// For saving.
    #[must_use]
    pub fn saved(&self) -> Saved {
        Saved {
            scoreboards: self.scoreboards.clone(),
            issue_at: self.issue_at.to_vec(),
            pipes: self.pipes.to_vec(),
            ages: self.ages.to_vec(),
            born: self.born,
        }
    }

    /// From what was saved, if it is of as many warps.
    #[must_use]
    pub fn from_saved(saved: Saved, warps: usize) -> Option<Self> {
        (saved.scoreboards.len() == warps).then_some(())?;
        Some(Self {
            scoreboards: saved.scoreboards,
            issue_at: saved.issue_at.try_into().ok()?,
            pipes: saved.pipes.try_into().ok()?,
            ages: saved.ages.try_into().ok()?,
            born: saved.born,
        })
    }

    /// A warp starts in a cycle.
    pub fn start_warp(&mut self, slot: u8, warp: &Warp, native: bool, cycle: u64) {
        // Under control bits the compiler keeps account of registers.
        let (registers, predicates) = if native {
            (0, 0)
        } else {
            (warp.registers.len(), warp.predicates.len())
        };
        self.scoreboards[usize::from(slot)].start(registers, predicates, cycle);
        self.born += 1;
        self.ages[usize::from(slot)] = self.born;
    }

    /// When the operands of an instruction are there, and what it waits for if that is not by `at`.
    #[inline]
    pub fn operands_ready(
        &self,
        slot: usize,
        context: &LaunchContext,
        pc: u32,
        info: &IssueInfo,
        at: u64,
    ) -> (u64, Option<Reason>) {
        let scoreboard = &self.scoreboards[slot];
        let (ready, long) = if info.native {
            let (mut ready, mut long) = scoreboard.counters_zero(info.wait_mask);
            if let Kind::Await {
                counter,
                at_most,
                also,
            } = info.kind
            {
                let others = scoreboard.counters_zero(also);
                let own = scoreboard.counter_at_most(counter, at_most);
                for (at, is_long) in [others, (own, scoreboard.is_long(counter))] {
                    if at > ready {
                        (ready, long) = (at, is_long);
                    }
                }
            }
            (ready, long)
        } else {
            let ready = scoreboard.registers_ready(context.issue_table().hazard(pc));
            (ready, ready == PENDING)
        };
        if ready <= at {
            return (at, None);
        }
        let reason = if long {
            Reason::LongScoreboard
        } else {
            Reason::ShortScoreboard
        };
        (ready, Some(reason))
    }

    /// What memory owed an instruction of a warp has come.
    pub fn complete(&mut self, slot: u8, pc: u32, context: &LaunchContext, group: u32, cycle: u64) {
        let scoreboard = &mut self.scoreboards[usize::from(slot)];
        if group != NO_GROUP {
            scoreboard.copied(group, cycle);
        }
        let issue_table = context.issue_table();
        let Some(info) = issue_table.info(pc) else {
            return;
        };
        if info.native {
            if group == NO_GROUP {
                scoreboard.lower(info.write_counter, cycle + u64::from(info.after_result));
            }
        } else {
            for register in registers(issue_table.hazard(pc).writes) {
                if let Some(at) = scoreboard.registers.get_mut(register) {
                    *at = cycle;
                }
            }
        }
    }
}
