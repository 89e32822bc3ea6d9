//! Messages on their way to one partition, in the one order that every run agrees on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lockstep_units::Time;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{LoadError, PartitionId, Reader, Writer};

/// The place of a message in the order of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Order {
    pub due: Time,
    pub sender: PartitionId,
    pub sequence: u64,
}

/// What waits in the heap: the order, and where the message itself lies. Messages stay where they
/// are while the heap moves only these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    order: Order,
    slot: u32,
}

/// A message that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<M> {
    /// When it arrived.
    pub due: Time,
    /// Who sent it.
    pub sender: PartitionId,
    /// What was sent.
    pub message: M,
}

/// The messages on their way to one partition.
pub struct Inbox<M> {
    heap: BinaryHeap<Reverse<Entry>>,
    slots: Vec<Option<M>>,
    free: Vec<u32>,
    /// Messages due at or after this belong to a later window.
    horizon: Time,
}

impl<M> Default for Inbox<M> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            horizon: Time::ZERO,
        }
    }
}

impl<M> Inbox<M> {
    /// When the next message is due, in this window or after it.
    #[inline]
    pub fn next_due(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.0.order.due)
    }

    /// The next message that is due at `now` or before.
    ///
    /// `now` lies inside the window that runs: later messages are not complete yet.
    #[inline]
    pub fn take_due(&mut self, now: Time) -> Option<Delivery<M>> {
        debug_assert!(
            now < self.horizon,
            "{now} lies after the window, which ends at {}",
            self.horizon
        );
        if self.next_due()? > now {
            return None;
        }
        self.pop().map(|(order, message)| Delivery {
            due: order.due,
            sender: order.sender,
            message,
        })
    }

    /// The next message that is due inside the window, whenever that is.
    #[inline]
    pub fn take_in_window(&mut self) -> Option<Delivery<M>> {
        if self.next_due()? >= self.horizon {
            return None;
        }
        self.pop().map(|(order, message)| Delivery {
            due: order.due,
            sender: order.sender,
            message,
        })
    }

    /// How many messages are on their way.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Opens the inbox for a window that ends at `horizon`.
    #[inline]
    pub(crate) fn open(&mut self, horizon: Time) {
        self.horizon = horizon;
    }

    #[inline]
    pub(crate) fn push(&mut self, order: Order, message: M) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(message);
                slot
            }
            None => {
                self.slots.push(Some(message));
                (self.slots.len() - 1) as u32
            }
        };
        self.heap.push(Reverse(Entry { order, slot }));
    }

    #[inline]
    fn pop(&mut self) -> Option<(Order, M)> {
        let Reverse(entry) = self.heap.pop()?;
        self.free.push(entry.slot);
        let message = self.slots[entry.slot as usize].take();
        Some((
            entry.order,
            message.expect("a waiting entry has its message"),
        ))
    }

    fn clear(&mut self) {
        self.heap.clear();
        self.slots.clear();
        self.free.clear();
    }
}

impl<M: Serialize + DeserializeOwned> Inbox<M> {
    /// Writes what waits, in its order: where the messages lie never shows.
    pub(crate) fn save(&self, writer: &mut Writer<'_>) {
        let mut entries: Vec<Entry> = self.heap.iter().map(|entry| entry.0).collect();
        entries.sort_unstable();
        writer.write(&(entries.len() as u64));
        for entry in entries {
            writer.write(&entry.order);
            writer.write(&self.slots[entry.slot as usize]);
        }
    }

    pub(crate) fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        self.clear();
        for _ in 0..reader.read::<u64>()? {
            let order: Order = reader.read()?;
            let message: Option<M> = reader.read()?;
            self.push(
                order,
                message.ok_or(LoadError::Malformed {
                    what: "a message is missing",
                })?,
            );
        }
        Ok(())
    }
}
