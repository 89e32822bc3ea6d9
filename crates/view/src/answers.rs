//! What the page can ask.

use crate::assets::has_charts;
use crate::resample::Columns;
use crate::store::{FIRST, Folder};
use lockstep_report::report;
use lockstep_run_folder::series::Part;
use lockstep_run_folder::{ReadError, Run};
use lockstep_units::Time;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Long enough to know a clock by.
const MILLISECOND: Time = Time(1_000_000_000_000);
/// Instructions in one answer.
const MOST_LINES: usize = 200;
/// Counters in one question.
const MOST_COUNTERS: usize = 16;

/// What a question says after its name.
pub struct Question(BTreeMap<String, String>);

impl Question {
    /// Reads `a=1&b=x,y`.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        Self(
            pairs
                .map(|(name, value)| (name.to_string(), decoded(value)))
                .collect(),
        )
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> Option<f64> {
        let number: f64 = self.text(name).parse().ok()?;
        number.is_finite().then_some(number)
    }

    fn columns(&self, until: f64) -> Columns {
        let count = self.number("columns").unwrap_or(1000.0).max(1.0);
        let from = self.number("from").unwrap_or(0.0);
        Columns::new(from, self.number("to").unwrap_or(until), count as usize)
    }
}

/// `%2C` and the like as bytes; what is no such thing stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let pair = after
            .get(..2)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        let value = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match (first, value) {
            (b'%', Some(value)) => {
                bytes.push(value);
                rest = &after[2..];
            }
            (byte, _) => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The answer to a question; none if there is no such one.
///
/// # Errors
/// A folder cannot be read.
pub fn answer(
    folders: &[Folder],
    what: &str,
    question: &Question,
) -> Result<Option<Value>, ReadError> {
    if what == "runs" {
        let runs = folders.iter().map(about).collect::<Result<Vec<_>, _>>()?;
        return Ok(Some(json!({ "charts": has_charts(), "runs": runs })));
    }
    if what == "versions" {
        let versions: Vec<u64> = folders.iter().map(Folder::version).collect();
        return Ok(Some(json!(versions)));
    }
    let number = question.number("run").unwrap_or(-1.0);
    let Some(folder) = folders.get(number as usize).filter(|_| number >= 0.0) else {
        return Ok(None);
    };
    match what {
        "launches" => {
            let run = folder.run()?;
            Ok(Some(launches(&run)))
        }
        "series" => series(folder, question),
        "heat" => heat(folder, question),
        "lines" => {
            let run = folder.run()?;
            let function = question.text("function");
            let lines = run.lines.iter();
            let lines = lines.filter(|line| function.is_empty() || line.function == function);
            let lines: Vec<_> = lines.take(MOST_LINES).collect();
            Ok(Some(json!(lines)))
        }
        _ => Ok(None),
    }
}

/// One run: its report, and what can be asked of its series.
fn about(folder: &Folder) -> Result<Value, ReadError> {
    let run = folder.run()?;
    let runs = [(*run).clone()];
    let mut said = report(&runs);
    let counters: BTreeMap<&str, Vec<Value>> = Part::ALL
        .into_iter()
        .map(|part| {
            let all = part.counters().map(|(_, metric)| {
                json!({ "name": metric.name, "unit": metric.unit, "summary": metric.summary })
            });
            (part.name(), all.collect())
        })
        .collect();
    let first: BTreeMap<&str, &[&str]> = FIRST.map(|(part, names)| (part.name(), names)).into();
    Ok(json!({
        "version": folder.version(),
        "report": said.runs.pop(),
        "span_ns": span(&run),
        "clock": run.config.as_ref().map(|config| config.device.clock.to_string()),
        "cycles_per_ns": run.config.as_ref().map(|config| {
            config.device.clock.cycle_at_or_after(MILLISECOND).0 as f64 / 1e6
        }),
        "series": folder.series(),
        "counters": counters,
        "first": first,
        "ranks": run.ranks,
    }))
}

/// Where the last launch or transfer ends, in nanoseconds.
fn span(run: &Run) -> f64 {
    let launches = run.launches.iter();
    let launches = launches.filter_map(|one| Some(one.start_ns? + one.duration_ns?));
    let copies = run.copies.iter().map(|one| one.start_ns + one.duration_ns);
    launches.chain(copies).fold(0.0, f64::max)
}

/// Launches and transfers as columns.
fn launches(run: &Run) -> Value {
    let mut kernels: Vec<&str> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut number, mut kernel, mut stream) = (Vec::new(), Vec::new(), Vec::new());
    let (mut start, mut duration, mut rank) = (Vec::new(), Vec::new(), Vec::new());
    for launch in &run.launches {
        let (Some(begin), Some(long)) = (launch.start_ns, launch.duration_ns) else {
            continue;
        };
        let place = *places.entry(&launch.kernel).or_insert_with(|| {
            kernels.push(&launch.kernel);
            kernels.len() - 1
        });
        number.push(launch.number);
        kernel.push(place);
        stream.push(launch.stream);
        rank.push(launch.rank);
        start.push(begin);
        duration.push(long);
    }
    json!({
        "kernels": kernels,
        "number": number, "kernel": kernel, "stream": stream, "rank": rank,
        "start": start, "duration": duration,
        "copies": run.copies,
    })
}

/// Counters of the whole GPU over time.
fn series(folder: &Folder, question: &Question) -> Result<Option<Value>, ReadError> {
    let run = folder.run()?;
    let columns = question.columns(span(&run));
    let mut values = BTreeMap::new();
    let names = question.text("counters").split(',').take(MOST_COUNTERS);
    for name in names.filter(|name| is_counter(Part::Gpu, name)) {
        if let Some(counter) = folder.counter(Part::Gpu, name)? {
            values.insert(name, counter.sums(columns));
        }
    }
    let (from, to) = (columns.from, columns.to);
    Ok(Some(
        json!({ "from": from, "to": to, "columns": columns.count, "values": values }),
    ))
}

/// One counter of every part of a kind over time.
fn heat(folder: &Folder, question: &Question) -> Result<Option<Value>, ReadError> {
    let name = question.text("counter");
    let Some(part) = Part::named(question.text("part")).filter(|part| is_counter(*part, name))
    else {
        return Ok(None);
    };
    let run = folder.run()?;
    let columns = question.columns(span(&run));
    let Some(counter) = folder.counter(part, name)? else {
        return Ok(None);
    };
    Ok(Some(json!({
        "from": columns.from, "to": columns.to, "columns": columns.count,
        "parts": counter.parts, "end": counter.end(), "cells": counter.by_part(columns),
    })))
}

/// Names reach the reader of files only if the table of counters has them.
fn is_counter(part: Part, name: &str) -> bool {
    part.counters().any(|(_, metric)| metric.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_and_nonsense_is_none() {
        let question = Question::parse("run=1&counter=a%2Cb&x&from=1.5&to=nan&%=%zz");
        assert_eq!(question.text("counter"), "a,b");
        assert_eq!(question.number("from"), Some(1.5));
        assert_eq!(question.number("to"), None);
        assert_eq!(question.text("%"), "%zz");
        assert!(answer(&[], "series", &question).unwrap().is_none());
        assert!(answer(&[], "nothing", &question).unwrap().is_none());
    }
}
