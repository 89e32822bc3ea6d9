//! A small map from sector numbers to words, for what is looked up on every access.
//!
//! Open addressing with linear probing and one fixed hash: no allocation once it has grown, and
//! nothing of its inner order can be seen from outside.

/// Keys are sector numbers, values 32-bit words.
#[derive(Clone, Debug)]
pub struct SectorTable {
    /// A key is stored plus one, so that zero means free.
    slots: Box<[(u64, u32)]>,
    length: usize,
}

impl Default for SectorTable {
    fn default() -> Self {
        Self::with_capacity(32)
    }
}

/// Spreads sector numbers over the 64 bits; the high bits are the good ones.
#[inline(always)]
pub fn spread(sector: u64) -> u64 {
    sector.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl SectorTable {
    /// A table that holds `capacity` keys before it grows.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let slots = (capacity * 2).next_power_of_two().max(16);
        Self {
            slots: vec![(0, 0); slots].into(),
            length: 0,
        }
    }

    /// Number of keys.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    #[inline(always)]
    fn first(&self, sector: u64) -> usize {
        (spread(sector) >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    /// The value of a key.
    #[must_use]
    #[inline]
    pub fn get(&self, sector: u64) -> Option<u32> {
        if self.length == 0 {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = self.first(sector);
        loop {
            let (key, value) = self.slots[at];
            if key == sector + 1 {
                return Some(value);
            }
            if key == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// The value of a key, put there first if it is missing. Says whether it was missing.
    #[inline]
    pub fn entry(&mut self, sector: u64, or: u32) -> (&mut u32, bool) {
        if (self.length + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = self.first(sector);
        loop {
            let key = self.slots[at].0;
            if key == sector + 1 {
                return (&mut self.slots[at].1, false);
            }
            if key == 0 {
                self.length += 1;
                self.slots[at] = (sector + 1, or);
                return (&mut self.slots[at].1, true);
            }
            at = (at + 1) & mask;
        }
    }

    /// Takes a key out. Those that collided with it move up, so that no marker stays behind.
    pub fn remove(&mut self, sector: u64) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = self.first(sector);
        loop {
            let (key, value) = self.slots[at];
            if key == 0 {
                return None;
            }
            if key == sector + 1 {
                self.length -= 1;
                self.close_gap(at);
                return Some(value);
            }
            at = (at + 1) & mask;
        }
    }

    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.slots.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let key = self.slots[at].0;
            if key == 0 {
                break;
            }
            let wanted = self.first(key - 1);
            // The entry may move to the gap unless it would come before its first place.
            if (at.wrapping_sub(wanted) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.slots[gap] = self.slots[at];
                gap = at;
            }
        }
        self.slots[gap] = (0, 0);
    }

    /// Takes these keys out, which must be all of them: the cost follows what was used, not what
    /// was ever allocated.
    pub fn clear(&mut self, keys: impl Iterator<Item = u64>) {
        if self.length * 8 > self.slots.len() {
            self.slots.fill((0, 0));
        } else {
            let mask = self.slots.len() - 1;
            for sector in keys {
                // Earlier keys of a run may be gone already, so walk until the key is met.
                let mut at = self.first(sector);
                for _ in 0..self.slots.len() {
                    if self.slots[at].0 == sector + 1 {
                        self.slots[at] = (0, 0);
                        break;
                    }
                    at = (at + 1) & mask;
                }
            }
        }
        self.length = 0;
    }

    fn grow(&mut self) {
        let larger = vec![(0, 0); self.slots.len() * 2].into();
        let old = std::mem::replace(&mut self.slots, larger);
        self.length = 0;
        for (key, value) in old {
            if key != 0 {
                self.entry(key - 1, value);
            }
        }
    }

    /// All pairs, by ascending key.
    #[must_use]
    pub fn sorted(&self) -> Vec<(u64, u32)> {
        let mut pairs: Vec<_> = self
            .slots
            .iter()
            .filter(|(key, _)| *key != 0)
            .map(|(key, value)| (key - 1, *value))
            .collect();
        pairs.sort_unstable();
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Whatever is put in and taken out, it answers as an ordered map does.
        #[test]
        fn it_is_a_map(actions in prop::collection::vec((0u8..4, 0u64..40), 0..400)) {
            let mut table = SectorTable::with_capacity(1);
            let mut map = BTreeMap::new();
            for (step, (action, key)) in actions.into_iter().enumerate() {
                // Keys that collide: the multiplier keeps multiples of 2^60 close.
                let key = key << 60 >> 4 | key;
                match action {
                    0 | 1 => {
                        let expected = *map.entry(key).or_insert(step as u32);
                        prop_assert_eq!(*table.entry(key, step as u32).0, expected);
                    }
                    2 => prop_assert_eq!(table.remove(key), map.remove(&key)),
                    _ => prop_assert_eq!(table.get(key), map.get(&key).copied()),
                }
                prop_assert_eq!(table.len(), map.len());
            }
            prop_assert_eq!(table.sorted(), map.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>());
            let keys: Vec<u64> = map.keys().copied().collect();
            table.clear(keys.iter().copied());
            prop_assert!(table.is_empty());
            for key in keys {
                prop_assert_eq!(table.get(key), None);
            }
        }
    }
}
