//! One run folder as it was left: whole, cut short, or of a real GPU.
//!
//! `summary.json` or `kernels.csv` must be there; what else is missing is said in [`Run::notes`].
//!
//! Start reading at [`Run::read`].

mod copies;
mod launch;
mod lines;
mod statistics;

pub use copies::Copy;
pub use launch::Launch;
pub use lines::Line;
pub use statistics::Statistics;

use crate::error::ReadError;
use lockstep_config::GpuConfig;
use lockstep_text::names::readable;
use lockstep_text::numbers::{group, plural};
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Larger summaries are refused before they are read.
const LARGEST_SUMMARY: u64 = 64 << 20;
/// Larger tables are.
const LARGEST_TABLE: u64 = 2 << 30;

/// What one run left.
#[derive(Clone, Debug)]
pub struct Run {
    /// The folder.
    pub path: PathBuf,
    /// What is known of the run as a whole.
    pub info: RunInfo,
    /// Its launches in order.
    pub launches: Vec<Launch>,
    /// Its transfers in order.
    pub copies: Vec<Copy>,
    /// Its instructions, the hottest first, if they were counted.
    pub lines: Vec<Line>,
    /// Its statistics, if it left them.
    pub statistics: Option<Statistics>,
    /// The simulated GPU, if there was one and its description can be read.
    pub config: Option<GpuConfig>,
    /// Ranks, if it is the folder of a job.
    pub ranks: usize,
    /// What a reader should know about the folder.
    pub notes: Vec<String>,
}

/// What is known of a run as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunInfo {
    /// The folder's name.
    pub name: String,
    /// `simulated` or `real`.
    pub source: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The GPU.
    pub gpu: String,
    /// `timing` or `functional`; empty for a real GPU.
    pub mode: String,
    /// `running`, `finished`, `failed`, `stopped`, or `unknown`.
    pub state: String,
    /// What went wrong, in sentences.
    pub problems: Vec<String>,
    /// The digest, if the run came to its end.
    pub digest: Option<String>,
    /// Simulated time of the whole run, in nanoseconds.
    pub simulated_ns: Option<f64>,
    /// Warp instructions that the host simulated in a second.
    pub inst_per_second: Option<f64>,
}

impl Run {
    /// Reads a folder.
    ///
    /// # Errors
    /// There is none, no run left it, or a file in it is not what its name says.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let listed = std::fs::read_dir(path);
        listed.map_err(|error| ReadError::system(path, error))?;
        let summary = open(&path.join("summary.json"), LARGEST_SUMMARY)?;
        let kernels = open(&path.join("kernels.csv"), LARGEST_TABLE)?;
        if summary.is_none() && kernels.is_none() {
            return Err(ReadError::NoRun {
                path: path.to_owned(),
            });
        }
        let mut notes = Vec::new();
        let summary = match summary {
            Some(file) => parse_summary(&path.join("summary.json"), file)?,
            None => {
                notes.push(
                    "summary.json is missing or empty: the GPU and how the run ended are not known"
                        .to_string(),
                );
                Value::Null
            }
        };
        let mut launches = Vec::new();
        match kernels {
            Some(file) => {
                let (found, more) = launch::read(&path.join("kernels.csv"), file)?;
                launches = found;
                notes.extend(more);
            }
            None => notes.push(without_launches(&summary["totals"])),
        }
        let info = info(path, &summary);
        let mut statistics = None;
        match open(&path.join("stats.csv"), LARGEST_TABLE)? {
            Some(file) => {
                let (found, more) = Statistics::read(&path.join("stats.csv"), file)?;
                statistics = Some(found);
                notes.extend(more);
            }
            None if info.source == "simulated" && summary != Value::Null => {
                notes.push(
                    "stats.csv is missing or empty: nothing is known of links and banks"
                        .to_string(),
                );
            }
            None => {}
        }
        if summary["partial"] == true {
            let sentence = "the run is partial: it was ended before its program came to its end, or it still goes on";
            notes.insert(0, sentence.to_string());
        }
        notes.extend(sampled(&summary["sampling"]));
        let mut copies = Vec::new();
        if let Some(file) = open(&path.join("copies.csv"), LARGEST_TABLE)? {
            copies = copies::read(&path.join("copies.csv"), file)?;
        }
        let mut lines = Vec::new();
        if let Some(file) = open(&path.join("lines.csv"), LARGEST_TABLE)? {
            let (found, more) = lines::read(&path.join("lines.csv"), file)?;
            lines = found;
            notes.extend(more);
        }
        let config = configuration(&summary, &mut notes);
        Ok(Self {
            path: path.to_owned(),
            info,
            launches,
            copies,
            lines,
            statistics,
            config,
            ranks: summary["ranks"].as_array().map_or(0, Vec::len),
            notes,
        })
    }
}

