//! Messages on their way to one partition, in the one order that every run agrees on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lockstep_units::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::order::Order;
use crate::{LoadError, PartitionId, Reader, Writer};

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
///
/// Most messages are due in the window after the one they were sent in: those are sorted once and
/// taken from the front. Only what is due later goes through a heap.
pub struct Inbox<M> {
    /// What is due inside the window, in order from `taken` on.
    current: Vec<Entry>,
    /// How many of these were taken.
    taken: usize,
    /// What is due at the horizon or after.
    later: BinaryHeap<Reverse<Entry>>,
    slots: Vec<Option<M>>,
    free: Vec<u32>,
    /// The end of the window.
    horizon: Time,
}

impl<M> Default for Inbox<M> {
    fn default() -> Self {
        Self {
            current: Vec::new(),
            taken: 0,
            later: BinaryHeap::new(),
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
        match self.current.get(self.taken) {
            Some(entry) => Some(entry.order.due),
            None => self.later.peek().map(|entry| entry.0.order.due),
        }
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
        let entry = *self.current.get(self.taken)?;
        if entry.order.due > now {
            return None;
        }
        self.taken += 1;
        self.free.push(entry.slot);
        let message = self.slots[entry.slot as usize].take();
        Some(Delivery {
            due: entry.order.due,
            sender: entry.order.sender,
            message: message.expect("a waiting entry has its message"),
        })
    }

    /// The next message that is due inside the window, whenever that is.
    #[inline]
    pub fn take_in_window(&mut self) -> Option<Delivery<M>> {
        self.take_due(Time(self.horizon.0.saturating_sub(1)))
    }

    /// How many messages are on their way.
    pub fn len(&self) -> usize {
        self.current.len() - self.taken + self.later.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Opens the inbox for a window that ends at `horizon`: lets `fill` push what has arrived, and
    /// puts in order what is due before.
    #[inline]
    pub(crate) fn open(&mut self, horizon: Time, fill: impl FnOnce(&mut Self)) {
        if self.taken > 0 {
            self.current.drain(..self.taken);
            self.taken = 0;
        }
        self.horizon = horizon;
        fill(self);
        while let Some(entry) = self.later.peek()
            && entry.0.order.due < horizon
        {
            self.current.extend(self.later.pop().map(|entry| entry.0));
        }
        self.current.sort_unstable();
    }

    /// Adds a message: while the inbox is opened, or while it is not being taken from and the
    /// message is not due before the horizon.
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
        let entry = Entry { order, slot };
        if order.due < self.horizon {
            self.current.push(entry);
        } else {
            self.later.push(Reverse(entry));
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    /// What waits, in order.
    fn entries(&self) -> Vec<Entry> {
        let later = self.later.iter().map(|entry| entry.0);
        let mut entries: Vec<Entry> = self.current[self.taken..]
            .iter()
            .copied()
            .chain(later)
            .collect();
        entries.sort_unstable();
        entries
    }
}

impl<M: Serialize + DeserializeOwned> Inbox<M> {
    /// Writes what waits, in its order: where the messages lie never shows.
    pub(crate) fn save(&self, writer: &mut Writer<'_>) {
        let entries = self.entries();
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
