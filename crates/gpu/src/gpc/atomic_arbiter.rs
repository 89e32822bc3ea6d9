//! Arbitration between atomics of many SMs at one slice.
//!
//! GPCs take turns at a slice, and within a GPC its TPCs do, so an SM with few neighbours that ask
//! comes round sooner than others. Where a loop tries again until nobody was faster, that decides
//! who gets on and how often the others try in vain.
//!
//! Modelled: round robin over GPCs and TPCs. Times are reserved: a TPC's next atomic takes as many
//! turns as there are TPCs before it comes round again, but is never later than all work that has
//! arrived takes.
//! Left out: queues of limited length and the back-pressure that they would give.
//!
//! Start reading at [`AtomicArbiter::begin`].

use lockstep_units::{Duration, Time};
use serde::{Deserialize, Serialize};

use super::map::GpcMap;

/// Round robin between atomics at one slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicArbiter {
    /// When all that has arrived is done.
    work: Time,
    /// When the last atomic of each TPC is done; as many as have ever asked.
    tpcs: Vec<Time>,
    /// The last sector of each SM, and when it arrived.
    sectors: Vec<(u64, Time)>,
    /// The last line.
    line: u64,
}

impl AtomicArbiter {
    /// When an atomic begins that arrives from a TPC.
    pub fn begin(&mut self, tpc: u32, map: &GpcMap, due: Time, busy: Duration) -> Time {
        let tpc = tpc as usize;
        if self.tpcs.len() <= tpc {
            self.tpcs.resize(tpc + 1, Time::ZERO);
        }
        let last = due.max(self.work) + busy;
        let end = if due >= self.work {
            last
        } else {
            let turns = self.turns(tpc, map, due);
            (self.tpcs[tpc].max(due) + busy * turns).min(last)
        };
        self.work = last;
        self.tpcs[tpc] = end;
        Time(end.0 - busy.0)
    }

    /// Whether an atomic is on the line of the one before.
    pub fn stays(&mut self, line: u64) -> bool {
        std::mem::replace(&mut self.line, line) == line
    }

    /// Whether an atomic comes within a `window` behind one of the same SM on the neighbouring
    /// sector; both are then looked up together.
    pub fn follows(&mut self, sm: u32, sector: u64, due: Time, window: Duration) -> bool {
        let sm = sm as usize;
        if self.sectors.len() <= sm {
            self.sectors.resize(sm + 1, (u64::MAX, Time::ZERO));
        }
        let (last, arrived) = std::mem::replace(&mut self.sectors[sm], (sector, due));
        last == sector ^ 1 && due < arrived + window
    }

    /// How many atomics are served until the TPC comes round again: GPCs that have some waiting,
    /// times such TPCs in its own.
    fn turns(&self, tpc: usize, map: &GpcMap, now: Time) -> u64 {
        let own = map.gpc_of_tpc(tpc as u32);
        let (mut waiting, mut beside) = (1u64 << (own % 64), 1);
        for (other, end) in self.tpcs.iter().enumerate() {
            if *end > now {
                let gpc = map.gpc_of_tpc(other as u32);
                waiting |= 1 << (gpc % 64);
                beside += u64::from(gpc == own && other != tpc);
            }
        }
        u64::from(waiting.count_ones()) * beside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Duration = Duration(10);
    const WINDOW: Duration = Duration::nanoseconds(4);

    fn eight() -> GpcMap {
        GpcMap::new(8, &[])
    }

    #[test]
    fn one_who_asks_alone_waits_for_nobody() {
        let mut arbiter = AtomicArbiter::default();
        assert_eq!(arbiter.begin(3, &eight(), Time(100), BUSY), Time(100));
        assert_eq!(arbiter.begin(3, &eight(), Time(100), BUSY), Time(110));
        assert_eq!(arbiter.begin(3, &eight(), Time(500), BUSY), Time(500));
    }

    #[test]
    fn sectors_side_by_side_come_together() {
        let mut arbiter = AtomicArbiter::default();
        assert!(!arbiter.follows(0, 6, Time(100), WINDOW));
        assert!(arbiter.follows(0, 7, Time(200), WINDOW));
        assert!(
            !arbiter.follows(0, 8, Time(300), WINDOW),
            "of another 64 bytes"
        );
        assert!(!arbiter.follows(1, 9, Time(300), WINDOW), "from another SM");
        assert!(
            !arbiter.follows(0, 9, Time(300) + WINDOW, WINDOW),
            "too late"
        );
    }

    #[test]
    fn lines_follow_each_other() {
        let mut arbiter = AtomicArbiter::default();
        assert!(!arbiter.stays(7));
        assert!(arbiter.stays(7));
        assert!(!arbiter.stays(8));
        assert!(!arbiter.stays(7));
    }

    #[test]
    fn who_asks_little_comes_round_sooner() {
        let mut arbiter = AtomicArbiter::default();
        for _ in 0..10 {
            arbiter.begin(0, &eight(), Time(0), BUSY);
        }
        let few = arbiter.begin(1, &eight(), Time(0), BUSY);
        assert_eq!(few, Time(10), "every second turn, not after all ten");
        let many = arbiter.begin(0, &eight(), Time(0), BUSY);
        assert_eq!(many, Time(110), "after all that has arrived");
    }

    #[test]
    fn tpcs_of_a_gpc_share_its_turns() {
        let mut arbiter = AtomicArbiter::default();
        for tpc in [0, 8, 1] {
            for _ in 0..20 {
                arbiter.begin(tpc, &eight(), Time(0), BUSY);
            }
        }
        let turns = |tpc| arbiter.turns(tpc, &eight(), Time(1));
        assert_eq!(turns(0), 4, "two GPCs, two TPCs");
        assert_eq!(turns(1), 2, "two GPCs, one TPC");
    }
}