impl Run {
    /// Refuses a folder without launches.
    ///
    /// # Errors
    /// It has none.
    pub fn require_launches(&self, what: &'static str) -> Result<(), ReadError> {
        if self.launches.is_empty() {
            let path = self.path.clone();
            return Err(ReadError::NoLaunches { path, what });
        }
        Ok(())
    }
}

/// A file, if it is there and something stands in it: a run can be killed after it has made a file
/// and before it has written its head.
fn open(path: &Path, largest: u64) -> Result<Option<File>, ReadError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ReadError::system(path, error)),
    };
    let about = file.metadata();
    let about = about.map_err(|error| ReadError::system(path, error))?;
    // Reading a pipe could wait for ever.
    if !about.is_file() {
        return Err(ReadError::malformed(path, "it is not a plain file"));
    }
    if about.len() > largest {
        let length = about.len();
        let because = format!("{length} bytes are more than the {largest} that can be read");
        return Err(ReadError::malformed(path, because));
    }
    Ok((about.len() > 0).then_some(file))
}

fn parse_summary(path: &Path, file: File) -> Result<Value, ReadError> {
    let mut bytes = Vec::new();
    let read = file.take(LARGEST_SUMMARY).read_to_end(&mut bytes);
    read.map_err(|error| ReadError::system(path, error))?;
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| ReadError::malformed(path, format!("not JSON: {error}")))?;
    // Version and command are in the summary of every run, real or simulated.
    if value.get("lockstep").is_none() || value.get("command").is_none() {
        let because = "not the summary of a run: it lacks `lockstep` and `command`";
        return Err(ReadError::malformed(path, because));
    }
    Ok(value)
}

fn info(path: &Path, summary: &Value) -> RunInfo {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let texts = |value: &Value| {
        let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter().map(text).collect::<Vec<_>>()
    };
    let name = path.file_name().or_else(|| path.as_os_str().into());
    let real = summary["source"] == "real";
    let device = match texts(&summary["gpu_names"]).join(", ") {
        names if names.is_empty() => text(&summary["configuration"]["device"]["name"]),
        names => names,
    };
    let sampled = summary["totals"].get(0).map(|total| text(&total["gpu"]));
    let state = match summary["state"].as_str() {
        Some(state) => state.to_string(),
        None if real && summary["exit_code"] == 0 => "finished".to_string(),
        None => "unknown".to_string(),
    };
    let number = |value: &Value| value.as_f64().filter(|number| number.is_finite());
    RunInfo {
        name: name
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        source: if real { "real" } else { "simulated" }.to_string(),
        command: texts(&summary["command"]),
        gpu: match sampled {
            Some(gpu) if real => gpu,
            _ if device.is_empty() => text(&summary["gpu"]),
            _ => device,
        },
        mode: text(&summary["mode"]),
        state,
        problems: texts(&summary["ending"]["problems"]),
        digest: summary["digest"].as_str().map(str::to_string),
        simulated_ns: number(&summary["totals"]["simulated_ns"]),
        inst_per_second: number(&summary["host"]["inst_per_second"]),
    }
}

/// How the cycles of a sampled run came to be.
fn sampled(sampling: &Value) -> Option<String> {
    let number = |name: &str| sampling[name].as_f64().map(|number| number.round() as u64);
    Some(format!(
        "cycles of {} are projected from {} launches that took their time: {} ± {} in all ({:.2} %, 95 % confidence)",
        plural(number("projected_launches")?, "launch", "launches"),
        group(number("detailed_launches")?),
        group(number("cycles")?),
        group(number("cycles_half_width")?),
        sampling["half_width_percent"].as_f64()?,
    ))
}

/// How far a run had come that left no table of launches.
fn without_launches(totals: &Value) -> String {
    let missing = "kernels.csv is missing or empty: the run ended before it was written";
    let last = totals["kernel"].as_str().filter(|name| !name.is_empty());
    match (totals["kernels"].as_u64(), last) {
        (Some(begun), Some(last)) if begun > 0 => {
            let begun = plural(begun, "kernel", "kernels");
            format!(
                "{missing}; by then {begun} had begun, at last {}",
                readable(last)
            )
        }
        _ => missing.to_string(),
    }
}

/// The simulated GPU. A folder of another version may describe one that this version does not know.
fn configuration(summary: &Value, notes: &mut Vec<String>) -> Option<GpuConfig> {
    let described = summary.get("configuration").filter(|one| one.is_object())?;
    let config = serde_json::from_value::<GpuConfig>(described.clone());
    let checked = config
        .map_err(|error| error.to_string())
        .and_then(|config| {
            let checked = config.check();
            checked.map(|()| config).map_err(|error| error.to_string())
        });
    match checked {
        Ok(config) => Some(config),
        Err(error) => {
            notes.push(format!(
                "summary.json: this version does not understand the configuration, so limits of the GPU are not known: {error}"
            ));
            None
        }
    }
}
