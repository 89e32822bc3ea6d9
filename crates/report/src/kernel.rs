//! One kernel over all its launches: time, waiting, traffic, occupancy and bounds.

use crate::advice::{self, Advice};
use crate::bounds::{Bound, SECTOR, bounds};
use crate::limits::GpuLimits;
use crate::occupancy::{OccupancyReport, occupancy};
use lockstep_config::GpuConfig;
use lockstep_counters::COUNTERS;
use lockstep_run_folder::Launch;
use lockstep_text::names;
use lockstep_text::numbers::quotient;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a report says of one kernel. Shares go from 0 to 1; what the run does not know is `null`.
#[derive(Clone, Debug, Serialize)]
pub struct KernelReport {
    /// Its name for tables: demangled, without parameters, shortened.
    pub name: String,
    /// Its whole name, demangled.
    pub full_name: String,
    /// Its name as the run has it.
    pub symbol: String,
    /// Launches.
    pub launches: u64,
    /// Blocks of its longest launch.
    pub grid: [u32; 3],
    /// Threads of a block of its longest launch.
    pub block: [u32; 3],
    /// Different shapes of grid and block.
    pub shapes: usize,
    /// Sum of the durations, in nanoseconds.
    pub time_ns: Option<f64>,
    /// Of the time of all kernels.
    pub time_share: Option<f64>,
    /// A launch, in nanoseconds.
    pub mean_ns: Option<f64>,
    /// Sums over launches of every counter that is known for all of them.
    pub counters: BTreeMap<&'static str, u64>,
    /// What warps did in their cycles, the most frequent first.
    pub stalls: Vec<Share>,
    /// Instructions by kind, the most frequent first.
    pub instruction_mix: Vec<Share>,
    /// Lanes that took part, of all lanes of all instructions.
    pub active_lanes: Option<f64>,
    /// Cycles in which SMs had a warp, of all cycles of all SMs.
    pub sm_activity: Option<f64>,
    /// Caches and DRAM.
    pub memory: KernelMemory,
    /// Occupancy of its longest launch.
    pub occupancy: Option<OccupancyReport>,
    /// The least time that each resource needs, the largest first.
    pub bounds: Vec<Bound>,
    /// Where it stands under the roof.
    pub roofline: Option<Roofline>,
    /// What bounds it and what removing that would give, the most first.
    pub advice: Vec<Advice>,
}

/// A name and its part of a whole, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The name.
    pub name: &'static str,
    /// Its part.
    pub share: f64,
}

/// Caches and DRAM as one kernel used them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KernelMemory {
    /// Sectors found in L1.
    pub l1_hit_rate: Option<f64>,
    /// Sectors found in L2.
    pub l2_hit_rate: Option<f64>,
    /// Sectors that one access to global or local memory touches: 4 for 4 bytes a lane side by side.
    pub sectors_per_access: Option<f64>,
    /// Bytes between SMs and L2.
    pub l2_bytes: Option<f64>,
    /// Bytes read from DRAM and written to it.
    pub dram_bytes: Option<f64>,
    /// The same in a second.
    pub dram_bytes_per_second: Option<f64>,
    /// The same of DRAM's peak.
    pub dram_of_peak: Option<f64>,
}

/// A kernel in the roofline of warp instructions over bytes.
///
/// Operations of a lane are not counted one by one (a fused multiply-add is one instruction, as a
/// load is), so the roof is that of instructions: issue slots above, bandwidth on the slopes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Roofline {
    /// Warp instructions a second.
    pub inst_per_second: f64,
    /// Warp instructions for each byte of DRAM; nothing if it moved none.
    pub inst_per_dram_byte: Option<f64>,
    /// Warp instructions for each byte between SMs and L2.
    pub inst_per_l2_byte: Option<f64>,
    /// The most warp instructions a second that these intensities allow.
    pub roof: f64,
    /// What the roof is made of there.
    pub roof_of: &'static str,
    /// Reached of it.
    pub of_roof: f64,
}

