//! Calls of one quiet period, in one order.
//!
//! A call is answered when every thread of every process of the run is at rest: inside a call too, asleep,
//! or gone. Then all calls that are there are answered in the order of (process, thread), so that it
//! does not matter which came first. Calls that only wait, or that have to wait for work before they can do what
//! they are for, come last, because simulated time passes for them; of several, the one whose wait is over first is
//! answered first. Where a process stands follows
//! from its rank or its place in the tree of processes ([`Place`](super::family::Place)).
//!
//! Threads go on one after the other, each when the one before it is at rest again: so they take the
//! locks of the program, and write into its pipes, in one order too. A process that has ended leaves when all
//! are at rest, before any call is answered.
//!
//! Where a thread had to be given up, because it computed for long or slept by the host's clock, its
//! next call comes at a time that the host decided: that is kept as a dependence.
//!
//! Start reading at [`HostOrder::turn`].

use super::family::Family;
use super::looks::{Looks, Resting};
use super::outside::Inside;
use super::patience::Patience;
use super::process::Process;
use lockstep_protocol::{Hello, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who makes a call: process and thread as the system numbers them, and the connection.
pub type Key = (u32, u32, u64);

/// A call, and who makes it.
pub type Call = (Key, Arc<Request>);

/// How long somebody who connects may take to say who it is.
const ARRIVAL: Duration = Duration::from_secs(1);

/// Most dependences that are kept: they are for people to read.
const MOST_DEPENDENCES: usize = 16;

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
    /// Connections whose last call asks for a page that a thread of the program waits for.
    pages: BTreeSet<Key>,
    /// Last connections of processes that have ended.
    leaving: BTreeSet<Key>,
    family: Family,
    processes: BTreeMap<u32, Process>,
    /// Calls of processes that are gone: another may have their number one day.
    former: BTreeMap<u32, u64>,
    /// Since when connections are being made, if some are.
    arriving: Option<Instant>,
    period: u64,
    /// How often threads came into calls and went on from them.
    changes: u64,
    /// Who sleeps for short times only, and has looked since the others came to rest.
    looks: Looks,
    /// Who was inside a call when all were found at rest.
    inside: Inside,
    /// A process without calls that slept by the host's clock while simulated time passed.
    slept_outside: Option<String>,
    dependences: Vec<String>,
    /// How long threads may compute while others wait for them, if the user says so.
    patience: Option<Duration>,
    /// Whether the run is over: nobody is waited for any more.
    over: bool,
}

/// What is on its way from the processes.
pub struct OnTheWay<Rung, Nobody> {
    /// How many calls a process has begun to send.
    pub rung: Rung,
    /// Whether nobody is about to be let in.
    pub nobody_arrives: Nobody,
}

/// Whether a call has to wait for work before it can do what it is for.
pub type HeldUp<'a> = &'a dyn Fn(&Key, &Request) -> bool;

/// Whose turn it is.
#[derive(Debug, PartialEq)]
pub enum Turn {
    /// Nobody's: some thread may still make a call.
    Nobody,
    /// These processes have ended and leave, in their order.
    Leave(Vec<Key>),
    /// This thread goes on with its answer.
    Release(Key),
    /// These calls, in their order; no time passes.
    Calls(Vec<Call>),
    /// One or more of these, which wait.
    Waits(Vec<Call>),
}

impl HostOrder {
    /// Nobody has called yet. Threads may compute for so long while others wait for them, if it is said.
    pub fn new(patience: Option<Duration>) -> Self {
        Self {
            patience,
            ..Self::default()
        }
    }

    /// The program has started: its children and theirs are of the run too.
    pub fn watch_family(&mut self, program: u32) {
        self.family = Family::of(program);
        self.adopt();
    }

    /// The run is over: what is left is answered without waiting for anybody.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// Watches the processes of the family that are not watched yet.
    fn adopt(&mut self) {
        for number in self.family.living() {
            if !self.processes.contains_key(&number) {
                self.add(number);
            }
        }
    }

    fn add(&mut self, number: u32) {
        let entered = self.former.remove(&number).unwrap_or(0);
        let process = Process::new(number, self.family.place(number), entered);
        self.processes.insert(number, process);
    }

