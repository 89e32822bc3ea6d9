//! Exact counting over several contexts and threads: one launch at a time per GPU.
//!
//! The range profiler counts in one context of a GPU at a time. Launches therefore wait for their turn
//! ([`crate::turns`]), and when a launch comes from another context than the last, the profiler of that
//! one is stopped, its counts are read, and the new one is started.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lockstep_telemetry::schema::Counter;

use crate::cupti::{Cupti, CuptiError, numbers};
use crate::exact::{ExactContext, Plan};
use crate::host_object;
use crate::session::{Launch, lock};
use crate::turns::{Profilers, Turns};

/// The gate of one GPU.
#[derive(Default)]
pub struct Gate {
    turns: Turns,
    /// Used by whoever has the turn.
    lanes: Mutex<Lanes>,
}

#[derive(Default)]
struct Lanes {
    /// What is counted, once it is known.
    plan: Option<Arc<Plan>>,
    /// Profilers by context.
    profilers: BTreeMap<usize, ExactContext>,
    active: Option<usize>,
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

/// What a turn is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// One kernel, or something that prepares kernels.
    Kernel,
    /// A graph, which brings several ranges.
    Graph,
}

impl Gates {
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

    /// A thread is about to launch in `context`: wait for its turn and make its profiler count.
    pub fn enter(
        &self,
        cupti: &'static Cupti,
        context: *mut c_void,
        device: u32,
        chip: &str,
        counters: &[&'static Counter],
        purpose: Purpose,
    ) -> Outcome {
        let gate = self.gate(device);
        let profilers = gate.turns.begin();
        let mut outcome = Outcome::default();
        let mut lanes = lock(&gate.lanes);
        if profilers == Profilers::LeftAlone {
            if !lanes.counts(context) {
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
        lanes.switch_to(cupti, context, chip, counters, &mut outcome);
        if let Some(profiler) = lanes.profilers.get_mut(&(context as usize)) {
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
        let mut lanes = lock(&gate.lanes);
        let left_alone = gate.turns.captures();
        match lanes.profilers.get_mut(&(context as usize)) {
            Some(profiler) if purpose == Purpose::Graph && !left_alone => {
                outcome.add(profiler.collect(true, launches));
            }
            Some(profiler) if profiler.is_running() => {
                launches.into_iter().for_each(|one| profiler.launched(one));
            }
            _ => outcome.launches = launches,
        }
        drop(lanes);
        gate.turns.end();
        outcome
    }

    /// The context goes: read what its profiler counted, and give the profiler up, while nobody else
    /// launches.
    pub fn close(&self, context: *mut c_void) -> Outcome {
        let mut outcome = Outcome::default();
        let gates: Vec<Arc<Gate>> = lock(&self.gates).values().cloned().collect();
        for gate in gates {
            gate.turns.captures_gone(context);
            {
                let mut lanes = lock(&gate.lanes);
                // Another context may get the same handle.
                lanes.refused.retain(|refused| *refused != context as usize);
                if !lanes.profilers.contains_key(&(context as usize)) {
                    continue;
                }
            }
            gate.turns.begin();
            let mut lanes = lock(&gate.lanes);
            if let Some(mut profiler) = lanes.profilers.remove(&(context as usize)) {
                outcome.add(profiler.collect(false, Vec::new()));
                if lanes.active == Some(context as usize) {
                    lanes.active = None;
                }
            }
            drop(lanes);
            gate.turns.end();
        }
        outcome
    }

    /// The process ends: read everything, and leave the profilers to the driver.
    pub fn close_all(&self) -> Outcome {
        let mut outcome = Outcome::default();
        self.closed.store(true, Ordering::Release);
        let gates: Vec<Arc<Gate>> = lock(&self.gates).values().cloned().collect();
        for gate in gates {
            if !gate.turns.begin_soon() {
                outcome.sentences.push(
                    "some exact counts are missing: the process ended during a launch".to_owned(),
                );
                continue;
            }
            let mut lanes = lock(&gate.lanes);
            let profilers = std::mem::take(&mut lanes.profilers);
            lanes.active = None;
            drop(lanes);
            for (_, mut profiler) in profilers {
                outcome.add(profiler.collect(false, Vec::new()));
                std::mem::forget(profiler);
            }
            gate.turns.end();
        }
        outcome
    }
}

impl Lanes {
    /// Whether launches in `context` are being counted.
    fn counts(&self, context: *mut c_void) -> bool {
        let profiler = self.profilers.get(&(context as usize));
        profiler.is_some_and(ExactContext::is_running)
    }

    /// Makes the profiler of `context` the one that counts.
    fn switch_to(
        &mut self,
        cupti: &'static Cupti,
        context: *mut c_void,
        chip: &str,
        counters: &[&'static Counter],
        outcome: &mut Outcome,
    ) {
        let wanted = context as usize;
        if self.active == Some(wanted) || self.refused.contains(&wanted) {
            return;
        }
        if let Some(other) = self
            .active
            .take()
            .and_then(|other| self.profilers.get_mut(&other))
        {
            outcome.add(other.collect(false, Vec::new()));
        }
        let mut started = self.start(cupti, context, chip, counters, outcome);
        if started
            .as_ref()
            .is_err_and(|error| error.number == numbers::HARDWARE_BUSY)
            && !self.profilers.is_empty()
        {
            // A stopped profiler still held the hardware: give it up entirely.
            self.profilers.clear();
            started = self.start(cupti, context, chip, counters, outcome);
        }
        match started {
            Ok(()) => self.active = Some(wanted),
            Err(error) => {
                self.profilers.remove(&wanted);
                self.refused.push(wanted);
                outcome.sentences.push(format!("no exact counts: {error}"));
            }
        }
    }

    fn start(
        &mut self,
        cupti: &'static Cupti,
        context: *mut c_void,
        chip: &str,
        counters: &[&'static Counter],
        outcome: &mut Outcome,
    ) -> Result<(), CuptiError> {
        if let Some(profiler) = self.profilers.get_mut(&(context as usize)) {
            return profiler.run();
        }
        let plan = match &self.plan {
            Some(plan) => Arc::clone(plan),
            None => {
                host_object::initialize_profiler(cupti)?;
                let tell = &mut |sentence| outcome.sentences.push(sentence);
                let plan = Arc::new(Plan::new(cupti, chip, counters, tell)?);
                self.plan = Some(Arc::clone(&plan));
                plan
            }
        };
        let mut profiler = ExactContext::enable(cupti, context, plan)?;
        profiler.run()?;
        self.profilers.insert(context as usize, profiler);
        Ok(())
    }
}
