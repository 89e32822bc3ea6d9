//! A set-associative cache of sectored lines: tags only, values never come from it.
//!
//! A key names a line; each line has sectors that are present or not, and sectors that were
//! written and not yet passed on. Sets are found by hashing, so that no stride falls on few of
//! them; the line that was used longest ago makes room.
//!
//! Start reading at [`SectorCache::find`] and [`SectorCache::insert`].

use serde::{Deserialize, Serialize};

/// No line.
const EMPTY: u64 = u64::MAX;

/// Where a line is in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

/// What is known of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When its youngest sectors are here; before that, they are on their way.
    pub filled: u64,
    /// Sectors that are here or on their way.
    pub present: u8,
    /// Sectors that were written here.
    pub dirty: u8,
    /// Sectors of which only some bytes are known, because they were written here.
    pub partial: u8,
}

/// A line that had to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Which.
    pub key: u64,
    /// What was known of it.
    pub line: Line,
}

/// A cache of sectored lines.
#[derive(Clone, Debug)]
pub struct SectorCache {
    sets: u32,
    ways: u32,
    keys: Vec<u64>,
    /// When each line was last used.
    used: Vec<u64>,
    lines: Vec<Line>,
    /// Counts uses.
    now: u64,
    /// The place that was found last.
    last: u32,
}

/// [`SectorCache`] as it is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    sets: u32,
    ways: u32,
    now: u64,
    entries: Vec<(u32, u64, u64, Line)>,
}

/// Mixes the bits of a line number.
#[must_use]
#[inline]
pub fn mix(mut value: u64) -> u64 {
    value ^= value >> 31;
    value = value.wrapping_mul(0x7fb5_d329_728e_a185);
    value ^= value >> 27;
    value = value.wrapping_mul(0x81da_def4_bc2d_d44d);
    value ^ value >> 33
}

impl SectorCache {
    /// An empty cache; with no sets or no ways, nothing is ever found in it.
    #[must_use]
    pub fn new(sets: u32, ways: u32) -> Self {
        let lines = sets as usize * ways as usize;
        Self {
            sets,
            ways,
            keys: vec![EMPTY; lines],
            used: vec![0; lines],
            lines: vec![Line::default(); lines],
            now: 0,
            last: 0,
        }
    }

    /// Changes the number of ways; the cache is empty then.
    pub fn resize(&mut self, ways: u32) {
        *self = Self::new(self.sets, ways);
    }

    /// Lines of a set.
    #[must_use]
    pub fn ways(&self) -> u32 {
        self.ways
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.keys.fill(EMPTY);
        self.used.fill(0);
        self.now = 0;
    }

    /// The first place of the set of a key.
    #[inline]
    fn set(&self, key: u64) -> usize {
        let set = (u128::from(mix(key)) * u128::from(self.sets)) >> 64;
        set as usize * self.ways as usize
    }

    /// A line that is in the cache; finding it counts as a use.
    #[inline]
    pub fn find(&mut self, key: u64) -> Option<Place> {
        if self.keys.is_empty() {
            return None;
        }
        self.now += 1;
        if self.keys[self.last as usize] == key {
            self.used[self.last as usize] = self.now;
            return Some(Place(self.last));
        }
        let start = self.set(key);
        let keys = &self.keys[start..start + self.ways as usize];
        let position = position(keys, key)?;
        self.last = (start + position) as u32;
        self.used[start + position] = self.now;
        Some(Place(self.last))
    }

    /// What is known of a line.
    #[must_use]
    #[inline]
    pub fn line(&self, place: Place) -> &Line {
        &self.lines[place.0 as usize]
    }

    /// The same, to be changed.
    #[inline]
    pub fn line_mut(&mut self, place: Place) -> &mut Line {
        &mut self.lines[place.0 as usize]
    }

