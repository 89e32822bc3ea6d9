//! Timing mode: sub-cores, schedulers, latencies, the memory pipe.
//!
//! Values move at issue as in functional mode; here is decided when. Each sub-core issues one
//! instruction a cycle from a warp that has its instruction, whose operands are ready and whose
//! unit is free. With SASS the compiler's control bits say when operands are ready; without, a
//! scoreboard by rows does. What instructions cost is read from the issue table of
//! their module.
//!
//! | file | what |
//! |---|---|
//! | `issue.rs` | the cycle: who issues, what it costs |
//! | `scoreboard.rs` | dependence counters, rows, groups of copies |
//! | `fetch.rs` | instruction caches, constants |
//! | `load_store.rs` | the memory pipe and L1 |
//! | `misses.rs` | sectors on their way from L2 |
//! | `stall.rs` | why warps wait |
//!
//! Start reading at `Sm::run_timing`.

mod issue;

use serde::{Deserialize, Serialize};

use super::front_end::fetch::Fetch;
use super::lsu::l1tex::{self, LoadStore};
use super::now::PENDING;
use super::sub_core::scheduler::{Ages, WarpScheduler};
use super::sub_core::scoreboard::{self, NO_GROUP, Scoreboard};
use super::sub_core::stall::Reason;
use super::warp::Warp;
use crate::launch::LaunchContext;
use crate::parameters::SmParameters;
use crate::sm::front_end::issue_table::{Kind, NO_CONSTANT, PIPES, Pipe};

/// One sub-core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SubCore {
    scheduler: WarpScheduler,
    /// Cycle from which each pipe takes another instruction.
    pipes: [u64; PIPES],
    /// Cycle from which the light half of the multiply-add unit does.
    light: u64,
    /// Cycle until which each bank of registers is being read.
    banks: [u64; 2],
    /// Nobody here can issue before, as far as is known.
    pub(super) asleep: u64,
    /// Nobody here may issue before: registers are being read.
    hold: u64,
}

/// The issue state of an SM.
#[derive(Clone, Debug)]
pub struct Timing {
    pub(super) sub_cores: Vec<SubCore>,
    scoreboards: Vec<Scoreboard>,
    /// Cycle from which the next instruction of each warp could issue, its unit being free.
    issue_at: [u64; 64],
    /// Pipe of that instruction.
    pipes: [u8; 64],
    ages: Ages,
    born: u64,
    /// Warps of the first sub-core; those of others are shifted.
    comb: u64,
    pub(super) fetch: Fetch,
    pub(super) memory: LoadStore,
    /// When the next arrival at a barrier can be counted.
    barrier_free: u64,
    /// When the next warp can be started.
    warp_free: u64,
    /// The launch that came last.
    launch: u32,
}

/// [`Timing`] as it is saved.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    sub_cores: Vec<SubCore>,
    scoreboards: Vec<Scoreboard>,
    issue_at: Vec<u64>,
    pipes: Vec<u8>,
    ages: Vec<u64>,
    born: u64,
    fetch: Fetch,
    memory: l1tex::Saved,
    barrier_free: u64,
    warp_free: u64,
    launch: u32,
}

impl Timing {
    pub(super) fn new(parameters: &SmParameters) -> Self {
        let step = parameters.sub_cores.max(1) as usize;
        Self {
            sub_cores: vec![
                SubCore {
                    scheduler: parameters.scheduler.clone(),
                    pipes: [0; PIPES],
                    light: 0,
                    banks: [0; 2],
                    asleep: 0,
                    hold: 0,
                };
                step
            ],
            scoreboards: vec![Scoreboard::default(); parameters.warps as usize],
            issue_at: [PENDING; 64],
            pipes: [0; 64],
            ages: [0; 64],
            born: 0,
            comb: (0..64).step_by(step).fold(0, |mask, slot| mask | 1 << slot),
            fetch: Fetch::new(parameters),
            memory: LoadStore::new(parameters),
            barrier_free: 0,
            warp_free: 0,
            launch: u32::MAX,
        }
    }

    pub(super) fn saved(&self) -> Saved {
        Saved {
            sub_cores: self.sub_cores.clone(),
            scoreboards: self.scoreboards.clone(),
            issue_at: self.issue_at.to_vec(),
            pipes: self.pipes.to_vec(),
            ages: self.ages.to_vec(),
            born: self.born,
            fetch: self.fetch.clone(),
            memory: self.memory.saved(),
            barrier_free: self.barrier_free,
            warp_free: self.warp_free,
            launch: self.launch,
        }
    }

    /// Takes on what was saved; false if it does not fit.
    pub(super) fn restore(&mut self, saved: Saved, parameters: &SmParameters) -> bool {
        let lengths = saved.sub_cores.len() == self.sub_cores.len()
            && saved.scoreboards.len() == self.scoreboards.len();
        let (Ok(issue_at), Ok(pipes), Ok(ages)) = (
            saved.issue_at.try_into(),
            saved.pipes.try_into(),
            saved.ages.try_into(),
        ) else {
            return false;
        };
        let Some(memory) = LoadStore::from_saved(saved.memory, parameters) else {
            return false;
        };
        if lengths {
            self.sub_cores = saved.sub_cores;
            self.scoreboards = saved.scoreboards;
            (self.issue_at, self.pipes, self.ages) = (issue_at, pipes, ages);
            self.born = saved.born;
            (self.fetch, self.memory) = (saved.fetch, memory);
            (self.barrier_free, self.launch) = (saved.barrier_free, saved.launch);
            self.warp_free = saved.warp_free;
        }
        lengths
    }

