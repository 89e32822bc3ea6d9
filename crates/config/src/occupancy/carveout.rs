//! The carve-out: how an SM divides its memory between shared memory and L1 for a launch.
//!
//! The driver chooses; `l1_places.cu` shows what it chose on an H200 (`l1_places.csv`, 256 launches, of
//! which this has the choice of all but a dozen). What a kernel prefers is meant for its own shared
//! memory: what the system keeps in each block comes on top.
//!
//! Start reading at [`SmLimits::carve_out`].

use super::{BlockAllocation, BlockShape, SmLimits};

impl SmLimits {
    /// The smallest carve-out that holds so much, or the largest.
    pub(super) fn division(&self, wanted: u64) -> u64 {
        let mut sizes = self.carveouts.iter().copied();
        sizes.find(|size| *size >= wanted).unwrap_or(self.shared)
    }

    /// Shared memory that is set aside for a kernel with such blocks that prefers a size or not.
    #[must_use]
    pub fn carve_out(&self, block: BlockShape, preferred: Option<u64>) -> u64 {
        let most = self.most(block).blocks();
        self.choose(&self.allocation(block), block.shared, most, preferred)
    }

    /// The same where a block has `own` bytes and an SM holds `most` of them at most.
    fn choose(&self, block: &BlockAllocation, own: u64, most: u32, preferred: Option<u64>) -> u64 {
        if own == 0 {
            // Four times what the system keeps in the blocks that fit, registers aside, but no more than for all.
            let blocks = (4 * (self.warps / block.warps)).min(self.blocks);
            let reserved = u64::from(blocks) * self.shared_reserved;
            return self.division(reserved.max(preferred.unwrap_or(0)));
        }
        if let Some(preferred) = preferred {
            let blocks = preferred / own.next_multiple_of(self.shared_unit);
            let wanted = preferred.max(blocks.saturating_mul(block.shared));
            return self.division(wanted.max(block.shared));
        }
        let enough = self.division(block.shared * u64::from(most.max(1)));
        // Where blocks could be more but for their threads or registers, there is room for more of them.
        let few = most > 1 && most < self.blocks && block.warps < self.headroom_warps;
        let next = self.division(enough + 1);
        if few && self.shared_reserved > 0 && next <= self.headroom {
            next
        } else {
            enough
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an H200's driver sets aside, in KiB.
    fn chosen(threads: u32, own: u64, by_registers: u32, preferred: Option<u64>) -> u64 {
        let config = crate::load::<&str>(Some("h200"), &[]).unwrap();
        let limits = SmLimits::new(&config.sm);
        let block = BlockShape {
            threads,
            registers: 0,
            shared: own,
        };
        let most = limits.most(block).blocks().min(by_registers);
        let preferred = preferred.map(|kib| kib << 10);
        limits.choose(&limits.allocation(block), own, most, preferred) >> 10
    }

    #[test]
    fn carveouts_are_those_of_a_real_driver() {
        let none = [(1, 32), (64, 32), (256, 32), (512, 16), (1024, 8)];
        for (threads, wanted) in none {
            assert_eq!(chosen(threads, 0, 64, None), wanted, "{threads} threads");
            assert_eq!(chosen(threads, 0, 64, Some(0)), wanted, "{threads} threads");
        }
        let rows = [
            (1024, 1, 64),
            (1024, 128, 64),
            (1024, 512, 16),
            (4096, 64, 164),
            (4096, 128, 132),
            (4096, 256, 100),
            (4096, 1024, 16),
            (10240, 128, 196),
            (20480, 512, 132),
            (49152, 256, 196),
            (49152, 1024, 100),
            (102_400, 256, 228),
        ];
        for (own, threads, wanted) in rows {
            assert_eq!(chosen(threads, own, 64, None), wanted, "{own} B, {threads}");
        }
        assert_eq!(chosen(256, 49152, 2, None), 132);
        assert_eq!(chosen(512, 20480, 1, None), 32);
    }

    #[test]
    fn what_is_preferred_is_without_what_the_system_keeps() {
        let rows = [
            (1024, 0, 8),
            (10240, 0, 16),
            (102_400, 0, 132),
            (0, 57, 64),
            (16, 57, 228),
            (1024, 57, 132),
            (4096, 57, 100),
            (10240, 57, 64),
            (4096, 114, 164),
            (49152, 114, 132),
        ];
        for (own, preferred, wanted) in rows {
            assert_eq!(chosen(256, own, 64, Some(preferred)), wanted, "{own} B");
        }
    }
}
