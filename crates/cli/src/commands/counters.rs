//! `lockstep counters`: what is counted, where, and what others call it.

use clap::Args;
use lockstep_counters::{COUNTERS, DEVICE_GAUGES, HOST_GAUGES, LAUNCH_GAUGES, Metric};
use lockstep_simulation::components;
use lockstep_text::say;
use std::fmt::Write;

/// List every counter and statistic, with its unit, its meaning and its names elsewhere.
#[derive(Args)]
pub struct Counters {}

impl Counters {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        say!("{}", page()?);
        Ok(0)
    }
}

fn page() -> Result<String, std::fmt::Error> {
    let mut page = String::from("# Counters\n");
    let sections: [(&str, &str, &[Metric]); 4] = [
        (
            "Counters of launches",
            "A column of `kernels.csv` each, and a sum in `summary.json`. Those of SMs and sub-cores are \
             also rows of `stats.csv`, SM by SM. The *scope* is the smallest part that counts one for \
             itself. Functional mode knows only those marked with *f*. An overhead is an estimate of what \
             a profiler counts beside the kernel: `lockstep correlate` adds it to its counter when it \
             compares, and nothing else does.",
            COUNTERS,
        ),
        (
            "Gauges of launches",
            "Worked out from the counters when a launch has ended: columns of `kernels.csv`.",
            LAUNCH_GAUGES,
        ),
        (
            "Gauges of real GPUs",
            "`lockstep sample` reads them. No model knows them, so a simulated run has none.",
            DEVICE_GAUGES,
        ),
        (
            "Gauges of sampled processes",
            "`lockstep sample` reads them on the host.",
            HOST_GAUGES,
        ),
    ];
    for (title, about, metrics) in sections {
        write!(page, "\n## {title}\n\n{about}\n\n")?;
        page.push_str(
            "| name | kind | scope | unit | meaning | elsewhere |\n|---|---|---|---|---|---|\n",
        );
        for metric in metrics {
            write_metric(&mut page, metric)?;
        }
    }
    page.push_str(
        "\n## Statistics of components\n\n\
         Rows of `stats.csv`: every component of its kind has each of them, whatever a program did. \
         N stands for a number, KIND and NAME for names.\n",
    );
    for component in components() {
        write!(page, "\n### `{}`\n\n{}\n\n", component.path, component.help)?;
        page.push_str("| name | kind | unit | meaning |\n|---|---|---|---|\n");
        for one in component.statistics {
            let (kind, unit, help) = (one.kind.name(), one.unit, one.help);
            writeln!(page, "| `{}` | {kind} | {unit} | {help} |", one.name)?;
        }
    }
    Ok(page)
}

fn write_metric(page: &mut String, metric: &Metric) -> std::fmt::Result {
    let mut elsewhere: Vec<String> = Vec::new();
    let mut add = |who: &str, names: &[&str]| {
        if !names.is_empty() {
            elsewhere.push(format!("{who} `{}`", names.join("`, `")));
        }
    };
    add("ncu", metric.ncu);
    add("DCGM", metric.dcgm.as_slice());
    add("LDMS", metric.ldms.as_slice());
    add("OTLP", metric.otlp.as_slice());
    let known = if metric.untimed { ", *f*" } else { "" };
    writeln!(
        page,
        "| `{}` | {}{known} | {} | {} | {} | {} |",
        metric.name,
        metric.kind.name(),
        metric.scope.name(),
        metric.unit,
        metric.summary,
        elsewhere.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_and_every_kind_of_component_is_on_the_page() {
        let page = page().unwrap();
        for counter in COUNTERS {
            assert!(page.contains(&format!("| `{}` |", counter.name)));
        }
        assert!(page.contains("### `gpu N/slice/N/bank/N`"));
        assert!(page.contains("| `activates` |"));
    }
}