    /// A thread makes a call.
    pub fn enter(&mut self, key: Key, hello: &Hello, request: Arc<Request>) {
        if !self.processes.contains_key(&key.0) {
            // It may have been made since the family was last looked at.
            self.family.refresh();
            self.adopt();
        }
        if !self.processes.contains_key(&key.0) {
            self.add(key.0);
        }
        let run: Vec<u32> = self.processes.keys().copied().collect();
        let (mut begins, mut said) = (false, None);
        if let Some(process) = self.processes.get_mut(&key.0) {
            match &*request {
                Request::HostVisible => process.asks_aside(key.1),
                _ => {
                    begins = !process.has_called();
                    if process.may_have_come_by_itself(key.1) {
                        process.suspect(format!(
                            "thread {} of {}: when it called {} was up to the host: it slept for short times, and \
                             came by itself while others were answered",
                            key.1,
                            hello.name,
                            request.name()
                        ));
                    }
                    said = process.calls(key, &run);
                }
            }
        }
        let aside = is_aside(&request);
        // When the program's library asks something aside changes nothing.
        if let Some(said) = said.filter(|_| !aside) {
            let call = request.name();
            self.depends(format!(
                "thread {} of {}: when it called {call} was up to the host: {said}",
                key.1, hello.name
            ));
        }
        if let Some(sleeper) = self.slept_outside.clone().filter(|_| begins) {
            self.depends(format!(
                "process {} ({}): when it first called CUDA may have been up to the host: {sleeper} slept \
                 for a time, or waited for the world outside the run, while simulated time passed",
                key.0, hello.name
            ));
        }
        if aside {
            self.asides.insert(key);
        } else {
            self.changes += 1;
            self.asides.remove(&key);
        }
        match is_for_page(&request) {
            true => self.pages.insert(key),
            false => self.pages.remove(&key),
        };
        self.calls.insert(key, request);
    }

    /// A thread of a process has looked and goes on: what it rang for is no call.
    pub fn looked(&mut self, process: u32) {
        if let Some(process) = self.processes.get_mut(&process) {
            process.nothing_more();
        }
    }

