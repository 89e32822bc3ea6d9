//! Timing mode: an SM with a front end, sub-cores and a load/store unit, cycle by cycle.
//!
//! Values move at issue as in functional mode; here is decided when. Each sub-core issues one
//! instruction a cycle from a warp that has its instruction, whose operands are ready and whose
//! unit is free. With SASS the compiler's control bits say when operands are ready; without, a
//! scoreboard by registers does. What instructions cost is read from the issue table of their
//! module.
//!
//! Start reading at [`Timing::run`]: its stages are receive, issue, fetch. `account.rs` books what an
//! instruction costs, `memory_cost.rs` what memory adds to it, `texture_cost.rs` what
//! textures do.

mod account;
mod lines;
mod memory_cost;
mod texture_cost;

use std::ops::Range;
use std::sync::Arc;

use lockstep_engine::{Inbox, LoadError, Outbox, Reader, Writer};
use lockstep_units::Cycle;
use serde::{Deserialize, Serialize};

use super::execute::Effect;
use super::front_end::FrontEnd;
use super::front_end::instruction_fetch::InstructionFetch;
use super::issue_model::IssueModel;
use super::lsu::LoadStoreUnit;
use super::lsu::l1tex::Filled;
use super::mbarrier_waits::CopyArrival;
use super::now::{Now, PENDING};
use super::state::SmState;
use super::statistics::PartStats;
use super::sub_core::SubCore;
use super::sub_core::issue_state::{self, IssueState};
use super::translation::deferred::DeferredLoad;
use super::warp::Warp;
use crate::crossbar::credits::CreditGate;
use crate::launch::LaunchContext;
use crate::message::Message;
use crate::parameters::SmParameters;
use account::Issued;

/// Free instructions that may go with one issue; a loop of nothing else still takes time.
const FREE: u32 = 64;

/// The timed parts of an SM.
#[derive(Clone, Debug)]
pub struct Timing {
    parameters: Arc<SmParameters>,
    front_end: FrontEnd,
    sub_cores: Vec<SubCore>,
    /// What the schedulers know of warps.
    warps: IssueState,
    /// Warp slots of the first sub-core; those of others are shifted.
    first_sub_core: u64,
    lsu: LoadStoreUnit,
    admission: Admission,
}

/// What comes to an SM one at a time: arrivals at barriers, and warps that start.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Admission {
    /// When the next arrival at a barrier can be counted.
    barrier_free: u64,
    /// When those go on who wait at the barrier that was arrived at last, if it is complete.
    barrier_release: u64,
    /// When the next warp can be started.
    warp_free: u64,
    /// The launch that came last.
    launch: u32,
}

impl Timing {
    /// An SM without warps.
    #[must_use]
    pub fn new(parameters: &Arc<SmParameters>) -> Self {
        let sub_cores = parameters.sub_cores.max(1) as usize;
        Self {
            front_end: FrontEnd::new(parameters),
            sub_cores: vec![SubCore::new(parameters.sub_core.scheduler.clone()); sub_cores],
            warps: IssueState::new(parameters.warps as usize),
            first_sub_core: (0..64)
                .step_by(sub_cores)
                .fold(0, |mask, slot| mask | 1 << slot),
            lsu: LoadStoreUnit::new(parameters),
            admission: Admission {
                barrier_free: 0,
                barrier_release: 0,
                warp_free: 0,
                launch: u32::MAX,
            },
            parameters: Arc::clone(parameters),
        }
    }

    /// Simulates the cycles of a window. A cycle is three stages: messages are received, sub-cores
    /// issue, and code that is missing is fetched. Cycles in which nothing can happen are skipped.
    pub fn run(
        &mut self,
        state: &mut SmState,
        cycles: Range<Cycle>,
        inbox: &mut Inbox<Message>,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let start = cycles.start.0;
        let mut clock = state.clock_at(cycles.start);
        let mut next_message = state.next_message(inbox);
        while clock.cycle() < cycles.end {
            let now = Now::of(&clock, start);
            if next_message.min(state.wakes()) <= now.cycle {
                state.receive(self, now, inbox, outbox);
                next_message = state.next_message(inbox);
            }
            let next = self.issue_stage(state, now, outbox);
            if state.fault.is_some() {
                return;
            }
            self.fetch_stage(state, now, outbox);
            if next <= now.cycle + 1 {
                clock.advance();
                continue;
            }
            let next = next.min(next_message).min(state.wakes());
            if next >= cycles.end.0 {
                return;
            }
            clock.seek(state.clock().edge(Cycle(next.max(now.cycle + 1))));
        }
    }

