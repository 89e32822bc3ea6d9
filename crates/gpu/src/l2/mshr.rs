//! The MSHRs of a slice: lines whose misses are outstanding.
//!
//! A miss takes an entry until its sectors are filled. Further requests for the line are merged with it
//! as targets. A miss that finds no entry, or a request that finds no room among the targets, waits until
//! there is one, and the slice takes up nothing else meanwhile.
//!
//! When an entry is filled is known as soon as DRAM has accepted its read, so an entry is a stretch of
//! time. Requests are taken up in turns of GPCs, not in the order in which they arrive: entries that begin
//! later than a miss are not in its way.
//!
//! Start reading at [`MshrTable::open`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lockstep_engine::LoadError;
use lockstep_units::Time;
use serde::{Deserialize, Serialize};

use crate::memory::table::SectorTable;

/// One line whose misses are outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    line: u64,
    since: Time,
    until: Time,
    /// Requests that wait for it.
    targets: u32,
}

/// The MSHRs of a slice.
#[derive(Clone, Debug, Default)]
pub struct MshrTable {
    /// Entries that there are, or 0 for any number.
    limit: usize,
    /// Requests that an entry has room for, or 0 for any number.
    most_targets: u32,
    entries: Vec<Entry>,
    /// Entries by the time at which they are free; one that was extended stands here with an earlier time.
    by_end: BinaryHeap<Reverse<(Time, u32)>>,
    /// Places in `entries` that are free.
    vacant: Vec<u32>,
    /// The entry of each line.
    of_line: SectorTable,
}

/// How a request met the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// When it is taken up.
    pub at: Time,
    /// It was merged with an earlier miss of its line.
    pub merged: bool,
}

/// [`MshrTable`] as it is saved.
pub type Saved = Vec<Entry>;

impl MshrTable {
    /// Empty, with so many entries and room for so many targets each.
    #[must_use]
    pub fn new(limit: u32, most_targets: u32) -> Self {
        Self {
            limit: limit as usize,
            most_targets,
            ..Self::default()
        }
    }

    /// Whether nothing is bounded.
    #[must_use]
    #[inline(always)]
    fn is_unbounded(&self) -> bool {
        self.limit == 0 && self.most_targets == 0
    }

    /// A request of a line whose sectors are on their way waits for them.
    pub fn merge(&mut self, line: u64, at: Time) -> Opened {
        let Some(place) = self.live(line, at) else {
            return Opened { at, merged: false };
        };
        let entry = &mut self.entries[place as usize];
        if self.most_targets > 0 && entry.targets >= self.most_targets {
            let at = entry.until;
            return Opened { at, merged: false };
        }
        entry.targets += 1;
        Opened { at, merged: true }
    }

    /// A miss wants an entry.
    pub fn open(&mut self, line: u64, at: Time) -> Opened {
        if self.is_unbounded() {
            return Opened { at, merged: false };
        }
        let merged = self.merge(line, at);
        if merged.merged {
            return merged;
        }
        let mut at = merged.at;
        self.free_ended(at);
        if self.limit > 0 && self.entries.len() - self.vacant.len() >= self.limit {
            at = self.next_free(at);
            self.free_ended(at);
        }
        let entry = Entry {
            line,
            since: at,
            until: at,
            targets: 1,
        };
        let place = match self.vacant.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        *self.of_line.entry(line, place).0 = place;
        Opened { at, merged: false }
    }

    /// What was asked of DRAM for a line is filled at a time.
    pub fn filled(&mut self, line: u64, until: Time) {
        if self.is_unbounded() {
            return;
        }
        let Some(place) = self.of_line.get(line) else {
            return;
        };
        let entry = &mut self.entries[place as usize];
        let is_new = entry.until == entry.since;
        entry.until = entry.until.max(until).max(Time(entry.since.0 + 1));
        if is_new {
            self.by_end.push(Reverse((entry.until, place)));
        }
    }

    /// The entry of a line, if it is not filled by a time.
    fn live(&self, line: u64, at: Time) -> Option<u32> {
        let place = self.of_line.get(line)?;
        (self.entries[place as usize].until > at).then_some(place)
    }

