//! The port of the memory behind a slice: it accepts a request or refuses it, and has it done later.
//!
//! A slice knows nothing else of its memory. Back ends attach here by name (`DRAM_BACK_ENDS`); what they do
//! with a request between accepting it and having it done is theirs.
//!
//! Left out: back ends that cannot say when a request will be done as they accept it.
//!
//! Start reading at [`MemoryPort::accept`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;

use lockstep_engine::{LoadError, Reader, Writer};
use lockstep_units::Time;

use crate::statistics::BankStats;

/// What is asked of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRequest {
    /// Number of the line.
    pub line: u64,
    /// Its sectors that are wanted, or come, a bit each.
    pub sectors: u8,
    /// They are written.
    pub write: bool,
}

/// What memory says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// It is done at this time: its data are there, or are written.
    Accepted {
        /// When.
        done: Time,
    },
    /// There is no room for it; it may be asked again at this time.
    Refused {
        /// Later than it was asked.
        until: Time,
    },
}

/// Memory behind a slice.
pub trait MemoryPort: Debug + Send + Sync {
    /// A request comes at a time.
    fn accept(&mut self, at: Time, request: MemoryRequest) -> Acceptance;

    /// When everything that was accepted has been on the bus.
    fn busy_until(&self) -> Time;

    /// Accesses that found their row open, and those that did not.
    fn rows(&self) -> [u64; 2];

    /// The bank and the row that a line is in, rows counted from 1.
    fn place(&self, line: u64) -> (usize, u64);

    /// What each bank counted.
    fn banks(&self) -> Vec<&BankStats>;

    /// Goes on counting where the banks of another one stopped.
    fn count_on(&mut self, banks: &[&BankStats]);

    /// Writes everything.
    fn save(&self, writer: &mut Writer<'_>);

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote for memory like this.
    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError>;
}

/// Requests that were accepted and are not done.
#[derive(Clone, Debug, Default)]
pub struct RequestQueue {
    /// Room for so many; for any number with 0.
    limit: usize,
    /// When each of them is done.
    ends: BinaryHeap<Reverse<Time>>,
}

impl RequestQueue {
    /// Empty, with room for so many requests, or for any number with 0.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self {
            limit: limit as usize,
            ends: BinaryHeap::new(),
        }
    }

    /// When there is room for another request, if there is none at a time.
    #[inline]
    pub fn full_until(&mut self, at: Time) -> Option<Time> {
        if self.limit == 0 {
            return None;
        }
        while self.ends.peek().is_some_and(|end| end.0 <= at) {
            self.ends.pop();
        }
        let full = self.ends.len() >= self.limit;
        self.ends.peek().filter(|_| full).map(|end| end.0)
    }

    /// A request was accepted.
    #[inline]
    pub fn push(&mut self, done: Time) {
        if self.limit > 0 {
            self.ends.push(Reverse(done));
        }
    }

    /// What is saved.
    #[must_use]
    pub fn saved(&self) -> Vec<Time> {
        let mut ends: Vec<Time> = self.ends.iter().map(|end| end.0).collect();
        ends.sort_unstable();
        ends
    }

    /// Takes on what was saved.
    pub fn restore(&mut self, ends: Vec<Time>) {
        self.ends = ends.into_iter().map(Reverse).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_room_again_when_its_first_request_is_done() {
        let mut queue = RequestQueue::new(2);
        queue.push(Time(50));
        assert_eq!(queue.full_until(Time(10)), None);
        queue.push(Time(30));
        assert_eq!(queue.full_until(Time(10)), Some(Time(30)));
        let mut loaded = RequestQueue::new(2);
        loaded.restore(queue.saved());
        assert_eq!(loaded.full_until(Time(29)), Some(Time(30)));
        assert_eq!(loaded.full_until(Time(30)), None);
        let mut any = RequestQueue::new(0);
        (0..100).for_each(|_| any.push(Time(90)));
        assert_eq!(any.full_until(Time(1)), None);
    }
}
