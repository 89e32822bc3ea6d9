//! Bank conflicts of shared memory and of the data array of L1.

use lockstep_isa::Mask;
use lockstep_isa::addresses::{Addresses, Layout};
use lockstep_isa::warp_register::{FULL, LANES, lanes_of};

use crate::parameters::SmParameters;

/// Bytes of a bank.
const BANK: u64 = 4;

/// Bytes that as many banks as a warp has lanes hold side by side.
const ROW: u64 = BANK * LANES as u64;

/// The arrays that hold shared memory and the data of L1, as accesses meet them.
#[derive(Clone, Copy, Debug)]
pub struct DataArrays {
    /// Banks of shared memory.
    pub shared_banks: u32,
    /// Banks of L1: as many as deliver its bytes in a cycle.
    pub l1_banks: u32,
    /// Tags that a load looks up in a cycle.
    pub load_tags: u64,
    /// Wavefronts of a compare-and-swap on shared memory where other atomics take one.
    pub cas_wavefronts: u32,
}

impl DataArrays {
    /// From a GPU file.
    #[must_use]
    pub fn new(parameters: &SmParameters) -> Self {
        Self {
            shared_banks: parameters.lsu.shared_banks,
            l1_banks: ((1 << parameters.lsu.l1_bytes_shift) / BANK as u32).max(1),
            load_tags: parameters.lsu.l1_load_tags,
            cas_wavefronts: parameters.lsu.shared_cas_wavefronts,
        }
    }
}

/// Wavefronts over so many banks of 4 bytes: the most distinct words that one bank is asked for. Lanes
/// that ask for the same words share them; with 16 bytes a lane, only within a half of the warp.
/// `addresses` were looked at for so many bytes.
pub fn bank_wavefronts(addresses: &Addresses, execute: Mask, bytes: u32, banks: u32) -> u32 {
    if let Some(wavefronts) = plain_wavefronts(addresses, execute, bytes, banks) {
        return wavefronts;
    }
    if bytes > 8 {
        return halves(execute)
            .map(|half| wavefronts_of(&addresses.lanes, half, bytes, banks))
            .sum::<u32>()
            .max(1);
    }
    wavefronts_of(&addresses.lanes, execute, bytes, banks)
}

/// The halves of a warp in which some lane executes.
pub fn halves(execute: Mask) -> impl Iterator<Item = Mask> {
    let halves = [execute & 0xffff, execute & 0xffff_0000];
    halves.into_iter().filter(|half| *half != 0)
}

/// The answer for what nearly all accesses of a whole warp are: within one row of the banks, or side
/// by side. Found without looking at banks.
#[inline]
fn plain_wavefronts(addresses: &Addresses, execute: Mask, bytes: u32, banks: u32) -> Option<u32> {
    if execute != FULL || !bytes.is_power_of_two() || bytes > 16 || banks != LANES as u32 {
        return None;
    }
    if addresses.misaligned(FULL, bytes) != 0 {
        return None;
    }
    if addresses.share_a_piece(ROW) {
        return Some(if bytes > 8 { 2 } else { 1 });
    }
    (addresses.layout == Layout::SideBySide).then(|| bytes.div_ceil(4))
}

fn wavefronts_of(addresses: &[u64; LANES], execute: Mask, bytes: u32, banks: u32) -> u32 {
    // Banks are a power of two, and no more than lanes.
    let bank_of = |word: u64| word as usize & (banks as usize - 1);
    let words = u64::from(bytes.div_ceil(4).clamp(1, 8));
    let mut seen = [u64::MAX; LANES];
    let mut count = 0;
    let mut asked = [0u8; LANES];
    // What was last asked for from the bank of its first word on. The same words begin at the same
    // bank, so only a lane that differs from this one has to be compared with all others.
    let mut last = [u64::MAX; LANES];
    for lane in lanes_of(execute) {
        let first = addresses[lane] / 4;
        let before = std::mem::replace(&mut last[bank_of(first)], first);
        let known = before == first || before != u64::MAX && seen[..count].contains(&first);
        if known {
            continue;
        }
        seen[count] = first;
        count += 1;
        for word in first..first + words {
            asked[bank_of(word)] += 1;
        }
    }
    u32::from(asked.into_iter().max().unwrap_or(0)).max(1)
}