    /// A block has come; `alone` if no other launch is here.
    pub(super) fn start_block(
        &mut self,
        context: &LaunchContext,
        alone: bool,
        cold: bool,
        cycle: u64,
    ) {
        let launch = context.id.0;
        if self.launch != launch {
            self.launch = launch;
            let instructions = context.launch.module.code.len();
            let module = context.launch.module_id;
            let kernel = context.launch.code();
            self.fetch
                .start(module, instructions, kernel, alone, cold, cycle);
            self.memory.start_launch(context.l1_ways, alone);
        }
    }

    /// A warp starts as soon as those before it have; says when.
    pub(super) fn start_warp(
        &mut self,
        slot: u8,
        warp: &Warp,
        native: bool,
        cycle: u64,
        interval: u64,
    ) -> u64 {
        let cycle = cycle.max(self.warp_free);
        self.warp_free = cycle + interval;
        let (rows, predicates) = if native {
            (0, 0)
        } else {
            (warp.registers.len(), warp.predicates.len())
        };
        self.scoreboards[usize::from(slot)].start(rows, predicates, cycle);
        self.born += 1;
        self.ages[usize::from(slot)] = self.born;
        cycle
    }

    /// Counts an arrival at a barrier, and says when those who wait could go on if it is the
    /// last.
    pub(super) fn arrive(&mut self, cycle: u64, parameters: &SmParameters) -> u64 {
        let at = cycle.max(self.barrier_free);
        self.barrier_free = at + parameters.barrier_interval;
        at + parameters.barrier_latency
    }

    /// Finds out when the next instruction of a warp can issue, not before `cycle`.
    pub(super) fn schedule(
        &mut self,
        slot: u8,
        warp: &Warp,
        context: Option<&LaunchContext>,
        cycle: u64,
    ) {
        let index = usize::from(slot);
        let sub_core = index % self.sub_cores.len();
        let scoreboard = &mut self.scoreboards[index];
        if cycle > scoreboard.next && self.issue_at[index] == PENDING {
            // Memory has answered.
            (scoreboard.woken, scoreboard.woken_reason) = (cycle, scoreboard.reason);
        }
        scoreboard.next = scoreboard.next.max(cycle);
        let pc = warp.convergence.pc();
        let planned = context.and_then(|context| Some((context, context.issue_table().info(pc)?)));
        let Some((context, info)) = planned else {
            // Executing it will say what is wrong.
            self.issue_at[index] = scoreboard.next;
            self.sub_cores[sub_core].asleep = 0;
            return;
        };
        self.pipes[index] = info.pipe as u8;
        let mut at = scoreboard.next;
        scoreboard.reason = scoreboard.next_reason;
        let launch = context.id.0;
        let line = self.fetch.number(context.launch.module_id, pc);
        if scoreboard.line != line {
            let there = self.fetch.line(sub_core, line, at);
            if there == PENDING {
                self.fetch.waiting |= 1 << slot;
            } else {
                scoreboard.line = line;
            }
            if there > at {
                at = there;
                scoreboard.reason = Reason::NoInstruction as u8;
            }
        }
        if info.constant != NO_CONSTANT && info.pipe != Pipe::LoadStore {
            let there = self.fetch.constant(launch, info.constant, at);
            if there > at {
                at = there;
                scoreboard.reason = Reason::ImcMiss as u8;
            }
        }
        if info.native {
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
            if ready > at {
                at = ready;
                scoreboard.reason = if long {
                    Reason::LongScoreboard
                } else {
                    Reason::ShortScoreboard
                } as u8;
            }
        } else {
            let ready = scoreboard.rows_ready(context.issue_table().hazard(pc));
            if ready > at {
                at = ready;
                scoreboard.reason = if ready == PENDING {
                    Reason::LongScoreboard
                } else {
                    Reason::ShortScoreboard
                } as u8;
            }
        }
        self.issue_at[index] = at;
        let core = &mut self.sub_cores[sub_core];
        core.asleep = core.asleep.min(at);
    }

    /// The next cycle in which a warp of `ready` can issue.
    pub(super) fn next_cycle(&self, ready: u64) -> Option<u64> {
        let mut left = ready;
        let mut next = PENDING;
        while left != 0 {
            let slot = left.trailing_zeros() as usize;
            left &= left - 1;
            let core = &self.sub_cores[slot % self.sub_cores.len()];
            let pipe = usize::from(self.pipes[slot]);
            if pipe == Pipe::LoadStore as usize && self.memory.is_full() {
                continue;
            }
            next = next.min(self.issue_at[slot].max(core.pipes[pipe]));
        }
        (next != PENDING).then_some(next)
    }

    /// Lets every sub-core look again.
    pub(super) fn wake_all(&mut self) {
        self.sub_cores.iter_mut().for_each(|core| core.asleep = 0);
    }

    /// Whether translation lets no memory instruction issue.
    pub(super) fn set_blocked(&mut self, blocked: bool) {
        self.memory.blocked = blocked;
    }

    /// Pages have left the device: nothing of them is in L1 any more.
    pub(super) fn forget_lines(&mut self, lines: std::ops::Range<u64>, all: bool) {
        self.memory.forget(lines, all);
    }

    /// What memory owed a warp has come.
    pub(super) fn complete(
        &mut self,
        slot: u8,
        pc: u32,
        context: &LaunchContext,
        group: u32,
        cycle: u64,
    ) {
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
                scoreboard.lower(info.write_counter, cycle);
            }
        } else {
            for row in scoreboard::rows(issue_table.hazard(pc).writes) {
                if let Some(at) = scoreboard.rows.get_mut(row) {
                    *at = cycle;
                }
            }
        }
    }
}
