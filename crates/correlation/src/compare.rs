//! Joins measurements and simulated runs: launches into kernels, kernels into programs, programs
//! into sets.

use crate::counters::{EXACT, as_profiled, compared};
use crate::figures::{self, Repeated, SMALL_KERNEL_CYCLES, Summary};
use crate::hardware::{Case, Hardware, Launch};
use crate::sets::{Set, Sets};
use crate::simulated::{Failure, ProgramRun, plain_name, short_name};
use crate::stalls::{self, Stalls};
use crate::state::State;
use lockstep_counters::{Comparison, Metric};
use std::collections::BTreeMap;

/// A counter of a kernel, summed over its launches (a share: averaged).
#[derive(Clone, Debug)]
pub struct Pair {
    /// What the simulator counted.
    pub simulated: f64,
    /// What hardware counted.
    pub hardware: Repeated,
    /// The error by the counter's rule.
    pub error: f64,
}

/// One kernel name of one program.
#[derive(Clone, Debug)]
pub struct KernelComparison {
    /// Its unqualified name, with template arguments.
    pub name: String,
    /// How often it was launched.
    pub launches: usize,
    /// Counters that both sides know, by name.
    pub counters: BTreeMap<&'static str, Pair>,
    /// Hardware cycles a launch beyond the launch floor.
    pub net_cycles: f64,
    /// Bytes that a cold launch brings in, summed over launches.
    pub footprint: f64,
    /// What hardware's warps wait for most, and how many of them do at each issue.
    pub stall: Option<(String, f64)>,
    /// What warps of both sides wait for.
    pub stalls: Stalls,
}

impl KernelComparison {
    /// The comparison of cycles.
    pub fn cycles(&self) -> Option<&Pair> {
        self.counters.get("cycles")
    }

    /// Whether it belongs to the stratum of small kernels.
    pub fn is_small(&self) -> bool {
        self.net_cycles < SMALL_KERNEL_CYCLES
    }

    /// Whether a small kernel is within the bounds of its stratum.
    pub fn is_right(&self) -> bool {
        self.cycles().is_some_and(|pair| {
            figures::small_kernel_is_right(pair.simulated, &pair.hardware, self.launches)
        })
    }
}

/// Counts of the launches that must agree exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ExactCounts {
    /// Launches whose hardware counts repeat.
    pub repeating: usize,
    /// Of these, equal in every counter.
    pub equal: usize,
    /// All launches.
    pub launches: usize,
    /// The first that differs, in words.
    pub first_difference: Option<String>,
}

/// One program at one size.
#[derive(Clone, Debug)]
pub struct ProgramComparison {
    /// Which.
    pub case: Case,
    /// Its set.
    pub set: Set,
    /// Why it cannot be compared.
    pub failure: Option<Failure>,
    /// Its kernels by name.
    pub kernels: Vec<KernelComparison>,
    /// Instruction counts.
    pub exact: ExactCounts,
    /// Seconds that its simulation took.
    pub seconds: f64,
}

impl ProgramComparison {
    /// Σ |sim − hw| / Σ hw over its kernels that `takes` accepts.
    pub fn error(&self, takes: impl Fn(&KernelComparison) -> bool) -> Option<f64> {
        figures::program_error(
            self.cycles(takes)
                .map(|pair| (pair.simulated, &pair.hardware)),
        )
    }

    /// Hardware cycles of its kernels that `takes` accepts.
    pub fn hardware_cycles(&self, takes: impl Fn(&KernelComparison) -> bool) -> f64 {
        self.cycles(takes).map(|pair| pair.hardware.median()).sum()
    }

    /// Simulated cycles of its kernels that `takes` accepts.
    pub fn simulated_cycles(&self, takes: impl Fn(&KernelComparison) -> bool) -> f64 {
        self.cycles(takes).map(|pair| pair.simulated).sum()
    }

    fn cycles(&self, takes: impl Fn(&KernelComparison) -> bool) -> impl Iterator<Item = &Pair> {
        let taken = self.kernels.iter().filter(move |kernel| takes(kernel));
        taken.filter_map(KernelComparison::cycles)
    }
}

/// All comparisons of one GPU.
#[derive(Clone, Debug)]
pub struct Report {
    /// The GPU.
    pub gpu: String,
    /// In which state launches found the caches.
    pub state: State,
    /// Programs in the order of the sets file, sizes apart.
    pub programs: Vec<ProgramComparison>,
}

