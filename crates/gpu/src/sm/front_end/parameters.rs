//! Parameters of the front end.

use lockstep_config::GpuConfig;

/// What the front end of an SM needs of a GPU file.
#[derive(Clone, Debug)]
pub struct FrontEndParameters {
    /// Lines of the instruction cache of a sub-core.
    pub l0_lines: usize,
    /// Lines of the instruction cache of an SM.
    pub l1i_lines: usize,
    /// Lines of the instruction cache behind it.
    pub l15_lines: usize,
    /// Instructions of a line.
    pub instructions_per_line: u32,
    /// Cycles from a miss in a sub-core's instruction cache to a hit in the SM's.
    pub l1i_latency: u64,
    /// Cycles from a miss in the SM's instruction cache to a hit in the one behind it.
    pub l15_latency: u64,
    /// Cycles that a line takes longer that L2 does not have.
    pub uncached: u64,
    /// Cycles that a line takes longer the first time.
    pub first_fetch: u64,
    /// Lines that a stream buffer runs ahead.
    pub prefetch: u32,
    /// Cycles from the first block of a launch to the first line of its code.
    pub launch_code: u64,
    /// Cycles between two lines of it.
    pub launch_line: u64,
    /// Most lines of it.
    pub launch_lines: u32,
    /// Lines of constants.
    pub constant_lines: usize,
    /// Ways of a set of them.
    pub constant_ways: usize,
    /// Cycles from one address of a warp to the next.
    pub constant_replay: u64,
    /// Cycles between two addresses of whichever warps.
    pub constant_interval: u64,
    /// Cycles between two misses of loads by index.
    pub constant_miss_interval: u64,
    /// Cycles between two lines of constants that the cache of a GPC passes on to one of its SMs, if all
    /// of them ask for some.
    pub gpc_constant_interval: u64,
    /// Lines of constants that come from L2 together.
    pub constant_fetch_lines: u32,
    /// Cycles that a load of a constant takes longer the first time.
    pub constant_miss: u64,
    /// Cycles until a constant is there that the launch uses for the first time on an SM.
    pub constant_first: u64,
    /// Bytes of a line of constants.
    pub constant_line: u32,
}

impl FrontEndParameters {
    /// From a GPU file.
    #[must_use]
    pub fn new(config: &GpuConfig) -> Self {
        let front_end = &config.sm.front_end;
        Self {
            l0_lines: (front_end.l0.0 / front_end.line.0) as usize,
            l1i_lines: (front_end.l1.0 / front_end.line.0) as usize,
            l15_lines: (front_end.l15.0 / front_end.line.0) as usize,
            l15_latency: front_end.l15_latency.0,
            uncached: front_end.uncached_latency.0,
            first_fetch: front_end.first_fetch_latency.0,
            launch_lines: (front_end.cold_fetch_limit.0 / front_end.line.0).min(1 << 20) as u32,
            instructions_per_line: (front_end.line.0 / 16).max(1) as u32,
            l1i_latency: front_end.l1_latency.0,
            prefetch: front_end.stream_buffer_lines,
            launch_code: front_end.cold_fetch_latency.0,
            launch_line: front_end.cold_fetch_interval.0,
            constant_lines: (front_end.constant_cache.0 / front_end.constant_cache_line.0) as usize,
            constant_ways: front_end.constant_cache_ways.max(1) as usize,
            constant_replay: front_end.constant_replay.0,
            constant_interval: front_end.constant_interval.0,
            constant_miss_interval: front_end.constant_miss_interval.0,
            gpc_constant_interval: u64::from(front_end.gpc_constant_interval)
                * u64::from(config.device.sms)
                / (100 * u64::from(config.device.gpcs.max(1))),
            constant_fetch_lines: (front_end.constant_fetch.0 / front_end.constant_cache_line.0)
                .max(1) as u32,
            constant_miss: front_end.constant_miss_latency.0,
            constant_first: front_end.constant_cold_miss_latency.0,
            constant_line: front_end.constant_cache_line.0 as u32,
        }
    }
}
