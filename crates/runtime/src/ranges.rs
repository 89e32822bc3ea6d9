//! First fit over a range of addresses: the same calls give the same addresses, always.

use std::collections::BTreeMap;

/// Free and used parts of one range of addresses.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// Free ranges, by start: length. Neighbours are always joined.
    free: BTreeMap<u64, u64>,
    /// Used ranges, by start: length.
    used: BTreeMap<u64, u64>,
}

impl Ranges {
    /// All of `start..end` is free.
    pub fn new(start: u64, end: u64) -> Self {
        let free = if start < end {
            BTreeMap::from([(start, end - start)])
        } else {
            BTreeMap::new()
        };
        Self {
            free,
            used: BTreeMap::new(),
        }
    }

    /// Takes the lowest free `length` bytes at a multiple of `alignment`, a power of two.
    pub fn take(&mut self, length: u64, alignment: u64) -> Option<u64> {
        let fit = |start: u64, size: u64| {
            let aligned = start.checked_next_multiple_of(alignment)?;
            let end = aligned.checked_add(length)?;
            (end <= start + size).then_some(aligned)
        };
        let (start, size, aligned) = self
            .free
            .iter()
            .find_map(|(&start, &size)| Some((start, size, fit(start, size)?)))?;
        self.free.remove(&start);
        if aligned > start {
            self.free.insert(start, aligned - start);
        }
        let (end, all) = (aligned + length, start + size);
        if all > end {
            self.free.insert(end, all - end);
        }
        self.used.insert(aligned, length);
        Some(aligned)
    }

    /// Gives back what [`Ranges::take`] answered; `None` if that is not in use.
    pub fn give(&mut self, start: u64) -> Option<u64> {
        let length = self.used.remove(&start)?;
        let (mut from, mut to) = (start, start + length);
        if let Some((&before, &size)) = self.free.range(..start).next_back()
            && before + size == start
        {
            self.free.remove(&before);
            from = before;
        }
        if let Some(size) = self.free.remove(&to) {
            to += size;
        }
        self.free.insert(from, to - from);
        Some(length)
    }

    /// Whether nothing is in use.
    pub fn is_unused(&self) -> bool {
        self.used.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_lowest_fit_is_taken_and_neighbours_join() {
        let mut ranges = Ranges::new(0x1000, 0x2000);
        let first = ranges.take(0x100, 0x100).unwrap();
        let second = ranges.take(0x100, 0x100).unwrap();
        let third = ranges.take(0x100, 0x100).unwrap();
        assert_eq!((first, second, third), (0x1000, 0x1100, 0x1200));
        assert_eq!(ranges.give(second), Some(0x100));
        assert_eq!(ranges.give(second), None);
        assert_eq!(ranges.take(0x200, 0x100), Some(0x1300));
        assert_eq!(ranges.take(0x80, 0x80), Some(0x1100));
        for start in [first, third, 0x1300, 0x1100] {
            ranges.give(start).unwrap();
        }
        assert!(ranges.is_unused());
        assert_eq!(ranges.take(0x1000, 0x1000), Some(0x1000));
        assert_eq!(ranges.take(1, 1), None);
    }

    proptest! {
        #[test]
        fn what_is_in_use_never_overlaps(steps in prop::collection::vec((0u64..3, 1u64..3000, 0u32..10), 1..200)) {
            let mut ranges = Ranges::new(4096, 1 << 20);
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (kind, length, shift) in steps {
                if kind == 0 && !taken.is_empty() {
                    let (start, size) = taken.swap_remove(length as usize % taken.len());
                    prop_assert_eq!(ranges.give(start), Some(size));
                } else if let Some(start) = ranges.take(length, 1 << shift) {
                    prop_assert_eq!(start % (1 << shift), 0);
                    prop_assert!(start >= 4096 && start + length <= 1 << 20);
                    for &(other, size) in &taken {
                        prop_assert!(start + length <= other || other + size <= start);
                    }
                    taken.push((start, length));
                }
            }
            for (start, _) in taken { ranges.give(start); }
            prop_assert_eq!(ranges.take((1 << 20) - 4096, 1), Some(4096));
        }
    }
}
