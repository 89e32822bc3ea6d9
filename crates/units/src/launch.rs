//! The launch configuration: how many blocks of how many threads, and their shared memory.
//!
//! It is one type from the CUDA call to the work distributor: the wire, the runtime and the
//! hardware carry it along, and each adds what it knows.

use serde::{Deserialize, Serialize};

/// Threads of a warp.
pub const WARP: u32 = 32;

/// Grid, block, and shared memory that the caller asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchConfig {
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block on top of what the kernel declares.
    pub dynamic_shared: u32,
}

impl LaunchConfig {
    /// A grid of blocks without dynamic shared memory.
    #[must_use]
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            dynamic_shared: 0,
        }
    }

    /// Threads of a block; the largest number if there are more.
    #[must_use]
    #[inline]
    pub fn threads(&self) -> u32 {
        let [x, y, z] = self.block;
        x.saturating_mul(y).saturating_mul(z)
    }

    /// Warps of a block.
    #[must_use]
    #[inline]
    pub fn warps(&self) -> u32 {
        self.threads().div_ceil(WARP)
    }

    /// Blocks of the grid; the largest number if there are more.
    #[must_use]
    #[inline]
    pub fn blocks(&self) -> u64 {
        let [x, y, z] = self.grid.map(u64::from);
        (x * y).saturating_mul(z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_warps_and_blocks_are_counted() {
        let config = LaunchConfig::new([3, 4, 5], [33, 2, 1]);
        assert_eq!(
            (config.blocks(), config.threads(), config.warps()),
            (60, 66, 3)
        );
    }

    #[test]
    fn what_is_too_large_does_not_wrap() {
        let config = LaunchConfig::new([u32::MAX; 3], [u32::MAX; 3]);
        assert_eq!((config.blocks(), config.threads()), (u64::MAX, u32::MAX));
        assert_eq!(LaunchConfig::default().warps(), 0);
    }
}
