//! Local memory of one warp: each thread's own bytes, kept as rows of words and only where they
//! were ever written.

use lockstep_isa::WarpRegister;
use serde::{Deserialize, Serialize};

use super::recurrence::mix;

/// Rows of a piece: 128 bytes of every thread.
const ROWS: usize = 32;

/// Local memory of 32 threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LocalMemory {
    pieces: Vec<Option<Box<[WarpRegister]>>>,
    bytes: u32,
}

impl LocalMemory {
    /// Makes it so many bytes a thread, all zero.
    pub fn reset(&mut self, bytes: u32) {
        self.pieces.clear();
        self.bytes = bytes;
    }

    /// Bytes of a thread.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Whether an access lies inside.
    #[must_use]
    #[inline]
    pub fn holds(&self, offset: u64, bytes: u32) -> bool {
        offset
            .checked_add(u64::from(bytes))
            .is_some_and(|end| end <= u64::from(self.bytes))
    }

    /// Copies bytes out, zero where nothing was written.
    pub fn read(&self, lane: usize, offset: u32, bytes: &mut [u8]) {
        for (index, byte) in bytes.iter_mut().enumerate() {
            let at = offset as usize + index;
            let row = at / 4;
            let piece = self.pieces.get(row / ROWS).and_then(Option::as_ref);
            *byte = piece.map_or(0, |rows| (rows[row % ROWS].0[lane] >> (8 * (at % 4))) as u8);
        }
    }

    /// A whole aligned word.
    #[must_use]
    #[inline]
    pub fn word(&self, lane: usize, offset: u32) -> u32 {
        let row = offset as usize / 4;
        match self.pieces.get(row / ROWS) {
            Some(Some(rows)) => rows[row % ROWS].0[lane],
            _ => 0,
        }
    }

    /// Overwrites bytes, which must lie inside.
    pub fn write(&mut self, lane: usize, offset: u32, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            let at = offset as usize + index;
            let shift = 8 * (at % 4);
            let word = &mut self.row(at / 4).0[lane];
            *word = (*word & !(0xff << shift)) | u32::from(*byte) << shift;
        }
    }

    /// Overwrites an aligned word.
    #[inline]
    pub fn write_word(&mut self, lane: usize, offset: u32, word: u32) {
        self.row(offset as usize / 4).0[lane] = word;
    }

    /// A number that changes, all but surely, with what is written.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let pieces = self.pieces.iter().enumerate();
        let written = pieces.filter_map(|(at, piece)| Some((at, piece.as_ref()?)));
        written.fold(0, |hash, (at, rows)| {
            let words = rows.iter().flat_map(|row| row.0);
            words.fold(mix(hash, at as u64), |hash, word| {
                mix(hash, u64::from(word))
            })
        })
    }

    #[inline]
    fn row(&mut self, row: usize) -> &mut WarpRegister {
        let piece = row / ROWS;
        if piece >= self.pieces.len() {
            self.pieces.resize(piece + 1, None);
        }
        let rows = self.pieces[piece]
            .get_or_insert_with(|| vec![WarpRegister::ZERO; ROWS].into_boxed_slice());
        &mut rows[row % ROWS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_its_own_bytes() {
        let mut local = LocalMemory::default();
        local.reset(1 << 20);
        local.write(3, 1_000_001, &[1, 2, 3, 4, 5]);
        let mut bytes = [9; 7];
        local.read(3, 1_000_000, &mut bytes);
        assert_eq!(bytes, [0, 1, 2, 3, 4, 5, 0]);
        local.read(4, 1_000_000, &mut bytes);
        assert_eq!(bytes, [0; 7]);
        local.write_word(4, 8, 0x0403_0201);
        assert_eq!(local.word(4, 8), 0x0403_0201);
        assert!(local.holds((1 << 20) - 4, 4) && !local.holds((1 << 20) - 3, 4));
        assert!(!local.holds(u64::MAX, 4));
    }
}