/// All kernels of a run, the one that took most time first.
pub fn kernels(launches: &[Launch], config: Option<&GpuConfig>) -> Vec<KernelReport> {
    let mut groups: BTreeMap<&str, Vec<&Launch>> = BTreeMap::new();
    for launch in launches {
        groups.entry(&launch.kernel).or_default().push(launch);
    }
    let limits = config.map(GpuLimits::of);
    let all: f64 = launches
        .iter()
        .filter_map(|launch| launch.duration_ns)
        .sum();
    let mut kernels: Vec<KernelReport> = groups
        .values()
        .map(|launches| of_launches(launches, all, config, limits.as_ref()))
        .collect();
    let time = |kernel: &KernelReport| kernel.time_ns.unwrap_or(0.0);
    let work = |kernel: &KernelReport| kernel.counters.get("inst_executed").copied();
    kernels.sort_by(|a, b| time(b).total_cmp(&time(a)).then(work(b).cmp(&work(a))));
    kernels
}

fn of_launches(
    launches: &[&Launch],
    all_ns: f64,
    config: Option<&GpuConfig>,
    limits: Option<&GpuLimits>,
) -> KernelReport {
    let longest = longest(launches);
    let counters = sums(launches);
    let get = |name: &str| match name {
        "launches" => Some(launches.len() as f64),
        name => counters.get(name).map(|sum| *sum as f64),
    };
    let ratio = |part: &str, whole: &str| quotient(get(part)?, get(whole)?);
    let time_ns = total_time(launches);
    let mut shapes: Vec<_> = launches.iter().map(|one| (one.grid, one.block)).collect();
    shapes.sort_unstable();
    shapes.dedup();
    let achieved = limits.and_then(|limits| {
        Some(ratio("warp_cycles", "active_cycles")? / f64::from(limits.warps_per_sm))
    });
    let symbol = &longest.kernel;
    let mut kernel = KernelReport {
        name: names::readable(symbol),
        full_name: names::whole(symbol),
        symbol: symbol.chars().take(4000).collect(),
        launches: launches.len() as u64,
        grid: longest.grid,
        block: longest.block,
        shapes: shapes.len(),
        time_ns,
        time_share: time_ns.and_then(|time| quotient(time, all_ns)),
        mean_ns: time_ns.and_then(|time| quotient(time, launches.len() as f64)),
        stalls: shares(
            &get,
            lockstep_counters::stalls().map(|one| one.name),
            "stalled_",
        ),
        instruction_mix: shares(&get, mixes(), "inst_"),
        active_lanes: ratio("thread_inst_executed", "inst_executed").map(|lanes| lanes / 32.0),
        sm_activity: limits
            .and_then(|limits| Some(ratio("active_cycles", "cycles")? / f64::from(limits.sms))),
        memory: memory(&get, time_ns, limits),
        occupancy: config.and_then(|config| occupancy(config, longest, achieved)),
        bounds: limits
            .map(|limits| bounds(&get, limits))
            .unwrap_or_default(),
        roofline: limits.and_then(|limits| roofline(&get, time_ns, limits)),
        advice: Vec::new(),
        counters,
    };
    if let Some(limits) = limits {
        kernel.advice = advice::advice(&kernel, limits);
    }
    kernel
}

/// Launches of a kernel are never none.
fn longest<'launch>(launches: &[&'launch Launch]) -> &'launch Launch {
    let mut longest = launches[0];
    for launch in launches {
        if launch.duration_ns > longest.duration_ns {
            longest = launch;
        }
    }
    longest
}

fn total_time(launches: &[&Launch]) -> Option<f64> {
    let times = launches.iter().map(|launch| launch.duration_ns);
    times.sum::<Option<f64>>().filter(|time| time.is_finite())
}

fn sums(launches: &[&Launch]) -> BTreeMap<&'static str, u64> {
    let mut sums = BTreeMap::new();
    for (place, metric) in COUNTERS.iter().enumerate() {
        let mut values = launches.iter().map(|launch| launch.counters()[place]);
        let sum = values.try_fold(0u64, |sum, value| Some(sum.saturating_add(value?)));
        if let Some(sum) = sum {
            sums.insert(metric.name, sum);
        }
    }
    sums
}