/// Figures over the programs of some sets.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Headline {
    /// Errors of programs.
    pub errors: Summary,
    /// Mean over programs of Σ sim / Σ hw − 1: below zero where the model is too fast.
    pub signed: f64,
    /// exp(mean |ln(sim/hw)|) − 1 over kernels.
    pub log_error: f64,
    /// R² in log space over kernels; absent when hardware's values do not spread.
    pub log_r_squared: Option<f64>,
}

impl Report {
    /// Programs that count for cycles, of these sets.
    pub fn timed<'report>(
        &'report self,
        sets: &'report [Set],
    ) -> impl Iterator<Item = &'report ProgramComparison> {
        self.programs
            .iter()
            .filter(|program| program.set != Set::Untimed && sets.contains(&program.set))
    }

    /// Programs that cannot be compared, with why.
    pub fn failures(&self) -> Vec<(&Case, &Failure)> {
        self.programs
            .iter()
            .filter_map(|program| Some((&program.case, program.failure.as_ref()?)))
            .collect()
    }

    /// The figures of these sets over the kernels that `takes` accepts; nothing while a program of
    /// any set that was run is listed as failed.
    pub fn headline(
        &self,
        sets: &[Set],
        takes: impl Fn(&KernelComparison) -> bool,
    ) -> Option<Headline> {
        if !self.failures().is_empty() {
            return None;
        }
        let (mut errors, mut signed, mut times) = (vec![], vec![], vec![]);
        let (mut logs, mut points) = (vec![], vec![]);
        for program in self.timed(sets) {
            if let Some(error) = program.error(&takes) {
                let hardware = program.hardware_cycles(&takes);
                errors.push(error);
                signed.push(program.simulated_cycles(&takes) / hardware - 1.0);
                times.push(hardware);
            }
            for pair in program
                .kernels
                .iter()
                .filter(|kernel| takes(kernel))
                .filter_map(KernelComparison::cycles)
            {
                logs.push(figures::log_distance(pair.simulated, &pair.hardware));
                points.push((pair.simulated, pair.hardware.median()));
            }
        }
        Some(Headline {
            errors: Summary::of(&errors, &times)?,
            signed: figures::mean(&signed)?,
            log_error: figures::log_error(&logs)?,
            log_r_squared: figures::log_r_squared(&points),
        })
    }

    /// Small kernels that are right, and all small kernels.
    pub fn small_kernels(&self, sets: &[Set]) -> (usize, usize) {
        let small: Vec<_> = self
            .timed(sets)
            .flat_map(|program| &program.kernels)
            .filter(|kernel| kernel.is_small() && kernel.cycles().is_some())
            .collect();
        (
            small.iter().filter(|kernel| kernel.is_right()).count(),
            small.len(),
        )
    }

    /// Errors of one counter: over programs, each the mean of its kernels that `takes` accepts,
    /// weighted by hardware (traffic by its base). Nothing when the simulator does not know the
    /// counter.
    pub fn counter(
        &self,
        sets: &[Set],
        counter: &Metric,
        takes: impl Fn(&KernelComparison) -> bool,
    ) -> Option<Summary> {
        let comparison = counter.comparison?;
        let (mut errors, mut times) = (vec![], vec![]);
        for program in self.timed(sets) {
            let pairs: Vec<(&Pair, f64)> = program
                .kernels
                .iter()
                .filter(|kernel| takes(kernel))
                .filter_map(|kernel| Some((kernel.counters.get(counter.name)?, kernel.footprint)))
                .collect();
            let weight = |pair: &Pair, footprint: f64| match comparison {
                Comparison::Relative => pair.hardware.median(),
                Comparison::Traffic(bytes) => pair
                    .hardware
                    .median()
                    .max(0.05 * footprint / f64::from(bytes)),
                Comparison::Share => 1.0,
            };
            let weights: Vec<f64> = pairs
                .iter()
                .map(|(pair, footprint)| weight(pair, *footprint))
                .collect();
            let own: Vec<f64> = pairs.iter().map(|(pair, _)| pair.error).collect();
            if let Some(error) = figures::time_weighted_mean(&own, &weights) {
                errors.push(error);
                times.push(program.hardware_cycles(&takes));
            }
        }
        Summary::of(&errors, &times)
    }

    /// Counts of all programs together.
    pub fn exact(&self) -> ExactCounts {
        let mut all = ExactCounts::default();
        for program in &self.programs {
            all.repeating += program.exact.repeating;
            all.equal += program.exact.equal;
            all.launches += program.exact.launches;
            if all.first_difference.is_none() {
                all.first_difference = program.exact.first_difference.as_ref().map(|difference| {
                    format!(
                        "{}/{}: {difference}",
                        program.case.program, program.case.size
                    )
                });
            }
        }
        all
    }

    /// The kernels that are farthest off, by relative error; small kernels that are right are not
    /// among them.
    pub fn worst(&self, count: usize) -> Vec<(&Case, &KernelComparison)> {
        let mut kernels: Vec<(&Case, &KernelComparison)> = self
            .timed(&Set::ALL)
            .flat_map(|program| {
                program
                    .kernels
                    .iter()
                    .map(move |kernel| (&program.case, kernel))
            })
            .filter(|(_, kernel)| {
                kernel.cycles().is_some() && !(kernel.is_small() && kernel.is_right())
            })
            .collect();
        let off = |kernel: &KernelComparison| {
            kernel.cycles().map_or(0.0, |pair| {
                figures::log_distance(pair.simulated, &pair.hardware)
            })
        };
        kernels.sort_by(|(_, a), (_, b)| off(b).total_cmp(&off(a)));
        kernels.truncate(count);
        kernels
    }
}

