//! The clock of a simulator around this one: a run on a thread of its own, and somebody who says how far its time may
//! pass.
//!
//! Exactly one of the two acts at a time. The run stands still at a boundary of epochs while the other acts, who gives
//! it time and entries of a record, and takes what left the GPU. So nothing depends on how the host schedules the two.
//!
//! Start reading at [`OutsideClock::pass`] (the simulator around) and [`OutsideClock::given`] (the run).

use crate::playback::PlayedLaunch;
use crate::server::lock;
use lockstep_gpu::OutsideRequest;
use lockstep_runtime::Entry;
use lockstep_units::Time;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What the run hands over when the simulator around may act.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    /// The boundary at which the GPU stands.
    pub now: Time,
    /// Simulated time of the host: that of the last answer, if an entry is wanted.
    pub host: Time,
    /// Whether everything that was entered is done, and time passes only after another entry.
    pub wants_entry: bool,
    /// Whether the run is over: it failed, and its end says why.
    pub is_over: bool,
    /// Whether time was given without end, and nothing happens in it before a request is complete.
    pub awaits_memory: bool,
    /// Launches that ended.
    pub launches: Vec<PlayedLaunch>,
    /// Requests that left the GPU, if its memory is outside.
    pub requests: Vec<OutsideRequest>,
}

/// What both share.
#[derive(Debug, Default)]
struct State {
    /// Whether the run acts, and not the simulator around.
    runs: bool,
    /// How far time may pass.
    granted: Time,
    /// What is to be done next.
    entry: Option<Entry>,
    /// Whether the run is given up or to end.
    ends: bool,
    reached: Reached,
    /// Requests that were told and are not complete.
    waiting: BTreeSet<u64>,
    /// Requests that are complete, and when.
    complete: Vec<(u64, Time)>,
}

/// The clock that both look at.
#[derive(Debug)]
pub struct OutsideClock {
    memory: bool,
    state: Mutex<State>,
    changed: Condvar,
}

impl OutsideClock {
    /// A clock at zero whose run acts first; with `memory`, what is behind the L1 caches is outside as well.
    pub(crate) fn new(memory: bool) -> Self {
        let state = State {
            runs: true,
            ..State::default()
        };
        Self {
            memory,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Whether what is behind the L1 caches is outside.
    pub fn has_memory(&self) -> bool {
        self.memory
    }

    /// The run: how far time may pass from `now`, not beyond `limit`, and what is complete. Waits where no more time
    /// is given or somebody may want to answer requests first; and, if the GPU `awaits_memory` alone, where time is
    /// given without end and nothing is complete. Nothing if the run is given up.
    pub(crate) fn given(
        &self,
        now: Time,
        limit: Time,
        awaits_memory: bool,
    ) -> Option<(Time, Vec<(u64, Time)>)> {
        let mut state = lock(&self.state);
        if now < limit {
            state.reached.now = now;
            loop {
                let asked = !state.reached.requests.is_empty();
                let endless = state.granted.min(limit) == Time::NEVER && state.complete.is_empty();
                state.reached.awaits_memory = awaits_memory && endless && !asked;
                let waits = now >= state.granted || asked || state.reached.awaits_memory;
                if state.ends || !waits {
                    break;
                }
                state = self.hand_over(state);
            }
            if state.ends {
                return None;
            }
        }
        let until = limit.min(state.granted.max(now));
        Some((until, std::mem::take(&mut state.complete)))
    }

    /// The run: requests have left the GPU.
    pub(crate) fn left(&self, requests: Vec<OutsideRequest>) {
        let mut state = lock(&self.state);
        let numbers = requests.iter().map(|request| request.number);
        state.waiting.extend(numbers);
        state.reached.requests.extend(requests);
    }

    /// The run: launches have ended.
    pub(crate) fn ended(&self, launches: Vec<PlayedLaunch>) {
        lock(&self.state).reached.launches.extend(launches);
    }

    /// The run: all that was entered is done, the GPU stands at `now` and the host at `host`. The next entry, or
    /// nothing if the run is to end.
    pub(crate) fn next_entry(&self, now: Time, host: Time) -> Option<Entry> {
        let mut state = lock(&self.state);
        state.reached.now = now;
        state.reached.host = host;
        state.reached.wants_entry = true;
        while !state.ends && state.entry.is_none() {
            state = self.hand_over(state);
        }
        state.reached.wants_entry = false;
        state.entry.take().filter(|_| !state.ends)
    }

    /// The run: it is over, whatever the reason.
    pub(crate) fn over(&self) {
        let mut state = lock(&self.state);
        state.reached.is_over = true;
        state.runs = false;
        self.changed.notify_all();
    }

    /// Lets the other side act until it hands over in turn.
    fn hand_over<'state>(&self, mut state: MutexGuard<'state, State>) -> MutexGuard<'state, State> {
        state.runs = !state.runs;
        self.changed.notify_all();
        let turn = state.runs;
        let waited = self.changed.wait_while(state, |state| state.runs == turn);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Outside: waits until the run stands still for the first time.
    pub(crate) fn wait(&self) -> Reached {
        let state = lock(&self.state);
        let waited = self.changed.wait_while(state, |state| state.runs);
        waited.unwrap_or_else(PoisonError::into_inner).hand_out()
    }

    /// Outside: gives the run something to do; false if it is at something.
    pub(crate) fn enter(&self, entry: Entry) -> bool {
        let mut state = lock(&self.state);
        let free = state.reached.wants_entry && state.entry.is_none();
        if free {
            state.entry = Some(entry);
        }
        free
    }

    /// Outside: lets time pass to `until`, or to where requests have left, all that was entered is done, or the run
    /// is over.
    pub(crate) fn pass(&self, until: Time) -> Reached {
        let mut state = lock(&self.state);
        state.granted = until;
        let waits = state.reached.wants_entry && state.entry.is_none();
        let stands = state.reached.now >= until && state.entry.is_none();
        if !state.reached.is_over && !waits && !stands {
            state = self.hand_over(state);
        }
        state.hand_out()
    }

    /// Outside: a request is complete; false if none of that number waits.
    pub(crate) fn complete(&self, request: u64, at: Time) -> bool {
        let mut state = lock(&self.state);
        let waits = state.waiting.remove(&request);
        if waits {
            state.complete.push((request, at));
        }
        waits
    }

    /// Outside: how many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.state).waiting.len()
    }

    /// Outside: the run is to end where it stands.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.state);
        state.ends = true;
        state.runs = true;
        self.changed.notify_all();
    }
}

impl State {
    /// What happened, once.
    fn hand_out(&mut self) -> Reached {
        let kept = Reached {
            launches: Vec::new(),
            requests: Vec::new(),
            ..self.reached
        };
        std::mem::replace(&mut self.reached, kept)
    }
}
