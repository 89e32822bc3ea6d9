//! The work distributor (CTA scheduler): launches wait here, blocks leave for SMs, kernels end.
//!
//! A table of what each SM has free decides where the next block goes; SMs report blocks that
//! have ended. The device heap lives here too: one place, so that allocations have one order.
//! Configuration, statistics and traces call it the dispatcher.
//!
//! Start reading at [`WorkDistributor::run`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use lockstep_counters::Counters;
use lockstep_engine::{Inbox, LoadError, Outbox, PartitionId, Reader, Wake, Window, Writer};
use lockstep_units::{Bytes, Duration, Time};
use serde::{Deserialize, Serialize};

use super::device_launches::DeviceLaunches;
use super::heap::Heap;
use super::parameters::DistributorParameters;
use super::policy::DispatchPolicy;
use super::running::RunningKernel;
use super::slots::{BlockNeeds, FreestFirst, SmSlots};
use crate::fault::{Fault, FaultKind};
use crate::gpu::EndedBlock;
use crate::l2::NO_LAUNCH;
use crate::launch::{KernelRecord, LaunchContext, LaunchTable};
use crate::memory::Contents;
use crate::message::{BlockDone, HeapRequest, Message};
use crate::probe::{Probe, Topic};
use crate::statistics::DispatchStats;

/// The work distributor.
#[derive(Debug)]
pub struct WorkDistributor {
    pub(super) parameters: Arc<DistributorParameters>,
    pub(super) contents: Arc<Contents>,
    pub(super) launches: LaunchTable,
    pub(super) state: State,
    pub(super) policy: DispatchPolicy,
    /// SMs by how free they are, as `slots` says.
    pub(super) freest: FreestFirst,
    /// Running kernels whose blocks fit nowhere, until one ends.
    pub(super) nowhere: Vec<u32>,
    fault: Option<(Time, Box<Fault>)>,
    /// Blocks that have ended since they were last taken, for who wants them.
    ended_blocks: Option<Vec<EndedBlock>>,
    /// Somebody who watches.
    pub(super) probe: Option<Box<Probe>>,
}

/// What is saved.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    waiting: VecDeque<u32>,
    pub(super) running: Vec<RunningKernel>,
    pub(super) slots: Vec<SmSlots>,
    /// When the next block may leave.
    pub(super) next_send: Time,
    heap: Heap,
    /// Kernels that are complete since they were last taken.
    pub(super) records: Vec<KernelRecord>,
    /// Kernels whose blocks have ended while grids that they launched have not.
    pub(super) open: BTreeMap<u32, KernelRecord>,
    /// Those of them for which that is a matter of time, with when.
    pub(super) completing: Vec<(u32, Time)>,
    /// Grids that kernels launched.
    pub(super) device_launches: DeviceLaunches,
    /// The GPC whose turn it is for a cluster.
    pub(super) next_gpc: u32,
    /// When the last kernel of each queue ended.
    pub(super) ended: BTreeMap<u64, Time>,
    pub(super) stats: DispatchStats,
}

impl WorkDistributor {
    /// A work distributor with nothing to do.
    #[must_use]
    pub fn new(
        parameters: Arc<DistributorParameters>,
        contents: Arc<Contents>,
        launches: LaunchTable,
        probe: Option<Box<Probe>>,
    ) -> Self {
        let state = State {
            slots: vec![SmSlots::default(); parameters.sms as usize],
            ..State::default()
        };
        Self {
            policy: parameters.policy.clone(),
            freest: FreestFirst::new(&state.slots, &parameters.ranks),
            nowhere: Vec::new(),
            parameters,
            contents,
            launches,
            state,
            fault: None,
            ended_blocks: None,
            probe,
        }
    }

    /// Notes something for whoever watches.
    pub(super) fn note(&self, at: Time, words: impl Fn() -> String) {
        if let Some(probe) = &self.probe {
            probe.note(Topic::Dispatcher, at, words);
        }
    }

    /// Kernels that have ended and were not taken yet.
    #[must_use]
    pub fn records(&self) -> &[KernelRecord] {
        &self.state.records
    }

    /// Takes the kernels that have ended.
    pub fn take_records(&mut self) -> Vec<KernelRecord> {
        std::mem::take(&mut self.state.records)
    }

    /// Has blocks that end be listed, or not.
    pub fn list_ended_blocks(&mut self, list: bool) {
        self.ended_blocks = list.then(Vec::new);
    }

    /// Whether blocks have ended since they were last taken.
    #[must_use]
    pub fn has_ended_blocks(&self) -> bool {
        self.ended_blocks
            .as_ref()
            .is_some_and(|all| !all.is_empty())
    }