/// Counters of instructions by kind: those that the mix consists of.
fn mixes() -> impl Iterator<Item = &'static str> {
    let names = COUNTERS.iter().map(|one| one.name);
    names.filter(|name| {
        let kind = name.strip_prefix("inst_");
        kind.is_some_and(|kind| {
            lockstep_counters::LAUNCH_GAUGES
                .iter()
                .any(|one| one.name == kind)
        })
    })
}

/// Parts of their sum, the largest first, without what is none.
fn shares(
    get: &dyn Fn(&str) -> Option<f64>,
    names: impl Iterator<Item = &'static str>,
    prefix: &str,
) -> Vec<Share> {
    let values: Vec<(&'static str, f64)> = names
        .filter_map(|name| Some((name.strip_prefix(prefix)?, get(name)?)))
        .collect();
    let all: f64 = values.iter().map(|(_, value)| value).sum();
    let mut shares: Vec<Share> = values
        .into_iter()
        .filter(|(_, value)| *value > 0.0)
        .filter_map(|(name, value)| {
            let share = quotient(value, all)?;
            Some(Share { name, share })
        })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

fn memory(
    get: &dyn Fn(&str) -> Option<f64>,
    time_ns: Option<f64>,
    limits: Option<&GpuLimits>,
) -> KernelMemory {
    let ratio = |part: &str, whole: &str| quotient(get(part)?, get(whole)?);
    let dram_bytes = get("dram_bytes_read").zip(get("dram_bytes_written"));
    let dram_bytes = dram_bytes.map(|(read, written)| read + written);
    let rate = dram_bytes.zip(time_ns);
    let rate = rate.and_then(|(bytes, time)| quotient(bytes, time / 1e9));
    let accesses = get("inst_load_store").zip(get("shared_accesses"));
    KernelMemory {
        l1_hit_rate: ratio("l1_sector_hits", "l1_sectors"),
        l2_hit_rate: ratio("l2_sector_hits", "l2_sectors"),
        sectors_per_access: accesses
            .and_then(|(all, shared)| quotient(get("l1_sectors")?, all - shared)),
        l2_bytes: get("l2_sectors_of_sms").map(|sectors| sectors * SECTOR),
        dram_bytes,
        dram_bytes_per_second: rate,
        dram_of_peak: rate.zip(limits).and_then(|(rate, limits)| {
            quotient(rate, limits.dram_peak_bytes * limits.cycles_per_second)
        }),
    }
}

fn roofline(
    get: &dyn Fn(&str) -> Option<f64>,
    time_ns: Option<f64>,
    limits: &GpuLimits,
) -> Option<Roofline> {
    let instructions = get("inst_executed")?;
    let inst_per_second = quotient(instructions, time_ns? / 1e9)?;
    let dram = get("dram_bytes_read")? + get("dram_bytes_written")?;
    let l2 = get("l2_sectors_of_sms")? * SECTOR;
    let inst_per_dram_byte = quotient(instructions, dram);
    let inst_per_l2_byte = quotient(instructions, l2);
    let mut roof = ("issue slots", limits.issue);
    for (name, intensity, bytes) in [
        ("DRAM bandwidth", inst_per_dram_byte, limits.dram_bytes),
        ("L2 bandwidth", inst_per_l2_byte, limits.l2_bytes),
    ] {
        if let Some(intensity) = intensity
            && intensity * bytes < roof.1
        {
            roof = (name, intensity * bytes);
        }
    }
    let roof_per_second = roof.1 * limits.cycles_per_second;
    Some(Roofline {
        inst_per_second,
        inst_per_dram_byte,
        inst_per_l2_byte,
        roof: roof_per_second,
        roof_of: roof.0,
        of_roof: quotient(inst_per_second, roof_per_second)?,
    })
}
