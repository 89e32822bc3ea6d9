//! Stores on their way out of an SM.
//!
//! What is stored waits a moment, line by line, before it goes to L2. A store to a line that waits joins it: its
//! sectors leave once, and it takes the memory pipe no longer than looking up its lines does.
//!
//! `joining.cu` (`joining.csv`): a warp that stores to the same 8 lines eight times, in 120 cycles, sends each sector
//! once, four warps with 4 lines each as well; four with 8 lines each send everything, and after 370 cycles nothing
//! joins. Stores of other warps join less: of the bytes that eight warps of a block store into the same sectors one
//! after the other, two thirds leave (`traffic.csv`, `mark_sectors`), so their window is a shorter one.
//!
//! Start reading at [`WriteCombiningBuffer::send`].

use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Waiting {
    line: u64,
    sectors: u8,
    /// The warp that stored to it first.
    warp: u8,
    /// When it was stored to first.
    since: u64,
}

/// For how many cycles after the first store to a line others are combined with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CombiningWindow {
    /// Those of the same warp.
    pub own: u64,
    /// Those of other warps.
    pub other: u64,
}

/// A store of a warp at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// The slot of the warp.
    pub warp: u8,
    /// The cycle.
    pub at: u64,
}

/// The lines that were stored to last, as a ring.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriteCombiningBuffer {
    lines: Vec<Waiting>,
    /// The one that came longest ago.
    head: usize,
}

impl WriteCombiningBuffer {
    /// Nothing waits, and there is room for some lines.
    pub fn new(lines: usize) -> Self {
        let nothing = Waiting {
            line: u64::MAX,
            sectors: 0,
            warp: 0,
            since: 0,
        };
        Self {
            lines: vec![nothing; lines.max(1)],
            head: 0,
        }
    }

    /// Whether it has so much room.
    #[must_use]
    pub fn fits(&self, lines: usize) -> bool {
        self.lines.len() == lines.max(1) && self.head < self.lines.len()
    }

    /// The sectors of a line that wait at a time, and where.
    #[inline]
    fn waiting(&self, line: u64, store: Store, window: CombiningWindow) -> Option<usize> {
        self.lines.iter().position(|known| {
            let window = match known.warp == store.warp {
                true => window.own,
                false => window.other,
            };
            known.line == line && store.at < known.since.saturating_add(window)
        })
    }

    /// Whether some lines can wait together; more push one another out before they can be joined.
    #[inline]
    pub fn holds(&self, lines: usize) -> bool {
        lines <= self.lines.len()
    }

    /// Which of the sectors that are stored to at a time do not wait already.
    #[inline]
    pub fn new_sectors(&self, line: u64, sectors: u8, store: Store, window: CombiningWindow) -> u8 {
        match self.waiting(line, store, window) {
            Some(index) => sectors & !self.lines[index].sectors,
            None => sectors,
        }
    }

    /// Stores to sectors of a line. Says which of them leave for it.
    #[inline]
    pub fn send(&mut self, line: u64, sectors: u8, store: Store, window: CombiningWindow) -> u8 {
        if let Some(index) = self.waiting(line, store, window) {
            let known = &mut self.lines[index];
            let new = sectors & !known.sectors;
            known.sectors |= sectors;
            return new;
        }
        self.lines[self.head] = Waiting {
            line,
            sectors,
            warp: store.warp,
            since: store.at,
        };
        self.head = (self.head + 1) % self.lines.len();
        sectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: CombiningWindow = CombiningWindow {
        own: 128,
        other: 40,
    };

    fn store(warp: u8, at: u64) -> Store {
        Store { warp, at }
    }

    /// Rounds of stores by warps in turn, each to lines of its own, some times: the share of sectors that leave.
    fn share(warps: u64, lines: u64, times: u64) -> f64 {
        let mut stores = WriteCombiningBuffer::new(16);
        let (mut at, mut sent, mut asked) = (0, 0, 0);
        for round in 0..50 {
            for _ in 0..times {
                for warp in 0..warps {
                    for line in 0..lines {
                        asked += 4;
                        let line = (round * warps + warp) * lines + line;
                        let store = Store {
                            warp: warp as u8,
                            at,
                        };
                        sent += stores.send(line, 0xf, store, WINDOW).count_ones();
                        at += 1;
                    }
                }
            }
        }
        f64::from(sent) / f64::from(asked)
    }

    #[test]
    fn few_lines_join_and_many_do_not() {
        assert_eq!(share(1, 8, 8), 0.125);
        assert_eq!(share(4, 4, 4), 0.25);
        assert_eq!(share(4, 8, 8), 1.0);
        assert_eq!(share(1, 32, 2), 1.0);
    }

    #[test]
    fn a_store_that_comes_late_leaves_by_itself() {
        let mut stores = WriteCombiningBuffer::new(4);
        assert_eq!(stores.send(7, 1, store(0, 100), WINDOW), 1);
        assert_eq!(stores.new_sectors(7, 3, store(0, 150), WINDOW), 2);
        assert_eq!(stores.send(7, 1, store(0, 150), WINDOW), 0);
        assert_eq!(stores.send(7, 3, store(0, 151), WINDOW), 2);
        assert_eq!(stores.send(7, 1, store(0, 228), WINDOW), 1);
    }

    #[test]
    fn a_store_of_another_warp_joins_for_a_shorter_time() {
        let mut stores = WriteCombiningBuffer::new(4);
        assert_eq!(stores.send(7, 1, store(0, 100), WINDOW), 1);
        assert_eq!(stores.send(7, 1, store(1, 139), WINDOW), 0);
        assert_eq!(stores.send(7, 1, store(2, 140), WINDOW), 1);
        assert_eq!(stores.send(7, 1, store(2, 200), WINDOW), 0, "its own line");
    }
}
