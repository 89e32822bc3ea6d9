//! One streaming multiprocessor.
//!
//! An SM is [`state`], what both modes share (warps, thread blocks, memory port), and an issue model
//! that decides when instructions issue. Which of the two models it has is decided once, when it is
//! made: [`functional`] issues one instruction of one warp a cycle, [`timing`] has a front end,
//! sub-cores and a load/store unit with their latencies.
//!
//! | room | what |
//! |---|---|
//! | `front_end/` | instruction fetch and its caches, constant cache, decoded code |
//! | `sub_core/` | warp schedulers, scoreboards, control bits, register file, dispatch ports |
//! | `lsu/` | coalescing, MIO queues, shared memory banks, L1TEX with MSHRs and write combining |
//! | `bulk/` | the TMA engine: bulk copies, boxes of tensors |
//! | `texture/` | the texture unit: samples, gathers and surfaces |
//! | `translation/` | the uTLB, and accesses that wait for a page |
//! | `warp.rs`, `warp_slots.rs`, `cta.rs`, `barrier.rs`, `local_memory.rs` | architectural state |
//! | `execute.rs`, `control_flow.rs`, `system.rs` | what one instruction of one warp does |
//! | `warpgroup.rs` | matrix products of warp groups, and the pool of registers |
//! | `tracing.rs`, `replay.rs` | traces of what warps execute, written and replayed |
//! | `ordering.rs` | fences, releases and sleeps: who waits for what |
//! | `kept.rs` | caches that wait for the next timed kernel while others take no time |
//!
//! Start reading at [`Sm::run`], then [`timing::Timing::run`] and `execute.rs`.

mod answers;
pub mod assertions;
mod barrier;
mod block_barriers;
pub mod bulk;
mod cluster;
mod collect;
mod control_flow;
mod cta;
mod dependents;
mod device_runtime;
mod execute;
pub mod front_end;
pub mod functional;
mod issue_model;
mod kept;
mod local_memory;
pub mod lsu;
mod mbarrier_table;
pub mod mbarrier_waits;
pub mod now;
mod ordering;
mod print;
mod printer;
mod problem;
pub(crate) mod recurrence;
mod replay;
mod report;
mod residency;
pub(crate) mod site;
pub mod state;
pub(crate) mod statistics;
pub mod sub_core;
mod system;
pub mod texture;
pub mod timing;
pub mod tracing;
pub mod translation;
mod warp;
mod warp_slots;
mod warpgroup;

use std::sync::Arc;

use lockstep_counters::Counters;
use lockstep_engine::{Inbox, LoadError, Outbox, Reader, Wake, Window, Writer};
use lockstep_units::Time;

use crate::check::Findings;
use crate::crossbar::credits::CreditGate;
use crate::fault::{Fault, Place};
use crate::launch::LaunchTable;
use crate::memory::{Contents, Home, Log};
use crate::message::Message;
use crate::parameters::SmParameters;
use crate::probe::Probe;
use assertions::Assertions;
pub(crate) use barrier::BARRIERS;
pub(crate) use cta::Block;
use functional::Functional;
use issue_model::IssueModel;
use lsu::port::Port;
pub use lsu::port::Wiring;
use lsu::shared_banks::DataArrays;
pub use printer::Printed;
use recurrence::Recurrence;
pub(crate) use report::{place_at, place_of};
use state::SmState;
use timing::Timing;
use tracing::TraceSink;
use translation::Translation;
pub use translation::TranslationWiring;
use translation::device::DeviceTranslation;
pub(crate) use warp::Warp;

/// One streaming multiprocessor.
#[derive(Debug)]
pub struct Sm {
    state: SmState,
    mode: Mode,
}

