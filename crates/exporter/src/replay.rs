//! Figures of a run folder: what was recorded, again, at its own pace or faster.
//!
//! Counters come from `series.csv`; a folder without one, such as a simulation's, gives them launch
//! by launch from `kernels.csv`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use csv::StringRecord;
use lockstep_collector::{Gaps, Membership};
use lockstep_counters::{DEVICE_GAUGES, measurable};
use lockstep_segment::now;
use serde::Deserialize;

use crate::error::ExporterError;
use crate::figures::{Figures, SeriesKey};
use crate::kernels::KernelLabels;
use crate::names::Source;

/// Larger files are refused before they are read.
const LARGEST: u64 = 1 << 30;

/// Something that happened in the recorded run.
struct Event {
    time: u64,
    gpu: String,
    process: u32,
    kernel: String,
    launches: u64,
    growth: Vec<(&'static str, u64)>,
    gauges: Vec<(&'static str, u64)>,
    source: Source,
}

/// What a run folder says beside its tables.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Summary {
    memberships: BTreeMap<u32, Membership>,
    lost: u64,
    losses: Vec<String>,
    gaps: BTreeMap<String, Gaps>,
}

/// A recorded run.
pub struct Replay {
    events: Vec<Event>,
    next: usize,
    summary: Summary,
    kernels: KernelLabels,
    figures: Figures,
}

impl Replay {
    /// Reads the run folder `folder`; `top` kernels get labels.
    pub fn open(folder: &Path, top: usize) -> Result<Self, ExporterError> {
        let mut figures = Figures {
            node: "recorded".to_owned(),
            // It is shown as if it happened now.
            began: now(),
            ..Figures::default()
        };
        let mut events = Vec::new();
        let series = folder.join("series.csv");
        let has_series = series.exists();
        if has_series {
            read_series(&series, &mut events, &mut figures)?;
        }
        let kernels = folder.join("kernels.csv");
        if kernels.exists() || !has_series {
            read_launches(&kernels, !has_series, &mut events)?;
        }
        events.sort_by_key(|event| event.time);
        let of_gpus = events.iter().filter(|event| !event.gpu.is_empty());
        let gpus: BTreeMap<&str, Source> = of_gpus
            .map(|event| (event.gpu.as_str(), event.source))
            .collect();
        for (index, (gpu, source)) in (0..).zip(gpus) {
            let gpu = figures.gpus.entry(gpu.to_owned()).or_default();
            (gpu.index, gpu.source) = (index, source);
        }
        Ok(Self {
            events,
            next: 0,
            summary: read_summary(&folder.join("summary.json"))?,
            kernels: KernelLabels::new(top),
            figures,
        })
    }

    /// The recorded time from its first event to its last, in nanoseconds.
    pub fn length(&self) -> u64 {
        let first = self.events.first().map_or(0, |event| event.time);
        let last = self.events.last().map_or(0, |event| event.time);
        last - first
    }

    /// Goes on to `elapsed` nanoseconds after the first event.
    pub fn advance(&mut self, elapsed: u64) {
        let first = self.events.first().map_or(0, |event| event.time);
        let until = first.saturating_add(elapsed);
        while let Some(event) = self.events.get(self.next)
            && event.time <= until
        {
            let membership = self.summary.memberships.get(&event.process);
            if event.gauges.is_empty() {
                let weight = event.growth.first().map_or(event.launches, |one| one.1);
                self.kernels
                    .weigh([(event.kernel.as_str(), weight)].into_iter());
                let key = SeriesKey {
                    gpu: event.gpu.clone(),
                    job: membership.and_then(|one| one.job.clone()),
                    rank: membership.and_then(|one| one.rank.clone()),
                    kernel: self.kernels.label(&event.kernel),
                };
                let growth = event.growth.iter().copied();
                self.figures.grow(key, event.launches, growth, event.time);
            } else {
                let gauges = event.gauges.iter().copied();
                self.figures.read_gauges(&event.gpu, gauges, event.time);
            }
            self.next += 1;
        }
        if self.next == self.events.len() {
            self.end();
        }
    }

    /// What a run lost is known when it is over.
    fn end(&mut self) {
        self.figures.losses.records = self.summary.lost;
        self.figures.losses.sentences = self.summary.losses.len() as u64;
        for (gpu, gaps) in &self.summary.gaps {
            let gpu = self.figures.gpus.entry(gpu.clone()).or_default();
            gpu.gaps = gaps.count;
            gpu.gap_nanoseconds = gaps.nanoseconds;
            gpu.sampled_nanoseconds = gaps.sampled_nanoseconds;
        }
    }

