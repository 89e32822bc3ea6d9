//! The partitions that one worker has to run in a step, open to others once these are done with
//! their own.
//!
//! Workers make the lists themselves, each its own, so that the leader need not: whoever comes first
//! makes it, which is another worker if the owner is late. Every partition with work is in one list,
//! since nobody can change its owner before that list is made.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::PartitionId;
use crate::sync::Padded;

/// Bits for the length of a list; the step lies above.
const LENGTH: u32 = 20;

/// One worker's list.
pub(crate) struct WorkQueue {
    /// The last step that somebody makes or has made a list for.
    claimed: AtomicU64,
    /// The last step that a list was made for, and its length.
    made: AtomicU64,
    ids: Box<[AtomicU32]>,
    /// How many were taken. Apart, since this changes while others read the list.
    taken: Padded<AtomicUsize>,
}

impl WorkQueue {
    /// A list with room for so many partitions.
    pub(crate) fn new(partitions: usize) -> Self {
        assert!(partitions < 1 << LENGTH, "{partitions} partitions");
        Self {
            claimed: AtomicU64::new(0),
            made: AtomicU64::new(0),
            ids: (0..partitions).map(|_| AtomicU32::new(0)).collect(),
            taken: Padded::default(),
        }
    }

    /// Whether the caller is to make the list of a step: true once for each.
    #[inline]
    pub(crate) fn claim(&self, step: u64) -> bool {
        let before = self.claimed.load(Ordering::Relaxed);
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        before != step
            && self
                .claimed
                .compare_exchange(before, step, success, failure)
                .is_ok()
    }

    /// Makes the list of a step, after a claim.
    #[inline]
    pub(crate) fn make(&self, step: u64, ids: impl Iterator<Item = PartitionId>) {
        let mut length = 0;
        for (place, id) in self.ids.iter().zip(ids) {
            // What is not written stays in the caches of those who read it.
            if place.load(Ordering::Relaxed) != id.0 {
                place.store(id.0, Ordering::Relaxed);
            }
            length += 1;
        }
        self.taken.0.store(0, Ordering::Relaxed);
        self.made.store(step << LENGTH | length, Ordering::Release);
    }

    /// How many partitions the list of a step has, if it is made.
    #[inline]
    pub(crate) fn length(&self, step: u64) -> Option<usize> {
        let made = self.made.load(Ordering::Acquire);
        (made >> LENGTH == step).then_some((made & ((1 << LENGTH) - 1)) as usize)
    }

    /// A partition of the list by its place.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> PartitionId {
        PartitionId(self.ids[place].load(Ordering::Relaxed))
    }

    /// The next partition that is left, in a list of so many.
    #[inline]
    pub(crate) fn peek(&self, length: usize) -> Option<PartitionId> {
        let next = self.taken.0.load(Ordering::Relaxed);
        (next < length).then(|| self.get(next))
    }

    /// Takes the next place that is left, in a list of so many.
    #[inline]
    pub(crate) fn take(&self, length: usize) -> Option<usize> {
        // Looking first leaves the line with those who have something to take.
        if self.taken.0.load(Ordering::Relaxed) >= length {
            return None;
        }
        let place = self.taken.0.fetch_add(1, Ordering::Relaxed);
        (place < length).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_made_once_a_step_and_every_place_taken_once() {
        let work_queue = WorkQueue::new(8);
        assert_eq!(work_queue.length(1), None);
        assert!(work_queue.claim(1));
        assert!(!work_queue.claim(1));
        assert_eq!(work_queue.length(1), None, "not made yet");
        work_queue.make(1, [7, 3, 5].into_iter().map(PartitionId));
        let length = work_queue.length(1).unwrap();
        assert_eq!((length, work_queue.length(2)), (3, None));
        assert_eq!(work_queue.peek(length), Some(PartitionId(7)));
        let taken: Vec<_> = std::iter::from_fn(|| work_queue.take(length)).collect();
        assert_eq!(taken, [0, 1, 2]);
        assert_eq!(work_queue.get(2), PartitionId(5));
        assert_eq!(work_queue.peek(length), None);
        assert!(work_queue.claim(9));
        work_queue.make(9, [].into_iter());
        assert_eq!(work_queue.length(9), Some(0));
        assert_eq!(work_queue.take(0), None);
    }
}
