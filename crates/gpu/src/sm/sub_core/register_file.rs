//! The register file of a sub-core: banks that are read one register a cycle each.
//!
//! Operands are read in a window of a few cycles after issue. Reads that do not fit in their window
//! hold up the instructions that come after. What the reuse cache keeps is not read again, which the
//! issue table knows (`front_end/issue_table.rs`).

use serde::{Deserialize, Serialize};

/// Banks whose conflicts are modelled.
pub const BANKS: usize = 2;

/// The register file of a sub-core.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RegisterFile {
    /// Cycle until which each bank is being read.
    busy: [u64; BANKS],
}

impl RegisterFile {
    /// Reads the operands of an instruction that issues in a cycle. Says by how many cycles this
    /// takes longer than the window in which operands are read.
    #[inline]
    pub fn read(&mut self, reads: [u8; BANKS], cycle: u64, window: u64) -> u64 {
        let mut over = 0;
        for (busy, reads) in self.busy.iter_mut().zip(reads) {
            *busy = cycle.max(*busy) + u64::from(reads);
            over = over.max(busy.saturating_sub(cycle + window));
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_one_bank_hold_up_what_comes_after() {
        let mut file = RegisterFile::default();
        assert_eq!(
            file.read([3, 0], 10, 3),
            0,
            "three reads fit in three cycles"
        );
        assert_eq!(file.read([3, 0], 11, 3), 2, "the bank is busy until 16");
        assert_eq!(file.read([0, 3], 12, 3), 1, "the first bank still is");
        assert_eq!(file.read([1, 1], 20, 3), 0);
    }
}
