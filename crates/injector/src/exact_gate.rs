//! Exact counting over several contexts and threads: one launch at a time per GPU.
//!
//! The range profiler counts in one context of a GPU at a time. Launches therefore wait for their turn
//! ([`crate::turns`]), and when a launch comes from another context than the last, the profiler of that
//! one is stopped, its counts are read, and the new one is started.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lockstep_schema::Metric;

use crate::cupti::{Cupti, CuptiError, numbers};
use crate::exact::{ExactContext, Plan};
use crate::hardware::Hardware;
use crate::host_object;
use crate::session::{Launch, lock};
use crate::turns::{Profilers, Turns};

/// The gate of one GPU.
#[derive(Default)]
pub struct Gate {
    turns: Turns,
    /// Used by whoever has the turn.
    state: Mutex<ProfilerState>,
}

#[derive(Default)]
struct ProfilerState {
    /// The right to count, once it was asked for.
    hardware: Option<Hardware>,
    /// What is counted, once it is known.
    plan: Option<Arc<Plan>>,
    /// The context that is counted, and its profiler: the hardware takes no second one.
    active: Option<(usize, ExactContext)>,
    /// Contexts whose profiler could not be started: their launches are not counted.
    refused: Vec<usize>,
}

/// The gates of all GPUs.
#[derive(Default)]
pub struct Gates {
    gates: Mutex<BTreeMap<u32, Arc<Gate>>>,
    /// The process ends: nothing is counted any more.
    closed: AtomicBool,
}

/// What became known at a gate: launches with their counts, and sentences.
#[derive(Default)]
pub struct Outcome {
    /// Counted launches.
    pub launches: Vec<Launch>,
    /// What could not be counted.
    pub sentences: Vec<String>,
}

impl Outcome {
    fn add(&mut self, collected: Result<Vec<Launch>, CuptiError>) {
        match collected {
            Ok(launches) => {
                if launches.iter().any(|launch| launch.counts.is_empty()) {
                    self.sentences.push(
                        "some launches have no exact counts: CUPTI told of fewer kernels than were launched"
                            .to_owned(),
                    );
                }
                self.launches.extend(launches);
            }
            Err(error) => self
                .sentences
                .push(format!("some exact counts are missing: {error}")),
        }
    }
}

/// Where a launch is made, and what is counted there.
pub struct Place<'a> {
    /// Opened at the start.
    pub cupti: &'static Cupti,
    /// The driver's handle of the context.
    pub context: *mut c_void,
    /// Index of the GPU in the process.
    pub device: u32,
    /// Its chip, as CUPTI spells it.
    pub chip: String,
    /// Its UUID.
    pub uuid: String,
    /// Folder of the locks of GPUs.
    pub locks: &'a Path,
    /// Resolved names of the metadata file.
    pub counters: &'a [&'static Metric],
}

/// What a turn is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// One kernel, or something that prepares kernels.
    Kernel,
    /// A graph, which brings several ranges.
    Graph,
}

impl Gates {
    /// In the order of devices, as everybody waits who waits for several.
    fn all(&self) -> Vec<Arc<Gate>> {
        lock(&self.gates).values().cloned().collect()
    }

    fn gate(&self, device: u32) -> Arc<Gate> {
        Arc::clone(lock(&self.gates).entry(device).or_default())
    }

    /// Waits for the turn of this thread on `device`; [`Self::leave`] ends it. No profiler is stopped
    /// or started in it.
    pub fn pass(&self, device: u32) {
        self.gate(device).turns.begin_beside_captures();
    }

    /// This thread began a capture in `context`; it has the turn.
    pub fn capture_began(&self, context: *mut c_void, device: u32) {
        self.gate(device).turns.capture_began(context);
    }

    /// A capture ended in `context`.
    pub fn capture_ended(&self, context: *mut c_void, device: u32) {
        self.gate(device).turns.capture_ended(context);
    }

    /// A thread is about to launch: wait for its turn and make the profiler of its context count.
    pub fn enter(&self, place: &Place<'_>, purpose: Purpose) -> Outcome {
        let context = place.context;
        let gate = self.gate(place.device);
        let profilers = gate.turns.begin();
        let mut outcome = Outcome::default();
        let mut state = lock(&gate.state);
        if profilers == Profilers::LeftAlone {
            if state.of(context).is_none() {
                outcome.sentences.push(
                    "some launches have no exact counts: they were made while a graph was captured"
                        .to_owned(),
                );
            }
            return outcome;
        }
        if self.closed.load(Ordering::Acquire) {
            return outcome;
        }
        state.switch_to(place, &mut outcome);
        if let Some(profiler) = state.of(context) {
            // A graph brings several ranges: what came before it is read first.
            if purpose == Purpose::Graph || profiler.is_full() {
                outcome.add(profiler.collect(true, Vec::new()));
            }
        }
        outcome
    }

    /// The launch was made: remember it, or read at once what a graph's kernels counted.
    pub fn leave(
        &self,
        context: *mut c_void,
        device: u32,
        launches: Vec<Launch>,
        purpose: Purpose,
    ) -> Outcome {
        let gate = self.gate(device);
        let mut outcome = Outcome::default();
        let mut state = lock(&gate.state);
        let left_alone = gate.turns.captures();
        match state.of(context) {
            Some(profiler) if purpose == Purpose::Graph && !left_alone => {
                outcome.add(profiler.collect(true, launches));
            }
            Some(profiler) if profiler.is_running() => {
                launches.into_iter().for_each(|one| profiler.launched(one));
            }
            _ => outcome.launches = launches,
        }
        if !left_alone {
            state.give_to_others(&mut outcome);
        }
        drop(state);
        gate.turns.end();
        outcome
    }

