//! `cargo xtask validate --microbench`: the microbenchmarks in simulation beside the hardware's figures.
//!
//! Builds `validation/microbench/core.cu`, runs its parts on the simulated GPU, and writes
//! `validation/microbench-GPU.csv`: name, parameter, hardware, the same measured again, simulated,
//! error in percent, bound, form. The error is the distance to the nearer end of what hardware
//! shows; inside it is 0. All of it takes an hour of one processor, nearly all for bandwidths; the
//! column `form` says where a row is simulated in another form than hardware's.

use crate::{cuda, process, project, simulator};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Parts of the program, by name, and how their form differs from the hardware's run.
const PARTS: &[(&str, &[&str], &str)] = &[
    // In one process, as on hardware: chases find what `ldg` left of their memory in L2.
    ("small", &["lat+thr+lds+ldg+mem", "0", "61440"], ""),
    ("atomics", &["atom"], ""),
    ("launches", &["launch"], ""),
    ("far-chases", &["mem", "131072", "4194304"], ""),
    ("page-chases", &["mem", "16777216", "33554432"], ""),
    ("read-4", &["bw", "2048", "4", "50"], ""),
    ("read-16", &["bw", "2048", "16", "50"], ""),
    ("read-24", &["bw", "2048", "24", "50"], ""),
    ("read-32", &["bw", "2048", "32", "50"], ""),
    ("read-48", &["bw", "2048", "48", "50"], ""),
    ("dram-33", &["bw", "2048", "-1", "1", "33"], ""),
    ("dram-132", &["bw", "2048", "-1", "1", "132"], ""),
    ("dram-264", &["bw", "2048", "-1", "1", "264"], ""),
    ("dram-528", &["bw", "2048", "-1", "1", "528"], ""),
    ("dram-1056", &["bw", "2048", "-1", "1", "1056"], ""),
    ("dram-written", &["bw", "2048", "-1", "1", "-1"], ""),
];

/// Seconds that one part may take.
const LIMIT: u64 = 3600;

/// One figure: name, parameter, value.
type Figure = (String, String, f64);

/// What hardware shows of one figure.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    name: String,
    parameter: String,
    first: f64,
    least: f64,
    most: f64,
}

impl Measured {
    /// Distance of a value from what hardware shows, in percent.
    fn error(&self, value: f64) -> f64 {
        let nearest = value.clamp(self.least, self.most);
        (value / nearest - 1.0) * 100.0
    }
}

/// A figure as hardware and simulation have it, and the form of the simulated one.
type Row = (Measured, f64, String);

/// The first table's figures, each with the range that it and the others show.
fn measured(tables: &[String]) -> Vec<Measured> {
    let Some((first, rest)) = tables.split_first() else {
        return Vec::new();
    };
    let others: Vec<Figure> = rest.iter().flat_map(|text| figures(text)).collect();
    let mut found = Vec::new();
    for (name, parameter, value) in figures(first) {
        let again = others
            .iter()
            .filter(|(n, p, _)| *n == name && *p == parameter);
        let all = || std::iter::once(value).chain(again.clone().map(|(.., value)| *value));
        found.push(Measured {
            first: value,
            least: all().fold(f64::INFINITY, f64::min),
            most: all().fold(0.0, f64::max),
            name,
            parameter,
        });
    }
    found
}

/// Runs the parts whose names contain one of `only` (all, if it is empty).
pub fn run(gpu: &str, only: &[String]) -> Result<()> {
    simulator::build()?;
    let folder = project::root().join(format!("validation/hardware/{gpu}"));
    let mut tables = Vec::new();
    for name in ["core.csv", "core_repetitions.csv"] {
        match std::fs::read_to_string(folder.join(name)) {
            Ok(text) => tables.push(text),
            Err(error) if tables.is_empty() => {
                return Err(error).with_context(|| format!("no microbenchmarks of `{gpu}`"));
            }
            Err(_) => {}
        }
    }
    let measured = measured(&tables);
    let program = build()?;
    let table = project::root().join(format!("validation/microbench-{gpu}.csv"));
    let before = std::fs::read_to_string(&table).unwrap_or_default();
    let mut rows = known(&before, &measured);
    for (part, arguments, form) in PARTS {
        if !only.is_empty() && !only.iter().any(|wanted| part.contains(wanted.as_str())) {
            continue;
        }
        process::step(&format!("{part}: core {}", arguments.join(" ")));
        for (name, parameter, value) in simulate(gpu, &program, arguments)? {
            let Some(real) = find(&measured, &name, &parameter) else {
                continue;
            };
            rows.retain(|(known, ..)| known != real);
            rows.push((real.clone(), value, (*form).to_owned()));
        }
        std::fs::write(&table, csv(&measured, &rows))?;
    }
    report(&measured, &rows, &table);
    Ok(())
}

fn find<'a>(measured: &'a [Measured], name: &str, parameter: &str) -> Option<&'a Measured> {
    measured
        .iter()
        .find(|known| known.name == name && known.parameter == parameter)
}

fn report(measured: &[Measured], rows: &[Row], table: &Path) {
    let beyond =
        |(real, value, _): &&Row| real.error(*value).abs() > bound(&real.name, &real.parameter);
    println!(
        "{} of {} figures simulated, {} beyond their bound; see {}",
        rows.len(),
        measured.len(),
        rows.iter().filter(beyond).count(),
        project::shown(table)
    );
}