    /// What is served now.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }
}

/// A table with its columns by name.
struct Table {
    path: PathBuf,
    reader: csv::Reader<File>,
    columns: StringRecord,
}

impl Table {
    fn open(path: &Path) -> Result<Self, ExporterError> {
        let because = |error: &dyn std::fmt::Display| {
            ExporterError::recording(
                path,
                format!("{error}; a run folder of `lockstep sample` or `lockstep run` is expected"),
            )
        };
        let length = fs::metadata(path).map_err(|error| because(&error))?.len();
        if length > LARGEST {
            return Err(because(&format!(
                "{length} bytes, and at most {LARGEST} are served"
            )));
        }
        let mut reader = csv::Reader::from_path(path).map_err(|error| because(&error))?;
        let columns = reader.headers().map_err(|error| because(&error))?.clone();
        Ok(Self {
            path: path.to_owned(),
            reader,
            columns,
        })
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    fn needed(&self, name: &str) -> Result<usize, ExporterError> {
        self.place(name).ok_or_else(|| {
            ExporterError::recording(&self.path, format!("there is no column `{name}`"))
        })
    }

    /// The columns that are there, of those that are `named`.
    fn places(&self, named: impl Iterator<Item = &'static str>) -> Vec<(&'static str, usize)> {
        named
            .filter_map(|name| Some((name, self.place(name)?)))
            .collect()
    }

    fn rows(
        &mut self,
        mut take: impl FnMut(&StringRecord) -> Result<(), String>,
    ) -> Result<(), ExporterError> {
        for row in self.reader.records() {
            let row =
                row.map_err(|error| ExporterError::recording(&self.path, error.to_string()))?;
            take(&row).map_err(|because| {
                let line = row.position().map_or(0, csv::Position::line);
                ExporterError::recording(&self.path, format!("line {line}: {because}"))
            })?;
        }
        Ok(())
    }
}

/// The number in a field; 0 where it is empty.
fn number(row: &StringRecord, place: usize) -> Result<u64, String> {
    let text = row.get(place).unwrap_or("");
    if text.is_empty() {
        return Ok(0);
    }
    let number: Result<u64, _> = text.parse();
    number.map_err(|_| format!("`{text}` is not a whole number"))
}

/// The numbers that a row has in some columns, without those that are empty.
fn numbers(
    row: &StringRecord,
    places: &[(&'static str, usize)],
) -> Result<Vec<(&'static str, u64)>, String> {
    let there = places
        .iter()
        .filter(|(_, place)| row.get(*place).is_some_and(|text| !text.is_empty()));
    there
        .map(|(name, place)| Ok((*name, number(row, *place)?)))
        .collect()
}

fn text(row: &StringRecord, place: usize) -> String {
    row.get(place).unwrap_or("").to_owned()
}

/// Counters accumulated by interval, and gauges between them.
fn read_series(
    path: &Path,
    events: &mut Vec<Event>,
    figures: &mut Figures,
) -> Result<(), ExporterError> {
    let mut table = Table::open(path)?;
    let counters = table.places(measurable().map(|metric| metric.name));
    let gauges = table.places(DEVICE_GAUGES.iter().map(|metric| metric.name));
    let key = ["gpu", "process", "context", "stream", "kernel"].map(|name| table.needed(name));
    let [gpu, process, context, stream, kernel] = key;
    let (gpu, process, context, stream, kernel) = (gpu?, process?, context?, stream?, kernel?);
    let (time, node) = (table.needed("time_ns")?, table.needed("node")?);
    let source = table.place("source");
    let mut sums: BTreeMap<[String; 5], BTreeMap<&'static str, u64>> = BTreeMap::new();
    table.rows(|row| {
        figures.node = text(row, node);
        let read = numbers(row, &gauges)?;
        let key = [gpu, process, context, stream, kernel].map(|place| text(row, place));
        if key[0].is_empty() {
            // The host side of a process.
            return Ok(());
        }
        let sums = sums.entry(key).or_default();
        let growth = numbers(row, &counters)?.into_iter().map(|(name, sum)| {
            let before = sums.insert(name, sum).unwrap_or(0);
            (name, sum.saturating_sub(before))
        });
        events.push(Event {
            time: number(row, time)?,
            gpu: text(row, gpu),
            process: number(row, process)? as u32,
            kernel: text(row, kernel),
            launches: 0,
            growth: growth.collect(),
            gauges: read,
            source: source_of(row, source),
        });
        Ok(())
    })
}

/// Launches, with their counters if nothing else has them.
fn read_launches(path: &Path, counted: bool, events: &mut Vec<Event>) -> Result<(), ExporterError> {
    let mut table = Table::open(path)?;
    let mut counters = table.places(measurable().map(|metric| metric.name));
    counters.retain(|_| counted);
    let (gpu, kernel) = (table.needed("gpu")?, table.needed("kernel")?);
    let (start, duration) = (table.needed("start_ns")?, table.needed("duration_ns")?);
    let (process, source) = (table.place("process"), table.place("source"));
    table.rows(|row| {
        events.push(Event {
            time: number(row, start)?.saturating_add(number(row, duration)?),
            gpu: text(row, gpu),
            process: process.map_or(Ok(0), |place| number(row, place))? as u32,
            kernel: text(row, kernel),
            launches: 1,
            growth: numbers(row, &counters)?,
            gauges: Vec::new(),
            source: source_of(row, source),
        });
        Ok(())
    })
}

/// A simulation names no source.
fn source_of(row: &StringRecord, place: Option<usize>) -> Source {
    match place.and_then(|place| row.get(place)) {
        Some("real") => Source::Real,
        _ => Source::Simulated,
    }
}

/// The summary; a run that was killed has none.
fn read_summary(path: &Path) -> Result<Summary, ExporterError> {
    if !path.exists() {
        return Ok(Summary::default());
    }
    let because = |error: &dyn std::fmt::Display| ExporterError::recording(path, error.to_string());
    let length = fs::metadata(path).map_err(|error| because(&error))?.len();
    if length > LARGEST {
        return Err(because(&format!("{length} bytes are no summary")));
    }
    let text = fs::read_to_string(path).map_err(|error| because(&error))?;
    serde_json::from_str(&text).map_err(|error| because(&error))
}
