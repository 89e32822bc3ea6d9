//! Command timing of DRAM generations, as rows of data.
//!
//! Sources: parameters of published simulator configurations (Accel-Sim for GDDR5X, HBM2, HBM2e;
//! the MICRO'25 artifact for GDDR6; a public fork for HBM3), in cycles of the command clock they
//! state, here in picoseconds. GDDR5 and GDDR6X follow their neighbours; HBM3e follows HBM3, whose
//! array it shares. Refresh: JEDEC figures for 8 Gb arrays.

use lockstep_units::{Duration, Time};

/// Command timing of one generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DramTiming {
    /// What a GPU file calls it.
    pub name: &'static str,
    /// Activate to column command (RCD).
    pub row_to_column: Duration,
    /// Column command to data (CL).
    pub column_latency: Duration,
    /// Activate to activate in one bank (RC).
    pub row_cycle: Duration,
    /// Last column command to the next activate: precharge and its wait (RTP + RP).
    pub precharge_after: Duration,
    /// Activate to activate in different banks (RRD).
    pub between_activations: Duration,
    /// Window of four activations (FAW).
    pub four_activations: Duration,
    /// Column to column command in one bank group (CCDL).
    pub column_to_column: Duration,
    /// Write data to the next command of the bank (WR).
    pub write_recovery: Duration,
    /// Read to write or back (WTR and the like).
    pub turnaround: Duration,
    /// Between refreshes (REFI).
    pub refresh_interval: Duration,
    /// How long one takes (RFC).
    pub refresh: Duration,
}

impl DramTiming {
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

const fn row(name: &'static str, p: [u64; 11]) -> DramTiming {
    DramTiming {
        name,
        row_to_column: Duration::picoseconds(p[0]),
        column_latency: Duration::picoseconds(p[1]),
        row_cycle: Duration::picoseconds(p[2]),
        precharge_after: Duration::picoseconds(p[3]),
        between_activations: Duration::picoseconds(p[4]),
        four_activations: Duration::picoseconds(p[5]),
        column_to_column: Duration::picoseconds(p[6]),
        write_recovery: Duration::picoseconds(p[7]),
        turnaround: Duration::picoseconds(p[8]),
        refresh_interval: Duration::picoseconds(p[9]),
        refresh: Duration::picoseconds(p[10]),
    }
}

/// All generations: RCD, CL, RC, RTP+RP, RRD, FAW, CCDL, WR, turnaround, REFI, RFC.
#[rustfmt::skip]
pub const DRAM_TIMINGS: &[DramTiming] = &[
    row("gddr5",  [12_000, 12_000, 40_000, 14_000, 5_500, 23_000, 1_600, 12_000, 5_000, 3_900_000, 160_000]),
    row("gddr5x", [ 6_400,  6_400, 20_800,  7_600, 3_200, 12_800, 1_600,  6_400, 2_800, 1_900_000, 120_000]),
    row("gddr6",  [13_700, 13_700, 44_600, 16_000, 6_900, 27_400, 3_400, 13_700, 5_700, 1_900_000, 120_000]),
    row("gddr6x", [13_700, 13_700, 44_600, 16_000, 6_900, 27_400, 3_400, 13_700, 5_700, 1_900_000, 120_000]),
    row("hbm2",   [14_100, 14_100, 47_100, 17_600, 3_500, 16_000, 2_400, 11_800, 3_500, 3_900_000, 260_000]),
    row("hbm2e",  [14_600, 14_600, 47_600, 19_200, 4_600, 18_500, 2_600, 12_600, 3_300, 3_900_000, 260_000]),
    row("hbm3",   [14_100, 14_100, 47_300, 18_300, 4_200, 16_800, 2_300, 12_200, 3_100, 3_900_000, 260_000]),
    row("hbm3e",  [14_100, 14_100, 47_300, 18_300, 3_400, 13_700, 1_900, 12_200, 2_500, 3_900_000, 260_000]),
];
