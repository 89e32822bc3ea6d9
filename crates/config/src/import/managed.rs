//! Managed memory, as UVMSmart adds it to GPGPU-Sim.

use super::steps::Steps;
use crate::ConfigError;
use lockstep_units::{Bandwidth, Bytes};

/// What makes a file one of UVMSmart.
const SIGNS: &[&str] = &["page_fault_latency", "gddr_size", "page_table_walk_latency"];

/// A hop between SM and GMMU, in cycles: the shortest that an epoch takes.
const HOP: u64 = 16;

/// The core clock of a file that names none, in MHz.
const CLOCK: f64 = 1481.0;

/// Prefetchers by number.
const PREFETCHERS: &[&str] = &["none", "tree-uvmsmart", "sequential-local", "random"];

/// Evictors by number.
const EVICTORS: &[&str] = &[
    "lru-2m",
    "tree",
    "sequential-local",
    "random-4k",
    "lfu-2m",
    "lru-4k",
];

/// When pages are used where they are, by number.
const ZERO_COPY: &[&str] = &["off", "adaptive", "always", "oversubscribed"];

/// Whether a file has keys of UVMSmart.
pub(super) fn is_given(steps: &Steps<'_>) -> bool {
    steps.given(SIGNS).is_some()
}

/// Takes UVMSmart's keys.
pub(super) fn take(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    take_sizes(steps)?;
    take_latencies(steps)?;
    take_link(steps)?;
    take_choice(
        steps,
        "hardware_prefetch",
        PREFETCHERS,
        "uvm.prefetch.policy",
    )?;
    take_choice(
        steps,
        "hwprefetch_oversub",
        PREFETCHERS,
        "uvm.prefetch.oversubscribed",
    )?;
    take_choice(steps, "eviction_policy", EVICTORS, "uvm.evict.policy")?;
    take_choice(steps, "enable_dma", ZERO_COPY, "uvm.zero-copy.mode")?;
    take_choice(
        steps,
        "invalidate_clean",
        &["copy", "drop"],
        "uvm.evict.clean",
    )?;
    let services = ["additive", "serial"];
    take_choice(
        steps,
        "enable_accurate_simulation",
        &services,
        "uvm.fault.service",
    )
}

/// A number that stands for a name.
fn take_choice(
    steps: &mut Steps<'_>,
    option: &str,
    names: &[&str],
    key: &str,
) -> Result<(), ConfigError> {
    let Some(number) = steps.number(&[option])? else {
        return Ok(());
    };
    let name = usize::try_from(number)
        .ok()
        .and_then(|number| names.get(number));
    let Some(name) = name else {
        let what = format!("a number from 0 to {}", names.len() - 1);
        return Err(steps.wrong(&[option], &what));
    };
    steps.take(
        &[option],
        &format!("{number} is {name}"),
        &[(key, (*name).to_string())],
    );
    Ok(())
}

/// Device memory for managed pages, and the size of a page.
fn take_sizes(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    if let Some((_, given)) = steps.given(&["gddr_size"]) {
        let bytes = binary(&given.value);
        let bytes = bytes.ok_or_else(|| steps.wrong(&["gddr_size"], "a size, as 1GB or 512MB"))?;
        steps.take(&["gddr_size"], "", &[("uvm.capacity", bytes.to_string())]);
    }
    if let Some((_, given)) = steps.given(&["page_size"]) {
        let bytes = binary(&given.value);
        match bytes {
            None => return Err(steps.wrong(&["page_size"], "a size, as 4KB or 2MB")),
            Some(Bytes(4096)) => {
                let settings = [("uvm.promotion", "false".to_string())];
                steps.take(&["page_size"], "pages of 4 KiB and nothing larger", &settings);
            }
            Some(_) => steps.leave("page_size", "every page would be mapped and moved as one of this size; here pages have 4 KiB, and `uvm.promotion` maps what is whole by one entry"),
        }
    }
    Ok(())
}

/// A size whose units are powers of 1024 whatever they are called, as UVMSmart reads them.
fn binary(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let digits = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let number: u64 = text[..digits].trim().parse().ok()?;
    let shift = match text[digits..].to_ascii_uppercase().as_str() {
        "B" => 0,
        "KB" | "KIB" => 10,
        "MB" | "MIB" => 20,
        "GB" | "GIB" => 30,
        _ => return None,
    };
    let bytes = number.checked_mul(1 << shift)?;
    (bytes > 0 && bytes <= 1 << 40).then_some(Bytes(bytes))
}

/// Cycles of a walk, and cycles of serving a fault, which is a time here.
fn take_latencies(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    if let Some(walk) = steps.number(&["page_table_walk_latency"])? {
        let walk = walk.saturating_sub(2 * HOP).max(1);
        let settings = [
            ("uvm.walk.mode", "fixed".to_string()),
            ("uvm.walk.hop-latency", format!("{HOP} cycles")),
            ("uvm.walk.latency", format!("{walk} cycles")),
        ];
        steps.take(
            &["page_table_walk_latency"],
            "less two hops to the GMMU",
            &settings,
        );
    }
    if let Some(fault) = steps.number(&["page_fault_latency"])? {
        let clocks = steps.list("gpgpu_clock_domains", ':')?;
        let clock = clocks.and_then(|clocks| clocks.first().copied());
        let clock = clock.filter(|clock| *clock > 0.0).unwrap_or(CLOCK);
        let nanoseconds = (fault as f64 * 1e3 / clock).round() as u64;
        let settings = [("uvm.fault.latency", format!("{nanoseconds} ns"))];
        steps.take(
            &["page_fault_latency"],
            "cycles of the core clock",
            &settings,
        );
    }
    Ok(())
}

/// One direction, in whole GB/s.
fn take_link(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    const NAME: &str = "pcie_bandwidth";
    let Some((_, given)) = steps.given(&[NAME]) else {
        return Ok(());
    };
    let value = super::sectioned::spaced(&given.value);
    let rate: Result<Bandwidth, _> = value.parse();
    let rate = rate.map_err(|_| steps.wrong(&[NAME], "a bandwidth, as 16.0GB/s"))?;
    let gigabytes = (rate.get() as f64 / 1e9).round().max(1.0) as u64;
    let settings = [
        ("uvm.link.profile", "pcie-3-uvmsmart".to_string()),
        ("uvm.link.gigabytes-per-second", gigabytes.to_string()),
    ];
    steps.take(&[NAME], "with UVMSmart's own curve over sizes", &settings);
    Ok(())
}
