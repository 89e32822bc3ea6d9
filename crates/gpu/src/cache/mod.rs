//! A set-associative cache of sectored lines: tags only, values never come from it.
//!
//! A key names a line; each line has sectors that are present or not, and sectors that were
//! written and not yet passed on. Sets are found by hashing, so that no stride falls on few of
//! them; the line that was used longest ago makes room (LRU), of all lines of its set or of a few
//! replacement candidates (sampled LRU).
//!
//! Modelled: presence, dirty sectors for write-back, sectors that are known in part, replacement.
//! Left out: values, time and MSHRs, which belong to whoever has the cache.
//!
//! Start reading at [`SectorCache::find`] and [`SectorCache::insert`].

mod order;

use order::Order;
use serde::{Deserialize, Serialize};

/// No line.
const EMPTY: u64 = u64::MAX;

/// Where a line is in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Those of them whose known bytes may be read.
    pub readable: u8,
}

/// A line that had to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The key of the line.
    pub key: u64,
    /// What was known of it.
    pub line: Line,
}

/// A cache of sectored lines.
#[derive(Clone, Debug)]
pub struct SectorCache {
    sets: u32,
    ways: u32,
    /// Shift from a key to what is hashed of it; keys that differ only below are in neighbouring sets.
    neighbours: u32,
    keys: Vec<u64>,
    /// A byte of the hash of each key, set by set in whole words: sets may have hundreds of ways,
    /// and looking through these is an eighth of looking through the keys.
    prints: Vec<u64>,
    lines: Vec<Line>,
    /// The order in which the lines of each set were last used.
    order: Order,
    /// Sets are found by folding keys, so that lines side by side, or as far apart as a power of two, fill all
    /// sets alike.
    folded: bool,
    /// Replacement candidates that are sampled to make room; 0 if all lines of a set are looked at.
    candidates: u32,
    /// How many uses there were when each line was used last, where candidates are sampled.
    used: Vec<u64>,
    uses: u64,
    /// Candidates sampled so far.
    sampled: u64,
    /// The place that was found last.
    last: u32,
}

/// [`SectorCache`] as it is saved: what is present, set by set, what was used longest ago first. Places
/// without a line are left out where they come first and in turn, as they do until a line is demoted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    sets: u32,
    ways: u32,
    sampled: u64,
    entries: Vec<(u32, u64, Line)>,
}

/// Keys whose prints are looked at together.
const TOGETHER: u32 = 8;

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

/// All groups of four bits of a key in one.
#[inline]
fn fold(mut key: u64) -> u32 {
    for shift in [32, 16, 8, 4] {
        key ^= key >> shift;
    }
    key as u32
}

impl SectorCache {
    /// An empty cache; with no sets or no ways, nothing is ever found in it.
    #[must_use]
    pub fn new(sets: u32, ways: u32) -> Self {
        let lines = sets as usize * ways as usize;
        let words = sets as usize * ways.div_ceil(TOGETHER) as usize;
        Self {
            sets,
            ways,
            neighbours: 0,
            keys: vec![EMPTY; lines],
            prints: vec![0; words],
            lines: vec![Line::default(); lines],
            order: Order::new(sets, ways),
            folded: false,
            candidates: 0,
            used: Vec::new(),
            uses: 0,
            sampled: 0,
            last: 0,
        }
    }

    /// The same with sampled LRU: of a few replacement candidates, the one that was used longest ago
    /// makes room.
    #[must_use]
    pub fn with_candidates(self, candidates: u32) -> Self {
        let used = if candidates > 0 { self.keys.len() } else { 0 };
        Self {
            folded: candidates > 0 && self.sets.is_power_of_two() && self.sets <= 16,
            candidates,
            used: vec![0; used],
            ..self
        }
    }

    /// The same, with so many neighbouring keys (a power of two) in neighbouring sets: what is full for
    /// one of them is full for the others.
    #[must_use]
    pub fn with_neighbours(self, keys: u32) -> Self {
        Self {
            neighbours: keys.max(1).ilog2(),
            ..self
        }
    }

    /// Changes the number of ways; the cache is empty then.
    pub fn resize(&mut self, ways: u32) {
        *self = Self {
            sampled: self.sampled,
            neighbours: self.neighbours,
            ..Self::new(self.sets, ways).with_candidates(self.candidates)
        };
    }

