//! Bank conflicts of shared memory.

use lockstep_isa::Mask;
use lockstep_isa::row::{FULL, LANES, lanes_of};

/// Passes over 32 banks of 4 bytes: for each group of lanes that one pass could serve, the most
/// distinct words that one bank is asked for.
pub(super) fn bank_passes(addresses: &[u64; LANES], execute: Mask, bytes: u32) -> u32 {
    let words = bytes.div_ceil(4).clamp(1, 8);
    let lanes = LANES as u32 / words;
    (0..words)
        .map(|group| {
            let members = (FULL >> (LANES as u32 - lanes)) << (group * lanes);
            passes_of(addresses, execute & members, words)
        })
        .sum::<u32>()
        .max(1)
}

fn passes_of(addresses: &[u64; LANES], members: Mask, words: u32) -> u32 {
    let mut seen = [0u64; LANES];
    let mut count = 0;
    let mut banks = [0u8; LANES];
    let mut most = 0;
    for lane in lanes_of(members) {
        let first = addresses[lane] / 4;
        for word in first..first + u64::from(words) {
            // Neighbours most often ask for the word after, or for the same one.
            let known = count > 0 && seen[count - 1] == word || seen[..count].contains(&word);
            if !known && count < LANES {
                seen[count] = word;
                count += 1;
                let bank = &mut banks[word as usize % LANES];
                *bank += 1;
                most = most.max(*bank);
            }
        }
    }
    u32::from(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: impl Fn(u64) -> u64, mask: Mask, bytes: u32, passes: u32) {
        let addresses = std::array::from_fn(|lane| address(lane as u64));
        assert_eq!(bank_passes(&addresses, mask, bytes), passes);
    }

    #[test]
    fn a_pass_serves_each_bank_once() {
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
    fn wide_accesses_take_a_pass_for_each_part_of_the_warp() {
        check(|lane| 8 * lane, FULL, 8, 2);
        check(|lane| 16 * lane, FULL, 16, 4);
        check(|lane| 16 * lane, 0xff, 16, 1);
        check(|lane| 256 * lane, FULL, 16, 32);
    }
}
