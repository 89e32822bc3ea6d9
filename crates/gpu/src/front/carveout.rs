//! How an SM divides its memory between shared memory and L1 for a launch.
//!
//! The driver chooses; `l1_places.cu` shows what it chose on an H200 (`l1_places.csv`, 256 launches, of which this has
//! the choice of all but a dozen). What a kernel prefers is meant for its own shared memory: what the system keeps in
//! each block comes on top.

use super::{BlockNeeds, SmLimits};

impl SmLimits {
    /// The smallest division that holds so much, or the largest.
    fn division(&self, wanted: u64) -> u64 {
        let mut sizes = self.divisions.iter().copied();
        sizes.find(|size| *size >= wanted).unwrap_or(self.shared)
    }

    /// Shared memory that is set aside for a kernel whose blocks have `own` bytes each, and that prefers a size or not.
    #[must_use]
    pub(crate) fn carve_out(&self, needs: &BlockNeeds, own: u64, preferred: Option<u64>) -> u64 {
        if own == 0 {
            // Four times what the system keeps in the blocks that fit, registers aside, but no more than for all.
            let blocks = (4 * (self.warps / needs.warps)).min(self.blocks);
            let kept = u64::from(blocks) * self.shared_reserved;
            return self.division(kept.max(preferred.unwrap_or(0)));
        }
        if let Some(preferred) = preferred {
            let blocks = preferred / own.next_multiple_of(self.shared_unit.max(1));
            let wanted = preferred.max(blocks.saturating_mul(needs.shared));
            return self.division(wanted.max(needs.shared));
        }
        let enough = self.division(needs.shared * u64::from(needs.most.max(1)));
        // Where blocks could be more but for their threads or registers, there is room for more of them.
        let few = needs.most > 1 && needs.most < self.blocks && needs.warps < self.headroom_warps;
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
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        let limits = SmLimits::new(&config);
        let warps = threads.div_ceil(32);
        let shared = (own + 1024).next_multiple_of(128);
        let needs = BlockNeeds {
            warps,
            registers: 0,
            shared,
            most: (limits.warps / warps)
                .min(limits.blocks)
                .min(by_registers)
                .min((limits.shared / shared) as u32),
            most_blocks: u32::MAX,
        };
        limits.carve_out(&needs, own, preferred.map(|kib| kib << 10)) >> 10
    }

    #[test]
    fn divisions_are_those_of_a_real_driver() {
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
