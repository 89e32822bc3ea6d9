//! Which sectors the lanes of a warp touch.

use lockstep_isa::Mask;
use lockstep_isa::row::{FULL, LANES, lanes_of};

use crate::memory::SECTOR;

/// The distinct sectors of one access, in the order in which lanes name them.
#[derive(Clone, Copy, Debug)]
pub struct Coalesced {
    /// How many.
    pub count: usize,
    /// Their numbers.
    pub sectors: [u64; LANES],
    /// Which of them each lane is in; nothing for lanes outside the mask.
    pub index: [u8; LANES],
    /// All lanes, side by side from the first address: the most frequent case.
    pub side_by_side: bool,
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

/// Finds the sectors. Every lane's bytes lie in one sector, because accesses are aligned to
/// their size and none is larger than a sector.
#[must_use]
#[inline]
pub fn coalesce(addresses: &[u64; LANES], mask: Mask, bytes: u32) -> Coalesced {
    let mut found = Coalesced {
        count: 0,
        sectors: [0; LANES],
        index: [0; LANES],
        side_by_side: false,
    };
    if mask == FULL && is_side_by_side(addresses, bytes) {
        let first = addresses[0] / SECTOR;
        for (lane, address) in addresses.iter().enumerate() {
            found.index[lane] = (address / SECTOR - first) as u8;
        }
        found.count = usize::from(found.index[LANES - 1]) + 1;
        if found.count <= LANES {
            for (index, sector) in found.sectors.iter_mut().enumerate() {
                *sector = first + index as u64;
            }
            found.side_by_side = true;
            return found;
        }
        found.count = 0;
    }
    let mut last = 0;
    for lane in lanes_of(mask) {
        let sector = addresses[lane] / SECTOR;
        if found.count == 0 || found.sectors[last] != sector {
            last = found.sectors[..found.count]
                .iter()
                .position(|known| *known == sector)
                .unwrap_or(found.count);
            if last == found.count {
                found.sectors[last] = sector;
                found.count += 1;
            }
        }
        found.index[lane] = last as u8;
    }
    found
}

#[inline]
fn is_side_by_side(addresses: &[u64; LANES], bytes: u32) -> bool {
    let mut off = 0;
    for (lane, address) in addresses.iter().enumerate() {
        off |= address ^ addresses[0].wrapping_add(lane as u64 * u64::from(bytes));
    }
    off == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(addresses: impl Fn(u64) -> u64, mask: Mask, bytes: u32, sectors: &[u64]) {
        let addresses: [u64; LANES] = std::array::from_fn(|lane| addresses(lane as u64));
        let found = coalesce(&addresses, mask, bytes);
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
    }
}
