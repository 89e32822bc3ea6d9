//! DRAM: channels, buses and command timing in cycles of the DRAM's clock.

use super::steps::{Steps, decimal};
use crate::ConfigError;
use lockstep_units::Bytes;
use std::collections::BTreeMap;

const TIMING: &str = "gpgpu_dram_timing_opt";

/// Names of a timing string and of our keys; all are cycles.
const TIMINGS: &[(&str, &str)] = &[
    ("RCD", "dram.command-timing.tRCD"),
    ("CL", "dram.command-timing.tCL"),
    ("RC", "dram.command-timing.tRC"),
    ("RTPL", "dram.command-timing.tRTP"),
    ("RP", "dram.command-timing.tRP"),
    ("RRD", "dram.command-timing.tRRD"),
    ("CCDL", "dram.command-timing.tCCDL"),
    ("WR", "dram.command-timing.tWR"),
    ("CDLR", "dram.command-timing.tWTR"),
];

/// Names that have no key, and why.
const LEFT: &[(&str, &str)] = &[
    (
        "WL",
        "data of a write would follow its command so late; here it takes the time of a read, tCL",
    ),
    (
        "RAS",
        "a row would stay open so long; here tRC less tRP bounds it",
    ),
    (
        "CCD",
        "columns of different bank groups would follow so close; here bursts fill the bus",
    ),
    (
        "nbkgrp",
        "banks would form so many groups; here tCCDL is between all columns of a bank",
    ),
];

/// The order of the values that older files write without names.
const ORDER: &[&str] = &[
    "nbk", "CCD", "RRD", "RCD", "RAS", "RP", "RC", "CL", "WL", "CDLR", "WR", "nbkgrp", "CCDL",
    "RTPL",
];

/// Takes everything about DRAM but the number of channels.
pub(super) fn take(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    let clocks = steps.list("gpgpu_clock_domains", ':')?.unwrap_or_default();
    let clock = clocks.get(3).copied().filter(|clock| *clock > 0.0);
    take_bus(steps, clock)?;
    take_back_end(steps)?;
    let Some(timings) = timings(steps)? else {
        return take_latency(steps, 0.0);
    };
    let Some(clock) = clock else {
        steps.leave(
            TIMING,
            "timings are cycles of a DRAM clock, and -gpgpu_clock_domains does not say it",
        );
        return take_latency(steps, 0.0);
    };
    take_timings(steps, &timings, clock)?;
    let cycles = |name: &str| timings.get(name).copied().unwrap_or(0.0);
    let core = clocks.first().copied().unwrap_or(clock);
    take_latency(steps, (cycles("RCD") + cycles("CL")) * core / clock)
}

fn take_bus(steps: &mut Steps<'_>, clock: Option<f64>) -> Result<(), ConfigError> {
    let width = steps.number(&["gpgpu_dram_buswidth"])?;
    let chips = steps.number(&["gpgpu_n_mem_per_ctrlr"])?.unwrap_or(1);
    let ratio = steps
        .number(&["dram_data_command_freq_ratio"])?
        .unwrap_or(2);
    let burst = steps.number(&["gpgpu_dram_burst_length"])?;
    if let Some(clock) = clock {
        let rate = clock * ratio as f64 / 2.0;
        steps.take(
            &["gpgpu_clock_domains", "dram_data_command_freq_ratio"],
            "the fourth; what a program reads is half the data rate",
            &[
                ("dram.clock", format!("{clock} MHz")),
                ("device.memory-clock", format!("{rate} MHz")),
            ],
        );
    }
    let mut settings = Vec::new();
    let bytes = width.and_then(|width| width.checked_mul(chips));
    if let Some(bytes) = bytes {
        let moved = bytes.saturating_mul(ratio);
        settings.push(("dram.bytes-per-cycle", format!("{moved} B/cycle")));
        if let Some(burst) = burst {
            settings.push(("dram.burst", Bytes(bytes.saturating_mul(burst)).to_string()));
        }
        if let Some(channels) = steps.number(&["gpgpu_n_mem"])? {
            let bits = bytes.saturating_mul(8).saturating_mul(channels);
            settings.push(("device.memory-bus-width", bits.to_string()));
        }
    }
    let names = [
        "gpgpu_dram_buswidth",
        "gpgpu_n_mem_per_ctrlr",
        "dram_data_command_freq_ratio",
        "gpgpu_dram_burst_length",
    ];
    if !settings.is_empty() {
        steps.take(
            &names,
            "bytes of the bus, chips and data rate together",
            &settings,
        );
    }
    Ok(())
}

