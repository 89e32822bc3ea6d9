//! `lines.csv`: what was issued and waited for, by instruction, the hottest first.

use crate::error::ReadError;
use lockstep_counters::stalls;
use lockstep_text::names;
use serde::Serialize;
use std::fs::File;
use std::path::Path;

/// More instructions than any program has; what comes after them is left out.
const MAXIMUM_LINES: usize = 1_000_000;

/// One instruction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Line {
    /// Mangled name of its function.
    pub function: String,
    /// The same for people.
    pub name: String,
    /// Where it is in the function.
    pub offset: u64,
    /// Its text.
    pub instruction: String,
    /// `file:line` of the source; empty if it is not known.
    pub source: String,
    /// Times that a warp issued it.
    pub issued: u64,
    /// Cycles of warps from their issue before to its own.
    pub cycles: u64,
    /// Of the cycles of all instructions, from 0 to 1.
    pub share: f64,
    /// What warps did in these cycles, the most frequent first, as parts from 0 to 1.
    pub stalls: Vec<(&'static str, f64)>,
}

/// The instructions of a file, the one with most cycles first, and what the reader should know about it.
pub fn read(path: &Path, file: File) -> Result<(Vec<Line>, Vec<String>), ReadError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let head = reader.headers();
    let head = head.map_err(|error| ReadError::malformed(path, error.to_string()))?;
    let find = |name: &str| {
        let place = head.iter().position(|column| column == name);
        let because = || format!("not a table of instructions: it lacks the column `{name}`");
        place.ok_or_else(|| ReadError::malformed(path, because()))
    };
    let [function, offset, instruction] = ["function", "offset", "instruction"].map(find);
    let (function, offset, instruction) = (function?, offset?, instruction?);
    let (file, line, issued) = (find("file")?, find("line")?, find("issued")?);
    let reasons: Vec<(&'static str, usize)> = stalls()
        .filter_map(|metric| Some((metric.name, find(metric.name).ok()?)))
        .collect();
    let (mut lines, mut wrong) = (Vec::new(), 0u64);
    for row in reader.records() {
        let read = row.ok().and_then(|row| {
            let number = |place: usize| row.get(place)?.parse::<u64>().ok();
            let text = |place: usize| row.get(place).map(str::to_string);
            let source = match (row.get(file)?, row.get(line)?) {
                ("", _) | (_, "") => String::new(),
                (file, line) => format!("{file}:{line}"),
            };
            let waited: Vec<(&'static str, u64)> = reasons
                .iter()
                .map(|(name, place)| Some((*name, number(*place)?)))
                .collect::<Option<_>>()?;
            let function = text(function)?;
            let name = names::readable(&function);
            let line = Line {
                name,
                function,
                offset: number(offset)?,
                instruction: text(instruction)?,
                source,
                issued: number(issued)?,
                ..Line::default()
            };
            Some(with_stalls(line, waited))
        });
        match read {
            Some(line) => lines.push(line),
            None => wrong += 1,
        }
        if lines.len() == MAXIMUM_LINES {
            break;
        }
    }
    let all: u64 = lines
        .iter()
        .fold(0, |sum, line| sum.saturating_add(line.cycles));
    for line in &mut lines {
        line.share = line.cycles as f64 / all.max(1) as f64;
    }
    // By place where cycles are equal, so that the order is one.
    lines.sort_by(|a, b| {
        let by_cycles = b.cycles.cmp(&a.cycles);
        by_cycles.then_with(|| (&a.function, a.offset).cmp(&(&b.function, b.offset)))
    });
    let notes =
        (wrong > 0).then(|| format!("lines.csv: {wrong} lines cannot be read and are left out"));
    Ok((lines, notes.into_iter().collect()))
}

fn with_stalls(mut line: Line, waited: Vec<(&'static str, u64)>) -> Line {
    let sum = |all: u64, (_, cycles): &(&str, u64)| all.saturating_add(*cycles);
    line.cycles = waited.iter().fold(0, sum);
    let whole = line.cycles.max(1) as f64;
    let parts = waited.into_iter().filter(|(_, cycles)| *cycles > 0);
    line.stalls = parts
        .map(|(name, cycles)| {
            let short = name.strip_prefix("stalled_").unwrap_or(name);
            (short, cycles as f64 / whole)
        })
        .collect();
    line.stalls.sort_by(|a, b| b.1.total_cmp(&a.1));
    line
}
