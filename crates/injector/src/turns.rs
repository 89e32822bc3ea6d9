//! Whose turn it is on one GPU in exact mode, and which captures are under way.
//!
//! Whoever has the turn is the only one who launches, makes graphs, begins a capture, or makes or ends
//! contexts, memory, modules and streams. On a real device a context that goes while another thread
//! launches a graph costs that graph the counts of a kernel, and profilers that change meanwhile were
//! seen to make the program's launches fail.
//!
//! Stopping or starting a profiler breaks captures that are under way, so nobody does while there are
//! any. Captures are waited for, but not for ever: one that lasts may be waiting for the very launch
//! that waits for it. Then the launch goes on and profilers stay as they are.

#![allow(
    clippy::disallowed_methods,
    reason = "how long others are waited for is host time"
)]

use std::ffi::c_void;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::session::lock;

/// A capture that lasts longer than this is no longer waited for: it may wait for who waits for it.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same of a turn, while a short call waits for it.
const LONGEST: Duration = Duration::from_secs(5);
/// So many turns may come before one who wants to launch.
const FIRST: u64 = 16;
/// A call that is always short and lasts so long has ended without our knowing: CUPTI does not tell
/// the end of a call in which a profiler was given up.
const ENDED: Duration = Duration::from_millis(300);

/// Whether profilers may be changed during a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profilers {
    /// Nothing is in the way.
    Free,
    /// A capture would break.
    LeftAlone,
}

#[derive(Default)]
struct State {
    holder: Option<Holder>,
    /// Turns so far.
    count: u64,
    /// Short calls that wait.
    short_calls: u32,
    /// The turn that somebody has waited for in vain: a long kernel.
    lasts: Option<u64>,
    captures: Vec<Capture>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Holder {
    thread: ThreadId,
    /// The turn is for a call that never waits for another thread.
    short: bool,
    number: u64,
}

struct Capture {
    thread: ThreadId,
    context: usize,
    /// Somebody has waited for its end in vain.
    lasts: bool,
}

impl State {
    fn give_to(&mut self, thread: ThreadId, short: bool) {
        self.count += 1;
        self.holder = Some(Holder {
            thread,
            short,
            number: self.count,
        });
    }
}

/// The turns of one GPU.
#[derive(Default)]
pub struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

impl Turns {
    /// Waits for a turn, and for captures of other threads; [`Self::end`] ends it.
    pub fn begin(&self) -> Profilers {
        let own = std::thread::current().id();
        let mut state = lock(&self.state);
        loop {
            state = self.until_free(state, own);
            let others = |one: &Capture| one.thread != own && !one.lasts;
            if !state.captures.iter().any(others) {
                break;
            }
            let (next, waited) = self.wait_for(state, PATIENCE);
            state = next;
            if waited {
                let captures = state.captures.iter_mut();
                captures.for_each(|one| one.lasts |= one.thread != own);
            }
        }
        state.give_to(own, false);
        if state.captures.is_empty() {
            Profilers::Free
        } else {
            Profilers::LeftAlone
        }
    }

    /// Waits for a turn in which no profiler is changed.
    pub fn begin_beside_captures(&self) {
        let own = std::thread::current().id();
        self.until_free(lock(&self.state), own).give_to(own, false);
    }

    /// Waits for a turn for a short call, before all who want to launch, but not for ever: what runs
    /// now may be waiting for this thread. False if the turn did not come.
    pub fn begin_short(&self) -> bool {
        let own = std::thread::current().id();
        let mut state = lock(&self.state);
        state.short_calls += 1;
        let mut seen: Option<(u64, Instant)> = None;
        let mut comes = true;
        while let Some(holder) = state.holder.filter(|one| one.thread != own) {
            let since = match seen {
                Some((number, since)) if number == holder.number => since,
                _ => seen.insert((holder.number, Instant::now())).1,
            };
            let most = if holder.short { ENDED } else { LONGEST };
            if since.elapsed() >= most || state.lasts == Some(holder.number) {
                comes = holder.short;
                state.lasts = Some(holder.number);
                break;
            }
            (state, _) = self.wait_for(state, most - since.elapsed().min(most));
        }
        state.short_calls -= 1;
        if comes {
            state.give_to(own, true);
        }
        drop(state);
        self.changed.notify_all();
        comes
    }

    /// Takes the turn if nothing is in the way of changing profilers; false otherwise.
    pub fn begin_at_once(&self) -> bool {
        let mut state = lock(&self.state);
        let free = state.holder.is_none() && state.captures.is_empty();
        if free {
            state.give_to(std::thread::current().id(), true);
        }
        free
    }

