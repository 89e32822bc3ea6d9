//! The report as text, for a terminal.

use crate::cause;
use crate::compare::{Headline, Report};
use crate::counters::compared;
use crate::figures::{SMALL_KERNEL_CYCLES, Summary};
use crate::sets::Set;
use crate::state::State;
use crate::traffic::{self, Scope};
use lockstep_counters::Comparison;
use std::fmt::Write;

/// How many of the worst kernels are named.
pub const WORST: usize = 10;

/// All figures of the protocol.
pub fn text(report: &Report) -> String {
    let mut page = String::new();
    programs(&mut page, report);
    kernels(&mut page, report);
    figures(&mut page, report);
    counters(&mut page, report);
    traffic(&mut page, report);
    counts(&mut page, report);
    worst(&mut page, report);
    verdict(&mut page, report);
    page
}

/// A share as the reader sees it.
pub fn percent(value: f64) -> String {
    if value.is_finite() {
        format!("{:.1} %", value * 100.0)
    } else {
        "unbounded".into()
    }
}

/// A share with its sign.
pub fn signed(value: f64) -> String {
    format!("{:+.1} %", value * 100.0)
}

/// A count with separators.
pub fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

/// The sets that the report has programs of, without the untimed one.
pub fn timed_sets(report: &Report) -> Vec<Set> {
    Set::ALL
        .into_iter()
        .filter(|set| {
            *set != Set::Untimed && report.programs.iter().any(|program| program.set == *set)
        })
        .collect()
}

fn programs(page: &mut String, report: &Report) {
    let _ = writeln!(
        page,
        "── programs ──\n{:<34} {:<12} {:>16} {:>16} {:>9}",
        "program", "set", "hardware", "simulated", "error"
    );
    for program in &report.programs {
        let name = format!("{}/{}", program.case.program, program.case.size);
        if let Some(failure) = &program.failure {
            let _ = writeln!(page, "{name:<34} {:<12} {failure}", program.set.name());
            continue;
        }
        let sums = program.kernels.iter().filter_map(|kernel| kernel.cycles());
        let (hardware, simulated) = sums.fold((0.0, 0.0), |(h, s), pair| {
            (h + pair.hardware.median(), s + pair.simulated)
        });
        let error = match program.set {
            Set::Untimed => "untimed".into(),
            _ => program.error(|_| true).map_or("unknown".into(), percent),
        };
        let _ = writeln!(
            page,
            "{name:<34} {:<12} {:>16} {:>16} {error:>9}",
            program.set.name(),
            count(hardware),
            count(simulated)
        );
    }
}

fn kernels(page: &mut String, report: &Report) {
    let _ = writeln!(
        page,
        "\n── kernels ──\n{:<34} {:<26} {:>8} {:>14} {:>14} {:>9} stratum",
        "program", "kernel", "launches", "hardware", "simulated", "error"
    );
    for program in report.timed(&Set::ALL) {
        for kernel in &program.kernels {
            let Some(pair) = kernel.cycles() else {
                continue;
            };
            let stratum = match (kernel.is_small(), kernel.is_right()) {
                (false, _) => "large",
                (true, true) => "small, right",
                (true, false) => "small, off",
            };
            let _ = writeln!(
                page,
                "{:<34} {:<26} {:>8} {:>14} {:>14} {:>9} {stratum}",
                format!("{}/{}", program.case.program, program.case.size),
                kernel.name,
                kernel.launches,
                count(pair.hardware.median()),
                count(pair.simulated),
                percent(pair.error)
            );
        }
    }
}

/// One line of figures.
fn line(summary: &Summary) -> String {
    format!(
        "mean {}, median {}, 90th percentile {}, maximum {}, weighted by time {} ({} programs)",
        percent(summary.mean),
        percent(summary.median),
        percent(summary.ninetieth),
        percent(summary.maximum),
        percent(summary.time_weighted),
        summary.count
    )
}

/// What goes beside a mean of errors.
pub fn headline_text(headline: &Headline) -> String {
    format!(
        "{}; with signs {}; exp(mean |ln|) − 1 {}, R² of logarithms {}",
        line(&headline.errors),
        signed(headline.signed),
        percent(headline.log_error),
        headline
            .log_r_squared
            .map_or("undefined".into(), |value| format!("{value:.4}"))
    )
}

fn figures(page: &mut String, report: &Report) {
    let state = match report.state {
        State::Cold => "caches emptied before every launch",
        State::AsRun => "caches as the program left them",
    };
    let _ = writeln!(page, "\n── error of cycles, {state} ──");
    let sets = timed_sets(report);
    let mut groups: Vec<(String, Vec<Set>)> = sets
        .iter()
        .map(|set| (set.name().to_owned(), vec![*set]))
        .collect();
    if sets.len() > 1 {
        groups.push(("together".into(), sets));
    }
    for (name, sets) in groups {
        match report.headline(&sets, |_| true) {
            Some(headline) => {
                let _ = writeln!(page, "{name}: {}", headline_text(&headline));
            }
            None => {
                let _ = writeln!(page, "{name}: no figure");
                continue;
            }
        }
        if let Some(large) = report.headline(&sets, |kernel| !kernel.is_small()) {
            let _ = writeln!(
                page,
                "    kernels of 20,000 net cycles and more: {}",
                headline_text(&large)
            );
        }
        let (right, all) = report.small_kernels(&sets);
        let _ = writeln!(
            page,
            "    kernels below that: {right} of {all} within 10 % or 400 cycles"
        );
    }
}