    /// Makes room for a line that is not in the cache. Says where it is now, and which line had
    /// to leave.
    pub fn insert(&mut self, key: u64) -> Option<(Place, Option<Evicted>)> {
        if self.keys.is_empty() {
            return None;
        }
        let start = self.set(key);
        let set = start..start + self.ways as usize;
        let mut oldest = set.start;
        for place in set {
            if self.used[place] < self.used[oldest] {
                oldest = place;
            }
        }
        let evicted = (self.keys[oldest] != EMPTY).then(|| Evicted {
            key: self.keys[oldest],
            line: self.lines[oldest],
        });
        self.now += 1;
        self.keys[oldest] = key;
        self.used[oldest] = self.now;
        self.lines[oldest] = Line::default();
        self.last = oldest as u32;
        Some((Place(self.last), evicted))
    }

    /// Forgets a line, written or not.
    pub fn remove(&mut self, key: u64) {
        if let Some(place) = self.find(key) {
            let place = place.0 as usize;
            self.keys[place] = EMPTY;
            self.used[place] = 0;
        }
    }

    /// For saving.
    #[must_use]
    pub fn saved(&self) -> Saved {
        let entries = self.keys.iter().enumerate();
        let entries = entries.filter(|(_, key)| **key != EMPTY);
        Saved {
            sets: self.sets,
            ways: self.ways,
            now: self.now,
            entries: entries
                .map(|(place, key)| (place as u32, *key, self.used[place], self.lines[place]))
                .collect(),
        }
    }

    /// From what was saved; `None` if it does not fit a cache with so many sets and at most so
    /// many lines.
    #[must_use]
    pub fn from_saved(saved: &Saved, sets: u32, most: usize) -> Option<Self> {
        let lines = saved.sets as usize * saved.ways as usize;
        if saved.sets != sets || lines > most {
            return None;
        }
        let mut cache = Self::new(saved.sets, saved.ways);
        cache.now = saved.now;
        for (place, key, used, line) in &saved.entries {
            let place = *place as usize;
            *cache.keys.get_mut(place)? = *key;
            cache.used[place] = *used;
            cache.lines[place] = *line;
        }
        Some(cache)
    }
}

/// Where a key is among others; written so that it becomes vector code.
#[inline]
fn position(keys: &[u64], key: u64) -> Option<usize> {
    let (chunks, rest) = keys.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let mut found = 0u32;
        for (lane, known) in chunk.iter().enumerate() {
            found |= u32::from(*known == key) << lane;
        }
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize);
        }
    }
    let place = rest.iter().position(|known| *known == key)?;
    Some(chunks.len() * 8 + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_used_longest_ago_leaves() {
        let mut cache = SectorCache::new(1, 2);
        assert!(cache.find(7).is_none());
        assert_eq!(cache.insert(7).unwrap().1, None);
        assert_eq!(cache.insert(8).unwrap().1, None);
        let place = cache.find(7).unwrap();
        cache.line_mut(place).dirty = 3;
        assert_eq!(cache.insert(9).unwrap().1.unwrap().key, 8);
        let evicted = cache.insert(10).unwrap().1.unwrap();
        assert_eq!((evicted.key, evicted.line.dirty), (7, 3));
        assert!(cache.find(7).is_none() && cache.find(9).is_some());
    }

    #[test]
    fn strides_fill_all_sets() {
        for stride in [1, 2, 128, 4096, 1 << 14] {
            let mut cache = SectorCache::new(64, 32);
            for line in 0..1024 {
                cache.insert(line * stride);
            }
            let left = (0..1024).filter(|line| cache.find(line * stride).is_some());
            assert!(left.count() > 1000, "stride {stride}");
        }
    }

    #[test]
    fn what_was_saved_goes_on_alike() {
        let mut cache = SectorCache::new(4, 3);
        for line in 0..40 {
            cache.insert(line * 3);
            cache.find(line);
        }
        let mut copy = SectorCache::from_saved(&cache.saved(), 4, 12).unwrap();
        for line in 0..200 {
            assert_eq!(cache.find(line).is_some(), copy.find(line).is_some());
            let pair = [&mut cache, &mut copy].map(|cache| cache.insert(line + 500).unwrap().1);
            assert_eq!(pair[0], pair[1]);
        }
        assert!(SectorCache::from_saved(&cache.saved(), 5, 12).is_none());
    }

    #[test]
    fn a_cache_without_room_holds_nothing() {
        let mut cache = SectorCache::new(0, 4);
        assert!(cache.find(1).is_none() && cache.insert(1).is_none());
    }
}
