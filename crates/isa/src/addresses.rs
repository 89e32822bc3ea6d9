//! Where the lanes of a warp access memory, and what their addresses have in common.
//!
//! Most accesses name one place with all lanes or as many places side by side as there are lanes. Who
//! knows that once need not look at 32 addresses again.

use crate::semantics::lane_loops::{host_has_avx2, mask_of};
use crate::warp_register::{LANES, Mask, lanes_of};

/// Calls a function of this file, compiled for hosts with AVX2 where this is one.
macro_rules! on_wide_hosts {
    ($function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        {
            if host_has_avx2() {
                // SAFETY: the host has the features that it was compiled for.
                unsafe { wide::$function($($argument),*) }
            } else {
                $function($($argument),*)
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            $function($($argument),*)
        }
    }};
}
/// How the places of all 32 lanes lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All lanes name the same place.
    Same,
    /// Each lane's bytes follow those of the lane before.
    SideBySide,
    /// Neither.
    Scattered,
}

/// An address for each lane. Lanes that do not execute have whatever their registers hold.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// Lane by lane.
    pub lanes: [u64; LANES],
    /// All addresses joined by or: none is above it, and none has a bit that it lacks.
    pub joined: u64,
    /// Bits in which any address differs from the first.
    apart: u64,
    /// How they lie to each other, whoever executes.
    pub layout: Layout,
}

impl Addresses {
    /// Looks at addresses where lanes access `bytes` bytes each.
    #[must_use]
    #[inline(always)]
    pub fn of(lanes: [u64; LANES], bytes: u32) -> Self {
        let first = lanes[0];
        let (mut joined, mut apart, mut off) = (0, 0, 0);
        for (lane, address) in lanes.iter().enumerate() {
            joined |= address;
            apart |= address ^ first;
            off |= address ^ first.wrapping_add(lane as u64 * u64::from(bytes));
        }
        let last = first.wrapping_add((LANES as u64 - 1) * u64::from(bytes));
        let layout = if apart == 0 {
            Layout::Same
        } else if off == 0 && first <= last {
            Layout::SideBySide
        } else {
            Layout::Scattered
        };
        Self {
            lanes,
            joined,
            apart,
            layout,
        }
    }

    /// An address that no lane of `mask` is below, and one that none is above.
    #[must_use]
    #[inline]
    pub fn bounds(&self, mask: Mask) -> (u64, u64) {
        match self.layout {
            Layout::Same => (self.lanes[0], self.lanes[0]),
            Layout::SideBySide => (self.lanes[0], self.lanes[LANES - 1]),
            Layout::Scattered => self.search(mask),
        }
    }

    fn search(&self, mask: Mask) -> (u64, u64) {
        // Most allocations lie within 4 GiB, and hosts compare words in vectors, not pairs of words.
        if self.apart >> 32 == 0 {
            let (low, high) = on_wide_hosts!(low_words(&self.lanes, mask));
            let above = self.lanes[0] >> 32 << 32;
            return (above | u64::from(low), above | u64::from(high));
        }
        lanes_of(mask).fold((u64::MAX, 0), |(low, high), lane| {
            (low.min(self.lanes[lane]), high.max(self.lanes[lane]))
        })
    }

    /// Lanes whose place is in another piece of memory than that of the lane before; pieces have `1 << shift`
    /// bytes.
    #[must_use]
    #[inline]
    pub fn changes(&self, shift: u32) -> Mask {
        on_wide_hosts!(other_pieces(&self.lanes, shift))
    }

    /// Whether all lanes lie in one piece of memory of so many bytes, a power of two.
    #[must_use]
    #[inline]
    pub fn share_a_piece(&self, bytes: u64) -> bool {
        self.apart < bytes
    }

