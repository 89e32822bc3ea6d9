//! Which addresses a kernel may touch, and which of them it may only read.

use std::ops::Range;

use thiserror::Error;

/// Why a range of addresses cannot be made valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RangeError {
    /// It has no bytes, or its end lies before its start.
    #[error("the range {0:#x?} is empty")]
    Empty(Range<u64>),
    /// It reaches outside the window.
    #[error("the range {range:#x?} lies outside the window {window:#x?}")]
    Outside {
        /// What was asked for.
        range: Range<u64>,
        /// What there is.
        window: Range<u64>,
    },
    /// Some of it is valid already.
    #[error("the range {range:#x?} overlaps the allocation {other:#x?}")]
    Overlap {
        /// What was asked for.
        range: Range<u64>,
        /// What is in its way.
        other: Range<u64>,
    },
}

/// Allocations, sorted and apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    sorted: Vec<(u64, u64)>,
    /// Starts of those that are only read, ascending; nearly always none.
    read_only: Vec<u64>,
    /// Starts of those that no program has asked for: the heap of device code.
    system: Vec<u64>,
}

impl Ranges {
    /// Adds an allocation.
    ///
    /// # Errors
    /// If it is empty or overlaps another.
    pub fn insert(&mut self, range: Range<u64>) -> Result<(), RangeError> {
        if range.start >= range.end {
            return Err(RangeError::Empty(range));
        }
        let at = self
            .sorted
            .partition_point(|(start, _)| *start < range.start);
        let before = at.checked_sub(1).map(|before| self.sorted[before]);
        let after = self.sorted.get(at).copied();
        for (start, end) in before.into_iter().chain(after) {
            if start < range.end && range.start < end {
                return Err(RangeError::Overlap {
                    range,
                    other: start..end,
                });
            }
        }
        self.sorted.insert(at, (range.start, range.end));
        Ok(())
    }

    /// Removes the allocation that starts at an address and says what it was.
    pub fn remove(&mut self, start: u64) -> Option<Range<u64>> {
        let at = self
            .sorted
            .binary_search_by_key(&start, |(start, _)| *start)
            .ok()?;
        let (start, end) = self.sorted.remove(at);
        self.set_read_only(start, false);
        self.system.retain(|other| *other != start);
        Some(start..end)
    }

    /// Says whether the allocation that starts at an address may only be read. False, and nothing
    /// changed, if none starts there.
    pub fn set_read_only(&mut self, start: u64, read_only: bool) -> bool {
        match self.read_only.binary_search(&start) {
            Ok(at) if !read_only => {
                self.read_only.remove(at);
            }
            Err(at) if read_only => {
                let known = self
                    .sorted
                    .binary_search_by_key(&start, |(start, _)| *start);
                if known.is_err() {
                    return false;
                }
                self.read_only.insert(at, start);
            }
            _ => {}
        }
        true
    }

    /// Whether there is an allocation that may only be read.
    #[must_use]
    pub fn has_read_only(&self) -> bool {
        !self.read_only.is_empty()
    }

    /// The allocation that holds an address, if it may only be read.
    #[must_use]
    pub fn find_read_only(&self, address: u64) -> Option<Range<u64>> {
        let range = self.find(address)?;
        self.read_only.binary_search(&range.start).ok()?;
        Some(range)
    }

    /// The allocation that holds an address.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<Range<u64>> {
        let after = self.sorted.partition_point(|(start, _)| *start <= address);
        let (start, end) = self.sorted[after.checked_sub(1)?];
        (address < end).then_some(start..end)
    }

    /// Says that the allocation that starts at an address is none of a program.
    pub fn set_system(&mut self, start: u64) {
        self.system.push(start);
    }

    /// The allocation of a program closest to an address, for messages.
    #[must_use]
    pub fn nearest(&self, address: u64) -> Option<Range<u64>> {
        let after = self.sorted.partition_point(|(start, _)| *start <= address);
        let own = |(start, _): &&(u64, u64)| !self.system.contains(start);
        let before = self.sorted[..after].iter().rev().find(own).copied();
        let next = self.sorted[after..].iter().find(own).copied();
        match (before, next) {
            (Some((_, end)), Some((start, _)))
                if start - address < address.saturating_sub(end - 1) =>
            {
                next
            }
            (Some(_), _) => before,
            (None, _) => next,
        }
        .map(|(start, end)| start..end)
    }

    /// Whether a GPU with pages of so many bytes has memory at an address: some allocation has a part of its page.
    #[must_use]
    pub fn is_mapped(&self, address: u64, page: u64) -> bool {
        let first = address - address % page;
        let after = self.sorted.partition_point(|(start, _)| *start < first);
        let before = after.checked_sub(1).map(|at| self.sorted[at].1);
        let next = self.sorted.get(after).map(|(start, _)| *start);
        before.is_some_and(|end| end > first) || next.is_some_and(|start| start - first < page)
    }

    /// All allocations, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.sorted.iter().map(|(start, end)| *start..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_found_by_every_address_in_them() {
        let mut ranges = Ranges::default();
        ranges.insert(100..200).unwrap();
        ranges.insert(200..300).unwrap();
        ranges.insert(400..500).unwrap();
        assert_eq!(ranges.find(99), None);
        assert_eq!(ranges.find(100), Some(100..200));
        assert_eq!(ranges.find(199), Some(100..200));
        assert_eq!(ranges.find(200), Some(200..300));
        assert_eq!(ranges.find(300), None);
        assert_eq!(ranges.nearest(310), Some(200..300));
        assert_eq!(ranges.nearest(390), Some(400..500));
        assert_eq!(ranges.nearest(0), Some(100..200));
        ranges.insert(600..700).unwrap();
        ranges.set_system(600);
        assert_eq!(ranges.nearest(650), Some(400..500), "of the program");
        assert_eq!(ranges.remove(600), Some(600..700));
        assert_eq!(ranges.remove(200), Some(200..300));
        assert_eq!(ranges.remove(200), None);
        assert!(ranges.insert(150..160).is_err());
        assert!(ranges.insert(50..101).is_err());
        assert!(ranges.insert(5..5).is_err());
    }

    #[test]
    fn a_page_is_mapped_if_an_allocation_has_a_part_of_it() {
        let mut ranges = Ranges::default();
        ranges.insert(1100..1200).unwrap();
        ranges.insert(2900..4100).unwrap();
        let mapped = |address| ranges.is_mapped(address, 1000);
        let pages: Vec<bool> = (0..6).map(|page| mapped(page * 1000 + 999)).collect();
        assert_eq!(pages, [false, true, true, true, true, false]);
        assert!(mapped(1000) && mapped(4000) && !mapped(5000) && !mapped(0));
    }

    #[test]
    fn what_may_only_be_read_is_known_by_every_address_in_it() {
        let mut ranges = Ranges::default();
        ranges.insert(100..200).unwrap();
        ranges.insert(200..300).unwrap();
        assert!(!ranges.has_read_only());
        assert!(ranges.set_read_only(200, true) && ranges.set_read_only(200, true));
        assert!(
            !ranges.set_read_only(150, true),
            "no allocation starts there"
        );
        assert_eq!(ranges.find_read_only(199), None);
        assert_eq!(ranges.find_read_only(299), Some(200..300));
        assert_eq!(ranges.find_read_only(300), None);
        assert!(ranges.set_read_only(200, false));
        assert!(!ranges.has_read_only());
        ranges.set_read_only(100, true);
        ranges.remove(100);
        ranges.insert(100..200).unwrap();
        assert!(!ranges.has_read_only(), "a new allocation is written");
    }
}