fn take_back_end(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    const NAME: &str = "gpgpu_dram_scheduler";
    let back_end = match steps.number(&[NAME])? {
        None => return Ok(()),
        Some(0) => "timing-in-order",
        Some(_) => "timing",
    };
    steps.take(
        &[NAME],
        "0 is first come, first served; 1 takes open rows first",
        &[("dram.back-end", back_end.into())],
    );
    Ok(())
}

/// Cycles by name: `nbk=16:CCD=2:...`, or in order without names.
fn timings(steps: &Steps<'_>) -> Result<Option<BTreeMap<String, f64>>, ConfigError> {
    let Some((_, given)) = steps.given(&[TIMING]) else {
        return Ok(None);
    };
    let mut timings = BTreeMap::new();
    for (index, part) in given.value.split(':').enumerate() {
        let (name, cycles) = match part.split_once('=') {
            Some((name, cycles)) => (Some(name.trim()), cycles),
            None => (ORDER.get(index).copied(), part),
        };
        match (name, decimal(cycles).filter(|cycles| *cycles <= 1e6)) {
            (Some(name), Some(cycles)) => timings.insert(name.to_string(), cycles),
            _ => return Err(steps.wrong(&[TIMING], "cycles by name, as `nbk=16:CCD=2:RRD=6`")),
        };
    }
    Ok(Some(timings))
}

fn take_timings(
    steps: &mut Steps<'_>,
    timings: &BTreeMap<String, f64>,
    clock: f64,
) -> Result<(), ConfigError> {
    // Without bank groups their times are written as 0.
    let of = |name: &str| match timings.get(name).copied() {
        Some(0.0) if name == "CCDL" => timings.get("CCD").copied(),
        Some(0.0) if name == "RTPL" => None,
        found => found,
    };
    let mut settings: Vec<(&str, String)> = TIMINGS
        .iter()
        .filter_map(|(name, key)| Some((*key, picoseconds(of(name)?, clock))))
        .collect();
    let row = |name: &str, key| Some((key, picoseconds(of(name)?, clock)));
    settings.extend(row("RC", "dram.row-cycle-time"));
    settings.extend(row("RRD", "dram.activate-interval"));
    if let Some(banks) = timings.get("nbk") {
        let parts = steps
            .number(&["gpgpu_n_sub_partition_per_mchannel"])?
            .unwrap_or(1)
            .max(1);
        let banks = (*banks as u64 / parts).max(1);
        settings.push(("dram.banks", banks.to_string()));
    }
    steps.take(
        &[TIMING],
        "cycles of the DRAM's clock; banks behind a slice",
        &settings,
    );
    for (name, because) in LEFT {
        if timings.contains_key(*name) {
            steps.leave(&format!("{TIMING} ({name})"), *because);
        }
    }
    let known = |name: &&String| {
        let name = name.as_str();
        let mut rows = TIMINGS.iter().chain(LEFT).map(|(known, _)| *known);
        name == "nbk" || rows.any(|known| known == name)
    };
    let foreign: Vec<&String> = timings.keys().filter(|name| !known(name)).collect();
    for name in foreign {
        steps.leave(
            &format!("{TIMING} ({name})"),
            "no time of this name is known here",
        );
    }
    Ok(())
}

/// Their latency is what is added to the commands; ours is from a miss to its data.
fn take_latency(steps: &mut Steps<'_>, commands: f64) -> Result<(), ConfigError> {
    const NAME: &str = "dram_latency";
    let Some(latency) = steps.number(&[NAME])? else {
        return Ok(());
    };
    let all = latency.saturating_add(commands.round() as u64);
    steps.take(
        &[NAME, TIMING],
        "and the commands of a closed row, in core cycles",
        &[("dram.latency", format!("{all} cycles"))],
    );
    Ok(())
}

fn picoseconds(cycles: f64, megahertz: f64) -> String {
    format!("{} ps", (cycles * 1e6 / megahertz).round() as u64)
}
