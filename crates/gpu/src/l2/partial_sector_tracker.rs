//! Lines that were written in part, and that nobody has read since.
//!
//! Of a sector that was written in part, the rest is in DRAM: whoever reads it waits for that. But an
//! H200 has only a few such lines in a set; of older ones, SMs of the same L2 partition read what
//! is known without waiting, and only those of the other partition still wait for DRAM. Measured with chases through
//! memory in which 8 bytes of each line were written: of the lines that were written last, 8 MiB are not
//! found, then those of the near partition are (`validation/microbench/chases.cu`).
//!
//! Start reading at [`PartialSectorTracker::note`].

use serde::{Deserialize, Serialize};

use crate::cache::{Place, SectorCache};

/// The last lines of each set that were written in part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PartialSectorTracker {
    /// So many a set, the youngest first: where it is, which it is.
    last: Vec<(Place, u64)>,
    most: usize,
}

impl PartialSectorTracker {
    /// For a cache with so many sets; with no lines a set, nothing is ever old.
    pub fn new(sets: u32, most: u32) -> Self {
        Self {
            last: vec![(Place::default(), u64::MAX); sets as usize * most as usize],
            most: most as usize,
        }
    }

    /// Whether it was made for such a cache.
    pub fn fits(&self, sets: u32, most: u32) -> bool {
        self.most == most as usize && self.last.len() == sets as usize * self.most
    }

    /// Nothing is tracked any more.
    pub fn clear(&mut self) {
        self.last.fill((Place::default(), u64::MAX));
    }

    /// A line was written in part; the one that was for longest is an old one now.
    pub fn note(&mut self, tags: &mut SectorCache, place: Place, line: u64) {
        if self.most == 0 {
            return;
        }
        let start = tags.set_of(place) * self.most;
        let last = &mut self.last[start..start + self.most];
        if last.contains(&(place, line)) {
            return;
        }
        last.rotate_right(1);
        let (old, key) = std::mem::replace(&mut last[0], (place, line));
        if tags.holds(old, key) {
            let known = tags.line_mut(old);
            known.readable = known.partial;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a sector of a line in part, and says where the line is.
    fn write(tags: &mut SectorCache, parts: &mut PartialSectorTracker, line: u64) -> Place {
        let place = tags.insert(line).unwrap().0;
        tags.line_mut(place).partial = 1;
        parts.note(tags, place, line);
        place
    }

    /// A set of four lines that were all written in part, one after the other.
    fn four_lines(most: u32) -> (SectorCache, PartialSectorTracker, [Place; 4]) {
        let mut tags = SectorCache::new(1, 4);
        let mut parts = PartialSectorTracker::new(1, most);
        let places = [0, 1, 2, 3].map(|line| write(&mut tags, &mut parts, line));
        (tags, parts, places)
    }

    #[test]
    fn all_but_the_youngest_may_be_read() {
        let (mut tags, mut parts, places) = four_lines(2);
        let readable = places.map(|at| tags.line(at).readable);
        assert_eq!(readable, [1, 1, 0, 0]);
        // A line that has left is not mistaken for what is there now.
        let place = write(&mut tags, &mut parts, 4);
        tags.invalidate(3);
        tags.insert(9).unwrap();
        write(&mut tags, &mut parts, 5);
        assert_eq!(tags.line(place).readable, 0);
    }

    #[test]
    fn without_a_limit_nothing_is_old() {
        let (tags, _, places) = four_lines(0);
        assert!(places.iter().all(|place| tags.line(*place).readable == 0));
    }
}
