//! Which bytes of device memory were ever written: a bit a byte, where that is asked.
//!
//! Stores of kernels count when their log is committed; an SM lays its own log over what is here. Whatever the host
//! and copy engines write counts at once. A fresh allocation has nothing.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::contents::ContentsError;
use super::geometry::SECTOR;
use super::pages::PAGE;

/// A bit for every byte of a region, a word for each sector. Pages of it exist once they are used.
#[derive(Debug)]
pub struct Initialised {
    words: *mut AtomicU32,
    region: Range<u64>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, and its words are atomic.
unsafe impl Send for Initialised {}
// SAFETY: as above.
unsafe impl Sync for Initialised {}

impl Initialised {
    /// Nothing of a region is written.
    ///
    /// # Errors
    /// If it cannot be mapped.
    pub fn new(region: Range<u64>) -> Result<Self, ContentsError> {
        let region = region.start / SECTOR * SECTOR..region.end.next_multiple_of(SECTOR);
        let bytes = ((region.end - region.start) / 8) as usize;
        // SAFETY: without a fixed address the kernel chooses free addresses.
        let words = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        match words {
            Ok(words) => Ok(Self {
                words: words.cast(),
                region,
                bytes,
            }),
            Err(cause) => Err(ContentsError::Map {
                size: bytes as u64,
                cause: cause.into(),
            }),
        }
    }

    fn word(&self, sector: u64) -> Option<&AtomicU32> {
        let address = sector.checked_mul(SECTOR)?;
        if !self.region.contains(&address) {
            return None;
        }
        let index = ((address - self.region.start) / SECTOR) as usize;
        // SAFETY: there is a word for each sector of the region, which lives as long as `self`.
        Some(unsafe { &*self.words.add(index) })
    }

    /// The bytes of a sector that were written; all of them outside the region.
    #[must_use]
    pub fn of(&self, sector: u64) -> u32 {
        self.word(sector)
            .map_or(u32::MAX, |word| word.load(Ordering::Relaxed))
    }

    /// Bytes of a sector are written.
    pub fn add(&self, sector: u64, mask: u32) {
        if let Some(word) = self.word(sector) {
            word.fetch_or(mask, Ordering::Relaxed);
        }
    }

    /// Bytes are written, or are fresh again.
    pub fn set(&self, range: Range<u64>, written: bool) {
        let (start, end) = (
            range.start.max(self.region.start),
            range.end.min(self.region.end),
        );
        let mut at = start;
        if !written {
            at = self.forget_pages(start, end);
        }
        while at < end {
            let sector = at / SECTOR;
            let until = ((sector + 1) * SECTOR).min(end);
            let mask = (u64::MAX >> (64 - (until - at)) << (at % SECTOR)) as u32;
            if let Some(word) = self.word(sector) {
                if written {
                    word.fetch_or(mask, Ordering::Relaxed);
                } else {
                    word.fetch_and(!mask, Ordering::Relaxed);
                }
            }
            at = until;
        }
    }

    /// Gives whole pages of the bits back, which then say that nothing is written, and says where the bytes begin
    /// that are left to do.
    fn forget_pages(&self, start: u64, end: u64) -> u64 {
        let covered = PAGE * 8;
        let first = (start - self.region.start).next_multiple_of(covered);
        let last = (end - self.region.start) / covered * covered;
        if first >= last {
            return start;
        }
        // SAFETY: the pages lie inside the mapping, which is private: dropped pages read zero.
        let dropped = unsafe {
            let at = self.words.cast::<u8>().add((first / 8) as usize);
            rustix::mm::madvise(
                at.cast(),
                ((last - first) / 8) as usize,
                Advice::LinuxDontNeed,
            )
        };
        if dropped.is_err() {
            return start;
        }
        self.set(start..self.region.start + first, false);
        self.region.start + last
    }
}

impl Drop for Initialised {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by this value and nobody uses it any more.
        let _ = unsafe { rustix::mm::munmap(self.words.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_one_by_one_and_fresh_again() {
        let shadow = Initialised::new(0x1000_0000..0x2000_0000).unwrap();
        let sector = 0x1000_0040 / SECTOR;
        assert_eq!(shadow.of(sector), 0);
        shadow.set(0x1000_0044..0x1000_0061, true);
        assert_eq!(shadow.of(sector), 0xffff_fff0);
        assert_eq!(shadow.of(sector + 1), 1);
        shadow.add(sector, 2);
        assert_eq!(shadow.of(sector), 0xffff_fff2);
        shadow.set(0x1000_0000..0x1000_0048, false);
        assert_eq!(shadow.of(sector), 0xffff_ff00);
        assert_eq!(
            shadow.of(7),
            u32::MAX,
            "outside everything counts as written"
        );
        for place in [0x1000_0100, 0x1080_0000, 0x1100_0010] {
            shadow.set(place..place + 16, true);
        }
        shadow.set(0x1000_0060..0x1100_0018, false);
        let left =
            [0x1000_0060, 0x1000_0100, 0x1080_0000, 0x1100_0000].map(|at| shadow.of(at / SECTOR));
        assert_eq!(left, [0, 0, 0, 0xff00_0000]);
    }
}
