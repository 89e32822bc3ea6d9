//! The likely cause of a kernel's error, from the counters that both sides know.
//!
//! A guess to start from, not a proof: the first rule of [`likely`] that holds speaks.

use crate::compare::{KernelComparison, Pair};

/// A ratio that far from one is worth a word.
const NOTABLE: f64 = 1.25;

/// In one sentence.
pub fn likely(kernel: &KernelComparison) -> String {
    let Some(cycles) = kernel.cycles() else {
        return "the simulator gives no cycles".into();
    };
    let off_by = cycles.simulated - cycles.hardware.median();
    if let Some(ratio) = notable(kernel, "inst_executed", 1.01) {
        if kernel
            .counters
            .get("inst_executed")
            .is_some_and(|pair| !pair.hardware.repeats())
        {
            return format!(
                "executes {} the instructions of a loop that waits: other timing, other counts",
                times(ratio)
            );
        }
        return format!(
            "executes {} the instructions: the front end, not the timing",
            times(ratio)
        );
    }
    if kernel.net_cycles < 2_000.0 {
        return format!(
            "{:+.0} cycles a launch on a kernel that is almost all launch: floor and dispatch",
            off_by / kernel.launches as f64
        );
    }
    let too_slow = off_by > 0.0;
    for (counter, what) in [
        ("dram_bytes_read", "bytes from DRAM"),
        ("l2_sectors", "sectors of the L2"),
        ("l1_sectors", "sectors of the L1"),
        ("inst_issued", "issued instructions"),
    ] {
        // More traffic explains too many cycles, less explains too few.
        if let Some(ratio) = notable(kernel, counter, NOTABLE)
            && (ratio > 1.0) == too_slow
        {
            return format!("{} the {what}", times(ratio));
        }
    }
    if let Some(difference) = hit_difference(kernel, "l1_sectors", "l1_sector_hits")
        && difference.abs() > 0.1
        && (difference < 0.0) == too_slow
    {
        return format!(
            "hit rate of the L1 differs by {:+.0} points",
            difference * 100.0
        );
    }
    if let Some(occupancy) = kernel.counters.get("achieved_occupancy")
        && (occupancy.simulated - occupancy.hardware.median()).abs() > 0.1
    {
        return format!(
            "occupancy {:.0} % instead of {:.0} %: dispatch, or the length of blocks",
            occupancy.simulated * 100.0,
            occupancy.hardware.median() * 100.0
        );
    }
    let direction = if too_slow { "too long" } else { "too short" };
    let traffic = if kernel.counters.contains_key("l2_sectors") {
        "traffic agrees"
    } else {
        "traffic is not counted"
    };
    match &kernel.stall {
        Some((reason, warps)) => format!(
            "{traffic}; hardware's warps wait most for {} ({warps:.1} at each issue), which is modelled {direction}",
            reason.replace('_', " ")
        ),
        None if kernel.footprint > 0.0 && kernel.footprint / cycles.hardware.median() > 700.0 => {
            format!(
                "{traffic}; bandwidth of memory is modelled {}",
                if too_slow { "too low" } else { "too high" }
            )
        }
        None => format!("{traffic}; latencies or issue are modelled {direction}"),
    }
}

/// Simulated over hardware, where it is that far from one.
fn notable(kernel: &KernelComparison, counter: &str, bound: f64) -> Option<f64> {
    let Pair {
        simulated,
        hardware,
        error,
    } = kernel.counters.get(counter)?;
    // Near zero a ratio says nothing; the error knows the footprint.
    if *error < bound - 1.0 || hardware.median() <= 0.0 {
        return None;
    }
    let ratio = simulated / hardware.median();
    (ratio > bound || ratio < 1.0 / bound).then_some(ratio)
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2} times")
}

/// Simulated hit rate minus hardware's.
fn hit_difference(kernel: &KernelComparison, all: &str, hits: &str) -> Option<f64> {
    let (all, hits) = (kernel.counters.get(all)?, kernel.counters.get(hits)?);
    let rate = |hits: f64, all: f64| (all > 0.0).then(|| hits / all);
    Some(
        rate(hits.simulated, all.simulated)? - rate(hits.hardware.median(), all.hardware.median())?,
    )
}
