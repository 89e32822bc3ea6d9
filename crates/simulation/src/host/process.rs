//! One process of the run, as the order of calls sees it.
//!
//! A process without a call is watched too: it may wake one that has made some, or be about to make its
//! first.

use super::family::Place;
use super::looks::Resting;
use super::order::Key;
use super::patience::Patience;
use super::status::Watched;
use super::tasks::{Look, Tasks};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A call that is on its way for so long does not come: its thread ended while it sent it. A large module takes
/// seconds on a machine that has other things to do.
pub const LOST: Duration = Duration::from_secs(60);
/// The same of a process that has ended, and for connections of it that do not end.
const LOST_WITH_PROCESS: Duration = Duration::from_secs(1);

/// A process of the run.
pub struct Process {
    number: u32,
    /// Where it stands among the others.
    pub place: Place,
    /// Its threads; an error if the kernel does not show them.
    tasks: Result<Tasks, String>,
    /// The connection that made the first call, and whether another one did.
    first: Option<u64>,
    several: bool,
    /// Connections that made calls and are open.
    connections: BTreeSet<u64>,
    /// Calls that came.
    entered: u64,
    /// Since when something is on its way, if it is.
    on_the_way: Option<Instant>,
    /// Calls that were on their way when others had been answered, although all had been at rest.
    clocked: u64,
    /// Those of them that the program's library made by itself, or as many.
    asides: u64,
    /// Threads that nap and called meanwhile, in words.
    suspects: Vec<String>,
    /// For how it ends.
    watched: Option<Watched>,
}

impl Process {
    /// A process without a call; `entered` calls came from one that had its number before.
    pub fn new(number: u32, place: Place, entered: u64) -> Self {
        Self {
            number,
            place,
            tasks: Tasks::of(number).map_err(|error| error.to_string()),
            first: None,
            several: false,
            connections: BTreeSet::new(),
            entered,
            on_the_way: None,
            clocked: 0,
            asides: 0,
            suspects: Vec::new(),
            watched: None,
        }
    }

    /// Whether it has made a call.
    pub fn has_called(&self) -> bool {
        self.first.is_some()
    }

    /// Calls that came.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// A thread makes a call, in a run of these processes. Says why the host decided when, if it did.
    pub fn calls(&mut self, key: Key, run: &[u32]) -> Option<String> {
        if self.first.is_none() {
            self.place = self.place.clone().with_rank(self.number);
            self.watched = Some(Watched::new(self.number));
        }
        let first = *self.first.get_or_insert(key.2);
        self.several |= key.2 != first;
        self.connections.insert(key.2);
        self.nothing_more();
        match &mut self.tasks {
            Ok(tasks) => tasks.calls(key.1, run),
            Err(error) => self
                .several
                .then(|| format!("the threads of its process cannot be watched ({error})")),
        }
    }

    /// A thread of the program's library asks something that changes nothing.
    pub fn asks_aside(&mut self, thread: u32) {
        self.nothing_more();
        self.asides += 1;
        if let Ok(tasks) = &mut self.tasks {
            tasks.asks_aside(thread);
        }
    }

    /// What was rung for has come.
    pub fn nothing_more(&mut self) {
        self.entered += 1;
        self.on_the_way = None;
    }

    /// A connection has ended.
    pub fn left(&mut self, connection: u64) {
        self.connections.remove(&connection);
    }

    /// The signal that ended it, if one did.
    pub fn killed_by(&self) -> Option<i32> {
        self.watched.as_ref()?.killed_by()
    }

    /// Looks at its threads, with `all` also at those that never made a call; none if there is nothing to look
    /// at. `page_asked`: our library in it asks for a page.
    pub fn look(&mut self, inside: &BTreeSet<u32>, all: bool, page_asked: bool) -> Option<Look> {
        self.tasks.as_mut().ok()?.look(inside, all, page_asked)
    }

    /// Whether all that were looked at slept since.
    pub fn rests_since(
        &mut self,
        look: Option<Look>,
        now: Instant,
        patience: Patience,
        run: &[u32],
    ) -> bool {
        match (&mut self.tasks, look) {
            (Ok(tasks), Some(look)) => tasks.rests_since(look, now, patience, run),
            _ => true,
        }
    }

    /// Its threads that slept when they were last looked at.
    pub fn resting(&self) -> &[Resting] {
        self.tasks.as_ref().map(Tasks::resting).unwrap_or_default()
    }

    /// Others were answered, and it has begun to send so many calls in all.
    pub fn others_answered(&mut self, rung: u64) {
        self.clocked += rung.saturating_sub(self.entered);
    }

    /// Whether a thread that calls now may have come by itself: it naps, and a call was on its way when others had
    /// been answered. Whose that was is known when all are at rest again.
    pub fn may_have_come_by_itself(&self, thread: u32) -> bool {
        let naps = |tasks: &Tasks| tasks.naps(thread);
        self.clocked > 0 && self.tasks.as_ref().is_ok_and(naps)
    }

    /// A thread may have come by itself, in words.
    pub fn suspect(&mut self, words: String) {
        self.suspects.push(words);
    }

    /// Whether it has ended: it has no threads any more.
    pub fn is_gone(&self) -> bool {
        self.tasks.as_ref().is_ok_and(Tasks::are_gone)
    }

    /// Whether no call is on its way, and no end of a connection of a process that has ended, unless its last call
    /// is still to be answered.
    pub fn nothing_comes(&mut self, inside: &BTreeSet<u32>, rung: u64, now: Instant) -> bool {
        let leaves = !self.connections.is_empty() && inside.is_empty() && self.is_gone();
        if rung <= self.entered && !leaves {
            self.on_the_way = None;
            return true;
        }
        let since = *self.on_the_way.get_or_insert(now);
        let patience = match self.is_gone() {
            true => LOST_WITH_PROCESS,
            false => LOST,
        };
        let lost = now.saturating_duration_since(since) >= patience;
        if lost {
            self.entered = self.entered.max(rung);
            if leaves {
                self.connections.clear();
            }
        }
        lost
    }

    /// All threads were at rest, and none had sent a call. Who came by itself before, in words.
    pub fn confirm_rest(&mut self) -> Vec<String> {
        let by_itself = self.clocked > self.asides;
        let mut suspects = std::mem::take(&mut self.suspects);
        suspects.retain(|_| by_itself);
        (self.clocked, self.asides) = (0, 0);
        if let Ok(tasks) = &mut self.tasks {
            tasks.confirm_rest();
        }
        suspects
    }

    /// Simulated time is about to pass. True if a thread that makes calls waits for another process of the
    /// run.
    pub fn time_passes(&mut self, inside: &BTreeSet<u32>, run: &[u32], unlooked: bool) -> bool {
        self.tasks
            .as_mut()
            .is_ok_and(|tasks| tasks.time_passes(inside, run, unlooked))
    }

    /// What it is called, if one of its threads sleeps for a time or for the world.
    pub fn waits_for_world(&self, run: &[u32]) -> Option<String> {
        let waits = self
            .tasks
            .as_ref()
            .is_ok_and(|tasks| tasks.waits_for_world(run));
        waits.then(|| {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", self.number));
            let name = name.unwrap_or_default();
            format!("process {} ({})", self.number, name.trim_end())
        })
    }
}