    /// Takes the blocks that have ended.
    pub fn take_ended_blocks(&mut self) -> Vec<EndedBlock> {
        self.ended_blocks
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Whether no kernel waits or runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state.waiting.is_empty()
            && self.state.running.is_empty()
            && self.state.open.is_empty()
            && self.state.device_launches.is_idle()
    }

    /// When the oldest running kernel started.
    #[must_use]
    pub fn oldest_start(&self) -> Option<Time> {
        self.state.running.iter().map(|running| running.start).min()
    }

    /// The kernel that has run longest.
    #[must_use]
    pub fn oldest_launch(&self) -> Option<u32> {
        let running = self.state.running.iter();
        let oldest = running.min_by_key(|running| (running.start, running.launch));
        oldest.map(|running| running.launch)
    }

    /// Blocks that it has sent to SMs, and those of running kernels that have ended.
    #[must_use]
    pub fn blocks(&self) -> (u64, u64) {
        let ended = self.state.running.iter().map(|running| running.done);
        (self.state.stats.blocks.get(), ended.sum())
    }

    /// Blocks of running kernels, and those of them that have ended.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let running = self.state.running.iter();
        running.fold((0, 0), |(all, done), one| {
            (all + one.blocks, done + one.done)
        })
    }

    /// Launches that have started and not ended.
    pub fn running(&self) -> impl Iterator<Item = u32> {
        self.state.running.iter().map(|running| running.launch)
    }

    /// Gives device code addresses to allocate from.
    pub fn set_heap(&mut self, range: Range<u64>) {
        self.state.heap = Heap::new(range);
    }

    /// Gives addresses for the arguments of launches by kernels.
    pub fn set_launch_pool(&mut self, range: Range<u64>) {
        self.state.device_launches.set_pool(range);
    }

    /// What it counted.
    #[must_use]
    pub fn stats(&self) -> &DispatchStats {
        &self.state.stats
    }

    /// Takes over what outlives a fault: statistics and the heap.
    pub fn inherit(&mut self, other: &Self) {
        self.state.stats = other.state.stats.clone();
        self.state.heap = other.state.heap.emptied();
        self.state.device_launches = other.state.device_launches.emptied();
        self.list_ended_blocks(other.ended_blocks.is_some());
    }

    /// Takes the place of one that has nothing to do.
    pub fn succeed(&mut self, other: &Self) {
        self.state.stats = other.state.stats.clone();
        self.state.heap = other.state.heap.clone();
        self.state.device_launches = other.state.device_launches.clone();
        self.list_ended_blocks(other.ended_blocks.is_some());
        self.state.next_send = other.state.next_send;
        self.state.ended.clone_from(&other.state.ended);
        self.policy = other.policy.clone();
    }

    /// The last kernel of a queue is taken to have ended at a time.
    pub fn set_ended(&mut self, queue: u64, end: Time) {
        self.state.ended.insert(queue, end);
    }

    /// What went wrong, and when.
    #[must_use]
    pub fn fault(&self) -> Option<&(Time, Box<Fault>)> {
        self.fault.as_ref()
    }

    /// Simulates a window: what arrives, what is to be sent, what ends, in the order of time.
    pub fn run(
        &mut self,
        window: Window,
        inbox: &mut Inbox<Message>,
        outbox: &mut Outbox<'_, Message>,
    ) -> Wake {
        let mut now = window.start;
        loop {
            while let Some(delivery) = inbox.take_due(now) {
                self.take(delivery.sender, delivery.message, now, outbox);
            }
            self.end_kernels(now, outbox);
            self.start_kernels(now, outbox);
            self.send_blocks(now, outbox);
            let mut next = self.next_action(now);
            if let Some(due) = inbox.next_due() {
                next = next.min(due);
            }
            if next >= window.end {
                break;
            }
            if next <= now {
                // All that was due is done: whatever is said to be due still would be for ever.
                let what = format!("the work distributor waits for itself at {now}");
                self.fail(FaultKind::Hang(what), outbox.sender(), now);
                break;
            }
            now = next;
        }
        match self.next_action(now) {
            Time::NEVER => Wake::OnMessage,
            time => Wake::At(time),
        }
    }

    fn take(
        &mut self,
        sender: PartitionId,
        message: Message,
        now: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        match message {
            Message::Launch(launch) => self.state.waiting.push_back(launch),
            Message::BlockDone(done) => self.block_done(sender, *done, now, outbox),
            Message::DependentsMayStart { launch } => {
                let mut running = self.state.running.iter_mut();
                if let Some(running) = running.find(|running| running.launch == launch) {
                    running.released += 1;
                }
            }
            Message::Drained { launch } => self.drained(launch, now),
            Message::Heap(request) => self.heap(request, sender, now, outbox),
            Message::DeviceRuntime(request) => self.device_runtime(request, sender, now, outbox),
            other => panic!("the work distributor was sent {other:?}"),
        }
    }

    /// Allocates from the device heap or frees, lane by lane.
    fn heap(
        &mut self,
        mut request: Box<HeapRequest>,
        sender: PartitionId,
        now: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let stats = &mut self.state.stats;
        for (lane, value) in &mut request.lanes {
            if request.allocate {
                let size = *value;
                *value = self.state.heap.allocate(size).unwrap_or(0);
                if *value == 0 {
                    stats.heap_failures.increment();
                } else {
                    stats.heap_allocated.add(size);
                }
            } else if *value != 0 && !self.state.heap.free(*value) {
                request.invalid.get_or_insert((*lane, *value));
            }
        }
        let size = Bytes(8 * request.lanes.len() as u64);
        let link = self.parameters.start;
        outbox.send(link, sender, now, size, Message::HeapDone(request));
    }

    fn fail(&mut self, kind: FaultKind, sender: PartitionId, now: Time) {
        let launch = self.oldest_launch().unwrap_or(0);
        self.fail_in(launch, kind, sender, now);
    }

    /// Stops with a fault of a launch.
    pub(super) fn fail_in(&mut self, launch: u32, kind: FaultKind, sender: PartitionId, now: Time) {
        let context = self.launches.get(launch);
        let fault = Fault {
            kind,
            launch,
            kernel: context.map_or_else(String::new, |c| c.launch.kernel().name.clone()),
            place: None,
            sm: sender.0.wrapping_sub(self.parameters.first_sm),
            cycle: self.parameters.clock.cycle_at_or_after(now),
        };
        self.fault.get_or_insert((now, Box::new(fault)));
    }

    fn block_done(
        &mut self,
        sender: PartitionId,
        done: BlockDone,
        now: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let sm = (sender.0 - self.parameters.first_sm) as usize;
        if let Some(ended) = &mut self.ended_blocks {
            ended.push(EndedBlock {
                launch: done.launch,
                sm: sm as u32,
                at: now,
            });
        }
        let running = self
            .state
            .running
            .iter_mut()
            .find(|running| running.launch == done.launch)
            .expect("blocks belong to running kernels");
        running.block_done(sm, &done);
        if let Some(probe) = &self.probe {
            let (blocks, all, launch) = (running.done, running.blocks, running.launch);
            probe.note(Topic::Dispatcher, now, || {
                format!("block of launch {launch} has ended on sm {sm}, {blocks} of {all}")
            });
        }
        if running.done == running.blocks {
            let users = running.memory_users();
            let finish = self.parameters.succession(running.of_graph).finish;
            let finish = finish + self.parameters.finish_sm * u64::from(users);
            running.end = Some(now + finish);
            if let Some(link) = self.parameters.drain.filter(|_| users > 0) {
                running.draining = self.parameters.slices;
                for slice in 0..self.parameters.slices {
                    let to = PartitionId(self.parameters.first_slice + slice);
                    let message = Message::Drain {
                        launch: running.launch,
                        tag: running.tag,
                    };
                    outbox.send(link, to, now, Bytes(0), message);
                }
            }
        }
        let needs = running.needs;
        let slots = &mut self.state.slots[sm];
        let before = slots.warps;
        slots.end_block(done.launch, &needs);
        slots.release(done.launch, &needs, done.rooms);
        self.note_warps(sm as u32, before);
        self.nowhere.clear();
    }

    /// An SM that had so many warps in use has another number of them now.
    pub(super) fn note_warps(&mut self, sm: u32, before: u32) {
        let (rank, after) = (
            self.parameters.ranks[sm as usize],
            self.state.slots[sm as usize].warps,
        );
        self.freest.change(sm, rank, before, after);
    }

    /// A slice has all writes of a kernel. They are part of what its end waits for anyway, as long
    /// as they do not take longer.
    fn drained(&mut self, launch: u32, now: Time) {
        let mut running = self.state.running.iter_mut();
        if let Some(running) = running.find(|running| running.launch == launch) {
            running.draining = running.draining.saturating_sub(1);
            let last = now + self.parameters.succession(running.of_graph).drain_tail;
            running.end = running.end.map(|end| end.max(last));
        }
    }

    /// Starts the kernels at the heads of their queues, the most urgent first.
    fn start_kernels(&mut self, now: Time, outbox: &mut Outbox<'_, Message>) {
        for launch in self.heads() {
            if self.state.running.len() >= self.parameters.concurrent as usize {
                return;
            }
            self.state.waiting.retain(|waiting| *waiting != launch);
            self.start_kernel(launch, now, outbox);
        }
    }

    /// Launches that are the next of a queue of which nothing runs, or all that runs lets them begin: the most
    /// urgent first, and among equals the one that came first.
    fn heads(&self) -> Vec<u32> {
        let full = self.state.running.len() >= self.parameters.concurrent as usize;
        if self.state.waiting.is_empty() || full {
            return Vec::new();
        }
        let mut running = BTreeSet::new();
        let mut taken = BTreeSet::new();
        for kernel in &self.state.running {
            running.insert(kernel.queue);
            if !kernel.lets_dependents_start() {
                taken.insert(kernel.queue);
            }
        }
        // A kernel that waits for grids that it launched is still at the head of its queue.
        taken.extend(self.state.open.values().map(|record| record.queue));
        let mut heads = Vec::new();
        for launch in &self.state.waiting {
            let context = self.waiting_context(*launch);
            let queue = context.launch.queue;
            if !taken.insert(queue) {
                continue;
            }
            if context.launch.programmatic || !running.contains(&queue) {
                heads.push((context.launch.priority, *launch));
            }
        }
        heads.sort_by_key(|(priority, _)| *priority);
        heads.into_iter().map(|(_, launch)| launch).collect()
    }

    pub(super) fn waiting_context(&self, launch: u32) -> Arc<LaunchContext> {
        self.launches
            .get(launch)
            .expect("a waiting launch is in the table")
    }

    fn start_kernel(&mut self, launch: u32, now: Time, outbox: &mut Outbox<'_, Message>) {
        let context = self.waiting_context(launch);
        let queue = context.launch.queue;
        if let Some(link) = self.parameters.invalidate {
            for slice in 0..self.parameters.slices {
                let to = PartitionId(self.parameters.first_slice + slice);
                outbox.send(link, to, now, Bytes(0), Message::InvalidateAll);
            }
        }
        context.fill_constants(&self.contents, self.parameters.sms);
        let blocks = context.launch.config.blocks();
        self.note(now, || {
            let name = &context.launch.kernel().name;
            format!("launch {launch} starts: {name}, {blocks} blocks")
        });
        // A kernel that follows another one at once was prepared while that one ended.
        let ended = self.state.ended.get(&queue).copied();
        let since = ended.map_or(u64::MAX, |end| now.0.saturating_sub(end.0));
        let succession = *self.parameters.succession(context.launch.of_graph);
        let prepared = succession.overlap.0.saturating_sub(since);
        let first = match context.launched_by {
            // What the launch of a grid by a kernel takes has passed before it came here.
            Some(_) => now,
            None => now + Duration(self.parameters.launch.0.saturating_sub(prepared)),
        };
        self.state.stats.launches.increment();
        let needs = BlockNeeds::new(&context.launch, &self.parameters.limits);
        let cluster = context.launch.cluster_blocks();
        let plan = match &mut self.policy {
            DispatchPolicy::GpcRounds { next } if self.state.running.is_empty() && cluster == 1 => {
                self.parameters.units.plan(blocks, needs.most, next)
            }
            _ => Vec::new(),
        };
        let running = RunningKernel {
            launch,
            queue,
            priority: context.launch.priority,
            of_graph: context.launch.of_graph,
            tag: self.free_tag(),
            needs,
            blocks,
            cluster,
            waits: self.state.running.iter().any(|other| other.queue == queue),
            released: 0,
            sent: 0,
            done: 0,
            plan,
            start: now,
            first,
            end: (blocks == 0).then_some(first + succession.finish),
            draining: 0,
            users: Vec::new(),
            counters: Counters::default(),
        };
        // Blocks of the first in the list leave first.
        let before = |other: &RunningKernel| other.priority <= running.priority;
        let place = self.state.running.partition_point(before);
        self.state.running.insert(place, running);
    }

    /// The lowest tag that no kernel has whose traffic is not booked. Beyond the last, kernels share one.
    fn free_tag(&self) -> u8 {
        let running = self.state.running.iter().map(|running| running.tag);
        let open = self.state.open.values().map(|record| record.tag);
        let used: BTreeSet<u8> = running.chain(open).collect();
        let is_free = |tag: &u8| !used.contains(tag);
        (NO_LAUNCH + 1..u8::MAX).find(is_free).unwrap_or(u8::MAX)
    }

    /// Writes everything.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.state);
        writer.write(&self.policy);
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        self.state = reader.read()?;
        self.policy = reader.read()?;
        self.fault = None;
        let known = |launch: &u32| self.launches.get(*launch).is_some();
        let running = self
            .state
            .running
            .iter()
            .all(|running| known(&running.launch));
        if self.state.slots.len() != self.parameters.sms as usize {
            return Err(LoadError::Malformed {
                what: "another number of SMs",
            });
        }
        let open = self.state.open.keys().all(known);
        if !running || !open || !self.state.waiting.iter().all(known) {
            return Err(LoadError::Malformed {
                what: "an unknown launch",
            });
        }
        self.freest = FreestFirst::new(&self.state.slots, &self.parameters.ranks);
        self.nowhere.clear();
        Ok(())
    }
}
