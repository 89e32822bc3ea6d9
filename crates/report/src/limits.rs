//! What the simulated GPU can do at most, from its own description.

use lockstep_config::GpuConfig;
use lockstep_units::Duration;
use serde::Serialize;

/// Femtoseconds of a second: durations count them.
const FEMTOSECONDS: f64 = 1e15;

/// The most that a GPU does in a cycle of its SMs' clock, all its parts together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GpuLimits {
    /// Cycles of the SMs in a second.
    pub cycles_per_second: f64,
    /// SMs.
    pub sms: u32,
    /// Warps that an SM holds.
    pub warps_per_sm: u32,
    /// Warp instructions that all schedulers issue in a cycle.
    pub issue: f64,
    /// Single precision warp instructions.
    pub fp32: f64,
    /// Double precision warp instructions.
    pub fp64: f64,
    /// Integer warp instructions, on every unit that has some.
    pub integer: f64,
    /// Wavefronts of L1TEX.
    pub l1_wavefronts: f64,
    /// Bytes that the slices of L2 deliver.
    pub l2_bytes: f64,
    /// Bytes that they take from DRAM.
    pub l2_fill_bytes: f64,
    /// Bytes that DRAM reads, by the share of its peak that a stream reaches.
    pub dram_bytes: f64,
    /// Bytes that it writes, in the same way.
    pub dram_write_bytes: f64,
    /// Bytes that DRAM moves at its peak.
    pub dram_peak_bytes: f64,
    /// Cycles between two blocks that the work distributor sends out.
    pub block_cycles: f64,
    /// Cycles that a launch takes before its first block and after its last one, behind another in its queue.
    pub launch_cycles: f64,
    /// The same for a launch that nothing runs before.
    pub launch_alone_cycles: f64,
}

impl GpuLimits {
    /// From a description.
    pub fn of(config: &GpuConfig) -> Self {
        let (device, sm, l2, dram) = (&config.device, &config.sm, &config.l2, &config.dram);
        let clock = device.clock.get() as f64;
        let sub_cores = f64::from(device.sms) * f64::from(sm.sub_cores);
        let each = |interval: u64| 1.0 / interval.max(1) as f64;
        let interval = &sm.interval;
        let fp64_units = if sm.fp64_unit_shared {
            f64::from(device.sms)
        } else {
            sub_cores
        };
        // A unit may do integers of several kinds; which, a run does not say. The most is a bound.
        let integer =
            each(interval.alu.0) + each(interval.integer_multiply.0) + each(interval.uniform.0);
        // A slice is busy with a sector for as long as the slower of its limits says.
        let sector = l2.sector.0 as f64;
        let delivered = l2.bytes_per_cycle.get() as f64 * l2.clock.get() as f64 / clock;
        let within = |time: Duration| match time.0 as f64 / FEMTOSECONDS * clock {
            cycles if cycles > 0.0 => delivered.min(sector / cycles) * f64::from(l2.slices),
            _ => delivered * f64::from(l2.slices),
        };
        let peak =
            dram.bytes_per_cycle.at(dram.clock).get() as f64 * f64::from(dram.channels) / clock;
        let written = match dram.write_efficiency {
            0 => dram.efficiency,
            other => other,
        };
        let launch = &config.launch;
        let start = launch
            .start_latency
            .0
            .saturating_sub(launch.start_overlap.0);
        Self {
            cycles_per_second: clock,
            sms: device.sms,
            warps_per_sm: sm.warps,
            issue: sub_cores,
            fp32: sub_cores * each(interval.fma.0.min(interval.half.0)),
            fp64: fp64_units * each(interval.double.0),
            integer: sub_cores * integer.min(1.0),
            l1_wavefronts: f64::from(device.sms),
            l2_bytes: within(l2.sector_read_time),
            l2_fill_bytes: within(l2.sector_write_time),
            dram_bytes: peak * f64::from(dram.efficiency) / 100.0,
            dram_write_bytes: peak * f64::from(written) / 100.0,
            dram_peak_bytes: peak,
            block_cycles: config.dispatch.block_interval.0 as f64 / FEMTOSECONDS * clock,
            launch_cycles: start.saturating_add(launch.finish_latency.0) as f64,
            launch_alone_cycles: launch
                .start_latency
                .0
                .saturating_add(launch.finish_latency.0) as f64,
        }
    }
}
