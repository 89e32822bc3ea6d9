//! Calls of one quiet period, in one order.
//!
//! A call is answered when every thread of its process is at rest: inside a call too, asleep, or
//! gone. Then all calls that are there are answered in the order of (process, thread), so that it
//! does not matter which came first. Calls that only wait come last, because simulated time passes
//! for them; of several, the one whose wait is over first is answered first.
//!
//! Threads go on one after the other, each when the one before it is at rest again: so they take the
//! locks of the program in one order too.
//!
//! Where a thread had to be given up, because it computed for long or slept by the host's clock, its
//! next call comes at a time that the host decided: that is kept as a dependence.
//!
//! Start reading at [`HostOrder::turn`].

use super::outside::Inside;
use super::tasks::Tasks;
use lockstep_protocol::{Hello, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who makes a call: process and thread as the system numbers them, which is the order in which they
/// were made, and the connection.
pub type Key = (u32, u32, u64);

/// A call, and who makes it.
pub type Call = (Key, Arc<Request>);

/// Most dependences that are kept: they are for people to read.
const MOST_DEPENDENCES: usize = 16;

/// A call that is on its way for so long does not come: its thread ended while it sent it.
const LOST: Duration = Duration::from_secs(1);

/// Calls that wait for their turn.
#[derive(Default)]
pub struct HostOrder {
    calls: BTreeMap<Key, Arc<Request>>,
    /// Calls that were answered and whose threads have not gone on yet.
    answered: BTreeSet<Key>,
    /// Of these, the ones whose answer is being sent: their threads still sleep.
    returning: BTreeSet<Key>,
    /// Connections whose last call does not wait for its turn.
    asides: BTreeSet<Key>,
    processes: BTreeMap<u32, Process>,
    period: u64,
    /// Who was inside a call when all were found at rest.
    inside: Inside,
    dependences: Vec<String>,
}

/// A process that has made a call.
struct Process {
    /// Its threads; an error if the kernel does not show them.
    tasks: Result<Tasks, String>,
    /// The connection that made the first call, and whether another one did.
    first: u64,
    several: bool,
    /// Calls that came.
    entered: u64,
    /// Since when calls are on their way, if some are.
    on_the_way: Option<Instant>,
}

impl Process {
    /// Whether no call is on its way. One that does not come at all was given up by its thread.
    fn nothing_comes(&mut self, rung: u64, now: Instant) -> bool {
        if rung <= self.entered {
            return true;
        }
        let since = *self.on_the_way.get_or_insert(now);
        let lost = now.saturating_duration_since(since) >= LOST;
        if lost {
            self.entered = rung;
        }
        lost
    }
}

/// Whose turn it is.
#[derive(Debug, PartialEq)]
pub enum Turn {
    /// Nobody's: some thread may still make a call.
    Nobody,
    /// This thread goes on with its answer.
    Release(Key),
    /// These calls, in their order; no time passes.
    Calls(Vec<Call>),
    /// One or more of these, which wait.
    Waits(Vec<Call>),
}

impl HostOrder {
    /// A thread makes a call.
    pub fn enter(&mut self, key: Key, hello: &Hello, request: Arc<Request>) {
        let process = self.processes.entry(key.0).or_insert_with(|| Process {
            tasks: Tasks::of(key.0).map_err(|error| error.to_string()),
            first: key.2,
            several: false,
            entered: 0,
            on_the_way: None,
        });
        process.several |= key.2 != process.first;
        process.entered += 1;
        process.on_the_way = None;
        let said = match &mut process.tasks {
            Ok(tasks) => tasks.calls(key.1).map(str::to_owned),
            Err(error) => process
                .several
                .then(|| format!("the threads of its process cannot be watched ({error})")),
        };
        let aside = is_aside(&request);
        // When the program's library asks something aside changes nothing.
        if let Some(said) = said.filter(|_| !aside) {
            let call = request.name();
            self.depends(format!(
                "thread {} of {}: when it called {call} was up to the host: {said}",
                key.1, hello.name
            ));
        }
        if aside {
            self.asides.insert(key);
        } else {
            self.asides.remove(&key);
        }
        self.calls.insert(key, request);
    }

    /// A thread of a process has looked and goes on: what it rang for is no call.
    pub fn looked(&mut self, process: u32) {
        if let Some(process) = self.processes.get_mut(&process) {
            process.entered += 1;
            process.on_the_way = None;
        }
    }

    /// Something of the run depends on the host's timing.
    pub fn depends(&mut self, sentence: String) {
        if self.dependences.len() < MOST_DEPENDENCES && !self.dependences.contains(&sentence) {
            self.dependences.push(sentence);
        }
    }

    /// What depended on the host's timing, in sentences.
    pub fn dependences(&self) -> &[String] {
        &self.dependences
    }

    /// Who is inside a call, of all processes that have made one.
    pub fn inside(&self) -> &Inside {
        &self.inside
    }

    /// How often simulated time could pass so far.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// Whose turn it is now; calls whose turn it is leave with [`HostOrder::take`].
    /// `rung` says how many calls a process has begun to send.
    pub fn turn(&mut self, rung: impl Fn(u32) -> u64, now: Instant) -> Turn {
        // These are answered at once: they change nothing, and the program goes on meanwhile.
        let asides = self.calls.iter().filter(|(_, call)| is_aside(call));
        let asides: Vec<_> = asides.map(|(key, call)| (*key, call.clone())).collect();
        if !asides.is_empty() {
            return Turn::Calls(asides);
        }
        if let Some(aside) = self.answered.iter().find(|key| self.asides.contains(*key)) {
            return Turn::Release(*aside);
        }
        // A process without a call under way has nobody inside one.
        let mut inside = Inside::new();
        inside.extend(
            self.processes
                .keys()
                .map(|process| (*process, BTreeSet::new())),
        );
        for (process, thread, _) in self.calls.keys().chain(&self.answered) {
            inside.entry(*process).or_default().insert(*thread);
        }
        let mut resting = BTreeSet::new();
        for (number, inside) in inside.iter().filter(|(_, inside)| !inside.is_empty()) {
            let Some(process) = self.processes.get_mut(number) else {
                continue;
            };
            let rests = match &mut process.tasks {
                Ok(tasks) => tasks.at_rest(inside, now),
                Err(_) => true,
            };
            if self.returning.iter().any(|key| key.0 == *number) {
                continue;
            }
            // A thread that sleeps may have sent a call that has not come yet; threads are looked at
            // first, because they ring before they sleep.
            if rests && process.nothing_comes(rung(*number), now) {
                if let Ok(tasks) = &mut process.tasks {
                    tasks.confirm_rest();
                }
                resting.insert(*number);
            }
        }
        let mut answered = self.answered.iter();
        if let Some(first) = answered.find(|key| resting.contains(&key.0)) {
            return Turn::Release(*first);
        }
        let ready = |wait: bool| -> Vec<Call> {
            self.calls
                .iter()
                .filter(|((process, ..), call)| resting.contains(process) && waits(call) == wait)
                .map(|(key, request)| (*key, request.clone()))
                .collect()
        };
        let (calls, waits) = (ready(false), ready(true));
        self.inside = inside;
        if !calls.is_empty() {
            return Turn::Calls(calls);
        }
        if waits.is_empty() {
            return Turn::Nobody;
        }
        self.period += 1;
        for (number, inside) in &self.inside {
            if let Some(Ok(tasks)) = self.processes.get_mut(number).map(|one| &mut one.tasks) {
                tasks.time_passes(inside);
            }
        }
        Turn::Waits(waits)
    }

    /// A call is answered.
    pub fn take(&mut self, key: Key) {
        self.calls.remove(&key);
        self.answered.insert(key);
    }

    /// Whether a call of this connection waits for its turn, or its answer to be taken.
    pub fn is_inside(&self, key: Key) -> bool {
        self.calls.contains_key(&key) || self.answered.contains(&key)
    }

    /// Its thread goes on.
    pub fn release(&mut self, key: Key) {
        self.answered.remove(&key);
        self.returning.insert(key);
    }

    /// Whether its thread may go on.
    pub fn is_released(&self, key: Key) -> bool {
        self.returning.contains(&key)
    }

    /// Its answer was sent: the thread is awake, or gone.
    pub fn returned(&mut self, key: Key) {
        self.returning.remove(&key);
    }

    /// Its connection has ended: no call comes over it again.
    pub fn leave(&mut self, key: Key) {
        self.asides.remove(&key);
        self.returning.remove(&key);
    }
}

/// Questions of the program's library that change nothing: their answers do not wait for a turn.
fn is_aside(request: &Request) -> bool {
    matches!(
        request,
        Request::HostVisible | Request::HostAccessMeans { .. }
    )
}

/// Calls for which simulated time passes until what they wait for is there.
fn waits(request: &Request) -> bool {
    request.synchronizes() || matches!(request, Request::HostPoll { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_protocol::ContextHandle;

    /// A process that is not there: its threads cannot be watched.
    const PROCESS: u32 = u32::MAX;

    fn hello() -> Hello {
        Hello {
            process: PROCESS,
            thread: 1,
            name: "program".into(),
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "no result depends on it")]
    fn calls_come_in_the_order_of_threads_and_waits_come_last() {
        let call = Arc::new(Request::Profiler { start: true });
        let wait = Arc::new(Request::ContextSynchronize {
            context: ContextHandle(1),
        });
        let mut order = HostOrder::default();
        let keys = [9, 3, 5].map(|thread| (PROCESS, thread, u64::from(thread)));
        for (key, request) in keys.into_iter().zip([&call, &wait, &call]) {
            order.enter(key, &hello(), request.clone());
        }
        let now = Instant::now();
        let first = vec![(keys[2], call.clone()), (keys[0], call)];
        assert_eq!(order.turn(|_| 0, now), Turn::Calls(first));
        order.take(keys[2]);
        order.take(keys[0]);
        // Those who were answered go on one by one.
        for key in [keys[2], keys[0]] {
            assert_eq!(order.turn(|_| 0, now), Turn::Release(key));
            order.release(key);
            assert_eq!(order.turn(|_| 0, now), Turn::Nobody);
            order.returned(key);
        }
        assert_eq!(order.period(), 0);
        assert_eq!(order.turn(|_| 0, now), Turn::Waits(vec![(keys[1], wait)]));
        assert_eq!(order.period(), 1);
        order.take(keys[1]);
        order.release(keys[1]);
        order.returned(keys[1]);
        assert_eq!(order.turn(|_| 0, now), Turn::Nobody);
        // A call that is on its way is waited for, but not for ever.
        let late = Arc::new(Request::Profiler { start: false });
        order.enter(keys[0], &hello(), late);
        assert_eq!(order.turn(|_| 5, now), Turn::Nobody);
        assert_ne!(order.turn(|_| 5, now + LOST), Turn::Nobody);
        // Three threads of a process that cannot be watched.
        let said = order.dependences().join("\n");
        assert!(said.contains("cannot be watched"), "{said}");
    }
}
