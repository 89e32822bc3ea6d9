//! What an SM holds in both modes: warps, thread blocks, their fences, and the port to memory.
//!
//! Functions here decide which warps are ready; when a ready warp issues is the business of the
//! `IssueModel` that they are given.
//!
//! Start reading at [`SmState::receive`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lockstep_counters::Counters;
use lockstep_engine::{Inbox, LoadError, Outbox, Reader, Wake, Window, Writer};
use lockstep_units::{Clock, Cycle, Hertz, Time};

use super::assertions::Assertions;
use super::bulk::engine::BULK_REQUEST;
use super::cta::BlockTable;
use super::device_runtime::LastErrors;
use super::issue_model::IssueModel;
use super::kept::KeptCaches;
use super::lsu::port::Port;
use super::mbarrier_waits::MbarrierWaits;
use super::now::Now;
use super::ordering::{FenceWait, Ordering, Waiter};
use super::printer::Printer;
use super::statistics::PartStats;
use super::warp::Warp;
use super::warp_slots::WarpSlots;
use crate::fault::Fault;
use crate::launch::LaunchTable;
use crate::message::Message;
use crate::parameters::SmParameters;
use crate::probe::Topic;

/// The state of an SM that does not depend on its mode.
#[derive(Debug)]
pub struct SmState {
    /// Its number in the GPU.
    pub number: u32,
    /// What its GPU file says.
    pub parameters: Arc<SmParameters>,
    /// Launches of the GPU.
    pub launches: LaunchTable,
    /// Warps by slot.
    pub warps: Vec<Warp>,
    /// Which of them are ready.
    pub slots: WarpSlots,
    /// Blocks and their launches.
    pub blocks: BlockTable,
    /// Who waits at fences, and who sleeps.
    pub ordering: Ordering,
    /// Who waits at barriers in shared memory.
    pub mbarriers: MbarrierWaits,
    /// Warps that wait for the grids before theirs, a bit a slot.
    pub waiting_for_grids: u64,
    /// The memory side.
    pub port: Port,
    /// What kernels printed.
    pub printer: Printer,
    /// Assertions that failed.
    pub assertions: Assertions,
    /// Last errors of the device runtime, by warp slot; those of warps that had none are absent.
    pub last_errors: BTreeMap<u8, LastErrors>,
    /// What went wrong, and when.
    pub fault: Option<(Time, Box<Fault>)>,
    /// Last cycle in which an instruction was issued or an answer came.
    pub progress: u64,
    /// What it counted.
    pub stats: Counters,
    /// What its parts counted before they were made anew.
    pub parts_before: PartStats,
    /// What the last timed kernel left, while launches take no time.
    pub kept: Option<Box<KeptCaches>>,
}

impl SmState {
    /// An SM without blocks.
    #[must_use]
    pub fn new(
        number: u32,
        parameters: Arc<SmParameters>,
        launches: LaunchTable,
        port: Port,
    ) -> Self {
        let warp = Warp {
            control_bit_checker: parameters.checks.control_bits.then(Box::default),
            ..Warp::default()
        };
        Self {
            number,
            launches,
            warps: vec![warp; parameters.warps as usize],
            slots: WarpSlots::default(),
            blocks: BlockTable::new(parameters.blocks as usize),
            ordering: Ordering::default(),
            mbarriers: MbarrierWaits::default(),
            waiting_for_grids: 0,
            port,
            printer: Printer::default(),
            assertions: Assertions::default(),
            last_errors: BTreeMap::new(),
            fault: None,
            progress: 0,
            stats: Counters::default(),
            parts_before: PartStats::default(),
            kept: None,
            parameters,
        }
    }

    /// The SM's clock.
    #[must_use]
    pub fn clock(&self) -> Hertz {
        self.parameters.clock
    }

    /// The SM's clock, at a cycle.
    #[must_use]
    pub fn clock_at(&self, cycle: Cycle) -> Clock {
        let mut clock = Clock::new(self.clock());
        clock.seek(self.clock().edge(cycle));
        clock
    }

