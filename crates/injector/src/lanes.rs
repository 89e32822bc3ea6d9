//! Exact counting over several contexts and threads: one launch at a time per GPU.
//!
//! The range profiler counts in one context of a GPU at a time. Launches therefore pass a gate, and
//! when a launch comes from another context than the last, the profiler of that one is stopped, its
//! counts are read, and the new one is started.
//!
//! Stopping or starting a profiler breaks captures that are under way, and kernels that are captured
//! while profilers change are not all counted later. So a capture begins with its own context's
//! profiler running, and others wait until it has ended.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use lockstep_telemetry::schema::Counter;

use crate::cupti::{Cupti, CuptiError, numbers};
use crate::exact::ExactContext;
use crate::host_object;
use crate::session::{Launch, lock};

/// A capture that lasts longer than this waits for the very launch that waits for it, or was given up.
const PATIENCE: Duration = Duration::from_secs(2);

/// The gate of one GPU.
#[derive(Default)]
pub struct Gate {
    turn: Mutex<Turn>,
    free: Condvar,
    /// Profilers by context. Whoever passed the gate may use them.
    lanes: Mutex<Lanes>,
}

/// Who may pass.
#[derive(Default)]
struct Turn {
    taken: bool,
    /// Captures under way: who began them, and in which context.
    captures: Vec<(ThreadId, usize)>,
}

#[derive(Default)]
struct Lanes {
    profilers: BTreeMap<usize, ExactContext>,
    active: Option<usize>,
    /// Contexts whose profiler could not be started: their launches are not counted.
    refused: Vec<usize>,
}

/// The gates of all GPUs.
#[derive(Default)]
pub struct Gates(Mutex<BTreeMap<u32, Arc<Gate>>>);

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

impl Gates {
    fn gate(&self, device: u32) -> Arc<Gate> {
        Arc::clone(lock(&self.0).entry(device).or_default())
    }

    /// Waits for the turn of this thread on `device`; [`Self::leave`] ends it. No profiler may be
    /// stopped or started in it.
    pub fn pass(&self, device: u32) {
        self.pass_for(device, false);
    }

    fn pass_for(&self, device: u32, changes_profilers: bool) -> Arc<Gate> {
        let gate = self.gate(device);
        let own = std::thread::current().id();
        let mut turn = lock(&gate.turn);
        loop {
            if turn.taken {
                turn = gate
                    .free
                    .wait(turn)
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                continue;
            }
            let disturbs = turn.captures.iter().any(|(thread, _)| *thread != own);
            if !changes_profilers || !disturbs {
                break;
            }
            let (next, waited) = gate
                .free
                .wait_timeout(turn, PATIENCE)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            turn = next;
            if waited.timed_out() {
                turn.captures.retain(|(thread, _)| *thread == own);
            }
        }
        turn.taken = true;
        drop(turn);
        gate
    }

    /// This thread began a capture in `context`; it has the turn.
    pub fn capture_began(&self, context: *mut c_void, device: u32) {
        let begun = (std::thread::current().id(), context as usize);
        lock(&self.gate(device).turn).captures.push(begun);
    }

    /// A capture ended in `context`, most likely the one that this thread began.
    pub fn capture_ended(&self, context: *mut c_void, device: u32) {
        let gate = self.gate(device);
        let own = std::thread::current().id();
        let mut turn = lock(&gate.turn);
        let captures = &turn.captures;
        let begun = captures.iter().position(|(thread, _)| *thread == own);
        let begun = begun.or_else(|| {
            let same = |one: &(ThreadId, usize)| one.1 == context as usize;
            captures.iter().position(same)
        });
        if let Some(place) = begun {
            turn.captures.remove(place);
        }
        gate.free.notify_all();
    }

    /// A thread is about to launch in `context`: wait for its turn and make its profiler count.
    pub fn enter(
        &self,
        cupti: &'static Cupti,
        context: *mut c_void,
        device: u32,
        chip: &str,
        counters: &[&'static Counter],
        graph: bool,
    ) -> Outcome {
        let gate = self.pass_for(device, true);
        let mut outcome = Outcome::default();
        let mut lanes = lock(&gate.lanes);
        lanes.switch_to(cupti, context, chip, counters, &mut outcome);
        if let Some(profiler) = lanes.profilers.get_mut(&(context as usize)) {
            // A graph brings several ranges: what came before it is read first.
            if graph || profiler.is_full() {
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
        graph: bool,
    ) -> Outcome {
        let gate = self.gate(device);
        let mut outcome = Outcome::default();
        let mut lanes = lock(&gate.lanes);
        match lanes.profilers.get_mut(&(context as usize)) {
            Some(profiler) if graph => outcome.add(profiler.collect(true, launches)),
            Some(profiler) if profiler.is_running() => {
                launches.into_iter().for_each(|one| profiler.launched(one))
            }
            _ => outcome.launches = launches,
        }
        drop(lanes);
        lock(&gate.turn).taken = false;
        gate.free.notify_all();
        outcome
    }

    /// The context goes: read what its profiler counted.
    pub fn close(&self, context: *mut c_void) -> Outcome {
        let mut outcome = Outcome::default();
        let gates: Vec<Arc<Gate>> = lock(&self.0).values().cloned().collect();
        for gate in gates {
            let mut lanes = lock(&gate.lanes);
            if let Some(mut profiler) = lanes.profilers.remove(&(context as usize)) {
                outcome.add(profiler.collect(false, Vec::new()));
                if lanes.active == Some(context as usize) {
                    lanes.active = None;
                }
            }
        }
        outcome
    }

    /// The process ends: read everything, and leave the profilers to the driver.
    pub fn close_all(&self) -> Outcome {
        let mut outcome = Outcome::default();
        let gates = std::mem::take(&mut *lock(&self.0));
        for gate in gates.values() {
            for profiler in lock(&gate.lanes).profilers.values_mut() {
                outcome.add(profiler.collect(false, Vec::new()));
            }
        }
        std::mem::forget(gates);
        outcome
    }
}

impl Lanes {
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
        host_object::initialize_profiler(cupti)?;
        let tell = &mut |sentence| outcome.sentences.push(sentence);
        let mut profiler = ExactContext::prepare(cupti, context, chip, counters, tell)?;
        profiler.run()?;
        self.profilers.insert(context as usize, profiler);
        Ok(())
    }
}