    /// Lets every sub-core issue, and says when the next one could.
    fn issue_stage(
        &mut self,
        state: &mut SmState,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> u64 {
        let mut next = PENDING;
        for index in 0..self.sub_cores.len() {
            let sub_core = &mut self.sub_cores[index];
            let idle = sub_core.idle_until();
            if idle > now.cycle {
                next = next.min(idle);
                continue;
            }
            let full = self.lsu.l1tex.is_full() || state.port.gate.is_full();
            let ready = state.slots.ready & self.first_sub_core << index;
            if let Some(slot) = sub_core.pick(ready, &self.warps, full, now.cycle) {
                state.progress = now.cycle;
                self.issue(state, slot, index, now, outbox);
                if state.fault.is_some() {
                    return next;
                }
                next = next.min(self.sub_cores[index].idle_until());
            } else {
                next = next.min(self.sub_cores[index].asleep_until());
            }
        }
        next
    }

    /// Issues one instruction of a warp, and the free ones before it.
    fn issue(
        &mut self,
        state: &mut SmState,
        slot: u8,
        sub_core: usize,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        for _ in 0..FREE {
            let warp = &state.warps[usize::from(slot)];
            let block = usize::from(warp.block);
            let (pc, active) = (warp.convergence.pc(), warp.convergence.active());
            let (effect, free) = state.execute(self, slot, now, outbox);
            if effect == Effect::Failed {
                return;
            }
            // A block that ended took its launch along; then nothing is left to be timed.
            if state.blocks.contexts[block].is_some() && effect != Effect::Again {
                let issued = Issued {
                    slot,
                    sub_core,
                    pc,
                    active,
                    block,
                    effect,
                };
                self.account(state, &issued, now, outbox);
            }
            if !state.slots.is_ready(slot) {
                return;
            }
            state.refresh(self, slot, now.cycle + u64::from(!free));
            let full = self.lsu.l1tex.is_full() || state.port.gate.is_full();
            let at = self.sub_cores[sub_core].issue_at(usize::from(slot), &self.warps, full);
            if !free || at > now.cycle {
                return;
            }
        }
    }

    /// Sends for the code that warps wait for.
    #[inline]
    fn fetch_stage(&mut self, state: &mut SmState, now: Now, outbox: &mut Outbox<'_, Message>) {
        let misses = &mut self.front_end.fetch.misses;
        if misses.is_empty() {
            return;
        }
        let clock = state.parameters.clock;
        for miss in misses.drain(..) {
            let l1tex = &mut self.lsu.l1tex;
            l1tex.fetch_code(miss, now.cycle, clock, &mut state.port, outbox);
        }
    }

    /// The next cycle in which a ready warp can issue.
    #[must_use]
    pub fn next_cycle(&self, state: &SmState) -> u64 {
        let mut left = state.slots.ready;
        let mut next = PENDING;
        let full = self.lsu.l1tex.is_full() || state.port.gate.is_full();
        while left != 0 {
            let slot = left.trailing_zeros() as usize;
            left &= left - 1;
            let sub_core = &self.sub_cores[slot % self.sub_cores.len()];
            next = next.min(sub_core.issue_at(slot, &self.warps, full));
        }
        next
    }

    /// The instruction caches, for another SM that will count anew.
    pub(super) fn take_fetch(&mut self) -> InstructionFetch {
        let empty = InstructionFetch::new(&self.parameters);
        let mut fetch = std::mem::replace(&mut self.front_end.fetch, empty);
        fetch.reset_stats();
        fetch
    }

    /// Has instruction caches that another SM left.
    pub(super) fn set_fetch(&mut self, fetch: InstructionFetch) {
        self.front_end.fetch = fetch;
    }

    /// What its parts counted.
    pub(super) fn part_stats(&self, gate: &CreditGate) -> PartStats {
        let fetch = &self.front_end.fetch;
        PartStats {
            sub_cores: self
                .sub_cores
                .iter()
                .zip(fetch.l0_stats())
                .map(|(sub_core, instructions)| (sub_core.stats.clone(), instructions.clone()))
                .collect(),
            l1: self.lsu.l1tex.accesses().clone(),
            mshrs: self.lsu.l1tex.mshr_stats().clone(),
            credits: gate.stats.clone(),
            instructions: fetch.l1_stats().clone(),
            constants: self.front_end.constants.stats.clone(),
        }
    }

    /// Writes everything.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.front_end);
        writer.write(&self.sub_cores);
        writer.write(&self.warps.saved());
        self.lsu.save(writer);
        writer.write(&self.admission);
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote, or of an SM of another shape.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        let malformed = |what| LoadError::Malformed { what };
        let front_end: FrontEnd = reader.read()?;
        if !front_end.constants.fits(&self.front_end.constants) {
            return Err(malformed("another constant cache"));
        }
        self.front_end = front_end;
        let sub_cores: Vec<SubCore> = reader.read()?;
        if sub_cores.len() != self.sub_cores.len() {
            return Err(malformed("another number of sub-cores"));
        }
        self.sub_cores = sub_cores;
        let saved: issue_state::Saved = reader.read()?;
        let warps = IssueState::from_saved(saved, self.warps.scoreboards.len());
        self.warps = warps.ok_or(malformed("another number of warps"))?;
        self.lsu.load(reader, &self.parameters)?;
        self.admission = reader.read()?;
        Ok(())
    }
}

impl IssueModel for Timing {
    const TIMED: bool = true;

