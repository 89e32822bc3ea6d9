//! Runs side by side, as a document.

use super::MAXIMUM_KERNELS;
use crate::charts;
use crate::compare::{ComparedCounter, Comparison};
use crate::document::{Block, Document, Grid};
use lockstep_text::Align::{Left, Right};
use lockstep_text::numbers::{known, rounded};

/// Names of columns for runs; more are not set side by side.
const RUNS: [(&str, &str); 6] = [
    ("A", ""),
    ("B", "B/A"),
    ("C", "C/A"),
    ("D", "D/A"),
    ("E", "E/A"),
    ("F", "F/A"),
];
/// Sentences about what does not fit.
const MAXIMUM_NOTES: usize = 12;

/// A comparison as a document.
pub fn comparison_page(comparison: &Comparison) -> Document {
    let names: Vec<&str> = comparison
        .runs
        .iter()
        .map(|run| run.name.as_str())
        .collect();
    let mut page = Vec::new();
    blocks(&mut page, comparison);
    Document {
        title: format!("Comparison of {}", names.join(" and ")),
        blocks: page,
    }
}

/// The parts of it.
pub fn blocks(blocks: &mut Vec<Block>, comparison: &Comparison) {
    let runs = comparison.runs.iter().zip(RUNS);
    let legend = runs.map(|(run, (letter, _))| {
        let gpu = if run.gpu.is_empty() {
            "an unknown GPU"
        } else {
            &run.gpu
        };
        format!("{letter}: {}, {} {gpu}", run.name, run.source)
    });
    blocks.push(Block::List(legend.collect()));
    let mut notes = comparison.notes.clone();
    if comparison.runs.len() > RUNS.len() {
        notes.push(format!(
            "only the first {} runs have columns; the JSON form has all",
            RUNS.len()
        ));
    }
    if notes.len() > MAXIMUM_NOTES {
        let more = notes.len() - MAXIMUM_NOTES;
        notes.truncate(MAXIMUM_NOTES);
        notes.push(format!("… and {more} more, in the JSON form"));
    }
    if !notes.is_empty() {
        blocks.push(Block::List(notes));
    }
    if comparison.kernels.is_empty() {
        blocks.push(Block::Paragraph(
            "The runs have no kernel in common.".to_string(),
        ));
        return;
    }
    if let Some(svg) = charts::comparison(comparison) {
        let caption = "Every counter of every kernel: the second run over the first, a launch on average. On the line both agree. Point at one for its name.";
        blocks.push(Block::Figure(svg, caption.to_string()));
    }
    for kernel in comparison.kernels.iter().take(MAXIMUM_KERNELS) {
        blocks.push(Block::Heading(3, kernel.name.clone()));
        blocks.push(Block::Table(table(&kernel.counters, comparison.runs.len())));
    }
    if comparison.kernels.len() > MAXIMUM_KERNELS {
        let more = comparison.kernels.len() - MAXIMUM_KERNELS;
        blocks.push(Block::Paragraph(format!(
            "… and {more} more kernels, in the JSON form."
        )));
    }
}

fn table(counters: &[ComparedCounter], runs: usize) -> Grid {
    let runs = runs.min(RUNS.len());
    let mut columns = vec![("counter", Left)];
    columns.extend(RUNS[..runs].iter().map(|(name, _)| (*name, Right)));
    columns.extend(RUNS[1..runs].iter().map(|(_, name)| (*name, Right)));
    columns.push(("unit", Left));
    let mut grid = Grid::new(&columns);
    for counter in counters {
        let mut row = vec![counter.counter.into()];
        row.extend(
            counter.values[..runs]
                .iter()
                .map(|value| known(*value, rounded).into()),
        );
        let ratios = counter.ratios[1..runs].iter();
        row.extend(ratios.map(|ratio| known(*ratio, |ratio| format!("{ratio:.3}")).into()));
        row.push(counter.unit.into());
        grid.rows.push(row);
    }
    grid
}
