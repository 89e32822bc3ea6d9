//! Threads that ask again and again with short sleeps in between, and those whose calls wait until they have asked.
//!
//! A library that waits for another thread may sleep for a microsecond, look, and sleep again, or `poll` with a short
//! time-out. When such a thread sees what the others did depends on the host's clock, and so it is let look once more
//! when everybody else has come to rest, before anybody goes on. If it sleeps again then, it has seen nothing that it
//! waits for, and it will not before another one goes on.
//!
//! Who only sleeps looks after whatever anybody did, and as often as there are of them, since one may see what another
//! one did. Who `poll`s looks once after what threads did that make calls: others wake it through its files.
//!
//! That takes time, which has an end: after it such sleeps count as what they are, waits for the clock. Only threads
//! that make calls are let look: pools and monitors sleep so too, and would slow down every call.
//!
//! Start reading at [`Looks::all_looked`].

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a run waits for such looks, in all.
const LONGEST: Duration = Duration::from_secs(60);

/// A thread, by its process and its number.
type Thread = (u32, u32);

/// How a thread waits that asks again after a short time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nap {
    /// It only sleeps.
    Sleeps,
    /// Files of the run wake it too.
    Polls,
}

/// A thread that sleeps when all are at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resting {
    /// Who.
    pub thread: Thread,
    /// How often it was given a processor.
    pub scheduled: u64,
    /// Whether it makes calls.
    pub calls: bool,
    /// How, if it asks again after a short time.
    pub nap: Option<Nap>,
}

/// Who has looked since the others came to rest.
#[derive(Debug, Default)]
pub struct Looks {
    sleeping: Round,
    polling: Round,
    /// Since when looks are waited for.
    since: Option<Instant>,
    /// For how long they were, before.
    waited: Duration,
}

/// What others had done: calls, and how often each was given a processor.
type Done = (u64, Vec<(Thread, u64)>);

/// Looks of those that nap in one way.
#[derive(Debug, Default)]
struct Round {
    /// What others had done when looks were begun.
    others: Done,
    /// How often each is still to look.
    left: usize,
    /// How often each was given a processor before this look.
    before: BTreeMap<Thread, u64>,
}

impl Round {
    /// Whether all of these have looked so many times since others did what they have done.
    fn is_over(&mut self, naps: &[Resting], others: Done, times: usize) -> bool {
        if others != self.others {
            self.others = others;
            self.left = times;
            self.begin(naps);
        }
        let looked = |one: &Resting| {
            let before = self.before.get(&one.thread);
            before.is_some_and(|before| one.scheduled > *before)
        };
        if self.left > 0 && naps.iter().all(looked) {
            self.left -= 1;
            self.begin(naps);
        }
        self.left == 0 || naps.is_empty()
    }

    fn begin(&mut self, naps: &[Resting]) {
        let before = naps.iter().map(|one| (one.thread, one.scheduled));
        self.before = before.collect();
    }
}

impl Looks {
    /// Whether everybody who asks again and again has asked since all others came to rest. `changes` counts what
    /// came from and went to the threads that are inside calls.
    pub fn all_looked(&mut self, changes: u64, resting: &[Resting], now: Instant) -> bool {
        if self.are_over() || resting.iter().all(|one| one.nap.is_none()) {
            self.stop(now);
            return true;
        }
        let those = |nap: Nap| -> Vec<Resting> {
            let napping = resting.iter().filter(|one| one.nap == Some(nap));
            napping.copied().collect()
        };
        let done = |counts: &dyn Fn(&Resting) -> bool| -> Done {
            let others = resting.iter().filter(|one| counts(one));
            let others = others.map(|one| (one.thread, one.scheduled));
            (changes, others.collect())
        };
        let (sleeping, polling) = (those(Nap::Sleeps), those(Nap::Polls));
        let callers = done(&|one| one.calls && one.nap.is_none());
        let anybody = done(&|one| one.nap != Some(Nap::Sleeps));
        let polled = self.polling.is_over(&polling, callers, 1);
        let slept = self.sleeping.is_over(&sleeping, anybody, sleeping.len());
        let over = polled && slept;
        let since = *self.since.get_or_insert(now);
        if over || self.waited + now.saturating_duration_since(since) >= LONGEST {
            self.stop(now);
        }
        over || self.are_over()
    }

    /// Whether nobody's look is waited for any more.
    pub fn are_over(&self) -> bool {
        self.waited >= LONGEST
    }

