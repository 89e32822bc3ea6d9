//! The flush at the end of a kernel: which SMs have used a slice since the last launch ended.
//!
//! When a launch ends, every SM makes sure that the slices it has used are done with what it sent.
//! That is a lookup in L2 for each SM and slice, and another one across the fabric between the L2
//! partitions: `around.cu` counts 2 x 85 an SM once it has touched a few hundred KiB, and fewer the
//! less it touches.
//!
//! Left out: the time that these lookups take of the slice.

use serde::{Deserialize, Serialize};

/// SMs that have asked, a bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOfKernelFlush {
    seen: Vec<u64>,
}

impl EndOfKernelFlush {
    /// An SM asks.
    #[inline]
    pub fn note(&mut self, sm: u32) {
        let (word, bit) = (sm as usize / 64, sm % 64);
        if word >= self.seen.len() {
            // Whoever is no SM has a number beyond all of them.
            if word > 1 << 10 {
                return;
            }
            self.seen.resize(word + 1, 0);
        }
        self.seen[word] |= 1 << bit;
    }

    /// How many have asked; nobody has from now on.
    pub fn take(&mut self) -> u32 {
        let count = self.seen.iter().map(|word| word.count_ones()).sum();
        self.seen.fill(0);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::EndOfKernelFlush;

    #[test]
    fn an_sm_counts_once_until_the_launch_ends() {
        let mut flush = EndOfKernelFlush::default();
        for sm in [0, 131, 64, 131, u32::MAX] {
            flush.note(sm);
        }
        assert_eq!(flush.take(), 3);
        assert_eq!(flush.take(), 0);
    }
}
