//! Allocation as CUDA does it: large pieces by 2 MiB, small ones inside shared pieces.

use crate::ranges::Ranges;
use std::collections::BTreeMap;

/// Large allocations start at, and are counted in, multiples of this.
pub const LARGE_UNIT: u64 = 2 << 20;
/// Small allocations start at multiples of this.
pub const SMALL_UNIT: u64 = 512;
/// Above this size an allocation is a large one: on an H200, 1 MiB lies behind 64 bytes in the same
/// piece, and a byte more has a piece of its own.
pub const LARGEST_SMALL: u64 = 1 << 20;

/// One region of addresses with a capacity below its extent.
#[derive(Clone, Debug)]
pub struct Heap {
    ranges: Ranges,
    /// Pieces that small allocations share, by start.
    chunks: BTreeMap<u64, Ranges>,
    /// Bytes of large units in use.
    used: u64,
    capacity: u64,
}

impl Heap {
    /// Addresses from `start` to `end`, of which at most `capacity` bytes are in use at a time.
    pub fn new(start: u64, end: u64, capacity: u64) -> Self {
        Self {
            ranges: Ranges::new(start, end),
            chunks: BTreeMap::new(),
            used: 0,
            capacity,
        }
    }

    /// The address of `bytes` fresh bytes; `None` when memory is exhausted.
    pub fn allocate(&mut self, bytes: u64) -> Option<u64> {
        if bytes == 0 || bytes > self.capacity {
            return None;
        }
        if bytes > LARGEST_SMALL {
            return self.take_units(bytes.checked_next_multiple_of(LARGE_UNIT)?);
        }
        let length = bytes.next_multiple_of(SMALL_UNIT);
        for chunk in self.chunks.values_mut() {
            if let Some(address) = chunk.take(length, SMALL_UNIT) {
                return Some(address);
            }
        }
        let start = self.take_units(LARGE_UNIT)?;
        let mut chunk = Ranges::new(start, start + LARGE_UNIT);
        let address = chunk.take(length, SMALL_UNIT);
        self.chunks.insert(start, chunk);
        address
    }

    /// Gives back what [`Heap::allocate`] answered, with the bytes that it really occupied.
    pub fn free(&mut self, address: u64) -> Option<u64> {
        let chunk_start = self
            .chunks
            .range(..=address)
            .next_back()
            .map(|(&start, _)| start);
        if let Some(start) = chunk_start.filter(|start| address - start < LARGE_UNIT) {
            let chunk = self.chunks.get_mut(&start)?;
            let length = chunk.give(address)?;
            if chunk.is_unused() {
                self.chunks.remove(&start);
                self.give_units(start);
            }
            return Some(length);
        }
        self.give_units(address)
    }

    /// Bytes that could still be allocated.
    pub fn available(&self) -> u64 {
        self.capacity - self.used
    }

    fn take_units(&mut self, length: u64) -> Option<u64> {
        if length > self.available() {
            return None;
        }
        let address = self.ranges.take(length, LARGE_UNIT)?;
        self.used += length;
        Some(address)
    }

    fn give_units(&mut self, address: u64) -> Option<u64> {
        let length = self.ranges.give(address)?;
        self.used -= length;
        Some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_share_a_piece_and_large_ones_do_not() {
        let mut heap = Heap::new(0x2000_0000, 0x6000_0000, 16 << 20);
        assert_eq!(heap.allocate(1), Some(0x2000_0000));
        assert_eq!(heap.allocate(513), Some(0x2000_0200));
        assert_eq!(heap.allocate(1), Some(0x2000_0600));
        assert_eq!(heap.allocate(3 << 20), Some(0x2020_0000));
        assert_eq!(heap.available(), 10 << 20);
        assert_eq!(heap.free(0x2000_0200), Some(1024));
        assert_eq!(heap.allocate(600), Some(0x2000_0200));
        assert_eq!(heap.free(0x2020_0000), Some(4 << 20));
        for address in [0x2000_0000, 0x2000_0200, 0x2000_0600] {
            assert!(heap.free(address).is_some());
        }
        assert_eq!(heap.available(), 16 << 20);
    }

    #[test]
    fn capacity_is_the_limit_and_strangers_are_refused() {
        let mut heap = Heap::new(0x2000_0000, 0x6000_0000, 4 << 20);
        assert_eq!(heap.allocate(5 << 20), None);
        assert_eq!(heap.allocate(0), None);
        assert_eq!(heap.allocate(u64::MAX), None);
        assert_eq!(heap.allocate(4 << 20), Some(0x2000_0000));
        assert_eq!(heap.allocate(1), None);
        assert_eq!(heap.free(0x2000_0200), None);
        assert_eq!(heap.free(0x2000_0000), Some(4 << 20));
        assert_eq!(heap.free(0x2000_0000), None);
    }
}
