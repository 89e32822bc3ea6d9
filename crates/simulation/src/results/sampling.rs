//! What a sampled run says: projected rows, sums, and the interval.

use crate::description::Description;
use crate::sampling::Sampled;
use lockstep_counters::LaunchCounters;
use lockstep_run_folder::{CounterTotals, KernelRow, SamplingSummary};
use lockstep_runtime::LaunchSummary;
use lockstep_units::Cycles;

/// Writes projected cycles into the rows of launches that did not take their time.
pub fn fill_in(
    rows: &mut [KernelRow],
    launches: &[LaunchSummary],
    sampled: &Sampled,
    description: &Description,
) {
    let clock = description.config.device.clock;
    let nanoseconds = |femtoseconds: u64| femtoseconds as f64 / 1e6;
    for (row, launch) in rows.iter_mut().zip(launches) {
        let Some(cycles) = sampled.projected.get(&row.launch) else {
            continue;
        };
        row.mode = "projected".into();
        row.projected = Some(*cycles);
        row.duration_ns = Some(nanoseconds(clock.duration(Cycles(*cycles)).0));
        let start = launch.result.as_ref().map(|result| result.start);
        row.start_ns = start.map(|start| nanoseconds(start.0));
    }
}

/// Sums over all launches: of counters that both modes know, and of cycles.
pub fn totals(rows: &[KernelRow], sampled: &Sampled) -> CounterTotals {
    let untimed = |row: &KernelRow| {
        let counters = row.counters?;
        Some(LaunchCounters {
            timed: false,
            ..counters
        })
    };
    let known: Vec<LaunchCounters> = rows.iter().filter_map(untimed).collect();
    let beside = rows.iter().filter(|row| row.parent.is_some());
    let beside: u64 = beside.filter_map(|row| row.counter("cycles")).sum();
    CounterTotals::of(&known).with("cycles", sampled.cycles + beside)
}

/// What is said of sampling in the summary.
pub fn summary(sampled: &Sampled) -> SamplingSummary {
    let detailed = sampled.measured_instructions;
    SamplingSummary {
        seed: sampled.seed,
        detailed_launches: sampled.measured,
        projected_launches: sampled.projected.len() as u64,
        detailed_inst: detailed,
        fewer_inst: sampled.instructions as f64 / detailed.max(1) as f64,
        groups: sampled.groups,
        strata: sampled.strata,
        cycles: sampled.cycles,
        cycles_half_width: sampled.half_width,
        half_width_percent: 100.0 * sampled.relative_half_width(),
    }
}
