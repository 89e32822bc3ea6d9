//! Arbitration between reads of many GPCs at one slice: they take turns.
//!
//! An SM with many neighbours in its GPC therefore waits longer at a slice that is busy. Measured on
//! an H200 (`warps.cu`): SMs of GPCs with nine TPCs read 5 % less than others when all of them read.
//!
//! Modelled: round robin over GPCs. Times are reserved, as with atomics: a read comes after all that
//! its GPC had waiting, a turn of every GPC that has something waiting later. Where that is sooner
//! than in the order of arrival, others wait that much longer in all: the slice does no more than it
//! can.
//! Left out: queues of limited length, credits and back-pressure.
//!
//! Start reading at [`GpcReadArbiter::begin`].

use lockstep_units::{Duration, Time};
use serde::{Deserialize, Serialize};

/// Round robin between reads at one slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpcReadArbiter {
    /// When what each GPC has waiting is done; as many as have ever asked.
    ends: Vec<Time>,
    /// How much sooner than in the order of arrival reads were served, less how much later others were.
    gained: Duration,
}

impl GpcReadArbiter {
    /// When a read of a GPC begins. `free` is when the slice has passed on all that came before.
    #[inline]
    pub fn begin(&mut self, gpc: u32, due: Time, busy: Duration, free: &mut Time) -> Time {
        let gpc = gpc as usize;
        if self.ends.len() <= gpc {
            self.ends.resize(gpc + 1, Time::ZERO);
        }
        let last = due.max(*free) + busy;
        let end = if due >= *free {
            self.gained = Duration::ZERO;
            last
        } else {
            let own = self.ends[gpc];
            let others = self.ends.iter().filter(|end| **end > due).count() as u64;
            let turns = others + u64::from(own <= due);
            let in_turn = own.max(due) + busy * turns;
            if in_turn <= last {
                self.gained.0 += last.0 - in_turn.0;
                in_turn
            } else {
                // Others went ahead, for as long as they did.
                let later = self.gained.0.min(in_turn.0 - last.0);
                self.gained.0 -= later;
                last + Duration(later)
            }
        };
        *free = last;
        self.ends[gpc] = end;
        Time(end.0 - busy.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Duration = Duration(10);

    #[test]
    fn one_who_asks_alone_waits_for_nobody() {
        let (mut arbiter, mut free) = (GpcReadArbiter::default(), Time::ZERO);
        assert_eq!(arbiter.begin(3, Time(100), BUSY, &mut free), Time(100));
        assert_eq!(arbiter.begin(3, Time(100), BUSY, &mut free), Time(110));
        assert_eq!(arbiter.begin(3, Time(500), BUSY, &mut free), Time(500));
    }

    #[test]
    fn who_asks_little_does_not_wait_for_who_asks_much() {
        let (mut arbiter, mut free) = (GpcReadArbiter::default(), Time::ZERO);
        for _ in 0..10 {
            arbiter.begin(0, Time(0), BUSY, &mut free);
        }
        let few = arbiter.begin(1, Time(0), BUSY, &mut free);
        assert_eq!(few, Time(10), "every second turn, not after all ten");
        let many = arbiter.begin(0, Time(0), BUSY, &mut free);
        assert_eq!(many, Time(110), "after all that has arrived");
    }

    #[test]
    fn what_some_gain_others_lose() {
        let (mut arbiter, mut free) = (GpcReadArbiter::default(), Time::ZERO);
        for _ in 0..4 {
            arbiter.begin(0, Time(0), BUSY, &mut free);
        }
        assert_eq!(arbiter.begin(1, Time(0), BUSY, &mut free), Time(10));
        assert_eq!(arbiter.begin(0, Time(0), BUSY, &mut free), Time(50));
        let later = arbiter.begin(0, Time(0), BUSY, &mut free);
        assert_eq!(later, Time(70), "not at 60, when all before it are done");
    }
}