    /// What was logged in the epoch before is committed: fences that waited for it go on.
    pub fn begin_epoch<M: IssueModel>(
        &mut self,
        model: &mut M,
        cycles: &Range<Cycle>,
        outbox: &mut Outbox<'_, Message>,
    ) {
        if !self.ordering.waits_for_boundary() {
            return;
        }
        self.ordering.pass_boundary();
        let now = Now::of(&self.clock_at(cycles.start), cycles.start.0);
        self.check_fences(model, now, outbox);
    }

    /// When the SM has work again, if its issue model has none before `next`.
    #[must_use]
    pub fn wake(&self, next: u64, window: Window) -> Wake {
        if self.fault.is_some() {
            return Wake::OnMessage;
        }
        if self.ordering.waits_for_boundary() {
            return Wake::At(window.end);
        }
        let next = next.min(self.wakes()).min(self.assertions.due());
        if next == u64::MAX {
            Wake::OnMessage
        } else {
            Wake::At(self.clock().edge(Cycle(next)))
        }
    }

    /// The same, or a warp has slept long enough.
    #[must_use]
    #[inline]
    pub fn wakes(&self) -> u64 {
        self.due().min(self.ordering.next_sleeper())
    }

    /// When something happens that nobody has to be told of: a fence is through, a copy complete.
    #[must_use]
    #[inline]
    pub fn due(&self) -> u64 {
        self.ordering
            .due()
            .min(self.mbarriers.due())
            .min(self.port.bulk.due())
    }

    /// The cycle of the next message, at the end of time if there is none.
    #[must_use]
    pub fn next_message(&self, inbox: &Inbox<Message>) -> u64 {
        inbox
            .next_due()
            .map_or(u64::MAX, |due| self.clock().cycle_at_or_after(due).0)
    }

    /// Takes the messages that are due and wakes the sleepers whose time has come.
    pub fn receive<M: IssueModel>(
        &mut self,
        model: &mut M,
        now: Now,
        inbox: &mut Inbox<Message>,
        outbox: &mut Outbox<'_, Message>,
    ) {
        while let Some(delivery) = inbox.take_due(now.time) {
            self.progress = now.cycle;
            if let Some(probe) = &self.port.probe {
                let words = || format!("receives {}", delivery.message.words());
                probe.note(Topic::Sm, now.time, words);
            }
            match delivery.message {
                Message::StartBlock {
                    launch,
                    block,
                    tag,
                    waits,
                } => self.start_block(model, launch, block, tag, waits, None, now),
                Message::StartCluster(start) => self.start_cluster(model, *start, now),
                Message::Cluster(request) => {
                    self.cluster_request(model, delivery.sender, request, now, outbox);
                }
                Message::ClusterDone(request) => self.cluster_done(model, request, now, outbox),
                Message::PrerequisitesDone { launch } => {
                    self.prerequisites_done(model, launch, now);
                }
                Message::Performed(request) => self.performed(model, request, now, outbox),
                Message::ReadDone { miss } if miss & BULK_REQUEST != 0 => {
                    self.receive_bulk(model, miss, now);
                }
                Message::ReadDone { miss } => {
                    model.receive_sectors(self, miss, now);
                    if !self.ordering.is_empty() {
                        self.check_fences(model, now, outbox);
                    }
                }
                Message::Credits(count) => {
                    self.credits(model, delivery.sender, count, now, outbox);
                }
                Message::HeapDone(request) => self.heap_done(model, *request, now),
                Message::DeviceRuntimeDone(request) => {
                    self.device_runtime_done(model, &request, now);
                }
                other => self.translation_message(model, other, now, outbox),
            }
        }
        if self.ordering.due() <= now.cycle {
            self.check_fences(model, now, outbox);
        }
        if self.port.bulk.due() <= now.cycle {
            self.run_bulk(model, now, outbox);
        }
        if self.mbarriers.due() <= now.cycle {
            self.mbarriers_due(model, now);
        }
        if self.ordering.next_sleeper() <= now.cycle {
            let woken = self.ordering.wake_sleepers(now.cycle);
            self.mbarriers.let_go(woken);
            self.release(model, woken, now.cycle);
        }
    }

