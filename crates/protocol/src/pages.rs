//! A set of pages, as ranges of addresses.

use std::collections::BTreeMap;

/// Bytes of a page of managed memory.
pub const PAGE: u64 = 4096;

/// Ranges of whole pages that neither overlap nor touch, by start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRanges {
    ends: BTreeMap<u64, u64>,
}

impl PageRanges {
    /// An empty set of pages.
    pub const fn new() -> Self {
        Self {
            ends: BTreeMap::new(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether an address lies in one.
    pub fn contains(&self, address: u64) -> bool {
        self.ends
            .range(..=address)
            .next_back()
            .is_some_and(|(_, end)| address < *end)
    }

    /// All ranges, as (address, bytes), ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ends.iter().map(|(start, end)| (*start, end - start))
    }

    /// The parts of a range that are in the set, as (address, bytes).
    pub fn within(&self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        let (start, end) = whole(address, bytes);
        let before = self.ends.range(..start).next_back();
        before
            .into_iter()
            .chain(self.ends.range(start..end))
            .filter_map(|(from, to)| {
                let (from, to) = ((*from).max(start), (*to).min(end));
                (from < to).then(|| (from, to - from))
            })
            .collect()
    }

    /// The parts of a range that are not in the set, as (address, bytes).
    pub fn outside(&self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        let (mut start, end) = whole(address, bytes);
        let mut gaps = Vec::new();
        for (from, length) in self.within(address, bytes) {
            if start < from {
                gaps.push((start, from - start));
            }
            start = from + length;
        }
        if start < end {
            gaps.push((start, end - start));
        }
        gaps
    }

    /// Adds the pages that a range touches.
    pub fn insert(&mut self, address: u64, bytes: u64) {
        let (mut start, mut end) = whole(address, bytes);
        if start >= end {
            return;
        }
        while let Some((from, to)) = self
            .ends
            .range(..=end)
            .next_back()
            .map(|(from, to)| (*from, *to))
            && to >= start
        {
            self.ends.remove(&from);
            start = start.min(from);
            end = end.max(to);
        }
        self.ends.insert(start, end);
    }

    /// Removes the pages that a range touches.
    pub fn remove(&mut self, address: u64, bytes: u64) {
        let (start, end) = whole(address, bytes);
        while let Some((from, to)) = self
            .ends
            .range(..end)
            .next_back()
            .map(|(from, to)| (*from, *to))
            && to > start
        {
            self.ends.remove(&from);
            if from < start {
                self.ends.insert(from, start);
            }
            if to > end {
                self.ends.insert(end, to);
            }
        }
    }
}

/// From the first byte of the first page to past the last byte of the last.
fn whole(address: u64, bytes: u64) -> (u64, u64) {
    let end = address.saturating_add(bytes);
    (
        address - address % PAGE,
        end.checked_next_multiple_of(PAGE)
            .unwrap_or(end - end % PAGE),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: u64 = PAGE;

    #[test]
    fn ranges_join_and_split() {
        let mut set = PageRanges::new();
        set.insert(2 * P, P);
        set.insert(4 * P, P);
        assert_eq!(set.iter().collect::<Vec<_>>(), [(2 * P, P), (4 * P, P)]);
        set.insert(3 * P + 5, 1);
        assert_eq!(set.iter().collect::<Vec<_>>(), [(2 * P, 3 * P)]);
        assert!(set.contains(2 * P) && set.contains(5 * P - 1) && !set.contains(5 * P));
        set.remove(3 * P, 10);
        assert_eq!(set.iter().collect::<Vec<_>>(), [(2 * P, P), (4 * P, P)]);
        assert_eq!(set.within(0, 5 * P), [(2 * P, P), (4 * P, P)]);
        assert_eq!(set.outside(0, 6 * P), [(0, 2 * P), (3 * P, P), (5 * P, P)]);
        assert_eq!(set.outside(2 * P, P), []);
        set.remove(0, u64::MAX);
        assert!(set.is_empty());
    }

    /// The same as a plain set of pages, for any order of changes.
    #[test]
    fn changes_agree_with_a_plain_set() {
        let mut set = PageRanges::new();
        let mut plain = std::collections::BTreeSet::new();
        let mut random = 7u64;
        for _ in 0..2000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (page, count) = ((random >> 33) % 64, (random >> 40) % 9);
            let pages = page..page + count;
            if random >> 63 == 0 {
                set.insert(page * P, count * P);
                plain.extend(pages);
            } else {
                set.remove(page * P, count * P);
                plain.retain(|other| !pages.contains(other));
            }
            for page in 0..80 {
                assert_eq!(set.contains(page * P), plain.contains(&page));
            }
            let inside: u64 = set
                .within(0, 80 * P)
                .iter()
                .map(|(_, bytes)| bytes / P)
                .sum();
            assert_eq!(inside, plain.len() as u64);
        }
    }
}
