//! One streaming multiprocessor.
//!
//! An SM holds blocks and executes their warps. What instructions do is the same in both modes:
//! `execute.rs` carries out one instruction of one warp, `access/` moves the values of memory
//! instructions. When they issue is the business of the issue model: `functional.rs` issues one
//! instruction of one warp a cycle in turn, `timing.rs` has sub-cores, schedulers and latencies.
//!
//! Start reading at [`Sm::run`], then `execute.rs`.

mod answers;
mod barrier;
mod control_flow;
mod cta;
mod execute;
pub mod front_end;
mod functional;
mod local_memory;
pub mod lsu;
pub mod now;
mod ordering;
mod print;
mod report;
mod save;
mod site;
pub mod sub_core;
mod system;
pub mod timing;
mod translation;
mod warp;

use std::sync::Arc;

use lockstep_engine::{Inbox, Outbox, Wake, Window};
use lockstep_units::{Cycle, Hertz, Time};
use serde::{Deserialize, Serialize};

use cta::Present;
use lsu::port::Port;
pub use lsu::port::Wiring;
use lsu::shared_banks::DataArrays;
use now::Now;
use ordering::FenceWait;
use timing::Timing;
pub use translation::TranslationWiring;
use warp::{Block, Warp};

use crate::fault::Fault;
use crate::launch::{LaunchContext, LaunchTable};
use crate::memory::{Contents, Home, Log};
use crate::message::Message;
use crate::parameters::SmParameters;
use crate::probe::{Probe, Topic};
use crate::statistics::SmStats;

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

/// A launch, counted by the SM for itself: barriers hold on to it for a moment, and a count that all SMs
/// share would go from processor to processor with each of them.
type OwnContext = Arc<Arc<LaunchContext>>;

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
    contexts: Vec<Option<OwnContext>>,
    /// Slots with a warp.
    resident: u64,
    /// Warps that could execute: lanes that run, nothing to wait for.
    ready: u64,
    /// Warps that wait for a fence, the heap or their sleep.
    held: u64,
    /// Warps whose values must come back before they go on.
    waiting: u64,
    fences: Vec<FenceWait>,
    /// When the first of them can be through, if that is a matter of time.
    fence_due: u64,
    /// Warps that sleep, and until when.
    sleepers: Vec<(u64, u8)>,
    /// Blocks of each launch that are here, and since when.
    present: Vec<Present>,
    port: Port,
    issue: Issue,
    /// When those who wait at a barrier go on, if it is complete now.
    barrier_release: u64,
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
        translation: Option<TranslationWiring>,
        probe: Option<Box<Probe>>,
    ) -> Self {
        let issue = if parameters.timed {
            Issue::Timing(Box::new(Timing::new(&parameters)))
        } else {
            Issue::Functional
        };
        Self {
            number,
            launches,
            warps: vec![
                Warp {
                    control_bit_checker: parameters.checked.then(Box::default),
                    ..Warp::default()
                };
                parameters.warps as usize
            ],
            blocks: (0..parameters.blocks).map(|_| None).collect(),
            contexts: vec![None; parameters.blocks as usize],
            resident: 0,
            ready: 0,
            held: 0,
            waiting: 0,
            fences: Vec::new(),
            fence_due: u64::MAX,
            sleepers: Vec::new(),
            present: Vec::new(),
            port: Port::new(
                contents,
                home,
                wiring,
                DataArrays::new(&parameters),
                translation,
                probe,
            ),
            issue,
            barrier_release: 0,
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

    /// What its TLB counted, if there is managed memory.
    #[must_use]
    pub fn tlb_stats(&self) -> Option<&lockstep_uvm::TlbStats> {
        let translation = self.port.translation.as_ref();
        translation.map(|translation| &translation.translator.stats)
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
        let fence = (self.fence_due != u64::MAX).then_some(self.fence_due);
        [sleeping, issuing, fence].into_iter().flatten().min()
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
            if let Some(probe) = &self.port.probe {
                let words = || format!("receives {}", delivery.message.words());
                probe.note(Topic::Sm, now.time, words);
            }
            match delivery.message {
                Message::StartBlock { launch, block } => self.start_block(launch, block, now),
                Message::Performed(request) => self.performed(request, now, outbox),
                Message::ReadDone { miss } => {
                    self.read_done(miss, now);
                    if !self.fences.is_empty() {
                        self.check_fences(now, outbox);
                    }
                }
                Message::HeapDone(request) => self.heap_done(*request, now),
                other => self.translation_message(other, now, outbox),
            }
        }
        if self.fence_due <= now.cycle {
            self.check_fences(now, outbox);
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
                let context = self.contexts[usize::from(warp.block)].as_deref();
                let context = context.map(|context| &**context);
                timing.schedule(slot, warp, context, cycle);
            }
        } else {
            self.ready &= !bit;
        }
    }

    fn clock(&self) -> Hertz {
        self.parameters.clock
    }
}