    /// Lanes of `mask` whose address is not a multiple of `bytes`, a power of two.
    #[must_use]
    #[inline]
    pub fn misaligned(&self, mask: Mask, bytes: u32) -> Mask {
        let below = u64::from(bytes - 1);
        if self.joined & below == 0 {
            return 0;
        }
        let bad = |lane: usize| Mask::from(self.lanes[lane] & below != 0) << lane;
        (0..LANES).fold(0, |all, lane| all | bad(lane)) & mask
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{LANES, Mask};

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub fn low_words(lanes: &[u64; LANES], mask: Mask) -> (u32, u32) {
        super::low_words(lanes, mask)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub fn other_pieces(lanes: &[u64; LANES], shift: u32) -> Mask {
        super::other_pieces(lanes, shift)
    }
}

/// The least and the greatest low word of the lanes of a mask.
#[inline(always)]
fn low_words(lanes: &[u64; LANES], mask: Mask) -> (u32, u32) {
    let (mut low, mut high) = (u32::MAX, 0);
    for (lane, address) in lanes.iter().enumerate() {
        // Bits against constants, without shifts by lane.
        let inside = mask & (1 << lane) != 0;
        let address = *address as u32;
        low = low.min(if inside { address } else { u32::MAX });
        high = high.max(if inside { address } else { 0 });
    }
    (low, high)
}

#[inline(always)]
fn other_pieces(lanes: &[u64; LANES], shift: u32) -> Mask {
    let mut differs = [0u32; LANES];
    for lane in 1..LANES {
        differs[lane] = u32::from((lanes[lane] ^ lanes[lane - 1]) >> shift != 0);
    }
    mask_of(|lane| differs[lane] != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warp_register::FULL;

    fn of(address: impl Fn(u64) -> u64, bytes: u32) -> Addresses {
        Addresses::of(std::array::from_fn(|lane| address(lane as u64)), bytes)
    }

    #[test]
    fn layouts_are_told_apart() {
        assert_eq!(of(|_| 64, 4).layout, Layout::Same);
        assert_eq!(of(|lane| 64 + 4 * lane, 4).layout, Layout::SideBySide);
        assert_eq!(of(|lane| 64 + 4 * lane, 8).layout, Layout::Scattered);
        assert_eq!(of(|lane| lane / 16, 1).layout, Layout::Scattered);
        let around = of(|lane| (u64::MAX - 7).wrapping_add(4 * lane), 4);
        assert_eq!(around.layout, Layout::Scattered, "past the last address");
        assert_eq!(around.bounds(FULL), (0, u64::MAX - 3));
    }

    #[test]
    fn bounds_hold_all_lanes_that_are_asked_for() {
        let down = of(|lane| 1000 - 8 * lane, 4);
        assert_eq!(down.bounds(0b110), (984, 992));
        assert_eq!(down.bounds(FULL), (752, 1000));
        let high = of(|lane| (7 << 40) + 1000 - 8 * lane, 4);
        assert_eq!(high.bounds(0b110), ((7 << 40) + 984, (7 << 40) + 992));
        let far = of(|lane| (lane % 3) << 40, 4);
        assert_eq!(far.bounds(0b111), (0, 2 << 40));
        assert_eq!(far.bounds(0b011), (0, 1 << 40));
        assert_eq!(of(|lane| 64 + 4 * lane, 4).bounds(FULL), (64, 188));
        assert_eq!(of(|_| 64, 4).bounds(1), (64, 64));
    }

    #[test]
    fn lanes_share_a_piece_or_not() {
        assert!(of(|lane| 256 + 4 * lane, 4).share_a_piece(128));
        assert!(!of(|lane| 260 + 4 * lane, 4).share_a_piece(128));
        assert!(of(|_| 7, 1).share_a_piece(1));
    }

    #[test]
    fn changes_are_where_pieces_change() {
        assert_eq!(of(|_| 64, 4).changes(5), 0);
        assert_eq!(of(|lane| 64 + 4 * lane, 4).changes(5), 0x0101_0100);
        assert_eq!(of(|lane| 64 + 32 * (lane % 2), 4).changes(5), 0xffff_fffe);
        assert_eq!(of(|lane| (lane / 31) << 60, 4).changes(5), 1 << 31);
    }

    #[test]
    fn misaligned_lanes_are_named_if_they_execute() {
        let odd = of(|lane| 64 + 2 * lane, 4);
        assert_eq!(odd.misaligned(FULL, 4), 0xaaaa_aaaa);
        assert_eq!(odd.misaligned(0b11, 4), 0b10);
        assert_eq!(odd.misaligned(FULL, 2), 0);
    }
}
