//! How many warps of a kernel an SM can hold, and what keeps more away.

use lockstep_config::GpuConfig;
use lockstep_config::occupancy::{BlockShape, Occupancy, SmLimits};
use lockstep_run_folder::Launch;
use serde::Serialize;

/// Occupancy of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OccupancyReport {
    /// Blocks that an SM holds at once.
    pub blocks_per_sm: u32,
    /// Warps of them, of the most that an SM holds, from 0 to 1.
    pub theoretical: f64,
    /// The same with the next limit in place of those that bound it; equal if nothing is to be had.
    pub without_limit: f64,
    /// Warps present in active cycles, of the most that an SM holds, from 0 to 1.
    pub achieved: Option<f64>,
    /// What bounds it: `warps`, `registers`, `shared memory`, `block slots`.
    pub bounded_by: Vec<&'static str>,
    /// Blocks of the grid, of those that all SMs hold at once.
    pub waves: f64,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block in bytes.
    pub shared_bytes: u64,
}

/// Of one launch; nothing if the run does not say what its blocks take, or if none fits.
pub fn occupancy(
    config: &GpuConfig,
    launch: &Launch,
    achieved: Option<f64>,
) -> Option<OccupancyReport> {
    let block = BlockShape {
        threads: u32::try_from(launch.threads()).ok()?,
        registers: launch.registers?,
        shared: launch.shared_bytes?,
    };
    let limits = SmLimits::new(&config.sm);
    let fitting = limits.most(block);
    let blocks = fitting.blocks();
    if blocks == 0 {
        return None;
    }
    let by = by_limit(&fitting);
    let bounded_by = by.iter().filter(|(_, count)| *count == blocks);
    let next = by
        .iter()
        .map(|(_, count)| *count)
        .filter(|count| *count > blocks)
        .min();
    let warps = limits.allocation(block).warps;
    let share = |blocks: u32| {
        f64::from(blocks.saturating_mul(warps).min(limits.warps)) / f64::from(limits.warps)
    };
    let resident = f64::from(blocks) * f64::from(config.device.sms);
    Some(OccupancyReport {
        blocks_per_sm: blocks,
        theoretical: share(blocks),
        without_limit: share(next.unwrap_or(blocks).min(fitting.by_warps)),
        achieved,
        bounded_by: bounded_by.map(|(name, _)| *name).collect(),
        waves: launch.blocks() as f64 / resident,
        registers: block.registers,
        shared_bytes: block.shared,
    })
}

fn by_limit(fitting: &Occupancy) -> [(&'static str, u32); 4] {
    [
        ("warps", fitting.by_warps),
        ("registers", fitting.by_registers),
        ("shared memory", fitting.by_shared),
        ("block slots", fitting.by_blocks),
    ]
}