    /// Lets held warps go on.
    pub fn release<M: IssueModel>(&mut self, model: &mut M, mut slots: u64, cycle: u64) {
        self.slots.held &= !slots;
        while slots != 0 {
            let slot = slots.trailing_zeros() as u8;
            slots &= slots - 1;
            self.refresh(model, slot, cycle);
        }
    }

    /// Finds out anew whether a warp can execute, from `cycle` on.
    pub fn refresh<M: IssueModel>(&mut self, model: &mut M, slot: u8, cycle: u64) {
        let warp = &self.warps[usize::from(slot)];
        if self.slots.may_run(slot) && warp.convergence.active() != 0 {
            self.slots.set_ready(slot);
            if M::TIMED {
                let launch = self.blocks.launch_of(warp.block);
                model.schedule(slot, warp, launch, cycle);
            }
        } else {
            self.slots.clear_ready(slot);
        }
    }

    /// Whether a fence has something to wait for; then the waiter is added to those who wait.
    pub fn fence(&mut self, waiter: Waiter, boundary: bool, until: u64) -> bool {
        let generation = self.port.in_flight.close();
        let boundary = boundary && !self.port.log.is_empty();
        if generation.is_none() && !boundary && until == 0 {
            return false;
        }
        self.ordering.wait_for(FenceWait {
            waiter,
            generation,
            boundary,
            until,
        });
        true
    }

    /// Lets those through whose fence has nothing left to wait for.
    pub fn check_fences<M: IssueModel>(
        &mut self,
        model: &mut M,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let mut index = 0;
        let in_flight = |state: &mut Self, index: &mut usize| {
            let flight = &state.port.in_flight;
            state.ordering.next_through(index, flight, now.cycle)
        };
        while let Some(waiter) = in_flight(self, &mut index) {
            match waiter {
                Waiter::Warp { slot, release } => {
                    self.warps[usize::from(slot)].released = release;
                    self.release(model, 1 << slot, now.cycle);
                }
                Waiter::Block(block) => self.end_block(block, now, outbox),
            }
        }
    }

    /// Writes everything but the log, which is empty between epochs.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.slots);
        for (slot, warp) in self.warps.iter().enumerate() {
            if self.slots.resident >> slot & 1 != 0 {
                writer.write(warp);
            }
        }
        self.blocks.save(writer);
        writer.write(&self.ordering);
        writer.write(&self.mbarriers);
        writer.write(&self.waiting_for_grids);
        self.port.save(writer);
        writer.write(&self.printer);
        writer.write(&self.assertions);
        writer.write(&self.last_errors);
        writer.write(&self.progress);
        writer.write(&(&self.stats, &self.parts_before));
        writer.write(&self.kept);
    }

    /// Takes on what was saved. The launches of its blocks must be in the table.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote, or a launch is missing.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        self.slots = reader.read()?;
        let beyond = self.slots.resident.checked_shr(self.warps.len() as u32);
        if beyond.unwrap_or(0) != 0 {
            return Err(LoadError::Malformed {
                what: "a warp slot that the SM does not have",
            });
        }
        for slot in 0..self.warps.len() {
            if self.slots.resident >> slot & 1 != 0 {
                self.warps[slot] = reader.read()?;
                self.port.replays |= self.warps[slot].replay.is_some();
            }
        }
        self.blocks.load(reader, &self.launches)?;
        self.ordering = reader.read()?;
        self.mbarriers = reader.read()?;
        self.waiting_for_grids = reader.read()?;
        self.port.load(reader)?;
        self.printer = reader.read()?;
        self.assertions = reader.read()?;
        self.last_errors = reader.read()?;
        self.progress = reader.read()?;
        (self.stats, self.parts_before) = reader.read()?;
        self.kept = reader.read()?;
        self.fault = None;
        Ok(())
    }
}
