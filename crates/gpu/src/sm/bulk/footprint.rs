//! Sectors and lines of global memory that a command touches, in the order in which it does.

use crate::memory::{LINE, SECTOR};

const SECTORS: u64 = LINE / SECTOR;

/// A line, and which bytes of its sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TouchedLine {
    /// Number of the line.
    pub line: u64,
    /// Bytes of each of its sectors.
    pub bytes: [u32; SECTORS as usize],
}

impl TouchedLine {
    /// Sectors of which anything is touched.
    pub(super) fn sectors(&self) -> u8 {
        self.mask(|bytes| bytes != 0)
    }

    /// Those of which not all is touched.
    pub(super) fn partial(&self) -> u8 {
        self.mask(|bytes| bytes != 0 && bytes != u32::MAX)
    }

    fn mask(&self, wanted: impl Fn(u32) -> bool) -> u8 {
        let all = self.bytes.iter().enumerate();
        all.fold(0, |mask, (index, bytes)| {
            mask | u8::from(wanted(*bytes)) << index
        })
    }
}

/// Lines in the order in which they are touched; a line that is touched again later is a line again.
#[derive(Clone, Debug, Default)]
pub(super) struct Footprint {
    pub lines: Vec<TouchedLine>,
}

impl Footprint {
    /// Adds bytes side by side.
    pub(super) fn add(&mut self, address: u64, bytes: u32) {
        let (mut at, end) = (address, address + u64::from(bytes));
        while at < end {
            let sector = at / SECTOR;
            let until = end.min((sector + 1) * SECTOR);
            let (low, high) = (at % SECTOR, until - sector * SECTOR);
            let mask = (u64::MAX >> (64 - (high - low)) << low) as u32;
            let line = sector / SECTORS;
            if self.lines.last().is_none_or(|last| last.line != line) {
                self.lines.push(TouchedLine {
                    line,
                    bytes: [0; SECTORS as usize],
                });
            }
            let last = self.lines.last_mut().expect("a line was just added");
            last.bytes[(sector % SECTORS) as usize] |= mask;
            at = until;
        }
    }

    /// Every sector.
    pub(super) fn sectors(&self) -> impl Iterator<Item = u64> + '_ {
        self.lines.iter().flat_map(|line| {
            let touched = (0..SECTORS).filter(|index| line.sectors() >> index & 1 != 0);
            touched.map(|index| line.line * SECTORS + index)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_side_by_side_join_in_lines() {
        let mut footprint = Footprint::default();
        footprint.add(0x1010, 16);
        footprint.add(0x1020, 0x70);
        let [first, second] = footprint.lines[..] else {
            panic!("two lines: {footprint:?}");
        };
        assert_eq!(
            (first.line, first.sectors(), first.partial()),
            (0x20, 15, 1)
        );
        assert_eq!(
            (second.line, second.sectors(), second.partial()),
            (0x21, 1, 1)
        );
        assert_eq!(
            footprint.sectors().collect::<Vec<_>>(),
            [0x80, 0x81, 0x82, 0x83, 0x84]
        );
    }

    #[test]
    fn two_halves_make_a_sector_whole() {
        let mut footprint = Footprint::default();
        footprint.add(0x40, 16);
        assert_eq!(footprint.lines[0].partial(), 4);
        footprint.add(0x50, 16);
        assert_eq!(
            (footprint.lines.len(), footprint.lines[0].partial()),
            (1, 0)
        );
    }
}
