//! Where the workers of a step start together and meet again.
//!
//! One thread leads: it opens the epoch barrier for as many of the others as it needs, does its own share,
//! and waits until all of these have arrived. Between the two every worker may read what the leader
//! wrote before, and after it the leader may read what the workers wrote.
//!
//! Waiting spins for a bounded time, since the others are nearly done when both run, and then
//! sleeps, since on a busy host they may not be running at all. A follower that is not needed for
//! long goes to sleep as well, and costs nothing until the leader wants it again.

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, Padded, fence, lock, spin_loop, yield_now};

/// Bits of the word that say how many followers are let through; the turn lies above.
const NEEDED: u32 = 16;
/// The most followers that an epoch barrier can have.
pub const MOST_FOLLOWERS: usize = (1 << NEEDED) - 1;

/// Set in the count of arrivals when the leader sleeps and must be woken.
const ASLEEP: u64 = 1;
/// One arrival, above that bit.
const ONE: u64 = 2;

/// How long to wait for another thread before sleeping.
///
/// Spinning that ends in sleep was in vain: perhaps the other thread waits for this very
/// processor. So it halves the spin_budget for the next time, and success doubles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinBudget {
    /// Turns of a tight loop, this time.
    spins: u32,
    /// Turns of a tight loop, at most.
    most: u32,
}

impl SpinBudget {
    /// With so many turns at most.
    pub const fn new(most: u32) -> Self {
        Self { spins: most, most }
    }

    /// Calls `done` until it is true or spin_budget ends, and says which.
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

/// Where one thread sleeps.
struct Parker {
    mutex: Mutex<()>,
    woken: Condvar,
}

impl Parker {
    fn new() -> Self {
        Self {
            mutex: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    /// Sleeps until `ready`, which is asked with the lock locked.
    fn sleep(&self, mut ready: impl FnMut() -> bool) {
        let mut guard = lock(&self.mutex);
        while !ready() {
            guard = self
                .woken
                .wait(guard)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Wakes whoever sleeps here. The lock makes sure that it cannot fall between its look and its
    /// sleep.
    fn wake(&self) {
        drop(lock(&self.mutex));
        self.woken.notify_all();
    }
}

/// The meeting point of one leader and its followers.
pub struct EpochBarrier {
    /// The turn, and how many followers it is for.
    opened: Padded<AtomicU64>,
    /// How many of them have arrived since.
    arrived: Padded<AtomicU64>,
    leader: Parker,
    /// A bit for every follower that sleeps, or is about to.
    asleep: Padded<Box<[AtomicU64]>>,
    followers: Box<[Parker]>,
}

impl EpochBarrier {
    /// For a leader and so many followers.
    ///
    /// # Panics
    /// If there are more than `MOST_FOLLOWERS`.
    pub fn new(followers: usize) -> Self {
        assert!(followers <= MOST_FOLLOWERS, "{followers} workers");
        Self {
            opened: Padded(AtomicU64::new(0)),
            arrived: Padded(AtomicU64::new(0)),
            leader: Parker::new(),
            asleep: Padded(
                (0..followers.div_ceil(64))
                    .map(|_| AtomicU64::new(0))
                    .collect(),
            ),
            followers: (0..followers).map(|_| Parker::new()).collect(),
        }
    }

    /// Leader: lets the first `needed` followers through once. All that were let through before
    /// have arrived.
    #[inline]
    pub fn open(&self, needed: usize) {
        // A bit left behind by the leader itself is forgotten along with the count.
        self.arrived.0.store(0, Ordering::Relaxed);
        let turn = (self.opened.0.load(Ordering::Relaxed) >> NEEDED) + 1;
        let word = turn << NEEDED | needed as u64;
        self.opened.0.store(word, Ordering::Release);
        // Either we see the bit of a follower, or it sees our word.
        fence(Ordering::SeqCst);
        for (index, bits) in self.asleep.0.iter().enumerate() {
            let first = index * 64;
            if first >= needed {
                break;
            }
            let mut left = bits.load(Ordering::Relaxed);
            if needed - first < 64 {
                left &= (1 << (needed - first)) - 1;
            }
            while left != 0 {
                self.followers[first + left.trailing_zeros() as usize].wake();
                left &= left - 1;
            }
        }
    }

    /// Leader: waits until every follower that was let through has arrived. Calls `meanwhile`
    /// whenever it sees that another of the last quarter has, while others have not.
    #[inline]
    pub fn wait_for_all(&self, spin_budget: &mut SpinBudget, mut meanwhile: impl FnMut()) {
        let all = (self.opened.0.load(Ordering::Relaxed) & MOST_FOLLOWERS as u64) * ONE;
        let arrived = &self.arrived.0;
        let mut seen = all - all / 4 - ONE.min(all / 4);
        let everybody = || {
            let now = arrived.load(Ordering::Acquire);
            if now > seen && now != all {
                seen = now;
                meanwhile();
            }
            now == all
        };
        if spin_budget.wait(everybody) {
            return;
        }
        // The last to arrive changes the word after this, sees the bit and wakes us.
        self.leader
            .sleep(|| arrived.fetch_or(ASLEEP, Ordering::AcqRel) & !ASLEEP == all);
    }

    /// Follower: waits until the epoch barrier opens for it, which it last did in turn `last`, and says in
    /// which turn. Turns that are not for it pass by.
    #[inline]
    pub fn pass(&self, follower: usize, last: u64, spin_budget: &mut SpinBudget) -> u64 {
        let mut turn = last;
        // Whether there is a turn for this follower, which is `turn` then.
        let mut look = || {
            let word = self.opened.0.load(Ordering::Acquire);
            let is_new = word >> NEEDED != turn;
            turn = word >> NEEDED;
            is_new && (follower as u64) < word & MOST_FOLLOWERS as u64
        };
        if !spin_budget.wait(&mut look) {
            let bits = &self.asleep.0[follower / 64];
            let bit = 1 << (follower % 64);
            self.followers[follower].sleep(|| {
                bits.fetch_or(bit, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                look()
            });
            bits.fetch_and(!bit, Ordering::Relaxed);
        }
        turn
    }

    /// Follower: has done its share.
    #[inline]
    pub fn arrive(&self) {
        let all = (self.opened.0.load(Ordering::Relaxed) & MOST_FOLLOWERS as u64) * ONE;
        let before = self.arrived.0.fetch_add(ONE, Ordering::AcqRel);
        if before == all - ONE + ASLEEP {
            self.leader.wake();
        }
    }
}