/// How far from hardware a figure may be, in percent: chases of 8 to 60 MiB straddle the halves of
/// L2 and vary by themselves.
fn bound(name: &str, parameter: &str) -> f64 {
    let footprint = parameter
        .split("footprint=")
        .nth(1)
        .and_then(|rest| rest.split("KB").next())
        .and_then(|number| number.parse::<u64>().ok());
    match footprint {
        Some(8192..=61440) if name == "load_latency" => 15.0,
        _ => 5.0,
    }
}

fn csv(measured: &[Measured], rows: &[Row]) -> String {
    let mut text = String::from(
        "name,parameter,hardware,least,most,simulated,error_percent,bound_percent,form\n",
    );
    for real in measured {
        let Some((_, value, form)) = rows.iter().find(|(known, ..)| known == real) else {
            continue;
        };
        let _ = writeln!(
            text,
            "{},\"{}\",{:.4},{:.4},{:.4},{value:.4},{:+.1},{},{form}",
            real.name,
            real.parameter,
            real.first,
            real.least,
            real.most,
            real.error(*value),
            bound(&real.name, &real.parameter)
        );
    }
    text
}

/// Rows of a table that was written before.
fn known(text: &str, measured: &[Measured]) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in text.lines().skip(1) {
        let Some((name, rest)) = line.split_once(',') else {
            continue;
        };
        // Quoted where it holds a comma, and perhaps elsewhere.
        let parameter = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once("\","),
            None => rest.split_once(','),
        };
        let Some((parameter, rest)) = parameter else {
            continue;
        };
        let cells: Vec<&str> = rest.splitn(7, ',').collect();
        if let (Some(real), [_, _, _, value, _, _, form]) =
            (find(measured, name, parameter), cells.as_slice())
            && let Ok(value) = value.parse()
        {
            rows.push((real.clone(), value, (*form).to_owned()));
        }
    }
    rows
}

/// Lines `name,parameter,value,unit`; a parameter may hold commas.
fn figures(text: &str) -> Vec<Figure> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut cells = line.rsplitn(3, ',');
        let (_, value, rest) = (cells.next(), cells.next(), cells.next());
        if let (Some(value), Some((name, parameter))) =
            (value, rest.and_then(|r| r.split_once(',')))
            && let Ok(value) = value.trim().parse::<f64>()
            && !line.starts_with('#')
        {
            found.push((name.to_owned(), parameter.to_owned(), value));
        }
    }
    found
}

fn build() -> Result<std::path::PathBuf> {
    let source = project::root().join("validation/microbench/core.cu");
    let folder = project::local().join("bin").join("microbench");
    let program = folder.join("core");
    let age = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified());
    if let (Ok(built), Ok(written)) = (age(&program), age(&source))
        && built >= written
    {
        return Ok(program);
    }
    let toolkit = cuda::required()?;
    std::fs::create_dir_all(&folder)?;
    process::run(
        process::command(toolkit.nvcc())
            .args(["-O3", "-std=c++17", "-arch=sm_90", "-o"])
            .arg(&program)
            .arg(&source),
    )?;
    Ok(program)
}

fn simulate(gpu: &str, program: &Path, arguments: &[&str]) -> Result<Vec<Figure>> {
    let out = project::local().join("runs").join("microbench");
    let out = out.to_string_lossy().into_owned();
    let mut command = simulator::lockstep(&["run", "--gpu", gpu, "--threads", "1"]);
    command.args(["--overwrite", "--out", &out, "--"]);
    command.arg(program).args(arguments);
    let output = process::capture(&mut command, Duration::from_secs(LIMIT))?;
    if !output.success() {
        bail!("core {}: {}", arguments.join(" "), output.tail(3));
    }
    Ok(figures(&output.out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_written_alike() {
        let text = "name,parameter,value,unit\n# a card, 3.0,x\nlatency_imad,threads=32,3.9980,cycles/inst\natomic_latency,1 warp, one address,569.7734,cycles\n";
        let again = "latency_imad,threads=32,4.5,cycles/inst\n";
        let measured = measured(&[text.to_owned(), again.to_owned()]);
        assert_eq!(measured.len(), 2);
        assert_eq!(measured[1].parameter, "1 warp, one address");
        assert_eq!((measured[0].least, measured[0].most), (3.998, 4.5));
        assert_eq!(measured[0].error(4.2), 0.0, "hardware shows that itself");
        let rows = vec![(measured[1].clone(), 550.0, "half".to_owned())];
        let table = csv(&measured, &rows);
        assert!(table.contains("569.7734,550.0000,-3.5,5,half"), "{table}");
        assert_eq!(known(&table, &measured), rows);
        let plain = "name\nlatency_imad,threads=32,3.998,3.998,4.5,4.0,+0.0,5,\n";
        assert_eq!(
            known(plain, &measured),
            [(measured[0].clone(), 4.0, String::new())]
        );
    }

    #[test]
    fn long_chases_may_be_farther_off() {
        assert_eq!(
            bound("load_latency", "ca footprint=8192KB stride=128"),
            15.0
        );
        assert_eq!(bound("load_latency", "ca footprint=1024KB stride=128"), 5.0);
        assert_eq!(bound("read_bandwidth", "footprint=16MB blocks=33"), 5.0);
    }
}
