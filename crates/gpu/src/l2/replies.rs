//! Answers that wait for their time.
//!
//! A slice with many atomics before it has thousands of them. They are kept by the stretch of time in
//! which they leave, in no order; only what leaves in a window is sorted, as short keys, and the
//! answers themselves stay where they were put.
//!
//! Start reading at [`Replies::due`].

use std::collections::BTreeMap;

use lockstep_engine::PartitionId;
use lockstep_units::Time;
use serde::{Deserialize, Serialize};

use crate::message::Message;

/// An answer that waits for its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub at: Time,
    pub sequence: u64,
    pub to: PartitionId,
    /// With what is around them.
    pub bytes: u32,
    pub message: Message,
}

/// When an answer leaves, in which order among those of the same time, and where it lies.
pub type Key = (Time, u64, u32);

/// Stretches of time are two to the power of this long, in femtoseconds: about as long as an epoch.
const STRETCH: u32 = 26;

/// All answers of a slice that wait.
#[derive(Debug, Default)]
pub struct Replies {
    /// By stretch of time; none is empty.
    stretches: BTreeMap<u64, Vec<Key>>,
    slots: Vec<Option<Reply>>,
    free: Vec<u32>,
    /// Memory of stretches that have passed.
    spare: Vec<Vec<Key>>,
}

impl Replies {
    /// Adds one.
    pub fn push(&mut self, reply: Reply) {
        let (at, sequence) = (reply.at, reply.sequence);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(reply);
                slot
            }
            None => {
                self.slots.push(Some(reply));
                (self.slots.len() - 1) as u32
            }
        };
        let spare = &mut self.spare;
        self.stretches
            .entry(at.0 >> STRETCH)
            .or_insert_with(|| spare.pop().unwrap_or_default())
            .push((at, sequence, slot));
    }

    /// When the first of them leaves.
    pub fn first(&self) -> Option<Time> {
        let (_, keys) = self.stretches.first_key_value()?;
        keys.iter().map(|(at, ..)| *at).min()
    }

    /// Those that leave before `end`, in order; each is to be [taken](Self::take).
    pub fn due(&mut self, end: Time) -> Vec<Key> {
        let mut due = self.spare.pop().unwrap_or_default();
        while let Some(mut entry) = self.stretches.first_entry() {
            let stretch = *entry.key();
            if stretch > end.0 >> STRETCH {
                break;
            }
            if stretch < end.0 >> STRETCH {
                due.append(entry.get_mut());
            } else {
                due.extend(entry.get_mut().extract_if(.., |(at, ..)| *at < end));
                if !entry.get().is_empty() {
                    break;
                }
            }
            self.spare.push(entry.remove());
        }
        due.sort_unstable();
        due
    }

    /// Takes an answer that is due.
    pub fn take(&mut self, (_, _, slot): Key) -> Option<Reply> {
        self.free.push(slot);
        self.slots[slot as usize].take()
    }

    /// Takes back the memory of a list of what was due.
    pub fn put_back(&mut self, mut due: Vec<Key>) {
        due.clear();
        self.spare.push(due);
    }

    /// All of them, in order.
    pub fn sorted(&self) -> Vec<&Reply> {
        let mut all: Vec<&Reply> = self.slots.iter().flatten().collect();
        all.sort_unstable_by_key(|reply| (reply.at, reply.sequence));
        all
    }
}

impl FromIterator<Reply> for Replies {
    fn from_iter<I: IntoIterator<Item = Reply>>(all: I) -> Self {
        let mut replies = Self::default();
        all.into_iter().for_each(|reply| replies.push(reply));
        replies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(at: u64, sequence: u64) -> Reply {
        Reply {
            at: Time(at),
            sequence,
            to: PartitionId(1),
            bytes: 0,
            message: Message::ReadDone { miss: 0 },
        }
    }

    /// The sequences of what leaves before a time.
    fn leave(replies: &mut Replies, end: u64) -> Vec<u64> {
        let due = replies.due(Time(end));
        let left = due.iter().map(|key| replies.take(*key).unwrap().sequence);
        let left = left.collect();
        replies.put_back(due);
        left
    }

    #[test]
    fn answers_leave_by_time_and_then_in_order() {
        let mut replies: Replies = [reply(9, 1), reply(5, 3), reply(5, 2)]
            .into_iter()
            .collect();
        assert_eq!(replies.first(), Some(Time(5)));
        assert_eq!(leave(&mut replies, 5), [0; 0], "not before their time");
        assert_eq!(leave(&mut replies, 6), [2, 3]);
        assert_eq!(leave(&mut replies, 6), [0; 0]);
        // The places of the two are used again.
        replies.push(reply(7, 4));
        replies.push(reply(9, 5));
        let sorted: Vec<u64> = replies.sorted().iter().map(|one| one.sequence).collect();
        assert_eq!(sorted, [4, 1, 5]);
        assert_eq!(replies.slots.len(), 3);
    }

    #[test]
    fn stretches_of_time_follow_each_other() {
        let stretch = 1 << STRETCH;
        let times = [3 * stretch, stretch - 1, 0, stretch, 2 * stretch + 7];
        let mut replies: Replies = times.iter().zip(0..).map(|(at, n)| reply(*at, n)).collect();
        assert_eq!(replies.first(), Some(Time(0)));
        assert_eq!(leave(&mut replies, stretch), [2, 1], "not at its end");
        assert_eq!(leave(&mut replies, 2 * stretch + 8), [3, 4]);
        assert_eq!(replies.first(), Some(Time(3 * stretch)));
        assert_eq!(leave(&mut replies, u64::MAX), [0]);
        assert_eq!(replies.first(), None);
    }
}
