//! Rows on their way from the simulation to the thread that writes them.
//!
//! The simulation adds rows where they stay until the thread takes all of them at once: no message is sent for a
//! sample, and memory goes back and forth between the two. The order of counters is turned from rows into columns by
//! the thread.

use super::{Part, Sample};
use lockstep_counters::COUNTERS;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Rows of one kind of part that make a block.
const LARGEST: usize = 16_384;
/// Whoever takes samples faster than they can be written waits when so many rows are held.
const MOST: usize = 4 * LARGEST;
/// A block is written at the latest after this, so that those who watch see it.
const LATEST: Duration = Duration::from_millis(500);

/// Rows of one kind of part.
#[derive(Debug)]
pub(super) struct Held {
    /// Places of its counters in the table of counters.
    places: Vec<usize>,
    /// Intervals, and how many rows each has.
    samples: Vec<(Sample, usize)>,
    /// Numbers of the parts.
    pub numbers: Vec<u32>,
    /// Counters, row after row.
    values: Vec<u64>,
}

impl Held {
    fn new(part: Part) -> Self {
        Self {
            places: part.counters().map(|(place, _)| place).collect(),
            samples: Vec::new(),
            numbers: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Rows that are held.
    pub fn rows(&self) -> usize {
        self.numbers.len()
    }

    /// What a sample says, for each of its rows.
    pub fn repeated<'held, V: Clone>(&'held self, of: impl Fn(&'held Sample) -> V) -> Vec<V> {
        let mut all = Vec::with_capacity(self.rows());
        for (sample, rows) in &self.samples {
            all.extend(std::iter::repeat_n(of(sample), *rows));
        }
        all
    }

    /// Counters, one after the other.
    pub fn counters(&self) -> Vec<Vec<u64>> {
        let empty = |_| Vec::with_capacity(self.rows());
        let mut columns: Vec<Vec<u64>> = self.places.iter().map(empty).collect();
        for row in self.values.chunks_exact(self.places.len()) {
            for (column, value) in columns.iter_mut().zip(row) {
                column.push(*value);
            }
        }
        columns
    }

    fn clear(&mut self) {
        self.samples.clear();
        self.numbers.clear();
        self.values.clear();
    }
}

/// The rows of one sample, while they are added.
#[derive(Debug)]
pub struct Rows<'held> {
    parts: &'held mut [Held],
}

impl Rows<'_> {
    /// Adds what a part counted; counters are in the order of the table.
    pub fn add(&mut self, part: Part, number: u32, counters: &[u64; COUNTERS.len()]) {
        let held = &mut self.parts[part as usize];
        held.numbers.push(number);
        let own = held.places.iter().map(|place| counters[*place]);
        held.values.extend(own);
    }
}

/// What the simulation and the thread share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// In the order of [`Part::ALL`].
    parts: Vec<Held>,
    /// No more rows will come.
    ended: bool,
    /// The thread writes no more.
    gone: bool,
}

impl State {
    fn most(&self) -> usize {
        self.parts.iter().map(Held::rows).max().unwrap_or(0)
    }
}

impl Shared {
    pub fn new() -> Self {
        Self {
            state: Mutex::new(State {
                parts: Part::ALL.map(Held::new).into(),
                ended: false,
                gone: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Rows are whole whenever the lock is free.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a sample; false if the thread writes no more.
    pub fn add(&self, sample: &Sample, fill: impl FnOnce(&mut Rows<'_>)) -> bool {
        let full = |state: &mut State| state.most() >= MOST && !state.gone;
        let waited = self.changed.wait_while(self.lock(), full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.gone {
            return false;
        }
        let before: Vec<usize> = state.parts.iter().map(Held::rows).collect();
        let parts = &mut state.parts;
        fill(&mut Rows { parts });
        for (held, before) in state.parts.iter_mut().zip(before) {
            let rows = held.rows() - before;
            if rows > 0 {
                held.samples.push((sample.clone(), rows));
            }
        }
        if state.most() >= LARGEST {
            self.changed.notify_all();
        }
        true
    }

    /// Waits for a block of rows, or for a while, and takes all of them in exchange for memory that was taken before.
    /// True if they are the last.
    pub fn take(&self, taken: &mut Vec<Held>) -> bool {
        taken.iter_mut().for_each(Held::clear);
        if taken.is_empty() {
            taken.extend(Part::ALL.map(Held::new));
        }
        let little = |state: &mut State| state.most() < LARGEST && !state.ended;
        let waited = self.changed.wait_timeout_while(self.lock(), LATEST, little);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.parts, taken);
        self.changed.notify_all();
        state.ended
    }

    /// No more rows will come.
    pub fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Says when it is dropped that nothing is written any more.
    pub fn gone_at_the_end(&self) -> Gone<'_> {
        Gone(self)
    }
}

/// See [`Shared::gone_at_the_end`].
pub(super) struct Gone<'shared>(&'shared Shared);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.lock().gone = true;
        self.0.changed.notify_all();
    }
}
