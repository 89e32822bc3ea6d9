//! What a worker notes for the leader while it runs partitions, close together: the leader fetches it
//! from the worker's cache when both have met.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::PartitionId;

/// One worker's notes of a step.
///
/// A word for every 64 partitions with a bit for each that has messages; as many for those that have
/// work in the next window; how many have work after it, and for each of these its number and when.
pub(crate) struct WakeReport {
    words: Box<[AtomicU64]>,
    /// Words of bits.
    bits: usize,
}

impl WakeReport {
    /// Room for notes about so many partitions.
    pub(crate) fn new(partitions: usize) -> Self {
        let bits = partitions.div_ceil(64);
        let words = 2 * bits + 1 + 2 * partitions;
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            bits,
        }
    }

    /// The part that is read in most steps, for fetching ahead.
    pub(crate) fn head(&self) -> &[AtomicU64] {
        let end = (2 * self.bits + 17).min(self.words.len());
        &self.words[..end]
    }

    /// Worker: begins the notes of a step.
    #[inline]
    pub(crate) fn clear(&self) {
        for word in &self.words[..=2 * self.bits] {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Worker: notes who has messages.
    #[inline]
    pub(crate) fn set_mail(&self, mail: &[u64]) {
        for (word, bits) in self.words.iter().zip(mail) {
            word.store(*bits, Ordering::Relaxed);
        }
    }

    /// Worker: notes when a partition that it ran next has work; once for each.
    #[inline]
    pub(crate) fn add_wake(&self, id: PartitionId, wake: u64, horizon: u64) {
        let add = |word: &AtomicU64, bits| {
            // Nobody else writes, so this need not be one operation.
            word.store(word.load(Ordering::Relaxed) + bits, Ordering::Relaxed);
        };
        if wake < horizon {
            let word = self.bits + id.index() / 64;
            add(&self.words[word], 1 << (id.index() % 64));
        } else if wake != u64::MAX {
            let count = &self.words[2 * self.bits];
            let place = 2 * self.bits + 1 + 2 * count.load(Ordering::Relaxed) as usize;
            self.words[place].store(id.0.into(), Ordering::Relaxed);
            self.words[place + 1].store(wake, Ordering::Relaxed);
            add(count, 1);
        }
    }

    /// Leader: bits of the partitions with messages.
    pub(crate) fn mail(&self) -> impl Iterator<Item = u64> {
        let words = &self.words[..self.bits];
        words.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// Leader: bits of the partitions that have work in the next window.
    pub(crate) fn due(&self) -> impl Iterator<Item = u64> {
        let words = &self.words[self.bits..2 * self.bits];
        words.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// Leader: the partitions that have work later, and when.
    pub(crate) fn later(&self) -> impl Iterator<Item = (PartitionId, u64)> {
        let count = self.words[2 * self.bits].load(Ordering::Relaxed) as usize;
        let (pairs, _) = self.words[2 * self.bits + 1..].as_chunks::<2>();
        pairs.iter().take(count).map(|[id, when]| {
            let id = PartitionId(id.load(Ordering::Relaxed) as u32);
            (id, when.load(Ordering::Relaxed))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written() {
        let notes = WakeReport::new(130);
        for _ in 0..2 {
            notes.clear();
            notes.set_mail(&[5, 0, 1]);
            notes.add_wake(PartitionId(3), 10, 20);
            notes.add_wake(PartitionId(129), 20, 20);
            notes.add_wake(PartitionId(128), 19, 20);
            notes.add_wake(PartitionId(64), u64::MAX, 20);
            notes.add_wake(PartitionId(65), 400, 20);
            assert_eq!(notes.mail().collect::<Vec<_>>(), [5, 0, 1]);
            assert_eq!(notes.due().collect::<Vec<_>>(), [8, 0, 1]);
            let later: Vec<_> = notes.later().collect();
            assert_eq!(later, [(PartitionId(129), 20), (PartitionId(65), 400)]);
        }
    }
}
