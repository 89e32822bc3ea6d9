//! Whose atomic is next when many SMs want the same slice.
//!
//! GPCs take turns at a slice, and within a GPC its pairs of SMs do, so an SM with few neighbours
//! that ask comes round sooner than others. Where a loop tries again until nobody was faster,
//! that decides who gets on and how often the others try in vain.
//!
//! Times are reserved: a pair's next atomic takes as many turns as there are pairs before it comes
//! round again, but is never later than all work that has arrived takes.

use lockstep_units::{Duration, Time};
use serde::{Deserialize, Serialize};

/// SMs that share a way to the slices.
pub const PAIR: u32 = 2;

/// Sectors of one instruction arrive within this time of each other.
const TOGETHER: Duration = Duration(4_000_000);

/// Which group of SMs each pair of them is in.
#[derive(Clone, Debug)]
pub struct GroupPlaces {
    groups: u32,
    of_pairs: Vec<u32>,
}

impl GroupPlaces {
    /// So many groups. Pairs that `of_pairs` does not name are dealt to them in turn.
    #[must_use]
    pub fn new(groups: u32, of_pairs: &[u32]) -> Self {
        let groups = groups.max(1);
        let of_pairs = of_pairs.iter().map(|group| group % groups).collect();
        Self { groups, of_pairs }
    }

    /// How many there are.
    #[must_use]
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// The group of an SM.
    #[must_use]
    #[inline]
    pub fn group_of_sm(&self, sm: u32) -> u32 {
        self.group(sm / PAIR)
    }

    /// The group of a pair.
    #[must_use]
    #[inline]
    pub fn group(&self, pair: u32) -> u32 {
        match self.of_pairs.get(pair as usize) {
            Some(group) => *group,
            None => pair % self.groups,
        }
    }
}

/// The turns at one slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicArbiter {
    /// When all that has arrived is done.
    work: Time,
    /// When the last atomic of each pair of SMs is done; as many as have ever asked.
    pairs: Vec<Time>,
    /// The last sector of each SM, and when it arrived.
    sectors: Vec<(u64, Time)>,
    /// The last line.
    line: u64,
}

impl AtomicArbiter {
    /// When an atomic begins that arrives from a pair of SMs.
    pub fn begin(&mut self, pair: u32, places: &GroupPlaces, due: Time, busy: Duration) -> Time {
        let pair = pair as usize;
        if self.pairs.len() <= pair {
            self.pairs.resize(pair + 1, Time::ZERO);
        }
        let last = due.max(self.work) + busy;
        let end = if due >= self.work {
            last
        } else {
            let turns = self.turns(pair, places, due);
            (self.pairs[pair].max(due) + busy * turns).min(last)
        };
        self.work = last;
        self.pairs[pair] = end;
        Time(end.0 - busy.0)
    }

    /// Whether an atomic is on the line of the one before.
    pub fn stays(&mut self, line: u64) -> bool {
        std::mem::replace(&mut self.line, line) == line
    }

    /// Whether an atomic comes right behind one of the same SM on the sector beside its own; both
    /// are then looked up together.
    pub fn follows(&mut self, sm: u32, sector: u64, due: Time) -> bool {
        let sm = sm as usize;
        if self.sectors.len() <= sm {
            self.sectors.resize(sm + 1, (u64::MAX, Time::ZERO));
        }
        let (last, arrived) = std::mem::replace(&mut self.sectors[sm], (sector, due));
        last == sector ^ 1 && due < arrived + TOGETHER
    }

    /// How many atomics are served until the pair comes round again: GPCs that have some waiting,
    /// times such pairs in its own.
    fn turns(&self, pair: usize, places: &GroupPlaces, now: Time) -> u64 {
        let own = places.group(pair as u32);
        let (mut waiting, mut beside) = (1u64 << (own % 64), 1);
        for (other, end) in self.pairs.iter().enumerate() {
            if *end > now {
                let group = places.group(other as u32);
                waiting |= 1 << (group % 64);
                beside += u64::from(group == own && other != pair);
            }
        }
        u64::from(waiting.count_ones()) * beside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Duration = Duration(10);

    fn eight() -> GroupPlaces {
        GroupPlaces::new(8, &[])
    }

    #[test]
    fn pairs_are_where_they_are_said_to_be() {
        let places = GroupPlaces::new(3, &[2, 2, 0]);
        let groups: Vec<u32> = (0..5).map(|pair| places.group(pair)).collect();
        assert_eq!(groups, [2, 2, 0, 0, 1]);
    }

    #[test]
    fn one_who_asks_alone_waits_for_nobody() {
        let mut share = AtomicArbiter::default();
        assert_eq!(share.begin(3, &eight(), Time(100), BUSY), Time(100));
        assert_eq!(share.begin(3, &eight(), Time(100), BUSY), Time(110));
        assert_eq!(share.begin(3, &eight(), Time(500), BUSY), Time(500));
    }

    #[test]
    fn sectors_side_by_side_come_together() {
        let mut share = AtomicArbiter::default();
        assert!(!share.follows(0, 6, Time(100)));
        assert!(share.follows(0, 7, Time(200)));
        assert!(!share.follows(0, 8, Time(300)), "of another pair");
        assert!(!share.follows(1, 9, Time(300)), "from another SM");
        assert!(!share.follows(0, 9, Time(300) + TOGETHER), "too late");
    }

    #[test]
    fn lines_follow_each_other() {
        let mut share = AtomicArbiter::default();
        assert!(!share.stays(7));
        assert!(share.stays(7));
        assert!(!share.stays(8));
        assert!(!share.stays(7));
    }

    #[test]
    fn who_asks_little_comes_round_sooner() {
        let mut share = AtomicArbiter::default();
        for _ in 0..10 {
            share.begin(0, &eight(), Time(0), BUSY);
        }
        let few = share.begin(1, &eight(), Time(0), BUSY);
        assert_eq!(few, Time(10), "every second turn, not after all ten");
        let many = share.begin(0, &eight(), Time(0), BUSY);
        assert_eq!(many, Time(110), "after all that has arrived");
    }

    #[test]
    fn pairs_of_a_group_share_its_turns() {
        let mut share = AtomicArbiter::default();
        for pair in [0, 8, 1] {
            for _ in 0..20 {
                share.begin(pair, &eight(), Time(0), BUSY);
            }
        }
        assert_eq!(
            share.turns(0, &eight(), Time(1)),
            4,
            "two groups, two pairs"
        );
        assert_eq!(share.turns(1, &eight(), Time(1)), 2, "two groups, one pair");
    }
}
