//! Speed of the simulator, from the record of `cargo xtask bench`.

use crate::bench::{engineering, record};
use anyhow::{Context, Result};
use std::fmt::Write;

/// One sentence: the slowest and the quickest program in timing mode on one thread.
pub fn sentence() -> Result<String> {
    let rows = record::load()?;
    let timed = rows
        .iter()
        .filter(|row| row.measured.threads == 1 && row.measured.mode == "timing");
    let mut speeds: Vec<f64> = timed.map(|row| row.measured.figures.per_second).collect();
    speeds.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (speeds.first(), speeds.last()) else {
        anyhow::bail!("the record of speed has no run in timing mode");
    };
    Ok(format!(
        "**Speed**: {:.1} to {:.1} million warp instructions a second in timing mode on one core.",
        least / 1e6,
        most / 1e6
    ))
}

/// Rows by program and mode, from the record.
pub fn table() -> Result<String> {
    let rows = record::load()?;
    let first = rows.first().context("the record of speed is empty")?;
    let mut text = format!(
        "One thread on {}, by processor time while simulating, commit {} of {} (`cargo xtask bench --record`). `cargo xtask bench --against COMMIT` compares two commits, and the book says [where the time goes](book/speed.md).\n\n\
         | program | mode | warp instructions | of these a second | simulated cycles a second | peak memory |\n|---|---|---|---|---|---|\n",
        first.processor, first.commit, first.date
    );
    for row in rows.iter().filter(|row| row.measured.threads == 1) {
        let figures = &row.measured.figures;
        writeln!(
            text,
            "| `{} {}` | {} | {} | {} | {} | {} MiB |",
            row.measured.program,
            row.measured.arguments,
            row.measured.mode,
            engineering(figures.instructions as f64),
            engineering(figures.per_second),
            figures.cycles_per_second.map_or("".into(), engineering),
            figures.peak_memory >> 20
        )?;
    }
    Ok(text)
}