/// The most lanes that want one word, less one.
pub fn same_word(addresses: &[u64; LANES], execute: Mask) -> u32 {
    let mut most = 0;
    let mut left = execute;
    while left != 0 {
        let word = addresses[left.trailing_zeros() as usize] / 4;
        let same = lanes_of(left).filter(|lane| addresses[*lane] / 4 == word);
        let same = same.fold(0, |mask: Mask, lane| mask | 1 << lane);
        most = most.max(same.count_ones() - 1);
        left &= !same;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(address: impl Fn(u64) -> u64, mask: Mask, bytes: u32, wavefronts: u32) {
        let addresses = std::array::from_fn(|lane| address(lane as u64));
        let addresses = Addresses::of(addresses, bytes);
        assert_eq!(bank_wavefronts(&addresses, mask, bytes, 32), wavefronts);
    }

    #[test]
    fn a_wavefront_serves_each_bank_once() {
        check(|lane| 4 * lane, FULL, 4, 1);
        check(|_| 64, FULL, 4, 1);
        check(|lane| 8 * lane, FULL, 4, 2);
        check(|lane| 128 * lane, FULL, 4, 32);
        check(|lane| 132 * lane, FULL, 4, 1);
        check(|lane| lane, FULL, 1, 1);
        check(|lane| 128 * lane, 0b111, 4, 3);
        check(|lane| lane, 0, 4, 1);
    }

    #[test]
    fn fewer_banks_take_more_wavefronts() {
        let addresses = |stride: u64| Addresses::of(std::array::from_fn(|l| stride * l as u64), 4);
        for (banks, side_by_side, one_bank) in [(32, 1, 32), (16, 2, 32), (8, 4, 32), (1, 32, 32)] {
            let of = |stride| bank_wavefronts(&addresses(stride), FULL, 4, banks);
            assert_eq!((of(4), of(128)), (side_by_side, one_bank), "{banks}");
        }
    }

    #[test]
    fn the_same_words_are_served_together_in_whatever_order_they_come() {
        // Each bank is asked for two words in turn.
        check(|lane| (lane % 2) * 128, FULL, 4, 2);
        check(|lane| (lane % 3) * 128 + (lane % 2) * 8, FULL, 8, 3);
        check(|lane| (lane / 2 % 3) * 128, FULL, 4, 3);
    }

    proptest! {
        /// What is found without looking at banks is what looking at them finds.
        #[test]
        fn plain_accesses_are_no_exception(
            base in 0u64..0x1000,
            steps in prop::array::uniform32(0u64..40),
            stride in prop::sample::select(vec![0u64, 1, 2, 4, 8, 16, 32, 64, 128, 132]),
            pattern in 0..4,
            width in 0u32..5,
        ) {
            let bytes = 1u32 << width;
            let size = u64::from(bytes);
            let addresses = std::array::from_fn(|lane| {
                let lane = lane as u64;
                let offset = match pattern {
                    0 => lane * size,
                    1 => steps[lane as usize] * size,
                    2 => lane * stride,
                    _ => steps[lane as usize] % 8 * stride,
                };
                (base + offset) / size * size
            });
            let looked = match bytes {
                16 => halves(FULL).map(|half| wavefronts_of(&addresses, half, bytes, 32)).sum(),
                _ => wavefronts_of(&addresses, FULL, bytes, 32),
            };
            let addresses = Addresses::of(addresses, bytes);
            prop_assert_eq!(bank_wavefronts(&addresses, FULL, bytes, 32), looked);
        }
    }

    #[test]
    fn lanes_of_an_atomic_wait_for_each_other() {
        let of = |address: fn(u64) -> u64| {
            same_word(&std::array::from_fn(|lane| address(lane as u64)), FULL)
        };
        assert_eq!(of(|lane| 4 * lane), 0);
        assert_eq!(of(|_| 64), 31);
        assert_eq!(of(|lane| lane % 8 * 128), 3);
    }

    #[test]
    fn wide_accesses_take_a_pass_for_each_part_of_the_warp() {
        check(|lane| 8 * lane, FULL, 8, 2);
        check(|lane| 16 * lane, FULL, 16, 4);
        check(|lane| 16 * lane, 0xff, 16, 1);
        check(|lane| 256 * lane, FULL, 16, 32);
        check(|lane| lane / 16 * 8, FULL, 8, 1);
        check(|lane| lane / 16 * 16, FULL, 16, 2);
        check(|lane| lane % 16 * 8, FULL, 8, 1);
        check(|lane| 16 * lane, FULL, 8, 4);
    }
}
