//! One mapped part of a segment, as its publisher writes it.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, fallocate, ftruncate};

/// A mapped range of the segment's file.
pub(super) struct Region {
    map: MmapRaw,
    /// Index of the first record, identity or row that it holds.
    pub first: u64,
    pub offset: u64,
    pub length: usize,
}

impl Region {
    /// Extends `file` by `length` bytes at `offset` and maps them.
    ///
    /// Space is taken now: a memory file system without room answers here, where the error can be
    /// told, and not later with a fault at a write.
    pub fn append(file: &File, offset: u64, length: usize, first: u64) -> io::Result<Self> {
        match fallocate(file, FallocateFlags::empty(), offset, length as u64) {
            Ok(()) => {}
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                ftruncate(file, offset + length as u64)?;
            }
            Err(error) => return Err(error.into()),
        }
        let map = MmapOptions::new()
            .offset(offset)
            .len(length)
            .map_raw(file)?;
        Ok(Self {
            map,
            first,
            offset,
            length,
        })
    }

    /// The eight bytes at `at`, as readers see them.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(
            at.is_multiple_of(8) && at + 8 <= self.length,
            "a word inside its region"
        );
        // SAFETY: inside the mapping (asserted), which lives as long as `self`; a page-aligned
        // mapping and a multiple of eight make it aligned; other processes only read or write it
        // whole.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    /// The four bytes at `at`, as readers see them.
    pub fn half(&self, at: usize) -> &AtomicU32 {
        assert!(
            at.is_multiple_of(4) && at + 4 <= self.length,
            "a half word inside its region"
        );
        // SAFETY: as in `word`, with four bytes.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    /// Copies `bytes` to `at`, word by word where whole words are written.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at.is_multiple_of(8) && at + bytes.len().next_multiple_of(8) <= self.length);
        for (i, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(at + 8 * i)
                .store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }
}
