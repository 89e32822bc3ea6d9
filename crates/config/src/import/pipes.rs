//! How long instructions take and how often they issue.
//!
//! `ptx_opcode_latency_int 4,13,4,5,145,21` and its like are lists over kinds of operations, the first
//! of which is an addition; trace files have one pair of latency and interval for each unit. Where
//! both are given, latencies come from the lists, which count from issue to issue as ours do, and
//! intervals from the pairs, which are read last.

use super::steps::{Steps, decimal};
use crate::ConfigError;

/// A list, which of its values, and what it is here.
struct Latency {
    list: &'static str,
    index: usize,
    key: &'static str,
}

const fn latency(list: &'static str, index: usize, key: &'static str) -> Latency {
    Latency { list, index, key }
}

/// Latencies by list. Additions, maxima, products, multiply-adds, divisions, shuffles.
const LATENCIES: &[Latency] = &[
    latency("ptx_opcode_latency_int", 0, "sm.latency.integer"),
    latency("ptx_opcode_latency_int", 3, "sm.latency.wide-multiply"),
    latency("ptx_opcode_latency_int", 5, "sm.latency.shuffle"),
    latency("ptx_opcode_latency_fp", 0, "sm.latency.float"),
    latency("ptx_opcode_latency_dp", 0, "sm.latency.double"),
    latency("ptx_opcode_latency_sfu", 0, "sm.latency.transcendental"),
    latency("ptx_opcode_latency_tesnor", 0, "sm.latency.matrix-long"),
    latency("ptx_opcode_latency_tensor", 0, "sm.latency.matrix-long"),
];

/// A unit: its list of intervals, its pair in trace files, how many there are, and what it is here.
struct Unit {
    list: &'static str,
    pair: &'static str,
    count: &'static str,
    interval: &'static str,
    latency: &'static str,
}

const UNITS: &[Unit] = &[
    Unit {
        list: "ptx_opcode_initiation_int",
        pair: "trace_opcode_latency_initiation_int",
        count: "gpgpu_num_int_units",
        interval: "sm.interval.alu",
        latency: "sm.latency.integer",
    },
    Unit {
        list: "ptx_opcode_initiation_fp",
        pair: "trace_opcode_latency_initiation_sp",
        count: "gpgpu_num_sp_units",
        interval: "sm.interval.fma",
        latency: "sm.latency.float",
    },
    Unit {
        list: "ptx_opcode_initiation_dp",
        pair: "trace_opcode_latency_initiation_dp",
        count: "gpgpu_num_dp_units",
        interval: "sm.interval.double",
        latency: "sm.latency.double",
    },
    Unit {
        list: "ptx_opcode_initiation_sfu",
        pair: "trace_opcode_latency_initiation_sfu",
        count: "gpgpu_num_sfu_units",
        interval: "sm.interval.transcendental",
        latency: "sm.latency.transcendental",
    },
    Unit {
        list: "ptx_opcode_initiation_tensor",
        pair: "trace_opcode_latency_initiation_tensor",
        count: "gpgpu_num_tensor_core_units",
        interval: "sm.interval.tensor",
        latency: "sm.latency.matrix-long",
    },
];

/// Specialized units by name, and what they are here.
const SPECIAL: &[(&str, &str, &str)] = &[
    ("BRA", "sm.latency.branch", "sm.interval.branch"),
    ("TEX", "sm.latency.texture", "sm.interval.texture"),
    ("TENSOR", "sm.latency.matrix-long", "sm.interval.tensor"),
    ("UDP", "sm.latency.uniform", "sm.interval.uniform"),
];

/// How many specialized units a file can name.
const SPECIAL_UNITS: u32 = 8;

/// Takes latencies and intervals.
pub(super) fn take(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    for row in LATENCIES {
        let Some(values) = steps.list(row.list, ',')? else {
            continue;
        };
        if let Some(value) = values.get(row.index) {
            let how = format!("number {} of the list", row.index + 1);
            let value = format!("{} cycles", *value as u64);
            steps.take(&[row.list], &how, &[(row.key, value)]);
        }
    }
    for unit in UNITS {
        take_unit(steps, unit)?;
    }
    for number in 1..=SPECIAL_UNITS {
        take_special(steps, number)?;
    }
    Ok(())
}

/// A unit of a sub-core has a share of the units of the SM.
fn take_unit(steps: &mut Steps<'_>, unit: &Unit) -> Result<(), ConfigError> {
    let pair = steps.list(unit.pair, ',')?;
    let list = steps.list(unit.list, ',')?;
    let interval = match (&pair, &list) {
        (Some(pair), _) => pair.get(1).copied(),
        (None, Some(list)) => list.first().copied(),
        (None, None) => None,
    };
    let sub_cores = steps.number(&["gpgpu_num_sched_per_core"])?;
    let sub_cores = sub_cores
        .unwrap_or(u64::from(steps.below.sm.sub_cores))
        .max(1);
    let units = steps
        .number(&[unit.count])?
        .filter(|units| *units > 0)
        .unwrap_or(sub_cores);
    if let Some(interval) = interval {
        let cycles = (interval * sub_cores as f64 / units as f64).ceil().max(1.0) as u64;
        let from = if pair.is_some() { unit.pair } else { unit.list };
        let names = [from, unit.count];
        let settings = [(unit.interval, format!("{cycles} cycles"))];
        steps.take(&names, "for a sub-core's share of the units", &settings);
        if pair.is_some() && list.is_some() {
            steps.leave(
                unit.list,
                format!("nothing: -{} is read after it", unit.pair),
            );
        }
    }
    let has_latency = LATENCIES
        .iter()
        .any(|row| row.key == unit.latency && steps.given(&[row.list]).is_some());
    if let (Some(pair), false) = (&pair, has_latency)
        && let Some(latency) = pair.first()
    {
        let settings = [(unit.latency, format!("{} cycles", *latency as u64))];
        steps.take(&[unit.pair], "the first of the pair", &settings);
    }
    Ok(())
}

/// `-specialized_unit_1 1,4,4,4,4,BRA` with its pair of latency and interval.
fn take_special(steps: &mut Steps<'_>, number: u32) -> Result<(), ConfigError> {
    let name = format!("specialized_unit_{number}");
    let pair = format!("trace_opcode_latency_initiation_spec_op_{number}");
    let Some((_, given)) = steps.given(&[&name]) else {
        return Ok(());
    };
    let words: Vec<&str> = given.value.split(',').collect();
    let enabled = words.first().and_then(|word| decimal(word)).unwrap_or(0.0) != 0.0;
    let kind = words.last().copied().unwrap_or_default();
    let known = SPECIAL.iter().find(|(known, _, _)| *known == kind);
    let values = steps.list(&pair, ',')?;
    let (true, Some((_, latency, interval)), Some(&[first, second])) =
        (enabled, known, values.as_deref())
    else {
        let because = match enabled {
            true => {
                "instructions of this unit would have a latency and an interval of their own; no unit here has its name"
            }
            false => "nothing: it is not enabled",
        };
        for option in [&name, &pair] {
            if steps.given(&[option]).is_some() {
                steps.leave(option, because);
            }
        }
        return Ok(());
    };
    let settings = [
        (*latency, format!("{} cycles", first as u64)),
        (*interval, format!("{} cycles", (second as u64).max(1))),
    ];
    steps.take(
        &[&name, &pair],
        "latency and interval of the pair",
        &settings,
    );
    Ok(())
}
