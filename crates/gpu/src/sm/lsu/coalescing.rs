//! Which sectors the lanes of a warp touch.

use lockstep_isa::Mask;
use lockstep_isa::addresses::{Addresses, Layout};
use lockstep_isa::warp_register::{FULL, LANES, lanes_of};

use crate::memory::{SECTOR, spread};

/// The distinct sectors of one access, in the order in which lanes name them.
#[derive(Clone, Copy, Debug)]
pub struct Coalesced {
    /// Number of sectors.
    pub count: usize,
    /// Their numbers.
    pub sectors: [u64; LANES],
    /// Which of them each lane is in; nothing for lanes outside the mask.
    pub index: [u8; LANES],
}

impl Coalesced {
    /// The sectors.
    #[must_use]
    pub fn sectors(&self) -> &[u64] {
        &self.sectors[..self.count]
    }

    /// Lanes of `mask` in a sector.
    #[must_use]
    pub fn lanes(&self, sector: usize, mask: Mask) -> Mask {
        lanes_of(mask)
            .filter(|lane| usize::from(self.index[*lane]) == sector)
            .fold(0, |lanes, lane| lanes | 1 << lane)
    }
}

impl Coalesced {
    /// The sectors of no lane.
    pub const NONE: Self = Self {
        count: 0,
        sectors: [0; LANES],
        index: [0; LANES],
    };

    /// Finds the sectors. Every lane's bytes lie in one sector, because accesses are aligned to
    /// their size and none is larger than a sector.
    #[inline]
    pub fn find(&mut self, addresses: &Addresses, mask: Mask, bytes: u32) {
        let first = addresses.lanes[0] / SECTOR;
        match addresses.layout {
            Layout::Same if mask != 0 => {
                self.count = 1;
                self.sectors[0] = first;
                self.index = [0; LANES];
            }
            Layout::SideBySide if mask == FULL && bytes <= SECTOR as u32 => {
                let within = (addresses.lanes[0] % SECTOR) as u16;
                for (lane, index) in self.index.iter_mut().enumerate() {
                    *index = ((within + lane as u16 * bytes as u16) / SECTOR as u16) as u8;
                }
                self.count = usize::from(self.index[LANES - 1]) + 1;
                for (index, sector) in self.sectors[..self.count].iter_mut().enumerate() {
                    *sector = first + index as u64;
                }
            }
            _ => self.find_each(addresses, mask),
        }
    }

    fn find_each(&mut self, addresses: &Addresses, mask: Mask) {
        self.count = 0;
        // By hash, the sector that was found last: one that is not there is new if nothing is, and searched for
        // only if another is.
        let mut slots = [UNUSED; 64];
        // Only where the sector changes is there anything to find out; after a lane that takes no part it may
        // have changed unseen.
        let mut starts = addresses.changes(SECTOR.trailing_zeros()) & mask;
        starts |= mask & !(mask << 1);
        for lane in lanes_of(starts) {
            let sector = addresses.lanes[lane] / SECTOR;
            let slot = &mut slots[(spread(sector) >> 58) as usize];
            let known = match self.sectors.get(usize::from(*slot)) {
                None => None,
                Some(there) if *there == sector => Some(usize::from(*slot)),
                Some(_) => self.sectors().iter().position(|known| *known == sector),
            };
            let found = known.unwrap_or(self.count);
            *slot = found as u8;
            if known.is_none() {
                self.sectors[found] = sector;
                self.count += 1;
            }
            // Up to the next start; lanes that take no part may have any index.
            let after = starts & !(u32::MAX >> (31 - lane));
            let end = if after == 0 {
                LANES
            } else {
                after.trailing_zeros() as usize
            };
            self.index[lane..end].fill(found as u8);
        }
    }
}

/// No sector of any index.
const UNUSED: u8 = u8::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(addresses: impl Fn(u64) -> u64, mask: Mask, bytes: u32, sectors: &[u64]) {
        let addresses: [u64; LANES] = std::array::from_fn(|lane| addresses(lane as u64));
        // Whatever was found before must not show.
        let mut found = Coalesced {
            count: 7,
            sectors: [5; LANES],
            index: [9; LANES],
        };
        found.find(&Addresses::of(addresses, bytes), mask, bytes);
        assert_eq!(found.sectors(), sectors);
        for lane in lanes_of(mask) {
            let sector = found.sectors[usize::from(found.index[lane])];
            assert_eq!(sector, addresses[lane] / SECTOR);
        }
    }

    #[test]
    fn neighbours_share_sectors() {
        check(|lane| 0x1000 + 4 * lane, FULL, 4, &[0x80, 0x81, 0x82, 0x83]);
        check(
            |lane| 0x1004 + 4 * lane,
            FULL,
            4,
            &[0x80, 0x81, 0x82, 0x83, 0x84],
        );
        check(
            |lane| 0x1000 + 16 * lane,
            FULL,
            16,
            &(0x80..0x90).collect::<Vec<_>>(),
        );
        check(
            |lane| 0x1000 + 32 * lane,
            FULL,
            32,
            &(0x80..0xa0).collect::<Vec<_>>(),
        );
    }

    #[test]
    fn scattered_lanes_are_found_once() {
        check(|_| 0x1000, FULL, 4, &[0x80]);
        check(
            |lane| 0x1000 + 32 * (lane % 3),
            FULL,
            4,
            &[0x80, 0x81, 0x82],
        );
        check(|lane| 0x1000 * lane, 0b1010, 8, &[0x80, 0x180]);
        check(|lane| lane, 0, 1, &[]);
        let far: Vec<u64> = (0..32).map(|lane| 0x80 + lane * lane * 0x1001).collect();
        check(|lane| 0x1000 + 0x1001 * SECTOR * lane * lane, FULL, 4, &far);
        check(
            |lane| 0x1000 + 0x1001 * SECTOR * (lane % 5) * (lane % 5),
            FULL,
            4,
            &far[..5],
        );
        check(|_| 0x1000, 0, 4, &[]);
        check(|_| 0x1000, 0b100, 4, &[0x80]);
        check(|lane| 0x1000 + 4 * lane, 1 << 9, 4, &[0x81]);
    }
}