    /// Gives the hardware to other processes if they wait and this one does not launch.
    pub fn give_to_others(&self) -> Outcome {
        let mut outcome = Outcome::default();
        for gate in self.all() {
            if gate.turns.begin_at_once() {
                lock(&gate.state).give_to_others(&mut outcome);
                gate.turns.end();
            }
        }
        outcome
    }

    /// This thread is about to change what the whole process has on its GPUs. The turns end with the value.
    pub fn changing(&self) -> Changing {
        let mut gates = self.all();
        gates.retain(|gate| gate.turns.begin_short());
        Changing(gates)
    }

    /// The context goes: read what its profiler counted, and give the profiler up. The thread has the
    /// turn, as for all changes of contexts.
    pub fn close(&self, context: *mut c_void) -> Outcome {
        let mut outcome = Outcome::default();
        for gate in self.all() {
            gate.turns.captures_gone(context);
            let mut state = lock(&gate.state);
            // Another context may get the same handle.
            state.refused.retain(|refused| *refused != context as usize);
            if let Some((_, mut profiler)) = state
                .active
                .take_if(|(active, _)| *active == context as usize)
            {
                outcome.add(profiler.collect(false, Vec::new()));
            }
        }
        outcome
    }

    /// The process ends: read everything, and leave the profilers to the driver.
    pub fn close_all(&self) -> Outcome {
        let mut outcome = Outcome::default();
        self.closed.store(true, Ordering::Release);
        for gate in self.all() {
            if !gate.turns.begin_short() {
                outcome.sentences.push(
                    "some exact counts are missing: the process ended during a launch".to_owned(),
                );
                continue;
            }
            if let Some((_, mut profiler)) = lock(&gate.state).active.take() {
                outcome.add(profiler.collect(false, Vec::new()));
                std::mem::forget(profiler);
            }
            // The lock of the hardware goes with the process, as the profiler does.
            gate.turns.end();
        }
        outcome
    }
}

/// The turns of a thread that changes contexts, memory, modules or streams.
pub struct Changing(Vec<Arc<Gate>>);

impl Drop for Changing {
    fn drop(&mut self) {
        for gate in &self.0 {
            gate.turns.end();
        }
    }
}

impl ProfilerState {
    /// The profiler of `context`, if it is the one that counts.
    fn of(&mut self, context: *mut c_void) -> Option<&mut ExactContext> {
        let (active, profiler) = self.active.as_mut()?;
        (*active == context as usize).then_some(profiler)
    }

    /// Gives the hardware to another process that waits for it, after a while.
    fn give_to_others(&mut self, outcome: &mut Outcome) {
        if let Some(hardware) = self.hardware.as_mut().filter(|one| one.is_due()) {
            if let Some((_, mut profiler)) = self.active.take() {
                outcome.add(profiler.collect(false, Vec::new()));
            }
            hardware.give();
        }
    }

    /// Makes the profiler of a context the one that counts.
    fn switch_to(&mut self, place: &Place<'_>, outcome: &mut Outcome) {
        let wanted = place.context as usize;
        if self.of(place.context).is_some() || self.refused.contains(&wanted) {
            return;
        }
        // A profiler that is only stopped still holds the hardware.
        if let Some((_, mut other)) = self.active.take() {
            outcome.add(other.collect(false, Vec::new()));
        }
        let hardware = self
            .hardware
            .get_or_insert_with(|| Hardware::new(place.locks.to_owned(), place.uuid.clone()));
        match hardware.take() {
            Ok(true) => {}
            Ok(false) => {
                outcome.sentences.push(
                    "some launches have no exact counts: another process counted on the same GPU for too long"
                        .to_owned(),
                );
                return;
            }
            Err(sentence) => outcome.sentences.push(sentence),
        }
        let mut started = self.start(place, outcome);
        while let Some(hardware) = &mut self.hardware
            && let Err(error) = &started
            && error.number == numbers::HARDWARE_BUSY
            && hardware.is_freed_soon()
        {
            started = self.start(place, outcome);
        }
        match started {
            Ok(profiler) => {
                self.active = Some((wanted, profiler));
                self.hardware.iter_mut().for_each(Hardware::counts);
            }
            Err(error) => {
                self.refused.push(wanted);
                outcome.sentences.push(format!("no exact counts: {error}"));
            }
        }
    }

    fn start(
        &mut self,
        place: &Place<'_>,
        outcome: &mut Outcome,
    ) -> Result<ExactContext, CuptiError> {
        let plan = match &self.plan {
            Some(plan) => Arc::clone(plan),
            None => {
                host_object::initialize_profiler(place.cupti)?;
                let tell = &mut |sentence| outcome.sentences.push(sentence);
                let plan = Plan::new(place.cupti, &place.chip, place.counters, tell)?;
                Arc::clone(self.plan.insert(Arc::new(plan)))
            }
        };
        let mut profiler = ExactContext::enable(place.cupti, place.context, plan)?;
        profiler.run()?;
        Ok(profiler)
    }
}
