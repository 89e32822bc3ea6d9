//! What warps wait for, on hardware and in simulation, side by side.
//!
//! A table without a target: it says where to look when cycles are off. The unit is Nsight
//! Compute's `smsp__average_warps_issue_stalled_REASON_per_issue_active.ratio`: warps in that state
//! at each issue.

use crate::compare::Report;
use crate::figures::Repeated;
use crate::hardware::Launch;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A kernel's warps in one state at each issue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stall {
    /// On hardware; absent where it was not measured.
    pub hardware: Option<f64>,
    /// In simulation; absent where the model has no such state.
    pub simulated: Option<f64>,
}

/// The states of a kernel's warps, by Nsight's name.
pub type Stalls = BTreeMap<String, Stall>;

/// Of one kernel, over its launches, each weighted by its issues.
pub fn stalls(launches: &[(&Launch, &BTreeMap<String, f64>)]) -> Stalls {
    let mut sums: BTreeMap<String, (f64, f64, f64, f64)> = BTreeMap::new();
    for (hardware, simulated) in launches {
        let issues = hardware.counters.get("inst_issued");
        let weight = issues.map_or(1.0, Repeated::median);
        for (column, values) in &hardware.counters {
            if let Some(reason) = column.strip_prefix("stall_") {
                let sum = sums.entry(reason.into()).or_default();
                sum.0 += values.median() * weight;
                sum.1 += weight;
            }
        }
        let Some(issues) = simulated.get("inst_issued").filter(|issues| **issues > 0.0) else {
            continue;
        };
        for (column, cycles) in *simulated {
            if let Some(reason) = column.strip_prefix("stalled_") {
                let sum = sums.entry(reason.into()).or_default();
                sum.2 += cycles;
                sum.3 += issues;
            }
        }
    }
    let ratio = |sum: f64, weight: f64| (weight > 0.0).then(|| sum / weight);
    let stall = |(a, b, c, d)| Stall {
        hardware: ratio(a, b),
        simulated: ratio(c, d),
    };
    sums.into_iter()
        .map(|(reason, sums)| (reason, stall(sums)))
        .collect()
}

/// The whole table as CSV: a row a kernel and reason.
pub fn csv(report: &Report) -> String {
    let mut text = String::from("program,size,kernel,reason,hardware,simulated\n");
    let cell = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.4}"));
    for program in &report.programs {
        for kernel in &program.kernels {
            for (reason, stall) in &kernel.stalls {
                let _ = writeln!(
                    text,
                    "{},{},\"{}\",{reason},{},{}",
                    program.case.program,
                    program.case.size,
                    kernel.name.replace('"', "'"),
                    cell(stall.hardware),
                    cell(stall.simulated)
                );
            }
        }
    }
    text
}

/// For a terminal: the mean over kernels of every reason, then for each kernel those reasons that
/// differ most.
pub fn text(report: &Report) -> String {
    /// Reasons named for a kernel.
    const NAMED: usize = 3;
    let mut page = String::from("── warps in each state at an issue, mean over kernels ──\n");
    let _ = writeln!(
        page,
        "{:<22} {:>9} {:>9}",
        "reason", "hardware", "simulated"
    );
    let mut sums: BTreeMap<&str, [f64; 4]> = BTreeMap::new();
    let kernels = || report.programs.iter().flat_map(|program| &program.kernels);
    for (reason, stall) in kernels().flat_map(|kernel| &kernel.stalls) {
        let sum = sums.entry(reason).or_default();
        for (at, value) in [stall.hardware, stall.simulated].into_iter().enumerate() {
            if let Some(value) = value {
                sum[2 * at] += value;
                sum[2 * at + 1] += 1.0;
            }
        }
    }
    for (reason, [hardware, measured, simulated, known]) in sums {
        let mean = |sum: f64, count: f64| match count {
            0.0 => "-".into(),
            count => format!("{:.2}", sum / count),
        };
        let (hardware, simulated) = (mean(hardware, measured), mean(simulated, known));
        let _ = writeln!(page, "{reason:<22} {hardware:>9} {simulated:>9}");
    }
    let _ = writeln!(page, "\n── where they differ most, hardware → simulated ──");
    for program in &report.programs {
        for kernel in &program.kernels {
            let mut differences: Vec<(&str, f64, f64)> = kernel
                .stalls
                .iter()
                .filter_map(|(reason, stall)| {
                    Some((reason.as_str(), stall.hardware?, stall.simulated?))
                })
                .collect();
            if differences.is_empty() {
                continue;
            }
            differences.sort_by(|a, b| (b.1 - b.2).abs().total_cmp(&(a.1 - a.2).abs()));
            let words: Vec<String> = differences
                .iter()
                .take(NAMED)
                .map(|(reason, hardware, simulated)| {
                    format!("{reason} {hardware:.1} → {simulated:.1}")
                })
                .collect();
            let _ = writeln!(
                page,
                "{:<34} {:<26} {}",
                format!("{}/{}", program.case.program, program.case.size),
                kernel.name,
                words.join(", ")
            );
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Measurements;

    #[test]
    fn launches_count_by_their_issues_and_unknown_states_stay_unknown() {
        let table = "program,size,launch,kernel,grid,block,registers,shared,inst_issued,stall_wait,stall_drain\n\
            a,default,0,k,\"(1, 1, 1)\",\"(32, 1, 1)\",16,0,100,2.0,1.0\n\
            a,default,1,k,\"(1, 1, 1)\",\"(32, 1, 1)\",16,0,300,4.0,1.0\n";
        let measured = Measurements::parse(table).unwrap();
        let hardware: Vec<&Launch> = measured
            .launches
            .values()
            .next()
            .unwrap()
            .values()
            .collect();
        let own = |issued: f64, wait: f64| {
            BTreeMap::from([
                ("inst_issued".into(), issued),
                ("stalled_wait".into(), wait),
            ])
        };
        let simulated = [own(100.0, 100.0), own(300.0, 700.0)];
        let pairs: Vec<_> = hardware.into_iter().zip(&simulated).collect();
        let found = stalls(&pairs);
        let wait = found["wait"];
        assert_eq!((wait.hardware, wait.simulated), (Some(3.5), Some(2.0)));
        let drain = found["drain"];
        assert_eq!((drain.hardware, drain.simulated), (Some(1.0), None));
    }
}
