//! Meanings in which lanes see each other. PTX ISA, `shfl`, `vote`, `match`, `redux`, `elect`.
//!
//! Values come as 32 words; `members` is the set of lanes that take part: those that execute,
//! and are named in the member mask where the instruction has one.

use crate::warp_register::{LANES, Mask, lanes_of};

/// How `shfl` finds the lane to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ShuffleMode {
    /// `lane - b`
    Up,
    /// `lane + b`
    Down,
    /// `lane ^ b`
    Butterfly,
    /// `b`
    Index,
}

/// Lane that `lane` reads, and whether it is in range (else it reads itself). `clamp` holds the
/// clamp lane in bits 0 to 4 and the segment mask in bits 8 to 12.
#[inline(always)]
#[must_use]
pub const fn shuffle_source(mode: ShuffleMode, lane: u32, b: u32, clamp: u32) -> (u32, bool) {
    let b = b & 31;
    let segment = clamp >> 8 & 31;
    let bound = (lane & segment) | (clamp & 31 & !segment);
    let (source, in_range) = match mode {
        ShuffleMode::Up => {
            let source = lane as i32 - b as i32;
            (source as u32, source >= bound as i32)
        }
        ShuffleMode::Down => (lane + b, lane + b <= bound),
        ShuffleMode::Butterfly => (lane ^ b, lane ^ b <= bound),
        ShuffleMode::Index => {
            let source = (lane & segment) | (b & !segment);
            (source, source <= bound)
        }
    };
    if in_range {
        (source, true)
    } else {
        (lane, false)
    }
}

/// All lanes shuffled: values, and the lanes whose source was in range. PTX `shfl.sync`.
#[must_use]
pub fn shuffle(
    mode: ShuffleMode,
    values: &[u32; LANES],
    b: &[u32; LANES],
    clamp: &[u32; LANES],
) -> ([u32; LANES], Mask) {
    let mut result = [0; LANES];
    let mut in_range = 0;
    for lane in 0..LANES {
        let (source, valid) = shuffle_source(mode, lane as u32, b[lane], clamp[lane]);
        result[lane] = values[source as usize & 31];
        in_range |= Mask::from(valid) << lane;
    }
    (result, in_range)
}

/// What a vote asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Vote {
    /// Holds for all.
    All,
    /// Holds for one.
    Any,
    /// The same for all.
    Uniform,
}

/// Outcome of a vote among `members`. PTX `vote.sync`.
#[inline]
#[must_use]
pub const fn vote(kind: Vote, predicate: Mask, members: Mask) -> bool {
    let yes = predicate & members;
    match kind {
        Vote::All => yes == members,
        Vote::Any => yes != 0,
        Vote::Uniform => yes == 0 || yes == members,
    }
}

/// For each lane the members with the same value. PTX `match.any.sync`.
#[must_use]
pub fn match_any(values: &[u64; LANES], members: Mask) -> [Mask; LANES] {
    let mut result = [0; LANES];
    let mut left = members;
    while left != 0 {
        let value = values[left.trailing_zeros() as usize];
        let equal = lanes_of(left)
            .filter(|lane| values[*lane] == value)
            .fold(0, |mask, lane| mask | 1 << lane);
        lanes_of(equal).for_each(|lane| result[lane] = equal);
        left &= !equal;
    }
    result
}

/// The members if all have one value, else nothing. PTX `match.all.sync`.
#[must_use]
pub fn match_all(values: &[u64; LANES], members: Mask) -> Mask {
    let mut each = lanes_of(members).map(|lane| values[lane]);
    let first = each.next();
    if each.all(|value| Some(value) == first) {
        members
    } else {
        0
    }
}

/// Reductions over a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reduction {
    /// Sum.
    Add,
    /// Smallest, unsigned.
    Min,
    /// Largest, unsigned.
    Max,
    /// Smallest, signed.
    MinSigned,
    /// Largest, signed.
    MaxSigned,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

/// The members' values reduced, or zero if there are none. PTX `redux.sync`.
#[must_use]
pub fn reduce(reduction: Reduction, values: &[u32; LANES], members: Mask) -> u32 {
    let join = |a: u32, b: u32| match reduction {
        Reduction::Add => a.wrapping_add(b),
        Reduction::Min => a.min(b),
        Reduction::Max => a.max(b),
        Reduction::MinSigned => (a as i32).min(b as i32) as u32,
        Reduction::MaxSigned => (a as i32).max(b as i32) as u32,
        Reduction::And => a & b,
        Reduction::Or => a | b,
        Reduction::Xor => a ^ b,
    };
    lanes_of(members)
        .map(|lane| values[lane])
        .reduce(join)
        .unwrap_or(0)
}

/// The lane that a set of lanes elects: the lowest. PTX `elect.sync`.
#[inline]
#[must_use]
pub const fn elect(members: Mask) -> u32 {
    if members == 0 {
        0
    } else {
        members.trailing_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: [u32; LANES] = {
        let mut lanes = [0; LANES];
        let mut lane = 0;
        while lane < LANES {
            lanes[lane] = lane as u32;
            lane += 1;
        }
        lanes
    };

    #[test]
    fn shuffles_stay_in_their_segment() {
        let by = |n: u32| [n; LANES];
        let (up, valid) = shuffle(ShuffleMode::Up, &IDENTITY, &by(1), &by(0));
        assert_eq!((up[0], up[1], up[31], valid), (0, 0, 30, !1));
        let (down, valid) = shuffle(ShuffleMode::Down, &IDENTITY, &by(16), &by(31));
        assert_eq!((down[0], down[15], down[16], valid), (16, 31, 16, 0xffff));
        // Width 8: segment mask 0x18, clamp 7.
        let clamp = by(0x1807);
        let (down, valid) = shuffle(ShuffleMode::Down, &IDENTITY, &by(4), &clamp);
        assert_eq!((down[3], down[4], valid), (7, 4, 0x0f0f_0f0f));
        let (index, _) = shuffle(ShuffleMode::Index, &IDENTITY, &by(2), &clamp);
        assert_eq!((index[1], index[9], index[31]), (2, 10, 26));
        let (xor, valid) = shuffle(ShuffleMode::Butterfly, &IDENTITY, &by(1), &by(31));
        assert_eq!((xor[6], valid), (7, u32::MAX));
    }

    #[test]
    fn votes_count_members_alone() {
        assert!(vote(Vote::All, 0b0111, 0b0011));
        assert!(!vote(Vote::Any, 0b0100, 0b0011));
        assert!(vote(Vote::Uniform, 0b0100, 0b0011));
        assert!(!vote(Vote::Uniform, 0b0101, 0b0111));
    }

    #[test]
    fn matches_and_reductions() {
        let values: [u64; LANES] = std::array::from_fn(|lane| lane as u64 % 2);
        let matches = match_any(&values, 0b1111);
        assert_eq!((matches[0], matches[1], matches[4]), (0b0101, 0b1010, 0));
        assert_eq!(match_all(&values, 0b0101), 0b0101);
        assert_eq!(match_all(&values, 0b0111), 0);
        assert_eq!(reduce(Reduction::Add, &IDENTITY, u32::MAX), 496);
        assert_eq!(
            reduce(
                Reduction::MinSigned,
                &IDENTITY.map(|x| x.wrapping_sub(5)),
                7
            ) as i32,
            -5
        );
        assert_eq!(reduce(Reduction::Max, &IDENTITY, 0), 0);
        assert_eq!(elect(0b1100), 2);
    }
}