    /// Lines of a set.
    #[must_use]
    pub fn ways(&self) -> u32 {
        self.ways
    }

    /// Invalidates everything.
    pub fn clear(&mut self) {
        self.keys.fill(EMPTY);
        self.order = Order::new(self.sets, self.ways);
    }

    /// The set of a key, and a byte that others of the set seldom share.
    #[inline]
    fn set(&self, key: u64) -> (u32, u8) {
        let hash = mix(key >> self.neighbours);
        if self.folded {
            return (fold(key) & (self.sets - 1), hash as u8);
        }
        let first = ((u128::from(hash) * u128::from(self.sets)) >> 64) as u32;
        if self.neighbours == 0 {
            return (first, hash as u8);
        }
        let beside = key as u32 & ((1 << self.neighbours) - 1);
        ((first + beside) % self.sets, hash as u8)
    }

    /// A line that is in the cache; finding it counts as a use.
    #[inline]
    pub fn find(&mut self, key: u64) -> Option<Place> {
        if self.keys.is_empty() {
            return None;
        }
        if self.keys[self.last as usize] == key {
            self.use_now(self.last / self.ways, self.last);
            return Some(Place(self.last));
        }
        let (set, print) = self.set(key);
        let place = self.look(set, print, key)?;
        self.last = place;
        self.use_now(set, place);
        Some(Place(place))
    }

    #[inline]
    fn use_now(&mut self, set: u32, place: u32) {
        self.order.use_now(set, place);
        if self.candidates > 0 {
            self.uses += 1;
            self.used[place as usize] = self.uses;
        }
    }

    /// Moves a place to the LRU position of its set.
    fn demote(&mut self, place: u32) {
        self.order.use_first(place / self.ways, place);
        if self.candidates > 0 {
            self.used[place as usize] = 0;
        }
    }

    /// The place of a set that makes room.
    fn victim(&mut self, set: u32) -> u32 {
        let oldest = self.order.oldest(set);
        if self.candidates == 0 || self.keys[oldest as usize] == EMPTY {
            return oldest;
        }
        let places = (0..self.candidates).map(|_| {
            self.sampled += 1;
            let way = (u128::from(mix(self.sampled)) * u128::from(self.ways)) >> 64;
            set * self.ways + way as u32
        });
        places
            .min_by_key(|place| self.used[*place as usize])
            .unwrap_or(oldest)
    }