    /// Nobody waits for looks any more.
    fn stop(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.waited += now.saturating_duration_since(since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resting(threads: &[(u32, u64, Option<Nap>)]) -> Vec<Resting> {
        let one = |&(thread, scheduled, nap): &(u32, u64, Option<Nap>)| Resting {
            thread: (1, thread),
            scheduled,
            calls: true,
            nap,
        };
        threads.iter().map(one).collect()
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "no result depends on it")]
    fn who_naps_looks_once_after_every_change() {
        let now = Instant::now();
        let mut looks = Looks::default();
        assert!(
            looks.all_looked(0, &resting(&[(1, 5, None)]), now),
            "nobody naps"
        );
        let at = |nap, other| resting(&[(1, other, None), (2, nap, Some(Nap::Sleeps))]);
        assert!(!looks.all_looked(0, &at(7, 5), now), "it has not looked");
        assert!(!looks.all_looked(0, &at(7, 5), now), "it still has not");
        assert!(looks.all_looked(0, &at(8, 5), now));
        assert!(looks.all_looked(0, &at(8, 5), now), "nothing has changed");
        assert!(!looks.all_looked(0, &at(8, 6), now), "another one ran");
        assert!(looks.all_looked(0, &at(9, 6), now));
        assert!(!looks.all_looked(1, &at(9, 6), now), "a call came");
        assert!(looks.all_looked(1, &at(10, 6), now));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "no result depends on it")]
    fn of_two_that_nap_each_sees_what_the_other_did() {
        let now = Instant::now();
        let mut looks = Looks::default();
        let at =
            |one, other| resting(&[(1, one, Some(Nap::Sleeps)), (2, other, Some(Nap::Sleeps))]);
        assert!(!looks.all_looked(1, &at(5, 5), now));
        assert!(
            !looks.all_looked(1, &at(6, 5), now),
            "the other has not looked"
        );
        assert!(
            !looks.all_looked(1, &at(6, 6), now),
            "the first may see something now"
        );
        assert!(!looks.all_looked(1, &at(7, 6), now));
        assert!(looks.all_looked(1, &at(7, 9), now));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "no result depends on it")]
    fn who_polls_looks_once() {
        let now = Instant::now();
        let mut looks = Looks::default();
        let polls = |scheduled| (2, scheduled, Some(Nap::Polls));
        assert!(!looks.all_looked(1, &resting(&[polls(5), (3, 5, Some(Nap::Polls))]), now));
        assert!(looks.all_looked(1, &resting(&[polls(6), (3, 6, Some(Nap::Polls))]), now));
        let mut looks = Looks::default();
        let at = |sleeps, scheduled| resting(&[(1, sleeps, Some(Nap::Sleeps)), polls(scheduled)]);
        assert!(!looks.all_looked(1, &at(5, 5), now));
        assert!(
            !looks.all_looked(1, &at(6, 5), now),
            "the other has not looked"
        );
        assert!(
            !looks.all_looked(1, &at(6, 6), now),
            "the first may see something now"
        );
        assert!(looks.all_looked(1, &at(7, 6), now));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "no result depends on it")]
    fn a_thread_without_calls_is_seen_by_those_that_sleep() {
        let now = Instant::now();
        let at = |scheduled, nap, service| {
            let mut both = resting(&[(1, scheduled, Some(nap)), (2, service, None)]);
            both[1].calls = false;
            both
        };
        for (nap, again) in [(Nap::Sleeps, false), (Nap::Polls, true)] {
            let mut looks = Looks::default();
            assert!(!looks.all_looked(1, &at(5, nap, 5), now));
            assert!(looks.all_looked(1, &at(6, nap, 5), now));
            assert_eq!(looks.all_looked(1, &at(6, nap, 6), now), again);
            assert!(looks.all_looked(1, &at(7, nap, 6), now));
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "no result depends on it")]
    fn looks_are_not_waited_for_for_ever() {
        let now = Instant::now();
        let mut looks = Looks::default();
        let nap = resting(&[(1, 5, Some(Nap::Sleeps))]);
        assert!(!looks.all_looked(1, &nap, now) && !looks.are_over());
        let late = now + LONGEST;
        assert!(looks.all_looked(1, &nap, late) && looks.are_over());
        assert!(looks.all_looked(2, &nap, late), "not again");
    }
}
