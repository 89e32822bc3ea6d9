//! Calls that wait for their turn, one of which looks whose turn it is.
//!
//! To look means to ask the kernel about every thread of the program, so of all that wait only one does: whoever came
//! last. It looks again now and then, and whenever something has changed. The others sleep until they are answered or
//! until it is theirs to look, because the one that did so goes on.
//!
//! Start reading at [`answer`].

use super::{Ended, State, lock};
use crate::host::{Key, Turn};
use lockstep_protocol::{Hello, Request, Response};
use lockstep_runtime::Device;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long whoever looks waits before it looks again whether threads are at rest, at first and at most.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(2)];

/// Those that wait for their turn, or for that of their process to leave.
#[derive(Default)]
pub(super) struct Waiting {
    waiting: BTreeMap<Key, Arc<Condvar>>,
    /// Who of them looks; somebody does if there is anybody.
    looks: Option<Key>,
}

impl Waiting {
    /// Comes to wait, and looks from now on.
    fn join(&mut self, key: Key) -> Arc<Condvar> {
        self.looks = Some(key);
        self.waiting.entry(key).or_default().clone()
    }

    /// Waits no longer: if it looked, another one does from now on.
    fn leave(&mut self, key: Key) {
        self.waiting.remove(&key);
        if self.looks == Some(key) {
            self.looks = self.waiting.keys().next_back().copied();
            self.look();
        }
    }

    /// Something has changed: whoever looks does so at once.
    pub(super) fn look(&self) {
        if let Some(key) = self.looks {
            self.wake(key);
        }
    }

    /// It was this one's turn.
    pub(super) fn wake(&self, key: Key) {
        if let Some(one) = self.waiting.get(&key) {
            one.notify_one();
        }
    }

    /// Nobody has to wait for others any more.
    pub(super) fn wake_all(&self) {
        self.waiting.values().for_each(|one| one.notify_one());
    }
}

/// Answers a call when its turn comes, and those of others whose turn comes with it.
pub(super) fn answer<D: Device>(
    state: &Mutex<State<D>>,
    key: Key,
    hello: &Hello,
    request: Request,
) -> Response {
    let mut state = lock(state);
    state.order.enter(key, hello, Arc::new(request));
    wait(state, key, |state| {
        let released = state.order.is_released(key);
        released.then(|| state.answers.remove(&key)).flatten()
    })
}

/// A connection has ended. If it was the last of its process, that leaves when its turn comes, or with the run.
pub(super) fn leave<D: Device>(state: &Mutex<State<D>>, key: Key, hello: &Hello) {
    let mut state = lock(state);
    state.order.leave(key);
    state.peers.remove(&key);
    state.waiting.look();
    let Some(client) = state.clients.remove(&key) else {
        return;
    };
    if !state.was_last(hello.process) {
        return;
    }
    let name = hello.name.clone();
    state.ended.insert(key, Ended { client, name });
    state.order.ends(key);
    wait(state, key, |state| {
        let left = state.over || !state.ended.contains_key(&key);
        left.then_some(())
    });
}

/// Waits until there is something for this one, and does meanwhile what it is time for.
fn wait<D: Device, Answer>(
    mut state: MutexGuard<'_, State<D>>,
    key: Key,
    answer: impl Fn(&mut State<D>) -> Option<Answer>,
) -> Answer {
    let turned = state.waiting.join(key);
    let [first, longest] = LOOK_AGAIN;
    let mut pause = first;
    loop {
        if let Some(answer) = answer(&mut state) {
            state.waiting.leave(key);
            return answer;
        }
        if state.waiting.looks != Some(key) {
            state = turned.wait(state).unwrap_or_else(PoisonError::into_inner);
            pause = first;
        } else if !take_turn(&mut state) {
            let waited = turned.wait_timeout(state, pause);
            let (locked, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = locked;
            pause = match waited.timed_out() {
                true => longest.min(pause * 2),
                false => first,
            };
        }
    }
}

/// Does what it is time for; false if it is nobody's turn.
fn take_turn<D: Device>(state: &mut State<D>) -> bool {
    match state.turn() {
        Turn::Nobody => return false,
        Turn::Release(first) => state.release(first),
        Turn::Leave(keys) => {
            for key in keys {
                state.left(key);
                state.waiting.wake(key);
            }
        }
        Turn::Calls(calls) => {
            state.come_to_time(&calls);
            state.answer_all(&calls);
        }
        Turn::Waits(waits) => state.answer_first(&waits),
    }
    true
}
