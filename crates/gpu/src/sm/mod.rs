//! One streaming multiprocessor.
//!
//! An SM holds blocks and executes their warps. What instructions do is the same in both modes:
//! [`Sm::execute`] carries out one instruction of one warp, [`access`] moves its values. When
//! they issue is the business of the issue model: [`functional`](functional) issues one
//! instruction of one warp a cycle in turn, [`timing`](timing) has sub-cores, schedulers and
//! latencies.
//!
//! Left out: caches (values never come from them), register banks, instruction fetch.
//!
//! Start reading at [`Sm::run`], then [`Sm::execute`].

pub mod access;
pub mod barrier;
pub mod coalesce;
mod execute;
mod flow;
mod functional;
pub mod in_flight;
pub mod local;
mod port;
mod print;
mod save;
pub mod scheduler;
mod site;
mod system;
mod timing;
mod warp;

use std::sync::Arc;

use lockstep_engine::{Inbox, Outbox, Wake, Window};
use lockstep_isa::Mask;
use lockstep_isa::row::lanes_of;
use lockstep_units::{Bytes, Cycle, Hertz, Time};
use serde::{Deserialize, Serialize};

pub use port::Wiring;
use port::{NOBODY, Now, Port};
use site::Problem;
use timing::Timing;
use warp::{Block, Warp};

use crate::counters::Counters;
use crate::fault::{Fault, Place};
use crate::launch::{LaunchContext, LaunchTable};
use crate::memory::{Contents, Home, Log};
use crate::message::{BlockDone, HeapRequest, Message, StrongRequest};
use crate::parameters::SmParameters;
use crate::statistics::SmStats;

/// Who waits for an ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Waiter {
    /// A warp at a fence or before a release.
    Warp {
        slot: u8,
        /// The access that comes next is ordered then.
        release: bool,
    },
    /// A block whose warps have all ended.
    Block(u8),
}

/// A fence that is not through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FenceWait {
    waiter: Waiter,
    /// Strong accesses up to this generation must be answered.
    generation: Option<u64>,
    /// Weak stores must be committed: not before this epoch has ended.
    boundary: bool,
}

/// Text that a kernel printed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Printed {
    /// When.
    pub cycle: u64,
    /// On which SM.
    pub sm: u32,
    /// What number among those of the SM.
    pub sequence: u64,
    /// What.
    pub text: String,
}

/// How instructions are issued.
#[derive(Debug)]
enum Issue {
    Functional,
    Timing(Box<Timing>),
}

/// One streaming multiprocessor.
#[derive(Debug)]
pub struct Sm {
    number: u32,
    parameters: Arc<SmParameters>,
    launches: LaunchTable,
    /// Warps by slot.
    warps: Vec<Warp>,
    /// Blocks by slot.
    blocks: Vec<Option<Box<Block>>>,
    /// Launches of the blocks.
    contexts: Vec<Option<Arc<LaunchContext>>>,
    /// Slots with a warp.
    resident: u64,
    /// Warps that could execute: lanes that run, nothing to wait for.
    ready: u64,
    /// Warps that wait for a fence, the heap or their sleep.
    held: u64,
    /// Warps whose values must come back before they go on.
    waiting: u64,
    fences: Vec<FenceWait>,
    /// Warps that sleep, and until when.
    sleepers: Vec<(u64, u8)>,
    /// Blocks of each launch that are here, and since when.
    present: Vec<Present>,
    port: Port,
    issue: Issue,
    /// The last warp that functional mode issued.
    last: u32,
    printed: Vec<Printed>,
    printed_bytes: usize,
    prints: u64,
    fault: Option<(Time, Box<Fault>)>,
    /// Last cycle in which an instruction was issued or an answer came.
    progress: u64,
    stats: SmStats,
}

/// A launch with blocks on this SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Present {
    launch: u32,
    blocks: u32,
    since: u64,
}

