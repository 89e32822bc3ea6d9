//! What copies and fills leave in L2.
//!
//! A copy engine writes through the cache. Which lines are there afterwards is booked at once when
//! the copy ends; the time that this takes is part of the copy's own. What comes from the host is the
//! first of its set to leave: once L2 is full, a kernel finds half of 4 MiB and nothing of 12 (`residency.cu`).

use std::ops::Range;

use lockstep_isa::Launch;

use super::{Gpu, Mode};
use crate::l2::{DmaSource, WrittenLine};
use crate::memory::{Home, LINE, PAGE, SECTOR};
use crate::partition::GpuPartition;

/// After so many times its lines, nothing of what was in a cache before can be left.
const TIMES: u64 = 2;

impl Gpu {
    /// A copy engine has written rows of bytes, the last row first.
    pub fn dma_written(&mut self, source: DmaSource, rows: impl Iterator<Item = Range<u64>>) {
        if self.caches_are_empty() {
            return;
        }
        let mut room = self.config.l2.capacity.0 / LINE * TIMES;
        let mut kept = Vec::new();
        for row in rows {
            if room == 0 {
                break;
            }
            if row.is_empty() {
                continue;
            }
            let first = (row.start / LINE).max(((row.end - 1) / LINE + 1).saturating_sub(room));
            room -= (row.end - 1) / LINE + 1 - first;
            kept.push(row.start.max(first * LINE)..row.end);
        }
        let home = Home::of(&self.config);
        let mut slices: Vec<Vec<WrittenLine>> = vec![Vec::new(); self.places.slices as usize];
        for row in kept.into_iter().rev() {
            for line in row.start / LINE..=(row.end - 1) / LINE {
                let (sectors, partial) = part_of_line(line, &row);
                slices[home.slice(line * LINE) as usize].push(WrittenLine {
                    line,
                    sectors,
                    partial,
                });
            }
        }
        for (id, lines) in self.places.slices().zip(slices) {
            if !lines.is_empty()
                && let GpuPartition::Slice(slice) = self.engine.partition_mut(id)
            {
                slice.dma_written(source, &lines);
            }
        }
    }

    /// Memory was given back: what will be allocated at these addresses is other memory.
    pub fn released(&mut self, bytes: Range<u64>) {
        if self.caches_are_empty() {
            return;
        }
        let lines = bytes.start / LINE..bytes.end.div_ceil(LINE);
        for id in self.places.slices() {
            if let GpuPartition::Slice(slice) = self.engine.partition_mut(id) {
                slice.invalidate_range(&lines);
            }
        }
        for id in self.places.sms() {
            if let GpuPartition::Sm(sm) = self.engine.partition_mut(id) {
                sm.released(&lines);
            }
        }
    }

    /// Kernels that took no time have written pages: their lines are in L2.
    pub fn kernels_wrote(&mut self, pages: impl DoubleEndedIterator<Item = u64>) {
        let rows = pages.rev().map(|page| page..page + PAGE);
        self.dma_written(DmaSource::Kernels, rows);
    }

    /// Kernels that took no time used memory, on every SM: its pages will not be met for the first time.
    pub fn kernels_touched(&mut self, memory: &[Range<u64>]) {
        if self.caches_are_empty() {
            return;
        }
        let lines: Vec<Range<u64>> = memory
            .iter()
            .map(|bytes| bytes.start / LINE..bytes.end.div_ceil(LINE))
            .collect();
        for id in self.places.sms() {
            if let GpuPartition::Sm(sm) = self.engine.partition_mut(id) {
                sm.note_touched(&lines);
            }
        }
    }

    /// Lets SMs that keep caches know of a launch that takes no time.
    pub(super) fn note_untimed_launch(&mut self, launch: &Launch) {
        if self.options.mode == Mode::Timing || self.caches_are_empty() {
            return;
        }
        let cycle = self.cycle().0;
        for id in self.places.sms() {
            if let GpuPartition::Sm(sm) = self.engine.partition_mut(id) {
                sm.note_untimed_launch(launch, cycle);
            }
        }
    }

    /// Whether nothing is cached from one kernel to the next.
    fn caches_are_empty(&self) -> bool {
        let functional = self.options.mode == Mode::Functional;
        functional && !self.options.both_modes || self.options.cold_caches
    }
}

/// The sectors of a line that bytes lie in, and those that they fill only in part.
fn part_of_line(line: u64, bytes: &Range<u64>) -> (u8, u8) {
    let (mut sectors, mut partial) = (0, 0);
    for sector in 0..LINE / SECTOR {
        let start = line * LINE + sector * SECTOR;
        let covered = bytes
            .end
            .min(start + SECTOR)
            .saturating_sub(bytes.start.max(start));
        if covered > 0 {
            sectors |= 1 << sector;
        }
        if (1..SECTOR).contains(&covered) {
            partial |= 1 << sector;
        }
    }
    (sectors, partial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_fill_sectors_or_parts_of_them() {
        assert_eq!(part_of_line(0, &(0..128)), (0b1111, 0));
        assert_eq!(part_of_line(1, &(0..128)), (0, 0));
        assert_eq!(part_of_line(2, &(256 + 40..256 + 72)), (0b0110, 0b0110));
        assert_eq!(part_of_line(2, &(0..256 + 72)), (0b0111, 0b0100));
    }
}