    fn start_block(
        &mut self,
        launch: &LaunchContext,
        warps: &[Warp],
        slots: &[u8],
        alone: bool,
        cycle: u64,
    ) {
        let admission = &mut self.admission;
        if admission.launch != launch.id.0 {
            admission.launch = launch.id.0;
            let cold = self.parameters.cold;
            self.front_end.start_launch(launch, alone, cold, cycle);
            self.lsu.l1tex.start_launch(launch.l1_ways, alone);
        }
        let native = launch.launch.module.native;
        for slot in slots {
            // A warp starts as soon as those before it have.
            let at = cycle.max(admission.warp_free);
            admission.warp_free = at + self.parameters.warp_interval;
            let warp = &warps[usize::from(*slot)];
            self.warps.start_warp(*slot, warp, native, at);
        }
    }

    fn schedule(&mut self, slot: u8, warp: &Warp, launch: Option<&LaunchContext>, cycle: u64) {
        let index = usize::from(slot);
        let sub_core = index % self.sub_cores.len();
        let scoreboard = &mut self.warps.scoreboards[index];
        if cycle > scoreboard.next && self.warps.issue_at[index] == PENDING {
            // Memory has answered.
            (scoreboard.woken, scoreboard.woken_reason) = (cycle, scoreboard.reason);
        }
        scoreboard.next = scoreboard.next.max(cycle);
        let pc = warp.convergence.pc();
        let known = launch.and_then(|launch| Some((launch, launch.issue_table().info(pc)?)));
        let Some((launch, info)) = known else {
            // Executing it will say what is wrong.
            self.warps.issue_at[index] = scoreboard.next;
            self.sub_cores[sub_core].wake();
            return;
        };
        self.warps.pipes[index] = info.pipe as u8;
        scoreboard.reason = scoreboard.next_reason;
        let next = scoreboard.next;
        let line = &mut scoreboard.line;
        let front_end = &mut self.front_end;
        let (at, fetched) = front_end.ready_at(slot, sub_core, launch, pc, info, line, next);
        let (at, waits) = self.warps.operands_ready(index, launch, pc, info, at);
        if let Some(reason) = waits.or(fetched) {
            self.warps.scoreboards[index].reason = reason as u8;
        }
        self.warps.issue_at[index] = at;
        self.sub_cores[sub_core].wake_at(at);
    }

    fn complete(&mut self, slot: u8, pc: u32, launch: &LaunchContext, group: u32, cycle: u64) {
        self.warps.complete(slot, pc, launch, group, cycle);
    }

    fn copies_complete(&mut self, slot: u8, arrival: CopyArrival, cycle: u64) -> Option<u64> {
        self.warps.scoreboards[usize::from(slot)].arrive_after_copies(arrival, cycle)
    }

    fn take_copy_arrivals(&mut self, slot: u8) -> Vec<(u64, CopyArrival)> {
        self.warps.scoreboards[usize::from(slot)].take_copy_arrivals()
    }

    fn arrive_at_barrier(&mut self, cycle: u64) {
        let admission = &mut self.admission;
        let at = cycle.max(admission.barrier_free);
        admission.barrier_free = at + self.parameters.barrier_interval;
        admission.barrier_release = at + self.parameters.barrier_latency;
    }

    fn barrier_release(&self, cycle: u64) -> u64 {
        self.admission.barrier_release.max(cycle + 1)
    }

    fn receive_strong(&mut self, bytes: u64, cycle: u64) -> u64 {
        self.lsu.l1tex.arrive(cycle, bytes).max(cycle)
    }

    fn receive_sectors(&mut self, state: &mut SmState, mshr: u32, now: Now) {
        let (filled, was_full) = self.lsu.l1tex.fill(mshr, now.cycle);
        if was_full {
            // Those who could not issue for it look again.
            self.wake_all();
        }
        match filled {
            Filled::Code(miss) => {
                let fetch = &mut self.front_end.fetch;
                fetch.fill(miss, now.cycle);
                let mut waiting = std::mem::take(&mut fetch.waiting) & state.slots.ready;
                while waiting != 0 {
                    let slot = waiting.trailing_zeros() as u8;
                    waiting &= waiting - 1;
                    state.refresh(self, slot, now.cycle);
                }
            }
            Filled::Data { at, targets } => {
                for transaction in &targets {
                    state.answered(self, *transaction, at, now);
                }
                self.lsu.l1tex.recycle(mshr, targets);
            }
        }
    }

    fn resume_load(
        &mut self,
        state: &mut SmState,
        load: DeferredLoad,
        at: u64,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let hit = self.access_deferred(state, load, at, outbox);
        // The answer that stood for the translation.
        state.answered(self, load.transaction, hit, now);
    }

    fn set_translation_full(&mut self, full: bool) {
        self.lsu.l1tex.set_translation_full(full);
    }

    fn requests_leave(&mut self, cycle: u64) {
        self.lsu.l1tex.open_again(cycle);
        self.wake_all();
    }

    fn wake_all(&mut self) {
        self.sub_cores.iter_mut().for_each(SubCore::wake);
    }

    fn invalidate_l1(&mut self, lines: Range<u64>, all: bool) {
        self.lsu.l1tex.invalidate_lines(lines, all);
    }
}