    /// Frees entries that are filled by a time.
    fn free_ended(&mut self, at: Time) {
        while let Some(Reverse((end, place))) = self.by_end.peek().copied() {
            if end > at {
                return;
            }
            self.by_end.pop();
            let entry = self.entries[place as usize];
            if entry.until > end {
                self.by_end.push(Reverse((entry.until, place)));
                continue;
            }
            if self.of_line.get(entry.line) == Some(place) {
                self.of_line.remove(entry.line);
            }
            self.vacant.push(place);
        }
    }

    /// When an entry is free for a miss at a time.
    fn next_free(&self, at: Time) -> Time {
        let live = self.live_entries();
        let in_the_way = live.filter(|entry| entry.since <= at && entry.until > at);
        let mut ends: Vec<Time> = in_the_way.map(|entry| entry.until).collect();
        if ends.len() < self.limit {
            return at;
        }
        let last = ends.len() - self.limit;
        *ends.select_nth_unstable(last).1
    }

    /// All entries that are not free, in any order.
    fn live_entries(&self) -> impl Iterator<Item = &Entry> {
        let places = self.by_end.iter().map(|Reverse((_, place))| *place);
        places.map(|place| &self.entries[place as usize])
    }

    /// What is saved. Where entries lie is of no consequence.
    #[must_use]
    pub fn saved(&self) -> Saved {
        let mut entries: Vec<_> = self.live_entries().copied().collect();
        entries.sort_unstable_by_key(|entry| entry.line);
        entries
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If an entry ends before it begins.
    pub fn restore(&mut self, entries: Saved) -> Result<(), LoadError> {
        *self = Self::new(self.limit as u32, self.most_targets);
        for (place, entry) in (0..).zip(&entries) {
            if entry.until <= entry.since || entry.line == u64::MAX {
                let what = "an MSHR that is filled before it is opened";
                return Err(LoadError::Malformed { what });
            }
            self.by_end.push(Reverse((entry.until, place)));
            *self.of_line.entry(entry.line, place).0 = place;
        }
        self.entries = entries;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens entries one after the other; says when each has its entry, and which were merged.
    fn open(table: &mut MshrTable, misses: &[(u64, u64)], takes: u64) -> Vec<(u64, bool)> {
        let opened = misses.iter().map(|(line, at)| {
            let opened = table.open(*line, Time(*at));
            table.filled(*line, Time(opened.at.0 + takes));
            (opened.at.0, opened.merged)
        });
        opened.collect()
    }

    #[test]
    fn a_miss_waits_for_an_entry_when_all_are_taken() {
        let mut table = MshrTable::new(2, 0);
        let misses = [(1, 0), (2, 10), (3, 20), (4, 100), (5, 300)];
        let opened = open(&mut table, &misses, 100).into_iter();
        let times: Vec<u64> = opened.map(|(at, _)| at).collect();
        assert_eq!(times, [0, 10, 100, 110, 300]);
    }

    #[test]
    fn requests_for_a_line_share_its_entry_as_far_as_it_has_room() {
        let mut table = MshrTable::new(1, 2);
        let opened = open(&mut table, &[(1, 0), (1, 50), (1, 60)], 100);
        assert_eq!(opened, [(0, false), (50, true), (150, false)]);
        assert!(table.merge(1, Time(200)).merged);
        let third = table.merge(1, Time(210));
        assert_eq!((third.at, third.merged), (Time(250), false), "no room");
        assert!(!table.merge(9, Time(200)).merged, "nothing is on its way");
    }

    #[test]
    fn entries_that_begin_later_are_not_in_the_way() {
        let mut table = MshrTable::new(1, 0);
        assert_eq!(open(&mut table, &[(1, 1000), (2, 10)], 100)[1], (10, false));
    }

    #[test]
    fn a_table_goes_on_where_it_was_saved() {
        let (mut random, mut at) = (12345u64, 0);
        let mut table = MshrTable::new(8, 3);
        let mut loaded = MshrTable::new(8, 3);
        for step in 0..2000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            at += random >> 60;
            if step % 7 == 0 {
                loaded = MshrTable::new(8, 3);
                loaded.restore(table.saved()).unwrap();
                assert_eq!(loaded.saved(), table.saved());
            }
            let miss = [(random >> 40 & 31, at + (random >> 50 & 15))];
            assert_eq!(open(&mut table, &miss, 40), open(&mut loaded, &miss, 40));
        }
        let mut broken = table.saved();
        broken[0].until = broken[0].since;
        assert!(MshrTable::new(8, 3).restore(broken).is_err());
    }
}