impl Sm {
    /// An empty SM.
    #[must_use]
    pub fn new(
        number: u32,
        parameters: Arc<SmParameters>,
        contents: Arc<Contents>,
        launches: LaunchTable,
        home: Home,
        wiring: Wiring,
    ) -> Self {
        let issue = if parameters.timed {
            Issue::Timing(Box::new(Timing::new(&parameters)))
        } else {
            Issue::Functional
        };
        Self {
            number,
            launches,
            warps: vec![Warp::default(); parameters.warps as usize],
            blocks: (0..parameters.blocks).map(|_| None).collect(),
            contexts: vec![None; parameters.blocks as usize],
            resident: 0,
            ready: 0,
            held: 0,
            waiting: 0,
            fences: Vec::new(),
            sleepers: Vec::new(),
            present: Vec::new(),
            port: Port::new(contents, home, wiring),
            issue,
            // The first turn is that of slot 0.
            last: 63,
            printed: Vec::new(),
            printed_bytes: 0,
            prints: 0,
            fault: None,
            progress: 0,
            stats: SmStats::default(),
            parameters,
        }
    }

    /// What the SM wrote in this epoch.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.port.log
    }

    /// Forgets the log, after it was committed.
    pub fn clear_log(&mut self) {
        self.port.log.clear();
    }

    /// Takes what kernels printed here.
    pub fn take_printed(&mut self) -> Vec<Printed> {
        self.printed_bytes = 0;
        std::mem::take(&mut self.printed)
    }

    /// Whether kernels printed something here.
    #[must_use]
    pub fn has_printed(&self) -> bool {
        !self.printed.is_empty()
    }

    /// Goes on counting from there.
    pub fn set_stats(&mut self, stats: SmStats) {
        self.stats = stats;
    }

    /// What went wrong, and when.
    #[must_use]
    pub fn fault(&self) -> Option<&(Time, Box<Fault>)> {
        self.fault.as_ref()
    }

    /// What it counted.
    #[must_use]
    pub fn stats(&self) -> &SmStats {
        &self.stats
    }

    /// The last cycle in which anything happened.
    #[must_use]
    pub fn progress(&self) -> u64 {
        self.progress
    }

    /// Simulates a window.
    pub fn run(
        &mut self,
        window: Window,
        inbox: &mut Inbox<Message>,
        outbox: &mut Outbox<'_, Message>,
    ) -> Wake {
        if self.fault.is_some() {
            while inbox.take_in_window().is_some() {}
            return Wake::OnMessage;
        }
        let clock = self.parameters.clock;
        let cycles = window.cycles(clock);
        if self.fences.iter().any(|fence| fence.boundary) {
            // What was logged before is committed now.
            for fence in &mut self.fences {
                fence.boundary = false;
            }
            let now = self.now(cycles.start, cycles.start.0);
            self.check_fences(now, outbox);
        }
        match self.issue {
            Issue::Functional => self.run_functional(cycles, inbox, outbox),
            Issue::Timing(_) => self.run_timing(cycles, inbox, outbox),
        };
        self.wake(window, inbox)
    }

    fn wake(&self, window: Window, inbox: &Inbox<Message>) -> Wake {
        if self.fault.is_some() {
            return Wake::OnMessage;
        }
        let mut next = self
            .next_cycle()
            .map(|cycle| self.parameters.clock.edge(Cycle(cycle)));
        if self.fences.iter().any(|fence| fence.boundary) {
            next = Some(window.end);
        }
        let _ = inbox;
        next.map_or(Wake::OnMessage, Wake::At)
    }

    /// The next cycle in which something of the SM's own can happen.
    fn next_cycle(&self) -> Option<u64> {
        let sleeping = self.sleepers.iter().map(|(until, _)| *until).min();
        let issuing = match &self.issue {
            Issue::Functional => (self.ready != 0).then_some(0),
            Issue::Timing(timing) => timing.next_cycle(self.ready),
        };
        [sleeping, issuing].into_iter().flatten().min()
    }

    fn now(&self, cycle: Cycle, start: u64) -> Now {
        Now {
            cycle: cycle.0,
            time: self.parameters.clock.edge(cycle),
            since: (cycle.0 - start) as u16,
        }
    }

    /// Takes the messages that are due and wakes the sleepers whose time has come.
    fn receive(&mut self, now: Now, inbox: &mut Inbox<Message>, outbox: &mut Outbox<'_, Message>) {
        while let Some(delivery) = inbox.take_due(now.time) {
            self.progress = now.cycle;
            match delivery.message {
                Message::StartBlock { launch, block } => self.start_block(launch, block, now),
                Message::Performed(request) => self.performed(request, now, outbox),
                Message::ReadDone { transaction } => {
                    self.answered(transaction, now);
                    self.check_fences(now, outbox);
                }
                Message::HeapDone(request) => self.heap_done(*request, now),
                other => panic!("an SM was sent {other:?}"),
            }
        }
        if !self.sleepers.is_empty() {
            let mut woken = 0u64;
            self.sleepers.retain(|(until, slot)| {
                let due = *until <= now.cycle;
                woken |= u64::from(due) << slot;
                !due
            });
            self.release(woken, now);
        }
    }

    /// Lets held warps go on.
    fn release(&mut self, mut slots: u64, now: Now) {
        self.held &= !slots;
        while slots != 0 {
            let slot = slots.trailing_zeros() as u8;
            slots &= slots - 1;
            self.refresh(slot, now.cycle);
        }
    }

    /// Finds out anew whether a warp can execute, from `cycle` on.
    fn refresh(&mut self, slot: u8, cycle: u64) {
        let bit = 1u64 << slot;
        let warp = &self.warps[usize::from(slot)];
        let runs = self.resident & bit != 0
            && (self.held | self.waiting) & bit == 0
            && warp.convergence.active() != 0;
        if runs {
            self.ready |= bit;
            if let Issue::Timing(timing) = &mut self.issue {
                let context = self.contexts[usize::from(warp.block)].as_ref();
                timing.schedule(slot, warp, context, cycle);
            }
        } else {
            self.ready &= !bit;
        }
    }

    fn start_block(&mut self, launch: u32, index: u64, now: Now) {
        let context = self
            .launches
            .get(launch)
            .expect("the dispatcher starts launches of the table");
        let slot = self
            .blocks
            .iter()
            .position(Option::is_none)
            .expect("the dispatcher counts block slots");
        let [x, y, _] = context.launch.grid.map(u64::from);
        let mut identity = context.identity(self.parameters.sms);
        identity.block = [
            (index % x) as u32,
            (index / x % y) as u32,
            (index / (x * y)) as u32,
        ];
        identity.sm = self.number;
        identity.warp_slots = self.parameters.warps;
        let mut warps = Vec::with_capacity(context.launch.warps() as usize);
        for number in 0..context.launch.warps() {
            let free = (!self.resident).trailing_zeros();
            assert!(
                free < self.parameters.warps,
                "the dispatcher counts warp slots"
            );
            identity.warp_in_block = number;
            identity.warp_slot = free;
            self.warps[free as usize].start(&context, identity, slot as u8);
            self.resident |= 1 << free;
            warps.push(free as u8);
        }
        match self
            .present
            .iter_mut()
            .find(|present| present.launch == launch)
        {
            Some(present) => present.blocks += 1,
            None => self.present.push(Present {
                launch,
                blocks: 1,
                since: now.cycle,
            }),
        }
        self.stats.blocks.increment();
        self.stats.warps.add(warps.len() as u64);
        self.blocks[slot] = Some(Box::new(Block {
            launch,
            index,
            live: (u64::MAX >> (64 - warps.len())) as u32,
            shared: vec![0; context.launch.shared().next_multiple_of(16) as usize],
            barriers: Default::default(),
            counters: Counters {
                warps_launched: warps.len() as u64,
                ..Counters::default()
            },
            since: now.cycle,
            warps: warps.clone(),
        }));
        self.contexts[slot] = Some(context);
        for warp in warps {
            if let Issue::Timing(timing) = &mut self.issue {
                timing.start_warp(warp, &self.warps[usize::from(warp)], now.cycle);
            }
            self.refresh(warp, now.cycle);
        }
    }

    /// A strong access came back.
    fn performed(
        &mut self,
        request: Box<StrongRequest>,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        if request.transaction != NOBODY {
            let transaction = self.port.transactions.get(request.transaction);
            let warp = &mut self.warps[usize::from(transaction.warp)];
            let context = self.contexts[usize::from(warp.block)]
                .as_ref()
                .expect("a warp that waits has a block");
            let instruction = &context.launch.module.code[transaction.pc as usize];
            if let lockstep_isa::Operation::Memory(operation) = &instruction.operation {
                access::deliver_answer(&mut warp.registers, operation, &request);
            }
            self.answered(request.transaction, now);
        }
        self.port.finish_strong(request);
        self.check_fences(now, outbox);
    }

    /// An answer of a transaction came.
    fn answered(&mut self, number: u32, now: Now) {
        let Some(transaction) = self.port.transactions.answer(number) else {
            return;
        };
        let slot = transaction.warp;
        let warp = &mut self.warps[usize::from(slot)];
        warp.pending -= 1;
        if warp.pending == 0 {
            self.waiting &= !(1 << slot);
        }
        if let Issue::Timing(timing) = &mut self.issue {
            let context = self.contexts[usize::from(warp.block)]
                .as_ref()
                .expect("a warp that waits has a block");
            let instruction = &context.launch.module.code[transaction.pc as usize];
            let hazard = context.hazards().get(transaction.pc);
            timing.complete(slot, instruction, hazard, now.cycle);
        }
        if warp.pending == 0 && warp.convergence.live() == 0 {
            let block = warp.block;
            self.try_end_block(block);
        }
        self.refresh(slot, now.cycle);
    }

    /// Whether a fence has something to wait for; then the waiter is remembered.
    fn fence(&mut self, waiter: Waiter, boundary: bool) -> bool {
        let generation = self.port.in_flight.close();
        let boundary = boundary && !self.port.log.is_empty();
        if generation.is_none() && !boundary {
            return false;
        }
        self.fences.push(FenceWait {
            waiter,
            generation,
            boundary,
        });
        true
    }

    /// Lets those through whose fence has nothing left to wait for.
    fn check_fences(&mut self, now: Now, outbox: &mut Outbox<'_, Message>) {
        let mut index = 0;
        while index < self.fences.len() {
            let fence = self.fences[index];
            let drained = fence
                .generation
                .is_none_or(|generation| self.port.in_flight.drained(generation));
            if fence.boundary || !drained {
                index += 1;
                continue;
            }
            self.fences.remove(index);
            match fence.waiter {
                Waiter::Warp { slot, release } => {
                    self.warps[usize::from(slot)].released = release;
                    self.release(1 << slot, now);
                }
                Waiter::Block(block) => self.end_block(block, now, outbox),
            }
        }
    }

    /// If all warps of a block have ended and their answers are in, waits for what it sent.
    /// Whether the block may be reported is decided by `check_fences`, at once or later.
    fn try_end_block(&mut self, slot: u8) {
        let Some(block) = &self.blocks[usize::from(slot)] else {
            return;
        };
        let pending = |warp: &u8| self.warps[usize::from(*warp)].pending > 0;
        if block.live != 0 || block.warps.iter().any(pending) {
            return;
        }
        let generation = self.port.in_flight.close();
        self.fences.push(FenceWait {
            waiter: Waiter::Block(slot),
            generation,
            boundary: false,
        });
    }

    fn end_block(&mut self, slot: u8, now: Now, outbox: &mut Outbox<'_, Message>) {
        let block = self.blocks[usize::from(slot)]
            .take()
            .expect("a block ends once");
        self.contexts[usize::from(slot)] = None;
        let mut counters = block.counters;
        counters.blocks_completed = 1;
        counters.warp_cycles += (now.cycle - block.since) * block.warps.len() as u64;
        for warp in &block.warps {
            self.resident &= !(1 << warp);
            self.ready &= !(1 << warp);
        }
        let position = self
            .present
            .iter()
            .position(|present| present.launch == block.launch)
            .expect("the launch of a block is present");
        self.present[position].blocks -= 1;
        if self.present[position].blocks == 0 {
            let present = self.present.remove(position);
            counters.active_cycles = now.cycle - present.since;
            self.stats.active.add(counters.active_cycles);
        }
        self.stats.count(&counters);
        let done = Message::BlockDone(Box::new(BlockDone {
            launch: block.launch,
            counters,
        }));
        let wiring = self.port.wiring;
        outbox.send(
            wiring.report,
            wiring.dispatcher,
            now.time,
            Bytes(wiring.header),
            done,
        );
    }

    fn heap_done(&mut self, request: HeapRequest, now: Now) {
        let slot = request.warp;
        if let Some(row) = request.result {
            let registers = &mut self.warps[usize::from(slot)].registers;
            for (lane, pointer) in &request.lanes {
                registers[usize::from(row)].0[usize::from(*lane)] = *pointer as u32;
                registers[usize::from(row) + 1].0[usize::from(*lane)] = (*pointer >> 32) as u32;
            }
        }
        self.release(1 << slot, now);
    }

    /// Stops the SM with a fault.
    fn fail(&mut self, slot: u8, problem: Problem, now: Now) {
        let warp = &self.warps[usize::from(slot)];
        let pc = warp.convergence.pc();
        let context = self.contexts[usize::from(warp.block)]
            .as_ref()
            .expect("a warp that executes has a block");
        let module = &context.launch.module;
        let line = module
            .code
            .get(pc as usize)
            .and_then(|instruction| module.lines.get(instruction.shape.line as usize))
            .filter(|line| line.line != 0)
            .map(|line| format!("{}:{}", line.file, line.line));
        let fault = Fault {
            kind: problem.kind,
            launch: context.id.0,
            kernel: context.launch.kernel().name.clone(),
            place: Some(Place {
                block: warp.identity.block,
                thread: warp.identity.thread(problem.lane),
                pc,
                function: module.function_at(pc).unwrap_or_default().to_owned(),
                instruction: module.listing.get(pc as usize).cloned().unwrap_or_default(),
                line: line.unwrap_or_default(),
            }),
            sm: self.number,
            cycle: Cycle(now.cycle),
        };
        self.fault = Some((now.time, Box::new(fault)));
        self.ready = 0;
    }

    /// Where warps are that cannot go on, for the report on a kernel that hangs. `None` if no
    /// warp is here.
    #[must_use]
    pub fn hang_report(&self) -> Option<(u32, Place, String)> {
        let slot = (self.resident != 0).then(|| self.resident.trailing_zeros() as usize)?;
        let warp = &self.warps[slot];
        let context = self.contexts[usize::from(warp.block)].as_ref()?;
        let module = &context.launch.module;
        let block = self.blocks[usize::from(warp.block)].as_ref()?;
        let split = warp.convergence.others().first().copied();
        let pc = split.map_or(warp.convergence.pc(), |split| split.pc);
        let lanes: Mask = split.map_or(warp.convergence.active(), |split| split.lanes);
        let place = Place {
            block: warp.identity.block,
            thread: warp.identity.thread(lanes_of(lanes).next().unwrap_or(0)),
            pc,
            function: module.function_at(pc).unwrap_or_default().to_owned(),
            instruction: module.listing.get(pc as usize).cloned().unwrap_or_default(),
            line: String::new(),
        };
        let barriers: Vec<String> = block
            .barriers
            .iter()
            .enumerate()
            .filter(|(_, barrier)| barrier.is_used())
            .map(|(number, barrier)| match barrier.progress() {
                (threads, Some(expected)) => {
                    format!("barrier {number} has {threads} of {expected} threads")
                }
                (threads, None) => format!("barrier {number} has {threads} threads of the block"),
            })
            .collect();
        let warps = self.resident.count_ones();
        let what = if barriers.is_empty() {
            format!("{warps} warps of SM {} wait", self.number)
        } else {
            format!(
                "{warps} warps of SM {} wait; {}",
                self.number,
                barriers.join(", ")
            )
        };
        Some((context.id.0, place, what))
    }

    fn clock(&self) -> Hertz {
        self.parameters.clock
    }
}
