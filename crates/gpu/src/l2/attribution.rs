//! Whose traffic it is: what a slice counts, by launch.
//!
//! Every request of an SM carries the tag of its launch: a small number that the work distributor
//! gives to a kernel while it runs. A slice keeps one set of counters and remembers what they were
//! when the tag last changed, so that requests of one kernel after the other cost nothing. Whatever a
//! request causes is its launch's: bursts around the sectors that it wants, and dirty lines that have
//! to leave for it, whoever wrote them. Traffic that no SM asks for (DMA, migrations) is nobody's.

use serde::{Deserialize, Serialize};

use super::end_of_kernel_flush::EndOfKernelFlush;
use crate::statistics::SliceStats;

/// The tag of traffic that belongs to no launch.
pub const NO_LAUNCH: u8 = 0;

/// Traffic of L2 and DRAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Sectors that SMs asked for.
    pub of_sms: u64,
    /// Sectors that crossed between L2 partitions.
    pub fabric: u64,
    /// Sectors that were found where they were looked for.
    pub hits: u64,
    /// Bytes read from DRAM.
    pub dram_read: u64,
    /// Bytes written to DRAM.
    pub dram_written: u64,
    /// SMs that flushed at the end of a kernel.
    pub flushes: u64,
}

impl Traffic {
    /// Of all that a slice has counted.
    pub(crate) fn of(stats: &SliceStats) -> Self {
        Self {
            of_sms: stats.read_sectors.get()
                + stats.written_sectors.get()
                + stats.strong_sectors.get(),
            fabric: stats.fabric_sectors.get(),
            hits: stats.read_hits.get()
                + stats.written_sectors.get()
                + stats.strong_hits.get()
                + stats.fabric_hits.get(),
            dram_read: stats.dram_read.get(),
            dram_written: stats.dram_written.get(),
            flushes: stats.end_of_kernel_flushes.get(),
        }
    }

    /// Adds other traffic.
    pub fn add(&mut self, other: &Self) {
        self.of_sms += other.of_sms;
        self.fabric += other.fabric;
        self.hits += other.hits;
        self.dram_read += other.dram_read;
        self.dram_written += other.dram_written;
        self.flushes += other.flushes;
    }

    /// What there is more of than there was.
    #[must_use]
    pub fn minus(&self, earlier: &Self) -> Self {
        Self {
            of_sms: self.of_sms - earlier.of_sms,
            fabric: self.fabric - earlier.fabric,
            hits: self.hits - earlier.hits,
            dram_read: self.dram_read - earlier.dram_read,
            dram_written: self.dram_written - earlier.dram_written,
            flushes: self.flushes - earlier.flushes,
        }
    }
}

/// What one launch did, as far as it is booked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Share {
    traffic: Traffic,
    flush: EndOfKernelFlush,
}

/// The traffic of a slice, by launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attribution {
    /// Whose request the slice serves.
    current: u8,
    /// What had been counted when its requests began.
    counted: Traffic,
    /// By tag.
    shares: Vec<Share>,
    /// SMs that have asked in the name of `current`.
    pub flush: EndOfKernelFlush,
}

impl Attribution {
    /// The next request belongs to a launch.
    #[inline]
    pub fn serve(&mut self, tag: u8, stats: &SliceStats) {
        if tag != self.current {
            self.change(tag, stats);
        }
    }

    #[cold]
    fn change(&mut self, tag: u8, stats: &SliceStats) {
        let now = Traffic::of(stats);
        let most = usize::from(tag.max(self.current));
        if self.shares.len() <= most {
            self.shares.resize(most + 1, Share::default());
        }
        let share = &mut self.shares[usize::from(self.current)];
        share.traffic.add(&now.minus(&self.counted));
        std::mem::swap(&mut share.flush, &mut self.flush);
        std::mem::swap(&mut self.shares[usize::from(tag)].flush, &mut self.flush);
        (self.current, self.counted) = (tag, now);
    }

    /// All traffic that was ever booked under a tag.
    pub fn traffic(&self, tag: u8, stats: &SliceStats) -> Traffic {
        let share = self.shares.get(usize::from(tag));
        let mut traffic = share.map_or_else(Traffic::default, |share| share.traffic);
        if tag == self.current {
            traffic.add(&Traffic::of(stats).minus(&self.counted));
        }
        traffic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_that_of_the_launch_whose_requests_caused_it() {
        let (mut stats, mut who) = (SliceStats::default(), Attribution::default());
        for (tag, sectors) in [(1, 4), (2, 1), (1, 4), (1, 2), (NO_LAUNCH, 8)] {
            who.serve(tag, &stats);
            who.flush.note(u32::from(tag));
            stats.read_sectors.add(sectors);
            stats.dram_read.add(32 * sectors);
        }
        let of = |tag| who.traffic(tag, &stats);
        assert_eq!((of(1).of_sms, of(1).dram_read), (10, 320));
        assert_eq!((of(2).of_sms, of(2).dram_read), (1, 32));
        assert_eq!(of(NO_LAUNCH).of_sms, 8);
        assert_eq!(of(3), Traffic::default());
        let mut sum = Traffic::default();
        (0..3).for_each(|tag| sum.add(&of(tag)));
        assert_eq!(sum, Traffic::of(&stats), "nothing is lost");
    }

    #[test]
    fn sms_flush_for_their_own_launch() {
        let (stats, mut who) = (SliceStats::default(), Attribution::default());
        for (tag, sm) in [(1, 0), (2, 0), (1, 5), (2, 0)] {
            who.serve(tag, &stats);
            who.flush.note(sm);
        }
        who.serve(1, &stats);
        assert_eq!(who.flush.take(), 2);
        who.serve(2, &stats);
        assert_eq!(who.flush.take(), 1);
    }
}