/// Joins everything. `runs` holds the cases that were simulated.
pub fn compare(
    gpu: &str,
    sets: &Sets,
    hardware: &Hardware,
    runs: &BTreeMap<Case, ProgramRun>,
) -> Report {
    let mut programs = Vec::new();
    for family in &sets.families {
        for program in &family.programs {
            for (case, run) in runs.iter().filter(|(case, _)| case.program == *program) {
                programs.push(compare_program(case, family.set, hardware, run));
            }
        }
    }
    Report {
        gpu: gpu.into(),
        state: hardware.state,
        programs,
    }
}

fn compare_program(
    case: &Case,
    set: Set,
    hardware: &Hardware,
    run: &ProgramRun,
) -> ProgramComparison {
    let measured = hardware.launches(case);
    let failure = run
        .failure
        .clone()
        .or_else(|| other_launches(&measured, run));
    let mut comparison = ProgramComparison {
        case: case.clone(),
        set,
        failure,
        kernels: Vec::new(),
        exact: ExactCounts::default(),
        seconds: run.seconds,
    };
    if comparison.failure.is_none() {
        comparison.kernels = kernels(hardware, &measured, run);
        if !run.from_ptx {
            comparison.exact = exact_counts(case, hardware, &measured, run);
        }
    }
    comparison
}

/// Whether both sides launched the same kernels in the same order.
fn other_launches(measured: &BTreeMap<u64, Launch>, run: &ProgramRun) -> Option<Failure> {
    if measured.is_empty() {
        return Some(Failure::OtherLaunches(
            "hardware has no measurement of it".into(),
        ));
    }
    if measured.len() != run.launches.len() {
        return Some(Failure::OtherLaunches(format!(
            "{} on hardware, {} simulated",
            measured.len(),
            run.launches.len()
        )));
    }
    measured
        .values()
        .zip(&run.launches)
        .enumerate()
        .find_map(|(number, (hardware, simulated))| {
            let (a, b) = (plain_name(&hardware.kernel), plain_name(&simulated.kernel));
            (a != b).then(|| {
                Failure::OtherLaunches(format!(
                    "launch {number} is `{a}` on hardware, `{b}` simulated"
                ))
            })
        })
}

fn exact_counts(
    case: &Case,
    hardware: &Hardware,
    measured: &BTreeMap<u64, Launch>,
    run: &ProgramRun,
) -> ExactCounts {
    let mut counts = ExactCounts {
        launches: measured.len(),
        ..ExactCounts::default()
    };
    for ((number, launch), simulated) in measured.iter().zip(&run.launches) {
        if !EXACT
            .iter()
            .all(|counter| hardware.repeats(case, *number, counter))
        {
            continue;
        }
        counts.repeating += 1;
        let difference = EXACT.iter().find_map(|counter| {
            let wanted = launch.counters.get(*counter)?.median();
            let got = simulated.counters.get(*counter).copied();
            (got != Some(wanted)).then(|| {
                let got = got.map_or("unknown".into(), |value| value.to_string());
                format!(
                    "launch {number} {} {counter}: hardware {wanted}, simulated {got}",
                    plain_name(&launch.kernel)
                )
            })
        });
        match difference {
            None => counts.equal += 1,
            Some(words) => counts.first_difference = counts.first_difference.or(Some(words)),
        }
    }
    counts
}