    fn until_free<'state>(
        &self,
        mut state: MutexGuard<'state, State>,
        own: ThreadId,
    ) -> MutexGuard<'state, State> {
        let begun = state.count;
        loop {
            // A turn that this thread still has is one whose end nobody told.
            match state.holder.filter(|one| one.thread != own) {
                Some(holder) if holder.short => {
                    let (next, waited) = self.wait_for(state, ENDED);
                    state = next;
                    if waited && state.holder == Some(holder) {
                        return state;
                    }
                }
                None if state.short_calls == 0 || state.count - begun > FIRST => return state,
                _ => {
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Waits for a change; true if none came in time.
    fn wait_for<'state>(
        &self,
        state: MutexGuard<'state, State>,
        time: Duration,
    ) -> (MutexGuard<'state, State>, bool) {
        let (state, waited) = self
            .changed
            .wait_timeout(state, time)
            .unwrap_or_else(PoisonError::into_inner);
        (state, waited.timed_out())
    }

    /// The turn of this thread is over, if it still has it.
    pub fn end(&self) {
        let own = std::thread::current().id();
        let mut state = lock(&self.state);
        if state.holder.is_some_and(|holder| holder.thread == own) {
            state.holder = None;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Whether captures are under way.
    pub fn captures(&self) -> bool {
        !lock(&self.state).captures.is_empty()
    }

    /// This thread, which has the turn, began a capture in `context`.
    pub fn capture_began(&self, context: *mut c_void) {
        lock(&self.state).captures.push(Capture {
            thread: std::thread::current().id(),
            context: context as usize,
            lasts: false,
        });
    }

    /// A capture ended in `context`, most likely the one that this thread began.
    pub fn capture_ended(&self, context: *mut c_void) {
        let own = std::thread::current().id();
        let mut state = lock(&self.state);
        let captures = &state.captures;
        let begun = captures
            .iter()
            .position(|one| one.thread == own)
            .or_else(|| {
                let same = |one: &Capture| one.context == context as usize;
                captures.iter().position(same)
            });
        if let Some(place) = begun {
            state.captures.remove(place);
        }
        self.changed.notify_all();
    }

    /// The context goes, and its captures with it.
    pub fn captures_gone(&self, context: *mut c_void) {
        let kept = |one: &Capture| one.context != context as usize;
        lock(&self.state).captures.retain(kept);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn context(number: usize) -> *mut c_void {
        number as *mut c_void
    }

    #[test]
    fn one_thread_at_a_time_has_the_turn() {
        let turns = Arc::new(Turns::default());
        let inside = Arc::new(AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        assert_eq!(turns.begin(), Profilers::Free);
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        turns.end();
                    }
                });
            }
        });
    }

    #[test]
    fn captures_of_others_are_waited_for_and_own_ones_keep_profilers_as_they_are() {
        let turns = Turns::default();
        turns.begin();
        turns.capture_began(context(1));
        turns.end();
        assert_eq!(turns.begin(), Profilers::LeftAlone, "its own capture");
        turns.end();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let profilers = turns.begin();
                turns.end();
                profilers
            });
            std::thread::sleep(Duration::from_millis(20));
            turns.begin_beside_captures();
            turns.end();
            turns.capture_ended(context(1));
            assert_eq!(other.join().unwrap(), Profilers::Free);
        });
    }

    #[test]
    fn a_capture_that_lasts_is_waited_for_once_and_never_broken() {
        let turns = Turns::default();
        turns.begin();
        turns.capture_began(context(1));
        turns.end();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut profilers = Vec::new();
                for _ in 0..3 {
                    let begun = Instant::now();
                    profilers.push((turns.begin(), begun.elapsed() >= PATIENCE));
                    turns.end();
                }
                profilers
            });
            let left = Profilers::LeftAlone;
            assert_eq!(
                other.join().unwrap(),
                [(left, true), (left, false), (left, false)]
            );
        });
        turns.captures_gone(context(1));
        assert_eq!(turns.begin(), Profilers::Free);
    }

    #[test]
    fn short_calls_come_first() {
        let turns = Turns::default();
        let launches = AtomicU32::new(0);
        turns.begin();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        turns.begin();
                        launches.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(2));
                        turns.end();
                    }
                });
            }
            let short = scope.spawn(|| {
                assert!(turns.begin_short());
                let before = launches.load(Ordering::SeqCst);
                turns.end();
                before
            });
            while lock(&turns.state).short_calls == 0 {
                std::thread::yield_now();
            }
            turns.end();
            assert_eq!(short.join().unwrap(), 0, "nobody launched before it");
        });
        assert_eq!(launches.into_inner(), 60);
    }

    #[test]
    fn short_calls_do_not_wait_for_ever() {
        let turns = Turns::default();
        turns.begin();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let begun = Instant::now();
                (0..50).any(|_| turns.begin_short()) || begun.elapsed() > LONGEST * 2
            });
            assert!(!other.join().unwrap(), "one turn is waited for once");
        });
        turns.end();
        assert!(turns.begin_short());
    }
}
