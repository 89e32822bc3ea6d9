//! Swizzling: pieces of 16 bytes change places within a span, by the row of 128 bytes that they lie in.

use lockstep_units::Swizzle;

/// Bytes that keep together.
pub const PIECE: u32 = 16;

/// Where the byte at an address of shared memory goes. Bits 4 and up are exchanged by bits 7 and up of
/// the address itself, so that a tile need not begin at a multiple of what the pattern repeats after.
#[must_use]
#[inline]
pub const fn place(swizzle: Swizzle, address: u32) -> u32 {
    let mask = match swizzle {
        Swizzle::None => 0,
        Swizzle::Span32 => 0b001,
        Swizzle::Span64 => 0b011,
        Swizzle::Span128 => 0b111,
    };
    address ^ ((address >> 7 & mask) << 4)
}

/// Bytes from one row of a tile to the next: a swizzled row takes the whole span, however short it is.
#[must_use]
pub const fn pitch(swizzle: Swizzle, row: u32) -> u32 {
    match swizzle {
        Swizzle::None => row,
        Swizzle::Span32 => 32,
        Swizzle::Span64 => 64,
        Swizzle::Span128 => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_change_places_by_their_row() {
        assert_eq!(place(Swizzle::None, 0x3f4), 0x3f4);
        assert_eq!(place(Swizzle::Span32, 0x080), 0x090);
        assert_eq!(place(Swizzle::Span64, 0x180), 0x1b0);
        assert_eq!(place(Swizzle::Span128, 0x380), 0x3f0);
        assert_eq!(place(Swizzle::Span128, 0x3f4), 0x384);
    }

    #[test]
    fn every_pattern_is_its_own_inverse() {
        for swizzle in [Swizzle::Span32, Swizzle::Span64, Swizzle::Span128] {
            assert!((0..4096).all(|at| place(swizzle, place(swizzle, at)) == at));
        }
    }
}
