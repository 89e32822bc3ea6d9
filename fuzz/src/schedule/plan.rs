//! A schedule: what a host puts into streams, and what it must come to.
//!
//! Every stream has a cell of its own; a step of a cell depends on all steps before it, so its last
//! value tells whether they came in order. A stream publishes its cell into a place that nobody
//! else writes, records an event, and another stream joins what was published after it has waited
//! for the event: so values also tell whether events are waited for.

use crate::random::Random;

/// Streams at most.
pub const STREAMS: usize = 4;
/// Places where cells are published, at most.
pub const PLACES: usize = 16;

/// One thing that the host asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A kernel steps the cell of a stream.
    Step {
        stream: usize,
        more: u64,
        blocks: u32,
        threads: u32,
        rounds: u32,
    },
    /// A copy publishes the cell of a stream, and an event is recorded.
    Publish { stream: usize, place: usize },
    /// A stream waits for the event of a place and joins what was published.
    Join {
        stream: usize,
        place: usize,
        blocks: u32,
    },
    /// The cell becomes a pattern.
    Fill { stream: usize, byte: u8 },
    /// The cell becomes a number that lies in pinned memory.
    Upload { stream: usize, value: u64 },
    /// The host waits for a stream.
    WaitStream { stream: usize },
    /// The host waits for the event of a place.
    WaitPlace { place: usize },
    /// The host asks whether a stream is done.
    Query { stream: usize },
    /// The host waits for everything.
    WaitAll,
}

/// A schedule with its streams: priority, and whether each is ordered with the legacy stream.
#[derive(Clone, Debug)]
pub struct Plan {
    pub streams: Vec<(i32, bool)>,
    pub actions: Vec<Action>,
}

impl Plan {
    /// The schedule of a seed.
    pub fn new(random: &mut Random) -> Self {
        let count = 1 + random.below(STREAMS);
        let streams = (0..count)
            .map(|_| (-(random.below(6) as i32), random.once_in(2)))
            .collect();
        let mut published = 0;
        let length = 2 + random.below(20);
        let actions = (0..length)
            .map(|_| action(random, count, &mut published))
            .collect();
        Self { streams, actions }
    }

    /// What cells and places hold in the end, if everything comes in order.
    pub fn reference(&self) -> ([u64; STREAMS], [u64; PLACES]) {
        let (mut cells, mut places) = ([0u64; STREAMS], [0u64; PLACES]);
        for action in &self.actions {
            match *action {
                Action::Step { stream, more, .. } => {
                    cells[stream] = cells[stream].wrapping_mul(31).wrapping_add(more);
                }
                Action::Publish { stream, place } => places[place] = cells[stream],
                Action::Join { stream, place, .. } => {
                    cells[stream] = cells[stream].wrapping_mul(31).wrapping_add(places[place]);
                }
                Action::Fill { stream, byte } => cells[stream] = u64::from_ne_bytes([byte; 8]),
                Action::Upload { stream, value } => cells[stream] = value,
                Action::WaitStream { .. }
                | Action::WaitPlace { .. }
                | Action::Query { .. }
                | Action::WaitAll => {}
            }
        }
        (cells, places)
    }
}

fn action(random: &mut Random, streams: usize, published: &mut usize) -> Action {
    let stream = random.below(streams);
    // Few blocks, as many as fit, and more.
    let blocks = *random.pick(&[1, 2, 5, 9]).unwrap_or(&1);
    let threads = *random.pick(&[1, 32, 256, 1024]).unwrap_or(&1);
    let place = random.below(*published);
    match random.below(16) {
        0..=5 => Action::Step {
            stream,
            more: random.next() >> 32,
            blocks,
            threads,
            rounds: 1 + random.below(12) as u32,
        },
        6..=8 if *published < PLACES => {
            *published += 1;
            let place = *published - 1;
            Action::Publish { stream, place }
        }
        9 | 10 if *published > 0 => Action::Join {
            stream,
            place,
            blocks,
        },
        11 => Action::Fill {
            stream,
            byte: random.next() as u8,
        },
        12 => Action::Upload {
            stream,
            value: random.next(),
        },
        13 if *published > 0 => Action::WaitPlace { place },
        14 => Action::Query { stream },
        15 => Action::WaitAll,
        _ => Action::WaitStream { stream },
    }
}