/// What stands where the mean over the programs that are left would be a headline by another name.
pub const VOID: &str = "no figure while a program cannot be compared";

/// Whether a counter has no figure because programs failed.
pub fn is_void(report: &Report, counter: &str) -> bool {
    counter == "cycles" && !report.failures().is_empty()
}

fn counters(page: &mut String, report: &Report) {
    let _ = writeln!(
        page,
        "\n── counters, error over programs (traffic relative to at least 5 % of the footprint) ──"
    );
    let sets = timed_sets(report);
    for counter in compared() {
        let text = match report.counter(&sets, counter, |_| true) {
            _ if is_void(report, counter.name) => VOID.into(),
            Some(summary) => line(&summary),
            None => "not known on both sides".into(),
        };
        let _ = writeln!(page, "{:<22} {text}", counter.name);
    }
    let _ = writeln!(
        page,
        "over kernels of {} net cycles and more alone:",
        count(SMALL_KERNEL_CYCLES)
    );
    for counter in compared() {
        if matches!(counter.comparison, Some(Comparison::Traffic(_)))
            && let Some(summary) = report.counter(&sets, counter, |kernel| !kernel.is_small())
        {
            let _ = writeln!(page, "    {:<22} {}", counter.name, line(&summary));
        }
    }
}

fn traffic(page: &mut String, report: &Report) {
    let _ = writeln!(
        page,
        "\n── traffic: Σ |sim − hw| over kernel names / Σ max(hw, 5 % of the footprint), at most {} ──",
        percent(traffic::BOUND)
    );
    let sets = timed_sets(report);
    let mut sizes: Vec<&str> = report
        .timed(&sets)
        .map(|program| program.case.size.as_str())
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    for (size, scope) in sizes
        .iter()
        .flat_map(|size| Scope::ALL.map(|scope| (*size, scope)))
    {
        let _ = writeln!(page, "{size}, {}", scope.words());
        for kind in traffic::KINDS {
            let mut groups: Vec<(&str, &[Set])> = Vec::new();
            for set in &sets {
                groups.push((set.name(), std::slice::from_ref(set)));
            }
            if sets.len() > 1 {
                groups.push(("together", &sets));
            }
            for (name, sets) in groups {
                let found = traffic::summary(report, sets, size, kind, scope);
                let words = found.map_or("no program".into(), |summary| {
                    let holds = summary.mean <= traffic::BOUND;
                    let verdict = if holds { "holds" } else { "does not hold" };
                    format!("{verdict}: {}", line(&summary))
                });
                let _ = writeln!(page, "    {:<5} {name:<12} {words}", kind.name);
            }
        }
    }
}

fn counts(page: &mut String, report: &Report) {
    let exact = report.exact();
    let _ = writeln!(
        page,
        "\n── instruction counts ──\n{} of {} launches whose hardware counts repeat are equal ({} launches in all)",
        exact.equal, exact.repeating, exact.launches
    );
    for program in &report.programs {
        if let Some(difference) = &program.exact.first_difference {
            let _ = writeln!(
                page,
                "differs: {}/{} {difference}",
                program.case.program, program.case.size
            );
        }
    }
}

fn worst(page: &mut String, report: &Report) {
    let _ = writeln!(page, "\n── worst kernels ──");
    for (case, kernel) in report.worst(WORST) {
        let Some(pair) = kernel.cycles() else {
            continue;
        };
        let _ = writeln!(
            page,
            "{:>9}  {}/{} {}: {} cycles on hardware, {} simulated; {}",
            percent(pair.error),
            case.program,
            case.size,
            kernel.name,
            count(pair.hardware.median()),
            count(pair.simulated),
            cause::likely(kernel)
        );
    }
}

fn verdict(page: &mut String, report: &Report) {
    let failures = report.failures();
    if failures.is_empty() {
        let sets = timed_sets(report);
        if let Some(headline) = report.headline(&sets, |_| true) {
            let _ = writeln!(
                page,
                "\nheadline: {} mean error of {} programs",
                percent(headline.errors.mean),
                headline.errors.count
            );
        }
        return;
    }
    let _ = writeln!(
        page,
        "\nno headline: {} of {} programs cannot be compared",
        failures.len(),
        report.programs.len()
    );
    for (case, failure) in failures {
        let _ = writeln!(page, "  {}/{} {failure}", case.program, case.size);
    }
}
