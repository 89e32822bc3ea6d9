//! A translation look-aside buffer: which pages have a translation here, nothing more.
//!
//! Entries cover 4 KiB to 2 MiB ([`PageSize`]). A TLB of one set finds entries through an index, so its
//! size costs nothing; the entry that was used longest ago makes room.

use serde::{Deserialize, Serialize};

use crate::geometry::PageSize;

/// No entry.
const NONE: u32 = u32::MAX;

/// The entries that a shootdown removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// Every entry.
    Whole,
    /// Entries that cover one of so many pages from the first on.
    Pages {
        /// First page.
        first: u64,
        /// Number of pages.
        count: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// First page, with the size in the low bits of nothing: pages are multiples of the size.
    page: u64,
    size: PageSize,
    valid: bool,
    /// Written through this entry already.
    dirty: bool,
    /// Not to be written through.
    read_only: bool,
    /// When its use was last reported.
    reported: u64,
    newer: u32,
    older: u32,
    /// The next entry in the same bucket of the index.
    chain: u32,
}

/// A translation look-aside buffer. Sets are lists by age; the index is a table of chains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tlb {
    ways: u32,
    entries: Vec<Entry>,
    /// Newest and oldest of each set.
    sets: Vec<(u32, u32)>,
    index: Vec<u32>,
    /// Valid entries of each size.
    sizes: [u32; PageSize::ALL.len()],
    free: Vec<u32>,
    /// Entries of each set that were ever taken.
    filled: Vec<u32>,
    /// The entry that was found last.
    last: u32,
}

/// Index of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found(u32);

fn mix(page: u64, size: PageSize) -> u64 {
    let key = page ^ (size as u64) << 60;
    let key = (key ^ key >> 31).wrapping_mul(0x7fb5_d329_728e_a185);
    key ^ key >> 29
}

impl Tlb {
    /// An empty TLB of so many entries in sets of `ways`; one set if `ways` is 0.
    #[must_use]
    pub fn new(entries: u32, ways: u32) -> Self {
        let ways = if ways == 0 {
            entries
        } else {
            ways.min(entries)
        }
        .max(1);
        let sets = (entries / ways).max(1) as usize;
        Self {
            ways,
            entries: Vec::new(),
            sets: vec![(NONE, NONE); sets],
            index: vec![NONE; (entries as usize).next_power_of_two().max(16)],
            sizes: [0; PageSize::ALL.len()],
            free: Vec::new(),
            filled: vec![0; sets],
            last: NONE,
        }
    }

