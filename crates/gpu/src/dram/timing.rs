//! Command timing of a channel, for the back ends `timing` and `timing-in-order`.
//!
//! The figures of each generation are rows of `configs/drams`.

use lockstep_config::gpu::CommandTimingConfig;
use lockstep_units::{Duration, Time};

/// Command timing as the back ends ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DramTiming {
    /// Activate to column command (tRCD).
    pub row_to_column: Duration,
    /// Column command to data (tCL).
    pub column_latency: Duration,
    /// Activate to activate in one bank (tRC).
    pub row_cycle: Duration,
    /// Last column command to the next activate: read to precharge and precharge (tRTP + tRP).
    pub precharge_after: Duration,
    /// Activate to activate in different banks (tRRD).
    pub between_activations: Duration,
    /// Window of four activates (tFAW).
    pub four_activations: Duration,
    /// Column to column command in one bank group (tCCDL).
    pub column_to_column: Duration,
    /// Write data to the next command of the bank (tWR).
    pub write_recovery: Duration,
    /// Read to write or back (tWTR).
    pub turnaround: Duration,
    /// Between refreshes (tREFI).
    pub refresh_interval: Duration,
    /// How long one takes (tRFC).
    pub refresh: Duration,
}

impl DramTiming {
    /// From the section `[dram.command-timing]`.
    #[must_use]
    pub fn new(config: &CommandTimingConfig) -> Self {
        Self {
            row_to_column: config.t_rcd,
            column_latency: config.t_cl,
            row_cycle: config.t_rc,
            precharge_after: config.t_rtp + config.t_rp,
            between_activations: config.t_rrd,
            four_activations: config.t_faw,
            column_to_column: config.t_ccdl,
            write_recovery: config.t_wr,
            turnaround: config.t_wtr,
            refresh_interval: config.t_refi,
            refresh: config.t_rfc,
        }
    }

    /// The first instant from `at` on that is not inside a refresh.
    #[must_use]
    pub fn after_refresh(&self, at: Time) -> Time {
        if self.refresh_interval == Duration::ZERO {
            return at;
        }
        let inside = at.0 % self.refresh_interval.0;
        if inside < self.refresh.0 {
            at + Duration(self.refresh.0 - inside)
        } else {
            at
        }
    }
}
