//! Model cards: what the figures of a GPU's model stand for.
//!
//! Made from the history, the heads of the measurements and the sets, so that a card can be checked
//! without simulating anything.

use crate::figures::median;
use crate::hardware::Hardware;
use crate::history::{self, Row};
use crate::sets::{Set, Sets};
use crate::text::{percent, signed};
use std::fmt::Write;

/// Clocks of SM, L2 and DRAM, from the cycles and the time of launches that are long enough.
fn clocks(hardware: &Hardware) -> String {
    const LONG_ENOUGH: f64 = 8_000.0;
    let clock = |cycles: &str| {
        let ratios: Vec<f64> = hardware
            .cold
            .launches
            .values()
            .flat_map(|launches| launches.values())
            .filter_map(|launch| {
                let time = launch.counters.get("duration_ns")?.median();
                let cycles = launch.counters.get(cycles)?.median();
                (time >= LONG_ENOUGH).then_some(cycles / time * 1000.0)
            })
            .collect();
        median(&ratios).map_or("not recorded".into(), |value| format!("{value:.0} MHz"))
    };
    format!(
        "SM {}, L2 {}, DRAM {}",
        clock("cycles"),
        clock("l2_cycles"),
        clock("dram_cycles")
    )
}

/// The card of one GPU, in Markdown.
pub fn markdown(gpu: &str, hardware: &Hardware, sets: &Sets, rows: &[Row]) -> String {
    let mut page = format!("# Model card: {gpu}\n\n");
    let said = |key: &str| hardware.cold.said(key).unwrap_or("not recorded");
    let _ = writeln!(page, "| | |\n|---|---|");
    let _ = writeln!(page, "| GPU, driver, clocks when idle | {} |", said("card"));
    let _ = writeln!(page, "| clocks while measured | {} |", clocks(hardware));
    let _ = writeln!(page, "| profiler | {} |", said("profiler"));
    let _ = writeln!(page, "| measured on | {} |", said("date"));
    let launches: usize = hardware
        .cold
        .launches
        .values()
        .map(|launches| launches.len())
        .sum();
    let _ = writeln!(
        page,
        "| measurements | {launches} launches of {} programs and sizes, {} repetitions, caches emptied before every launch |",
        hardware.cold.launches.len(),
        hardware.cold.repetitions()
    );
    let _ = writeln!(
        page,
        "| error of a program | Σ over kernel names of \\|simulated − measured\\| / Σ measured cycles |\n"
    );

    page.push_str("## Figures\n\n");
    page.push_str("The newest commit in `validation/history.csv`, by state of the caches, set and choice of sizes. No figure is given while a program crashes, hangs or computes wrongly.\n\n");
    page.push_str("| caches | set | sizes | commit | day | programs | failed | mean | with signs | median | 90th | max | by time | exp(mean \\|ln\\|) − 1 | R² (log) | ≥ 20,000 net cycles | small kernels right | counts equal |\n");
    page.push_str("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    let share = |value: Option<f64>| value.map_or("—".into(), percent);
    for row in history::newest(rows, gpu) {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} of {} | {} of {} |",
            row.state.name(),
            row.set,
            row.sizes,
            row.commit,
            row.date,
            row.programs,
            row.failed,
            share(row.mean),
            row.signed.map_or("—".into(), signed),
            share(row.median),
            share(row.ninetieth),
            share(row.maximum),
            share(row.time_weighted),
            share(row.log_error),
            row.log_r_squared
                .map_or("—".into(), |value| format!("{value:.4}")),
            share(row.large_mean),
            row.small_right,
            row.small,
            row.counts_equal,
            row.counts_repeating
        );
    }
    page.push_str("\n## Programs that the figures stand for\n\n");
    for set in Set::ALL {
        let families: Vec<String> = sets
            .families
            .iter()
            .filter(|family| family.set == set)
            .map(|family| format!("{} ({})", family.name, family.programs.join(", ")))
            .collect();
        let _ = writeln!(page, "- **{}**: {}.", set.name(), families.join("; "));
    }
    page.push_str("\nKernels of these programs run from a single warp to some million warp instructions, with footprints that mostly fit the L2. Larger problems, several GPUs, unified memory and clocks other than those above are outside what was measured.\n");
    page
}