    /// Something of the run depends on the host's timing.
    pub fn depends(&mut self, sentence: String) {
        if self.dependences.len() < MOST_DEPENDENCES && !self.dependences.contains(&sentence) {
            tracing::debug!("{sentence}");
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

    /// Processes of the run, and how many calls of each have come.
    pub fn entered(&self) -> Vec<(u32, u64)> {
        let processes = self.processes.iter();
        processes
            .map(|(number, process)| (*number, process.entered()))
            .collect()
    }

    /// Whose turn it is now; calls whose turn it is leave with [`HostOrder::take`].
    pub fn turn<Rung: Fn(u32) -> u64, Nobody: Fn() -> bool>(
        &mut self,
        coming: &OnTheWay<Rung, Nobody>,
        held_up: HeldUp<'_>,
        now: Instant,
    ) -> Turn {
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
        let mut inside: Inside = self
            .processes
            .keys()
            .map(|process| (*process, BTreeSet::new()))
            .collect();
        for (process, thread, _) in self.calls.keys().chain(&self.answered) {
            inside.entry(*process).or_default().insert(*thread);
        }
        if !self.over && !self.all_rest(&inside, coming, now) {
            return Turn::Nobody;
        }
        if !self.leaving.is_empty() && !self.over {
            return Turn::Leave(self.in_order(self.leaving.iter().copied()));
        }
        if let Some(first) = self.in_order(self.answered.iter().copied()).first() {
            return Turn::Release(*first);
        }
        let ready = |wait: bool| -> Vec<Call> {
            let calls = self
                .calls
                .iter()
                .filter(|(key, call)| (waits(call) || held_up(key, call)) == wait);
            let keys = self.in_order(calls.map(|(key, _)| *key));
            keys.into_iter()
                .map(|key| (key, self.calls[&key].clone()))
                .collect()
        };
        let (calls, waits) = (ready(false), ready(true));
        if !calls.is_empty() {
            self.note_inside(inside, true);
            return Turn::Calls(calls);
        }
        if waits.is_empty() {
            return Turn::Nobody;
        }
        self.time_passes(inside);
        Turn::Waits(waits)
    }

    /// Whether every process is at rest: each thread slept when all others did, and nothing is on its way.
    fn all_rest<Rung: Fn(u32) -> u64, Nobody: Fn() -> bool>(
        &mut self,
        inside: &Inside,
        coming: &OnTheWay<Rung, Nobody>,
        now: Instant,
    ) -> bool {
        if !self.returning.is_empty() {
            return false;
        }
        let callers = self
            .processes
            .values()
            .filter(|one| one.has_called())
            .count();
        let patience = Patience {
            asked: self.patience,
            several: callers > 1,
            in_vain: callers > 1 && !self.dependences.is_empty(),
        };
        // Between processes anybody may have been woken by anybody.
        let several = self.processes.len() > 1;
        let nobody = BTreeSet::new();
        let threads = |number: &u32| inside.get(number).unwrap_or(&nobody);
        let run: Vec<u32> = self.processes.keys().copied().collect();
        let under_way = |key: &&Key| self.calls.contains_key(*key) || self.answered.contains(*key);
        let pages_asked = self.pages.iter().filter(under_way).map(|key| key.0);
        let pages_asked: BTreeSet<u32> = pages_asked.collect();
        let looks: Vec<_> = self
            .processes
            .iter_mut()
            .map(|(number, process)| {
                let page_asked = pages_asked.contains(number);
                process.look(threads(number), several, page_asked)
            })
            .collect();
        let mut rest = true;
        for (process, look) in self.processes.values_mut().zip(looks) {
            rest &= process.rests_since(look, now, patience, &run);
        }
        if !rest {
            return false;
        }
        // A thread that sleeps may have sent a call that has not come yet; threads are looked at first, because
        // they ring before they sleep.
        for (number, process) in &mut self.processes {
            rest &= process.nothing_comes(threads(number), (coming.rung)(*number), now);
        }
        if !rest || !self.nobody_arrives((coming.nobody_arrives)(), now) {
            return false;
        }
        if self.family.refresh() {
            self.adopt();
            return false;
        }
        if !self.all_looked(now) {
            return false;
        }
        self.processes
            .retain(|_, process| process.has_called() || !process.is_gone());
        let processes = self.processes.values_mut();
        let came: Vec<String> = processes.flat_map(Process::confirm_rest).collect();
        for sentence in came {
            self.depends(sentence);
        }
        true
    }

    /// Whether those that sleep for short times only have looked since. Nothing is won by that where the run depends
    /// on the host already.
    fn all_looked(&mut self, now: Instant) -> bool {
        let processes = self.processes.values();
        let resting: Vec<Resting> = processes.flat_map(Process::resting).copied().collect();
        !self.dependences.is_empty() || self.looks.all_looked(self.changes, &resting, now)
    }

    /// These calls were answered, and nobody has gone on with its answer: all others were at rest. Processes have begun
    /// to send so many calls.
    pub fn others_answered(&mut self, calls: &[Call], rung: impl Fn(u32) -> u64) {
        // Nobody was waited for to be at rest.
        if calls.iter().all(|(_, request)| is_aside(request)) {
            return;
        }
        for (number, process) in &mut self.processes {
            process.others_answered(rung(*number));
        }
    }

    /// Whether nobody is being let in; one that does not say who it is has its time.
    fn nobody_arrives(&mut self, nobody: bool, now: Instant) -> bool {
        if nobody {
            self.arriving = None;
            return true;
        }
        let since = *self.arriving.get_or_insert(now);
        now.saturating_duration_since(since) >= ARRIVAL
    }

    /// Keys in the order of processes, threads and connections.
    fn in_order(&self, keys: impl Iterator<Item = Key>) -> Vec<Key> {
        let mut keys: Vec<Key> = keys.collect();
        let place = |key: &Key| self.processes.get(&key.0).map(|process| &process.place);
        keys.sort_by(|one, other| place(one).cmp(&place(other)).then(one.cmp(other)));
        keys
    }

    /// Keeps who is inside a call, of the processes that made one or of all.
    fn note_inside(&mut self, mut inside: Inside, callers: bool) {
        if callers {
            inside.retain(|number, _| self.processes.get(number).is_none_or(Process::has_called));
        }
        self.inside = inside;
    }

    /// Simulated time is about to pass: notes how those sleep who are outside of calls.
    fn time_passes(&mut self, inside: Inside) {
        self.period += 1;
        let run: Vec<u32> = self.processes.keys().copied().collect();
        let unlooked = self.looks.are_over();
        let mut for_process = false;
        for (number, process) in &mut self.processes {
            if process.has_called() {
                for_process |= inside
                    .get(number)
                    .is_some_and(|inside| process.time_passes(inside, &run, unlooked));
            } else if self.slept_outside.is_none() {
                self.slept_outside = process.waits_for_world(&run);
            }
        }
        self.note_inside(inside, !for_process);
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
        if !self.asides.contains(&key) {
            self.changes += 1;
        }
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
        if let Some(process) = self.processes.get_mut(&key.0) {
            process.left(key.2);
        }
    }

    /// It was the last of its process, which leaves when its turn comes.
    pub fn ends(&mut self, key: Key) {
        self.leaving.insert(key);
    }

    /// Processes that have ended and have not left, in their order.
    pub fn leaving(&self) -> Vec<Key> {
        self.in_order(self.leaving.iter().copied())
    }

    /// A process has left; the signal that ended it, if one did. What runs under its number afterwards begins
    /// anew.
    pub fn left(&mut self, key: Key) -> Option<i32> {
        self.leaving.remove(&key);
        let process = self.processes.remove(&key.0)?;
        self.former.insert(key.0, process.entered());
        let signal = process.killed_by();
        self.adopt();
        signal
    }
}

/// Questions of the program's library that change nothing: their answers do not wait for a turn.
fn is_aside(request: &Request) -> bool {
    matches!(
        request,
        Request::HostVisible | Request::HostAccessMeans { .. }
    )
}

/// Calls by which our library in a program asks for a page, for a thread that waits for it.
fn is_for_page(request: &Request) -> bool {
    matches!(
        request,
        Request::HostAccess { .. } | Request::HostPoll { .. }
    )
}

/// Calls for which simulated time passes until what they wait for is there.
fn waits(request: &Request) -> bool {
    request.synchronizes() || matches!(request, Request::HostPoll { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::process::LOST;
    use lockstep_protocol::ContextHandle;

    /// A process that is not there: its threads cannot be watched.
    const PROCESS: u32 = u32::MAX;

    /// Whose turn it is while so many calls were sent and nobody arrives.
    fn turn(order: &mut HostOrder, rung: u64, now: Instant) -> Turn {
        let coming = OnTheWay {
            rung: |_| rung,
            nobody_arrives: || true,
        };
        order.turn(&coming, &|_, _| false, now)
    }

    fn hello() -> Hello {
        Hello {
            process: PROCESS,
            thread: 1,
            name: "program".into(),
            node: Ok(0),
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
        assert_eq!(turn(&mut order, 0, now), Turn::Calls(first));
        order.take(keys[2]);
        order.take(keys[0]);
        // Those who were answered go on one by one.
        for key in [keys[2], keys[0]] {
            assert_eq!(turn(&mut order, 0, now), Turn::Release(key));
            order.release(key);
            assert_eq!(turn(&mut order, 0, now), Turn::Nobody);
            order.returned(key);
        }
        assert_eq!(order.period(), 0);
        assert_eq!(turn(&mut order, 0, now), Turn::Waits(vec![(keys[1], wait)]));
        assert_eq!(order.period(), 1);
        order.take(keys[1]);
        order.release(keys[1]);
        order.returned(keys[1]);
        assert_eq!(turn(&mut order, 0, now), Turn::Nobody);
        // A call that is on its way is waited for, but not for ever.
        let late = Arc::new(Request::Profiler { start: false });
        order.enter(keys[0], &hello(), late);
        assert_eq!(turn(&mut order, 5, now), Turn::Nobody);
        assert_ne!(turn(&mut order, 5, now + LOST), Turn::Nobody);
        // Three threads of a process that cannot be watched.
        let said = order.dependences().join("\n");
        assert!(said.contains("cannot be watched"), "{said}");
    }
}
