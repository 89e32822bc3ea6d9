//! Where the workers of a step start together and meet again.
//!
//! One thread leads: it opens the gate for the others, does its own share, and waits until all
//! have arrived. Between the two every worker may read what the leader wrote before, and after it
//! the leader may read what the workers wrote.
//!
//! Waiting spins for a bounded time, since the others are nearly done when both run, and then
//! sleeps, since on a busy host they may not be running at all. Each side is one atomic word that
//! holds both the state and a bit for "somebody sleeps", so waking needs no second look.

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, Padded, lock, spin_loop, yield_now};

/// Set when a waiter sleeps and must be woken.
const ASLEEP: u64 = 1;
/// One step of the counters above that bit.
const ONE: u64 = 2;

/// How long to wait for another thread before sleeping.
///
/// Spinning that ends in sleep was in vain: perhaps the other thread waits for this very
/// processor. So it halves the patience for the next time, and success doubles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Turns of a tight loop, this time.
    spins: u32,
    /// Turns of a tight loop, at most.
    most: u32,
}

impl Patience {
    /// With so many turns at most.
    pub const fn new(most: u32) -> Self {
        Self { spins: most, most }
    }

    /// Calls `done` until it is true or patience ends, and says which.
    #[inline]
    fn wait(&mut self, mut done: impl FnMut() -> bool) -> bool {
        for _ in 0..self.spins {
            if done() {
                self.spins = (self.spins * 2).min(self.most);
                return true;
            }
            spin_loop();
        }
        self.spins = (self.spins / 2).max(self.most.min(16));
        // Once, for whoever would run here: cheaper than sleeping if it is the one waited for.
        yield_now();
        done()
    }
}

/// A word that some threads change and others wait on.
struct Signal {
    word: Padded<AtomicU64>,
    sleep: Mutex<()>,
    woken: Condvar,
}

impl Signal {
    fn new() -> Self {
        Self {
            word: Padded(AtomicU64::new(0)),
            sleep: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    /// Waits until `ready` is true of the word without its [`ASLEEP`] bit.
    #[inline]
    fn wait(&self, patience: &mut Patience, ready: impl Fn(u64) -> bool) {
        let word = &self.word.0;
        if patience.wait(|| ready(word.load(Ordering::Acquire) & !ASLEEP)) {
            return;
        }
        let mut guard = lock(&self.sleep);
        // Whoever changes the word after this sees the bit, and takes the lock before notifying:
        // it cannot fall between our look and our sleep.
        // The plain look comes first so that a waiter which was woken leaves no bit behind.
        while !ready(word.load(Ordering::Acquire) & !ASLEEP)
            && !ready(word.fetch_or(ASLEEP, Ordering::AcqRel) & !ASLEEP)
        {
            guard = self
                .woken
                .wait(guard)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Wakes the sleepers, if the word had the bit when it was changed.
    #[inline]
    fn wake(&self, before: u64) {
        if before & ASLEEP != 0 {
            drop(lock(&self.sleep));
            self.woken.notify_all();
        }
    }
}

/// The meeting point of one leader and its followers.
pub struct Gate {
    followers: u64,
    /// How often the gate was opened.
    opened: Signal,
    /// How many followers have arrived since.
    arrived: Signal,
}

impl Gate {
    /// For a leader and so many followers.
    pub fn new(followers: usize) -> Self {
        Self {
            followers: followers as u64,
            opened: Signal::new(),
            arrived: Signal::new(),
        }
    }

    /// Leader: lets every follower through once. All of them have arrived before, or have never
    /// been let through.
    #[inline]
    pub fn open(&self) {
        // A bit left behind by the leader itself is forgotten along with the count.
        self.arrived.word.0.store(0, Ordering::Relaxed);
        // Only the leader counts up, and followers only add the bit: it is safe to rebuild the
        // word, and the swap shows the bit.
        let word = &self.opened.word.0;
        let next = (word.load(Ordering::Relaxed) & !ASLEEP) + ONE;
        self.opened.wake(word.swap(next, Ordering::AcqRel));
    }

    /// Leader: waits until every follower has arrived.
    #[inline]
    pub fn meet(&self, patience: &mut Patience) {
        let all = self.followers * ONE;
        self.arrived.wait(patience, |word| word == all);
    }

    /// Follower: waits for the gate to open for the `turn`-th time, counted from one.
    #[inline]
    pub fn pass(&self, turn: u64, patience: &mut Patience) {
        self.opened.wait(patience, |word| word == turn * ONE);
    }

    /// Follower: has done its share.
    #[inline]
    pub fn arrive(&self) {
        let before = self.arrived.word.0.fetch_add(ONE, Ordering::AcqRel);
        if (before & !ASLEEP) + ONE == self.followers * ONE {
            self.arrived.wake(before);
        }
    }
}
