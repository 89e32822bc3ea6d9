//! Whose turn it is on one GPU in exact mode, and which captures are under way.
//!
//! Whoever has the turn is the only one who launches, makes graphs, begins a capture or lets a context
//! go: each of them was seen to lose counts, or to end the program, when another thread changed
//! profilers at the same time.
//!
//! Stopping or starting a profiler breaks captures that are under way, so nobody does while there are
//! any. Captures are waited for, but not for ever: one that lasts may be waiting for the very launch
//! that waits for it. Then the launch goes on and profilers stay as they are.

use std::ffi::c_void;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use crate::session::lock;

/// A capture that lasts longer than this is no longer waited for.
const PATIENCE: Duration = Duration::from_secs(2);

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
    taken: bool,
    captures: Vec<Capture>,
}

struct Capture {
    thread: ThreadId,
    context: usize,
    /// Somebody has waited for its end in vain.
    lasts: bool,
}

/// The turns of one GPU.
#[derive(Default)]
pub struct Turns {
    state: Mutex<State>,
    free: Condvar,
}

impl Turns {
    /// Waits for a turn, and for captures of other threads; [`Self::end`] ends it.
    pub fn begin(&self) -> Profilers {
        let own = std::thread::current().id();
        let mut state = lock(&self.state);
        loop {
            state = self.until_free(state);
            let others = |one: &Capture| one.thread != own && !one.lasts;
            if !state.captures.iter().any(others) {
                break;
            }
            let (next, waited) = self
                .free
                .wait_timeout(state, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() {
                let captures = state.captures.iter_mut();
                captures.for_each(|one| one.lasts |= one.thread != own);
            }
        }
        state.taken = true;
        if state.captures.is_empty() {
            Profilers::Free
        } else {
            Profilers::LeftAlone
        }
    }

    /// Waits for a turn in which no profiler is changed.
    pub fn begin_beside_captures(&self) {
        let state = lock(&self.state);
        self.until_free(state).taken = true;
    }

    /// Waits for a turn for as long as a capture is waited for; false if it did not come.
    pub fn begin_soon(&self) -> bool {
        let (mut state, waited) = self
            .free
            .wait_timeout_while(lock(&self.state), PATIENCE, |state| state.taken)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() && state.taken {
            return false;
        }
        state.taken = true;
        true
    }

    fn until_free<'state>(&self, state: MutexGuard<'state, State>) -> MutexGuard<'state, State> {
        self.free
            .wait_while(state, |state| state.taken)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn is over.
    pub fn end(&self) {
        lock(&self.state).taken = false;
        self.free.notify_all();
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
        self.free.notify_all();
    }

    /// The context goes, and its captures with it.
    pub fn captures_gone(&self, context: *mut c_void) {
        let kept = |one: &Capture| one.context != context as usize;
        lock(&self.state).captures.retain(kept);
        self.free.notify_all();
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
                    let begun = std::time::Instant::now();
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
    fn the_end_of_the_process_does_not_wait_for_ever() {
        let turns = Turns::default();
        turns.begin();
        assert!(!turns.begin_soon());
        turns.end();
        assert!(turns.begin_soon());
    }
}
