//! What one SM or slice wrote in this epoch.
//!
//! Entries are sectors with a mask of the bytes written and, byte by byte, the cycle of the last
//! write. Within one log a later write hides an earlier one; between logs the larger (cycle, SM)
//! wins, so the last cycle of each byte is all that the commit needs.

use super::contents::merge;
use super::geometry::{SECTOR, SectorBytes};
use super::table::{SectorTable, spread};

/// Parts that a log is divided into by address, so that workers can commit them side by side.
pub const BUCKETS: usize = 16;

/// The bucket of a sector.
#[must_use]
#[inline(always)]
pub fn bucket_of(sector: u64) -> usize {
    (spread(sector) >> 20) as usize % BUCKETS
}

/// Words of the filter.
const FILTER: usize = 64;

/// One sector that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number of the sector.
    pub sector: u64,
    /// Which bytes were written.
    pub mask: u32,
    /// Their values.
    pub bytes: SectorBytes,
    /// When each was last written, in cycles since the start of the epoch.
    pub cycles: [u16; SECTOR as usize],
}

/// The stores of one SM, or the results of one slice, since the last boundary.
#[derive(Clone, Debug)]
pub struct Log {
    table: SectorTable,
    entries: Vec<Entry>,
    buckets: [Vec<u32>; BUCKETS],
    /// A bit for each hash of a sector present: most look-ups end here.
    filter: [u64; FILTER],
}

impl Default for Log {
    fn default() -> Self {
        Self {
            table: SectorTable::default(),
            entries: Vec::new(),
            buckets: std::array::from_fn(|_| Vec::new()),
            filter: [0; FILTER],
        }
    }
}

impl Log {
    /// Whether nothing was written.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sectors written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline(always)]
    fn filter_bit(sector: u64) -> (usize, u64) {
        let hash = spread(sector) >> 52;
        (hash as usize / 64, 1 << (hash % 64))
    }

    /// Whether a sector may be here: false means it is not.
    #[must_use]
    #[inline(always)]
    pub fn may_hold(&self, sector: u64) -> bool {
        let (word, bit) = Self::filter_bit(sector);
        self.filter[word] & bit != 0
    }

    /// What was written to a sector.
    #[must_use]
    #[inline]
    pub fn find(&self, sector: u64) -> Option<&Entry> {
        if !self.may_hold(sector) {
            return None;
        }
        let index = self.table.get(sector)?;
        Some(&self.entries[index as usize])
    }

    /// Lays what was written over the bytes of a sector.
    #[inline]
    pub fn overlay(&self, sector: u64, bytes: &mut SectorBytes) {
        if let Some(entry) = self.find(sector) {
            merge(bytes, &entry.bytes, entry.mask);
        }
    }

    /// Writes the bytes of `mask` at a cycle, counted from the start of the epoch.
    #[inline]
    pub fn write(&mut self, sector: u64, bytes: &SectorBytes, mask: u32, cycle: u16) {
        let next = self.entries.len() as u32;
        let (index, missing) = self.table.entry(sector, next);
        if missing {
            self.push(Entry {
                sector,
                mask,
                bytes: *bytes,
                cycles: [cycle; SECTOR as usize],
            });
            return;
        }
        let entry = &mut self.entries[*index as usize];
        entry.mask |= mask;
        merge(&mut entry.bytes, bytes, mask);
        for (byte, at) in entry.cycles.iter_mut().enumerate() {
            let keep = (((mask >> byte) & 1) as u16).wrapping_neg();
            *at = (cycle & keep) | (*at & !keep);
        }
    }

    /// Keeps an entry of which the table knows.
    #[inline(always)]
    fn push(&mut self, entry: Entry) {
        self.buckets[bucket_of(entry.sector)].push(self.entries.len() as u32);
        let (word, bit) = Self::filter_bit(entry.sector);
        self.filter[word] |= bit;
        self.entries.push(entry);
    }

    /// Takes on an entry of another log; false if its sector is here already, or can be none.
    pub(super) fn add(&mut self, entry: Entry) -> bool {
        let next = self.entries.len() as u32;
        let missing = entry.sector != u64::MAX && self.table.entry(entry.sector, next).1;
        if missing {
            self.push(entry);
        }
        missing
    }

    /// All entries, in the order of their first write.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// A bit for every bucket that holds something.
    #[must_use]
    pub fn parts(&self) -> u64 {
        let full = self.buckets.iter().enumerate();
        full.fold(0, |parts, (index, bucket)| {
            parts | u64::from(!bucket.is_empty()) << index
        })
    }

    /// The entries of one bucket, in the order of their first write.
    pub fn bucket(&self, bucket: usize) -> impl ExactSizeIterator<Item = &Entry> {
        self.buckets[bucket]
            .iter()
            .map(|index| &self.entries[*index as usize])
    }

    /// An entry of a bucket by position.
    #[must_use]
    #[inline]
    pub fn bucket_entry(&self, bucket: usize, position: usize) -> &Entry {
        &self.entries[self.buckets[bucket][position] as usize]
    }

    /// Forgets everything; the cost follows what was used.
    pub fn clear(&mut self) {
        if self.entries.is_empty() {
            return;
        }
        self.table
            .clear(self.entries.iter().map(|entry| entry.sector));
        self.entries.clear();
        for bucket in &mut self.buckets {
            bucket.clear();
        }
        self.filter = [0; FILTER];
    }
}
