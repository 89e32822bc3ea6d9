//! Reads of several SMs of a GPC that reach a slice as one request.
//!
//! Between the SMs of a GPC and the slices, requests for sectors that are on their way already are
//! held back and answered along with the first, as an MSHR does. Here the slice remembers the last
//! reads and their answers; a read that finds its own among them takes no time of the slice.
//!
//! Left out: room for requests that wait; the number of reads that are remembered stands for it.
//!
//! Start reading at [`GpcRequestCoalescer::find`].

use lockstep_units::Time;
use serde::{Deserialize, Serialize};

/// The last reads of a slice.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GpcRequestCoalescer {
    /// Line and GPC of each.
    keys: Vec<(u64, u32)>,
    /// Sectors, when the answer leaves, until when it serves others, how many it serves.
    reads: Vec<(u8, Time, Time, u8)>,
    next: u32,
}

impl GpcRequestCoalescer {
    /// Nothing read yet, with room for so many `entries`.
    #[must_use]
    pub fn new(entries: u32) -> Self {
        let entries = entries as usize;
        Self {
            keys: vec![(u64::MAX, 0); entries],
            reads: vec![(0, Time::ZERO, Time::ZERO, 0); entries],
            next: 0,
        }
    }

    /// When the answer to an earlier read leaves that serves this one too; it serves so many `targets`.
    #[inline]
    pub fn find(
        &mut self,
        line: u64,
        sectors: u8,
        gpc: u32,
        due: Time,
        targets: u8,
    ) -> Option<Time> {
        for (key, (has, at, until, served)) in self.keys.iter().zip(&mut self.reads) {
            let fits = *key == (line, gpc) && sectors & !*has == 0;
            if fits && due < *until && *served < targets {
                *served += 1;
                return Some((*at).max(due));
            }
        }
        None
    }

    /// Remembers a read.
    pub fn insert(&mut self, line: u64, sectors: u8, gpc: u32, at: Time, until: Time) {
        let entries = self.keys.len().max(1);
        let place = self.next as usize % entries;
        let (Some(key), Some(read)) = (self.keys.get_mut(place), self.reads.get_mut(place)) else {
            return;
        };
        *key = (line, gpc);
        *read = (sectors, at, until, 1);
        self.next = ((place + 1) % entries) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_serves_its_gpc_until_it_is_replaced() {
        let mut coalescer = GpcRequestCoalescer::new(64);
        coalescer.insert(7, 0b0110, 1, Time(100), Time(300));
        assert_eq!(coalescer.find(7, 0b0010, 1, Time(50), 4), Some(Time(100)));
        assert_eq!(coalescer.find(7, 0b0010, 1, Time(200), 4), Some(Time(200)));
        assert_eq!(coalescer.find(7, 0b0010, 1, Time(300), 4), None, "too late");
        assert_eq!(
            coalescer.find(7, 0b0011, 1, Time(50), 4),
            None,
            "a sector more"
        );
        assert_eq!(
            coalescer.find(7, 0b0010, 2, Time(50), 4),
            None,
            "another GPC"
        );
        assert_eq!(coalescer.find(7, 0b0010, 1, Time(50), 4), Some(Time(100)));
        assert_eq!(
            coalescer.find(7, 0b0010, 1, Time(50), 4),
            None,
            "four have it"
        );
        coalescer.insert(7, 0b0110, 1, Time(100), Time(300));
        for line in 0..64_u64 {
            coalescer.insert(1000 + line, 0xf, 1, Time(100), Time(300));
        }
        assert_eq!(coalescer.find(7, 0b0010, 1, Time(50), 4), None, "no room");
    }
}
