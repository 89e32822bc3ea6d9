//! The table of measured accuracy, from the files of `validation/`.

use crate::project;
use anyhow::{Context, Result, bail};
use lockstep_correlation::history::{self, Row};
use lockstep_correlation::text;
use std::fmt::Write;

/// The GPU that was measured.
const GPU: &str = "h200";

/// The table and the two sentences below it.
pub fn table() -> Result<String> {
    let path = project::root().join("validation/history.csv");
    let rows = history::load(&path).context("validation/history.csv")?;
    let mut text = String::from(
        "| set, size of inputs, caches | programs | mean error of cycles | with signs | median | 90th percentile | R² of logarithms | launches with equal instruction counts |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in newest(&rows) {
        writeln!(
            text,
            "| {}, {}, {} | {} | {} | {} | {} | {} | {} | {} of {} |",
            row.set,
            row.sizes,
            row.state.name(),
            row.programs,
            percent(row.mean),
            row.signed.map_or("none".into(), text::signed),
            percent(row.median),
            percent(row.ninetieth),
            row.log_r_squared
                .map_or("none".into(), |value| format!("{value:.3}")),
            row.counts_equal,
            row.counts_repeating
        )?;
    }
    let (within, all) = microbenchmarks()?;
    let (equal, repeating) = count_parity()?;
    write!(
        text,
        "\n{within} of {all} microbenchmark figures (latencies, throughputs, bandwidths) are within their bounds of the hardware's. \
         {equal} of {repeating} launches whose counts repeat on hardware execute the same number of instructions, to the last one."
    )?;
    Ok(text)
}

/// One sentence about programs that nothing was fitted to.
pub fn sentence() -> Result<String> {
    let path = project::root().join("validation/history.csv");
    let rows = history::load(&path).context("validation/history.csv")?;
    let newest = newest(&rows);
    let of = |sizes: &str| {
        newest
            .iter()
            .find(|row| {
                row.set == "development" && row.sizes == sizes && row.state.name() == "as-run"
            })
            .with_context(|| format!("no development set of {sizes} size"))
    };
    let (default, medium) = (of("default")?, of("medium")?);
    let (equal, repeating) = count_parity()?;
    Ok(format!(
        "**Accuracy**: cycles of {} programs that nothing was fitted to differ from an H200's by {} on average (median {}), \
         by {} with larger inputs; {equal} of {repeating} launches execute exactly as many instructions.",
        default.programs,
        percent(default.mean),
        percent(default.median),
        percent(medium.mean),
    ))
}

/// The rows of the newest commit; the set that was never fitted to comes first.
fn newest(rows: &[Row]) -> Vec<&Row> {
    let mut newest = history::newest(rows, GPU);
    newest.sort_by_key(|row| {
        (
            row.set != "development",
            row.sizes.clone(),
            row.state.name(),
        )
    });
    newest
}

fn percent(value: Option<f64>) -> String {
    value.map_or("none".into(), |value| format!("{:.1} %", value * 100.0))
}

/// Rows of the table of microbenchmarks that are within their bounds, and all.
fn microbenchmarks() -> Result<(usize, usize)> {
    let rows = cells(&format!("validation/microbench-{GPU}.csv"))?;
    let columns = rows.first().context("an empty table")?;
    let place = |name: &str| {
        columns
            .iter()
            .position(|column| column == name)
            .with_context(|| format!("no column {name} among microbenchmarks"))
    };
    let (error, bound) = (place("error_percent")?, place("bound_percent")?);
    let mut within = 0;
    for row in &rows[1..] {
        let number = |at: usize| -> Result<f64> {
            let cell = row.get(at).with_context(|| row.join(","))?;
            cell.parse().with_context(|| row.join(","))
        };
        within += usize::from(number(error)?.abs() <= number(bound)?);
    }
    Ok((within, rows.len() - 1))
}

/// Launches whose counts are the hardware's, and those whose hardware counts repeat.
fn count_parity() -> Result<(u64, u64)> {
    let mut sums = (0, 0);
    for row in &cells("validation/count_parity.csv")?[1..] {
        let [_, _, _, repeating, equal, ..] = &row[..] else {
            bail!(
                "validation/count_parity.csv: too few cells in {}",
                row.join(",")
            );
        };
        sums.0 += equal.parse::<u64>().with_context(|| row.join(","))?;
        sums.1 += repeating.parse::<u64>().with_context(|| row.join(","))?;
    }
    Ok(sums)
}

/// Lines of a CSV file that are no comments, cut at commas outside of quotes.
fn cells(path: &str) -> Result<Vec<Vec<String>>> {
    let text =
        std::fs::read_to_string(project::root().join(path)).with_context(|| path.to_string())?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    Ok(lines.map(split).collect())
}

fn split(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => {
                if let Some(cell) = cells.last_mut() {
                    cell.push(c);
                }
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_comma_does_not_cut() {
        assert_eq!(split("a,\"b,c\",d"), ["a", "b,c", "d"]);
        assert_eq!(split("a,,"), ["a", "", ""]);
    }

    #[test]
    fn what_is_measured_can_be_summed_up() {
        let (within, all) = microbenchmarks().expect("microbenchmarks");
        assert!(within > 0 && within <= all);
        let (equal, repeating) = count_parity().expect("counts");
        assert!(equal > 0 && equal <= repeating);
    }

    #[test]
    fn one_build_makes_the_table_and_development_comes_first() {
        let path = project::root().join("validation/history.csv");
        let rows = history::load(&path).expect("history");
        let newest = newest(&rows);
        assert_eq!(newest[0].set, "development");
        let last = rows.iter().rfind(|row| row.gpu == GPU).expect("a row");
        assert!(newest.iter().all(|row| row.commit == last.commit));
    }
}
