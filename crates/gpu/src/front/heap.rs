//! The heap that device code allocates from.
//!
//! Modelled: where allocations lie, in one order for all SMs. Left out: the driver's own layout of it.
//!
//! Start reading at [`Heap::allocate`].

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Every allocation is a multiple of this and aligned to it.
const GRAIN: u64 = 16;

/// First fit over free ranges, in the order of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heap {
    start: u64,
    end: u64,
    free: BTreeMap<u64, u64>,
    used: BTreeMap<u64, u64>,
}

impl Heap {
    /// An empty heap over addresses.
    #[must_use]
    pub fn new(range: Range<u64>) -> Self {
        let start = range.start.next_multiple_of(GRAIN);
        let end = range.end / GRAIN * GRAIN;
        let mut free = BTreeMap::new();
        if start < end {
            free.insert(start, end - start);
        }
        Self {
            start,
            end,
            free,
            used: BTreeMap::new(),
        }
    }

    /// The same addresses, all free.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self::new(self.start..self.end)
    }

    /// Takes `bytes`, if there is room.
    pub fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1).checked_next_multiple_of(GRAIN)?;
        let (&at, &room) = self.free.iter().find(|(_, room)| **room >= bytes)?;
        self.free.remove(&at);
        if room > bytes {
            self.free.insert(at + bytes, room - bytes);
        }
        self.used.insert(at, bytes);
        Some(at)
    }

    /// Gives an allocation back; false if there is none at this address.
    pub fn free(&mut self, address: u64) -> bool {
        let Some(mut bytes) = self.used.remove(&address) else {
            return false;
        };
        let mut at = address;
        if let Some(next) = self.free.remove(&(at + bytes)) {
            bytes += next;
        }
        if let Some((&before, &room)) = self.free.range(..at).next_back()
            && before + room == at
        {
            self.free.remove(&before);
            at = before;
            bytes += room;
        }
        self.free.insert(at, bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_neighbours_join() {
        let mut heap = Heap::new(0x1000..0x1100);
        let all: Vec<u64> = (0..4).map(|_| heap.allocate(60).unwrap()).collect();
        assert_eq!(all, [0x1000, 0x1040, 0x1080, 0x10c0]);
        assert_eq!(heap.allocate(1), None);
        assert!(heap.free(all[1]) && heap.free(all[3]) && heap.free(all[2]));
        assert!(!heap.free(all[2]));
        assert_eq!(heap.allocate(190), Some(0x1040));
        assert_eq!(heap.allocate(u64::MAX), None);
        assert!(heap.free(0x1000) && heap.free(0x1040));
        assert_eq!(heap, heap.emptied());
    }
}
