//! The order in which the lines of a cache were last used, set by set.
//!
//! A chain through the places of each set: using one moves it to the young end, and the old end is
//! always at hand, however many ways there are.

#[derive(Clone, Copy, Debug)]
struct Neighbours {
    older: u32,
    younger: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    oldest: u32,
    youngest: u32,
}

/// The chains of all sets.
#[derive(Clone, Debug)]
pub(super) struct Order {
    ways: u32,
    chain: Box<[Neighbours]>,
    ends: Box<[Ends]>,
}

impl Order {
    /// Nothing was used yet: places go in turn.
    pub fn new(sets: u32, ways: u32) -> Self {
        let neighbours = |place: u32| Neighbours {
            older: place.wrapping_sub(1),
            younger: place + 1,
        };
        let ends = |set: u32| Ends {
            oldest: set * ways,
            youngest: (set * ways + ways).saturating_sub(1),
        };
        Self {
            ways,
            chain: (0..sets * ways).map(neighbours).collect(),
            ends: (0..sets).map(ends).collect(),
        }
    }

    /// The place of a set that was used longest ago.
    #[inline]
    pub fn oldest(&self, set: u32) -> u32 {
        self.ends[set as usize].oldest
    }

    /// Makes a place of a set the one used last.
    #[inline]
    pub fn use_now(&mut self, set: u32, place: u32) {
        let ends = &mut self.ends[set as usize];
        let youngest = ends.youngest;
        if youngest == place {
            return;
        }
        let Neighbours { older, younger } = self.chain[place as usize];
        if ends.oldest == place {
            ends.oldest = younger;
        } else {
            self.chain[older as usize].younger = younger;
        }
        self.chain[younger as usize].older = older;
        self.chain[youngest as usize].younger = place;
        self.chain[place as usize].older = youngest;
        ends.youngest = place;
    }

    /// Makes a place of a set the first to be used again.
    pub fn use_first(&mut self, set: u32, place: u32) {
        self.use_now(set, place);
        let ends = &mut self.ends[set as usize];
        let oldest = ends.oldest;
        if oldest == place {
            return;
        }
        ends.youngest = self.chain[place as usize].older;
        ends.oldest = place;
        self.chain[place as usize].younger = oldest;
        self.chain[oldest as usize].older = place;
    }

    /// The places of a set, from the one used longest ago on.
    pub fn iter(&self, set: u32) -> impl Iterator<Item = u32> + '_ {
        let mut next = self.ends[set as usize].oldest;
        (0..self.ways).map(move |_| {
            let place = next;
            next = self.chain[place as usize].younger;
            place
        })
    }
}
