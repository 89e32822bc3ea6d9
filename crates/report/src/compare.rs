//! Runs side by side, by kernel and counter: two simulations, or a real GPU and a simulated one.
//!
//! Kernels are paired by name as profilers and the simulator both know it (`short_name`), counters by
//! the table that simulated and real GPUs share. The first run is the reference. Kernels that kernels
//! launched are left out, since no profiler has rows of them.

use lockstep_correlation::simulated::short_name;
use lockstep_counters::COUNTERS;
use lockstep_run_folder::Launch;
use lockstep_run_folder::{Run, RunInfo};
use lockstep_text::numbers::quotient;
use serde::Serialize;
use std::collections::BTreeMap;

/// Kernels that a note names.
const MAXIMUM_NAMES: usize = 8;

/// Runs side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The runs; the first is the reference.
    pub runs: Vec<RunInfo>,
    /// What a reader should know, in sentences.
    pub notes: Vec<String>,
    /// Kernels that two runs have at least, the longest of the first run first.
    pub kernels: Vec<ComparedKernel>,
}

/// One kernel in all runs.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedKernel {
    /// Its name without namespaces and parameters.
    pub name: String,
    /// Launches in each run.
    pub launches: Vec<u64>,
    /// What several runs know of it.
    pub counters: Vec<ComparedCounter>,
}

/// One counter of a kernel in all runs.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedCounter {
    /// The counter, or `duration_ns`.
    pub counter: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// A launch, on average, in each run; `null` where it is not known.
    pub values: Vec<Option<f64>>,
    /// Of the first run's value.
    pub ratios: Vec<Option<f64>>,
}

/// Sets runs side by side.
pub fn compare(runs: &[Run]) -> Comparison {
    let groups: Vec<BTreeMap<String, Vec<&Launch>>> = runs.iter().map(by_kernel).collect();
    let mut names: Vec<&String> = groups.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let (mut notes, mut alone) = (Vec::new(), vec![Vec::new(); runs.len()]);
    let mut kernels: Vec<(f64, ComparedKernel)> = Vec::new();
    for name in names {
        let launches: Vec<&[&Launch]> = groups
            .iter()
            .map(|group| group.get(name).map(Vec::as_slice).unwrap_or_default())
            .collect();
        if launches
            .iter()
            .filter(|launches| !launches.is_empty())
            .count()
            < 2
        {
            if let Some(run) = launches.iter().position(|launches| !launches.is_empty()) {
                alone[run].push(name);
            }
            continue;
        }
        let kernel = ComparedKernel {
            name: name.clone(),
            launches: launches
                .iter()
                .map(|launches| launches.len() as u64)
                .collect(),
            counters: counters(&launches),
        };
        if kernel.launches.windows(2).any(|pair| pair[0] != pair[1]) {
            let counts: Vec<String> = kernel.launches.iter().map(u64::to_string).collect();
            notes.push(format!(
                "{name} was launched {} times; figures are those of a launch on average",
                counts.join(" and ")
            ));
        }
        let time = launches[0]
            .iter()
            .filter_map(|launch| launch.duration_ns)
            .sum();
        kernels.push((time, kernel));
    }
    kernels.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    for (run, names) in runs.iter().zip(alone) {
        if !names.is_empty() {
            notes.push(only(&run.info.name, &names));
        }
        notes.extend(
            run.notes
                .iter()
                .map(|note| format!("{}: {note}", run.info.name)),
        );
    }
    Comparison {
        runs: runs.iter().map(|run| run.info.clone()).collect(),
        notes,
        kernels: kernels.into_iter().map(|(_, kernel)| kernel).collect(),
    }
}

/// Which kernels one run has for itself.
fn only(run: &str, names: &[&String]) -> String {
    let shown: Vec<&str> = names
        .iter()
        .take(MAXIMUM_NAMES)
        .map(|name| name.as_str())
        .collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("only {run} has {}{more}", shown.join(", "))
}

fn by_kernel(run: &Run) -> BTreeMap<String, Vec<&Launch>> {
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut groups: BTreeMap<String, Vec<&Launch>> = BTreeMap::new();
    for launch in run.launches.iter().filter(|launch| launch.parent.is_none()) {
        let name = names.entry(&launch.kernel).or_insert_with(|| {
            let short = short_name(&launch.kernel);
            let plain = short.replace(char::is_control, " ");
            plain.chars().take(200).collect()
        });
        groups.entry(name.clone()).or_default().push(launch);
    }
    groups
}

/// What two runs at least know.
fn counters(launches: &[&[&Launch]]) -> Vec<ComparedCounter> {
    let mut all = Vec::new();
    let duration = |launch: &Launch| launch.duration_ns;
    all.extend(compared("duration_ns", "nanoseconds", launches, &duration));
    for (place, metric) in COUNTERS.iter().enumerate() {
        let value = |launch: &Launch| launch.counters()[place].map(|value| value as f64);
        all.extend(compared(metric.name, metric.unit, launches, &value));
    }
    all
}

fn compared(
    counter: &'static str,
    unit: &'static str,
    launches: &[&[&Launch]],
    value: &dyn Fn(&Launch) -> Option<f64>,
) -> Option<ComparedCounter> {
    let mean = |launches: &&[&Launch]| {
        let sum = launches
            .iter()
            .map(|launch| value(launch))
            .sum::<Option<f64>>()?;
        quotient(sum, launches.len() as f64)
    };
    let values: Vec<Option<f64>> = launches.iter().map(mean).collect();
    if values.iter().flatten().count() < 2 || values.iter().flatten().all(|value| *value == 0.0) {
        return None;
    }
    let first = values[0];
    let ratios = values
        .iter()
        .map(|value| quotient((*value)?, first?))
        .collect();
    Some(ComparedCounter {
        counter,
        unit,
        values,
        ratios,
    })
}