/// What decides when instructions issue.
#[derive(Debug)]
enum Mode {
    Functional(Functional),
    Timing(Box<Timing>),
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
        gate: CreditGate,
        translation: Option<TranslationWiring>,
        probe: Option<Box<Probe>>,
        tracer: Option<Arc<dyn TraceSink>>,
        findings: Arc<Findings>,
    ) -> Self {
        let mode = if parameters.timed {
            Mode::Timing(Box::new(Timing::new(&parameters)))
        } else {
            Mode::Functional(Functional::default())
        };
        let translation = translation.map(|wiring| Box::new(Translation::new(wiring)));
        let device_translation = DeviceTranslation::new(
            &parameters.translation,
            parameters.clock,
            parameters.timed,
            parameters.cold,
        );
        let arrays = DataArrays::new(&parameters);
        let wait = parameters.lsu.mbarrier_wait;
        let checks = (parameters.checks, findings);
        let port = Port::new(
            contents,
            home,
            (wiring, gate),
            translation,
            device_translation,
            arrays,
            wait,
            (probe, tracer),
            checks,
        );
        Self {
            state: SmState::new(number, parameters, launches, port),
            mode,
        }
    }

    /// Memory was given back, and what will be allocated there is other memory.
    pub(crate) fn released(&mut self, lines: &std::ops::Range<u64>) {
        self.state.port.device_translation.released(lines);
        if let Some(kept) = &mut self.state.kept {
            kept.translation.released(lines);
        }
    }

    /// Simulates a window.
    pub fn run(
        &mut self,
        window: Window,
        inbox: &mut Inbox<Message>,
        outbox: &mut Outbox<'_, Message>,
    ) -> Wake {
        let state = &mut self.state;
        if state.fault.is_some() {
            while inbox.take_in_window().is_some() {}
            return Wake::OnMessage;
        }
        let cycles = window.cycles(state.parameters.clock);
        state.give_up_after_assertions(cycles.end);
        if state.fault.is_some() {
            return Wake::OnMessage;
        }
        let next = match &mut self.mode {
            Mode::Functional(model) => {
                state.begin_epoch(model, &cycles, outbox);
                model.run(state, cycles, inbox, outbox);
                model.next_cycle(state)
            }
            Mode::Timing(model) => {
                state.begin_epoch(&mut **model, &cycles, outbox);
                model.run(state, cycles, inbox, outbox);
                model.next_cycle(state)
            }
        };
        state.wake(next, window)
    }

    /// What the SM wrote in this epoch.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.state.port.log
    }

    /// The same, for a rank on which the SM is not run and that takes on what it wrote elsewhere.
    pub fn log_mut(&mut self) -> &mut Log {
        &mut self.state.port.log
    }

    /// Clears the log, after it was committed.
    pub fn clear_log(&mut self) {
        self.state.port.log.clear();
    }

    /// Takes what kernels printed here.
    pub fn take_printed(&mut self) -> Vec<Printed> {
        self.state.printer.take()
    }

    /// Whether kernels printed something here.
    #[must_use]
    pub fn has_printed(&self) -> bool {
        self.state.printer.has_text()
    }

    /// Assertions that failed here.
    #[must_use]
    pub fn assertions(&self) -> &Assertions {
        &self.state.assertions
    }

    /// What went wrong, and when.
    #[must_use]
    pub fn fault(&self) -> Option<&(Time, Box<Fault>)> {
        self.state.fault.as_ref()
    }

    /// Where warps are that cannot go on, for the report on a kernel that hangs. `None` if no
    /// warp is here.
    #[must_use]
    pub fn hang_report(&self) -> Option<(u32, Place, String)> {
        report::hang_report(&self.state)
    }

    /// Whether warps are here.
    #[must_use]
    pub fn has_warps(&self) -> bool {
        self.state.slots.resident != 0
    }

    /// Whether warps are here, or a watch over some that were.
    #[must_use]
    pub fn is_concerned(&self) -> bool {
        self.has_warps() || self.state.port.recurrence.is_some()
    }

    /// Begins to look whether warps go round in circles.
    pub fn begin_watch(&mut self) {
        self.state.port.recurrence = Some(Box::new(Recurrence::new(&self.state)));
    }

    /// Looks no more.
    pub fn end_watch(&mut self) {
        self.state.port.recurrence = None;
    }

    /// Whether something was seen that will not come again.
    #[must_use]
    pub fn saw_progress(&self) -> bool {
        let watch = self.state.port.recurrence.as_ref();
        watch.is_some_and(|watch| watch.saw_progress())
    }

    /// Whether no warp here will do anything new, as far as was seen.
    pub fn is_stuck(&mut self) -> bool {
        let Some(mut watch) = self.state.port.recurrence.take() else {
            return self.state.slots.resident == 0;
        };
        let stuck = watch.is_stuck(&self.state);
        self.state.port.recurrence = Some(watch);
        stuck
    }

    /// What its uTLB counted, if there is managed memory.
    #[must_use]
    pub fn tlb_stats(&self) -> Option<&lockstep_uvm::TlbStats> {
        let translation = self.state.port.translation.as_ref();
        translation.map(|translation| &translation.translator.stats)
    }

    /// What it counted.
    #[must_use]
    pub fn stats(&self) -> &Counters {
        &self.state.stats
    }

    /// The last cycle in which anything happened.
    #[must_use]
    pub fn progress(&self) -> u64 {
        self.state.progress
    }

    /// Writes everything. The log is empty: epochs end with its commit.
    pub fn save(&self, writer: &mut Writer<'_>) {
        self.state.save(writer);
        match &self.mode {
            Mode::Functional(model) => writer.write(model),
            Mode::Timing(model) => model.save(writer),
        }
    }

    /// Takes on what was saved. The launches of its blocks must be in the table.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote, or a launch is missing.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        self.state.load(reader)?;
        match &mut self.mode {
            Mode::Functional(model) => *model = reader.read()?,
            Mode::Timing(model) => {
                model.load(reader)?;
                let translation = self.state.port.translation.as_ref();
                model.set_translation_full(translation.is_some_and(|own| own.is_full()));
            }
        }
        Ok(())
    }
}