/// One launch as hardware and as the simulator saw it.
type Both<'launch> = (&'launch Launch, &'launch BTreeMap<String, f64>);

fn kernels(
    hardware: &Hardware,
    measured: &BTreeMap<u64, Launch>,
    run: &ProgramRun,
) -> Vec<KernelComparison> {
    let mut names: Vec<String> = Vec::new();
    let mut members: BTreeMap<String, Vec<Both>> = BTreeMap::new();
    for (launch, simulated) in measured.values().zip(&run.launches) {
        let name = short_name(&launch.kernel);
        if !members.contains_key(&name) {
            names.push(name.clone());
        }
        members
            .entry(name)
            .or_default()
            .push((launch, &simulated.counters));
    }
    names
        .into_iter()
        .map(|name| {
            let launches = &members[&name];
            let footprint = launches.iter().map(|(launch, _)| footprint(launch)).sum();
            let net: f64 = launches
                .iter()
                .filter_map(|(launch, _)| {
                    Some(launch.counters.get("cycles")?.median() - hardware.floor(launch))
                })
                .sum();
            KernelComparison {
                counters: compared()
                    .filter_map(|counter| Some((counter.name, pair(counter, launches, footprint)?)))
                    .collect(),
                launches: launches.len(),
                net_cycles: net / launches.len() as f64,
                footprint,
                stalls: stalls::stalls(launches),
                stall: most_waited_for(launches.iter().map(|(launch, _)| *launch)),
                name,
            }
        })
        .collect()
}

/// One counter of one kernel; nothing unless both sides know it for every launch.
fn pair(counter: &Metric, launches: &[Both], footprint: f64) -> Option<Pair> {
    let mut measured = Vec::new();
    let mut simulated = 0.0;
    let scale = counter.hardware_scale();
    for (launch, own) in launches {
        let values = launch.counters.get(counter.name)?.values();
        measured.push(Repeated::new(
            values.iter().map(|value| value / scale).collect(),
        )?);
        simulated += as_profiled(own, counter.name)?;
    }
    let hardware = Repeated::sum(&measured)?;
    Some(match counter.comparison? {
        Comparison::Relative => Pair {
            error: figures::program_error([(simulated, &hardware)])
                .unwrap_or(if simulated == 0.0 { 0.0 } else { f64::INFINITY }),
            simulated,
            hardware,
        },
        Comparison::Traffic(bytes) => Pair {
            error: figures::traffic_error(simulated, &hardware, footprint / f64::from(bytes)),
            simulated,
            hardware,
        },
        Comparison::Share => {
            let count = launches.len() as f64;
            let hardware = Repeated::new(
                hardware
                    .values()
                    .iter()
                    .map(|value| value / count)
                    .collect(),
            )?;
            Pair {
                error: figures::distance(simulated / count, &hardware),
                simulated: simulated / count,
                hardware,
            }
        }
    })
}

/// Bytes that a launch with emptied caches brings in or writes: what missed the L2, or what DRAM
/// moved where that is more.
fn footprint(launch: &Launch) -> f64 {
    let of = |name: &str| launch.counters.get(name).map_or(0.0, Repeated::median);
    let missed = (of("l2_sectors_of_sms") - of("l2_sector_hits_of_sms")).max(0.0) * 32.0;
    missed.max(of("dram_bytes_read") + of("dram_bytes_written"))
}

/// The reason that most warps wait for, summed over launches.
fn most_waited_for<'launch>(
    launches: impl Iterator<Item = &'launch Launch>,
) -> Option<(String, f64)> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    let mut count = 0.0;
    for launch in launches {
        count += 1.0;
        for (name, values) in &launch.counters {
            if let Some(reason) = name.strip_prefix("stall_") {
                *sums.entry(reason).or_default() += values.median();
            }
        }
    }
    sums.into_iter()
        .filter(|(reason, _)| *reason != "selected")
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(reason, sum)| (reason.to_owned(), sum / count))
}

#[cfg(test)]
mod tests;