    /// Valid entries.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.sizes.iter().sum()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn bucket(&self, page: u64, size: PageSize) -> usize {
        mix(page, size) as usize & (self.index.len() - 1)
    }

    fn set_of(&self, page: u64, size: PageSize) -> usize {
        (page / size.pages()) as usize % self.sets.len()
    }

    /// The entry that covers a page; finding it counts as a use.
    #[inline]
    pub fn find(&mut self, page: u64) -> Option<Found> {
        if let Some(last) = self.entries.get(self.last as usize)
            && last.valid
            && page.wrapping_sub(last.page) < last.size.pages()
        {
            // It is the newest of its set already.
            return Some(Found(self.last));
        }
        for size in PageSize::ALL {
            if self.sizes[size as usize] == 0 {
                continue;
            }
            let first = page / size.pages() * size.pages();
            let mut at = self.index[self.bucket(first, size)];
            while at != NONE {
                let entry = &self.entries[at as usize];
                if entry.page == first && entry.size == size {
                    let set = self.set_of(first, size);
                    self.unlink(set, at);
                    self.link(set, at);
                    self.last = at;
                    return Some(Found(at));
                }
                at = entry.chain;
            }
        }
        None
    }

    /// Notes a use of an entry; says whether somebody should be reported: it is the first write, or
    /// the last word about it is `interval` cycles old.
    pub fn should_report_use(
        &mut self,
        found: Found,
        write: bool,
        now: u64,
        interval: u64,
    ) -> bool {
        let entry = &mut self.entries[found.0 as usize];
        let first_write = write && !entry.dirty;
        let old = now >= entry.reported.saturating_add(interval);
        if first_write || old {
            entry.dirty |= write;
            entry.reported = now;
        }
        first_write || old
    }

    /// Whether the entry is not to be written through.
    #[must_use]
    #[inline]
    pub fn is_read_only(&self, found: Found) -> bool {
        self.entries[found.0 as usize].read_only
    }

    /// Lets nothing write through the entry that covers a page.
    pub fn protect(&mut self, page: u64) {
        if let Some(found) = self.find(page) {
            self.entries[found.0 as usize].read_only = true;
        }
    }

    /// Adds an entry; says whether another had to go.
    pub fn insert(&mut self, page: u64, size: PageSize, dirty: bool, now: u64) -> bool {
        let first = page / size.pages() * size.pages();
        if let Some(found) = self.find(page) {
            let entry = &mut self.entries[found.0 as usize];
            if entry.size == size {
                entry.dirty |= dirty;
                return false;
            }
            self.remove(found.0);
        }
        let set = self.set_of(first, size);
        let mut evicted = false;
        let at = if self.filled[set] < self.ways {
            self.filled[set] += 1;
            self.free.pop().unwrap_or_else(|| {
                self.entries.push(Entry {
                    page: 0,
                    size,
                    valid: false,
                    dirty: false,
                    read_only: false,
                    reported: 0,
                    newer: NONE,
                    older: NONE,
                    chain: NONE,
                });
                self.entries.len() as u32 - 1
            })
        } else {
            let oldest = self.sets[set].1;
            self.remove(oldest);
            evicted = true;
            self.filled[set] += 1;
            self.free.pop().expect("an entry was just freed")
        };
        let bucket = self.bucket(first, size);
        let entry = &mut self.entries[at as usize];
        entry.page = first;
        (entry.size, entry.valid, entry.dirty, entry.reported) = (size, true, dirty, now);
        entry.read_only = false;
        entry.chain = self.index[bucket];
        self.index[bucket] = at;
        self.sizes[size as usize] += 1;
        self.link(set, at);
        self.last = at;
        evicted
    }

    /// Removes entries; says how many there were.
    pub fn shoot_down(&mut self, scope: Scope) -> u32 {
        match scope {
            Scope::Whole => {
                let count = self.len();
                if count > 0 {
                    self.entries.clear();
                    self.free.clear();
                    self.index.fill(NONE);
                    self.sets.fill((NONE, NONE));
                    self.filled.fill(0);
                    self.sizes = [0; PageSize::ALL.len()];
                    self.last = NONE;
                }
                count
            }
            Scope::Pages { first, count } => {
                let end = first + u64::from(count);
                let mut removed = 0;
                for size in PageSize::ALL {
                    if self.sizes[size as usize] == 0 {
                        continue;
                    }
                    let mut page = first / size.pages() * size.pages();
                    while page < end {
                        removed += u32::from(self.remove_exact(page, size));
                        page += size.pages();
                    }
                }
                removed
            }
        }
    }

    fn remove_exact(&mut self, page: u64, size: PageSize) -> bool {
        let mut at = self.index[self.bucket(page, size)];
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.page == page && entry.size == size {
                self.remove(at);
                return true;
            }
            at = entry.chain;
        }
        false
    }

    fn remove(&mut self, at: u32) {
        let Entry {
            page, size, chain, ..
        } = self.entries[at as usize];
        let set = self.set_of(page, size);
        self.unlink(set, at);
        let bucket = self.bucket(page, size);
        if self.index[bucket] == at {
            self.index[bucket] = chain;
        } else {
            let mut before = self.index[bucket];
            while self.entries[before as usize].chain != at {
                before = self.entries[before as usize].chain;
            }
            self.entries[before as usize].chain = chain;
        }
        self.entries[at as usize].valid = false;
        self.sizes[size as usize] -= 1;
        self.filled[set] -= 1;
        self.free.push(at);
        if self.last == at {
            self.last = NONE;
        }
    }

    /// Makes an entry the newest of its set.
    fn link(&mut self, set: usize, at: u32) {
        let (newest, oldest) = self.sets[set];
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NONE, newest);
        if newest != NONE {
            self.entries[newest as usize].newer = at;
        }
        self.sets[set] = (at, if oldest == NONE { at } else { oldest });
    }

    fn unlink(&mut self, set: usize, at: u32) {
        let Entry { newer, older, .. } = self.entries[at as usize];
        match newer {
            NONE => self.sets[set].0 = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.sets[set].1 = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_entry_used_longest_ago_makes_room() {
        let mut tlb = Tlb::new(2, 0);
        assert!(!tlb.insert(1, PageSize::Small, false, 0));
        assert!(!tlb.insert(2, PageSize::Small, false, 0));
        assert!(tlb.find(1).is_some());
        assert!(tlb.insert(3, PageSize::Small, false, 0));
        assert!(tlb.find(1).is_some() && tlb.find(3).is_some());
        assert!(tlb.find(2).is_none());
    }

    #[test]
    fn a_large_entry_covers_its_pages_and_leaves_with_any_of_them() {
        let mut tlb = Tlb::new(4, 0);
        tlb.insert(512 + 7, PageSize::Large, false, 0);
        assert!(tlb.find(512).is_some() && tlb.find(1023).is_some());
        assert!(tlb.find(1024).is_none());
        let scope = Scope::Pages {
            first: 700,
            count: 1,
        };
        assert_eq!(tlb.shoot_down(scope), 1);
        assert!(tlb.find(512).is_none());
    }

    proptest! {
        /// Against a plain list by age.
        #[test]
        fn a_tlb_is_a_list_by_age(
            ways in 0u32..5,
            steps in proptest::collection::vec((0u8..4, 0u64..40), 1..200),
        ) {
            let capacity = 8;
            let mut tlb = Tlb::new(capacity, ways);
            let set_ways = if ways == 0 { capacity } else { ways } as usize;
            let sets = capacity as usize / set_ways;
            let mut lists: Vec<Vec<u64>> = vec![Vec::new(); sets];
            for (kind, page) in steps {
                let list = &mut lists[page as usize % sets];
                let known = list.iter().position(|p| *p == page);
                match kind {
                    0 | 1 => {
                        prop_assert_eq!(tlb.find(page).is_some(), known.is_some());
                        if let Some(at) = known {
                            list.remove(at);
                            list.push(page);
                        }
                    }
                    2 => {
                        let evicted = tlb.insert(page, PageSize::Small, false, 0);
                        if let Some(at) = known {
                            list.remove(at);
                        } else if list.len() == set_ways {
                            list.remove(0);
                            prop_assert!(evicted);
                        }
                        list.push(page);
                    }
                    _ => {
                        let removed = tlb.shoot_down(Scope::Pages { first: page, count: 1 });
                        prop_assert_eq!(removed, u32::from(known.is_some()));
                        if let Some(at) = known {
                            list.remove(at);
                        }
                    }
                }
                prop_assert_eq!(tlb.len() as usize, lists.iter().map(Vec::len).sum::<usize>());
            }
        }
    }
}