    /// Where a key is in its set.
    #[inline]
    fn look(&self, set: u32, print: u8, key: u64) -> Option<u32> {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let words = self.ways.div_ceil(TOGETHER) as usize;
        let start = (set * self.ways) as usize;
        let keys = &self.keys[start..start + self.ways as usize];
        let wanted = u64::from(print) * ONES;
        for (index, word) in self.prints[set as usize * words..][..words]
            .iter()
            .enumerate()
        {
            // The high bit of each byte that is equal, and perhaps of some after it, which the keys
            // tell apart.
            let differs = word ^ wanted;
            let mut equal = differs.wrapping_sub(ONES) & !differs & (ONES << 7);
            while equal != 0 {
                let way = index * TOGETHER as usize + equal.trailing_zeros() as usize / 8;
                if keys.get(way) == Some(&key) {
                    return Some((start + way) as u32);
                }
                equal &= equal - 1;
            }
        }
        None
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

    /// The set of a place.
    #[must_use]
    pub fn set_of(&self, place: Place) -> usize {
        (place.0 / self.ways) as usize
    }

    /// Whether a line is at a place.
    #[must_use]
    pub fn holds(&self, place: Place, key: u64) -> bool {
        self.keys.get(place.0 as usize) == Some(&key)
    }

    /// Makes room for a line that is not in the cache. Says where it is now, and which line had
    /// to leave.
    pub fn insert(&mut self, key: u64) -> Option<(Place, Option<Evicted>)> {
        if self.keys.is_empty() {
            return None;
        }
        let (set, print) = self.set(key);
        let place = self.victim(set);
        let at = place as usize;
        let evicted = (self.keys[at] != EMPTY).then(|| Evicted {
            key: self.keys[at],
            line: self.lines[at],
        });
        self.put(set, place, key, print);
        self.lines[at] = Line::default();
        self.last = place;
        Some((Place(place), evicted))
    }

    /// Moves a line to the LRU position: it is the first of its set to leave.
    pub fn move_to_lru(&mut self, place: Place) {
        self.demote(place.0);
    }

    /// Moves a line behind the places of its set that have none: of all lines it is the first to leave.
    pub fn leave_first(&mut self, place: Place) {
        self.demote(place.0);
        let set = place.0 / self.ways;
        for empty in (set * self.ways..(set + 1) * self.ways).rev() {
            if self.keys[empty as usize] == EMPTY {
                self.demote(empty);
            }
        }
    }

    fn put(&mut self, set: u32, place: u32, key: u64, print: u8) {
        self.keys[place as usize] = key;
        let way = place - set * self.ways;
        let words = self.ways.div_ceil(TOGETHER);
        let word = &mut self.prints[(set * words + way / TOGETHER) as usize];
        let shift = way % TOGETHER * 8;
        *word = *word & !(0xff << shift) | u64::from(print) << shift;
        self.use_now(set, place);
    }

    /// Invalidates a line, written or not.
    pub fn invalidate(&mut self, key: u64) {
        if let Some(place) = self.find(key) {
            self.keys[place.0 as usize] = EMPTY;
            self.demote(place.0);
        }
    }

    /// Invalidates all lines but some.
    pub fn retain(&mut self, keeps: impl Fn(u64) -> bool) {
        for place in 0..self.keys.len() as u32 {
            let key = self.keys[place as usize];
            if key != EMPTY && !keeps(key) {
                self.keys[place as usize] = EMPTY;
                self.demote(place);
            }
        }
    }

    /// For saving.
    #[must_use]
    pub fn saved(&self) -> Saved {
        let is_empty = |place: u32| self.keys[place as usize] == EMPTY;
        let mut entries = Vec::new();
        for set in 0..self.sets {
            // Empty places before all others, in turn: what is there says it all.
            let in_turn = self
                .order
                .iter(set)
                .is_sorted_by(|one, next| !is_empty(*next) || (is_empty(*one) && one < next));
            let places = self.order.iter(set);
            let told = places.filter(|place| !in_turn || !is_empty(*place));
            entries.extend(told.map(|place| {
                let at = place as usize;
                let line = match is_empty(place) {
                    true => Line::default(),
                    false => self.lines[at],
                };
                (place, self.keys[at], line)
            }));
        }
        Saved {
            sets: self.sets,
            ways: self.ways,
            sampled: self.sampled,
            entries,
        }
    }

    /// From what was saved of a cache that differs from this empty one at most in its ways; `None` if it does
    /// not, or has more than so many lines.
    #[must_use]
    pub fn from_saved(saved: &Saved, empty: Self, most: usize) -> Option<Self> {
        let lines = saved.sets as usize * saved.ways as usize;
        if saved.sets != empty.sets || lines > most {
            return None;
        }
        let mut cache = empty;
        cache.resize(saved.ways);
        cache.sampled = saved.sampled;
        for (place, key, line) in &saved.entries {
            if *key == EMPTY {
                if *place as usize >= lines {
                    return None;
                }
                cache.order.use_now(*place / saved.ways, *place);
                continue;
            }
            let (set, print) = cache.set(*key);
            if lines == 0 || *place / saved.ways != set {
                return None;
            }
            cache.put(set, *place, *key, print);
            cache.lines[*place as usize] = *line;
        }
        Some(cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn sampled_lru_keeps_some_of_a_cycle_that_does_not_fit() {
        let hits = |candidates| {
            let mut cache = SectorCache::new(1, 100).with_candidates(candidates);
            let mut asked = (0..20).flat_map(|_| 0..110u64);
            asked
                .by_ref()
                .filter(|line| {
                    let hit = cache.find(*line).is_some();
                    if !hit {
                        cache.insert(*line);
                    }
                    hit
                })
                .count()
        };
        assert_eq!(hits(0), 0);
        assert!((900..1800).contains(&hits(3)), "{}", hits(3));
    }

    #[test]
    fn strides_fill_all_sets() {
        for stride in [1, 2, 128, 4096, 1 << 14] {
            let mut cache = SectorCache::new(64, 32);
            let mut folded = SectorCache::new(16, 64).with_candidates(3);
            for line in 0..1024 {
                cache.insert(line * stride);
                folded.insert(line * stride);
            }
            let left = (0..1024).filter(|line| cache.find(line * stride).is_some());
            assert!(left.count() > 1000, "stride {stride}");
            let all = (0..1024).all(|line| folded.find(line * stride).is_some());
            assert!(all, "stride {stride}");
        }
    }

    #[test]
    fn what_was_saved_goes_on_alike() {
        [0, 2].into_iter().for_each(goes_on_alike);
    }

    /// A demoted line leaves before places that have none are taken, also after loading.
    #[test]
    fn places_without_a_line_keep_their_turn() {
        let mut cache = SectorCache::new(3, 5);
        for line in 0..6 {
            let (place, _) = cache.insert(line).unwrap();
            if line % 2 == 0 {
                cache.move_to_lru(place);
            }
        }
        cache.invalidate(3);
        let saved = cache.saved();
        let mut copy = SectorCache::from_saved(&saved, SectorCache::new(3, 0), 15).unwrap();
        assert_eq!(copy.saved().entries, saved.entries);
        for line in 100..140 {
            let pair = [&mut cache, &mut copy].map(|cache| cache.insert(line).unwrap());
            assert_eq!(pair[0].1, pair[1].1, "{line}");
        }
        let mut broken = saved;
        broken.entries.push((15, EMPTY, Line::default()));
        assert!(SectorCache::from_saved(&broken, SectorCache::new(3, 0), 15).is_none());
    }

    fn goes_on_alike(candidates: u32) {
        let mut cache = SectorCache::new(4, 3).with_candidates(candidates);
        for line in 0..40 {
            cache.insert(line * 3);
            cache.find(line);
        }
        let mut copy = SectorCache::from_saved(
            &cache.saved(),
            SectorCache::new(4, 0).with_candidates(candidates),
            12,
        )
        .unwrap();
        for line in 0..200 {
            assert_eq!(cache.find(line).is_some(), copy.find(line).is_some());
            let pair = [&mut cache, &mut copy].map(|cache| cache.insert(line + 500).unwrap().1);
            assert_eq!(pair[0], pair[1]);
        }
        assert!(
            SectorCache::from_saved(
                &cache.saved(),
                SectorCache::new(5, 0).with_candidates(candidates),
                12
            )
            .is_none()
        );
    }

    proptest! {
        /// Whatever is asked for, it answers as the plainest cache does: a list for each set, in the
        /// order of use.
        #[test]
        fn it_is_a_list_in_the_order_of_use(
            sets in 1u32..4,
            ways in 1u32..21,
            asked in prop::collection::vec((0u8..8, 0u64..80), 0..300),
        ) {
            let mut cache = SectorCache::new(sets, ways);
            let mut lists: Vec<Vec<u64>> = vec![Vec::new(); sets as usize];
            for (action, key) in asked {
                let list = &mut lists[cache.set(key).0 as usize];
                let at = list.iter().position(|known| *known == key);
                if let Some(at) = at {
                    list.remove(at);
                    list.push(key);
                }
                prop_assert_eq!(cache.find(key).is_some(), at.is_some());
                if at.is_none() && action > 1 {
                    let gone = (list.len() == ways as usize).then(|| list.remove(0));
                    list.push(key);
                    let evicted = cache.insert(key).unwrap().1;
                    prop_assert_eq!(evicted.map(|evicted| evicted.key), gone);
                }
                if action == 2 {
                    cache.invalidate(key);
                    lists[cache.set(key).0 as usize].retain(|known| *known != key);
                }
                if action == 7 {
                    cache = SectorCache::from_saved(&cache.saved(), SectorCache::new(sets, 0), 1000).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_saved_cache_that_does_not_fit_is_refused() {
        let mut cache = SectorCache::new(4, 3);
        cache.insert(5);
        let saved = cache.saved();
        let (place, key, line) = saved.entries[0];
        let with = |entry| Saved {
            entries: vec![entry],
            ..saved.clone()
        };
        assert!(
            SectorCache::from_saved(&with((place, key, line)), SectorCache::new(4, 0), 12)
                .is_some()
        );
        assert!(
            SectorCache::from_saved(
                &with(((place + 3) % 12, key, line)),
                SectorCache::new(4, 0),
                12
            )
            .is_none()
        );
        assert!(
            SectorCache::from_saved(&with((u32::MAX, key, line)), SectorCache::new(4, 0), 12)
                .is_none()
        );
    }

    #[test]
    fn a_cache_without_room_holds_nothing() {
        let mut cache = SectorCache::new(0, 4);
        assert!(cache.find(1).is_none() && cache.insert(1).is_none());
    }
}
