//! The run folder of a sampled program, like that of a simulation.
//!
//! Rows are appended and handed to the system at each poll, so that whatever kills this process or
//! the program, what was read is on disk. That is why the series is CSV: a Parquet file has no
//! value before its last byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockstep_attribution::LaunchRow;
use serde::Serialize;
use thiserror::Error;

use super::collector::{Collector, Gaps, Membership};
use super::rows::{GaugeRow, SeriesRow, Sink};
use lockstep_counters::measurable;
use lockstep_schema::{DEVICE_GAUGES, HOST_GAUGES, Metadata};

/// A folder that cannot be written, and what happens to the samples.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The folder or a file in it could not be made.
    #[error("{}: cannot write samples: {source}", path.display())]
    Unwritable {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file system has no room left.
    #[error(
        "{}: the disk is full; the program runs on, and its samples stay in shared memory until a reader with room comes: free space, then `lockstep sample --attach {}`",
        path.display(), segments.display()
    )]
    Full {
        /// The folder.
        path: PathBuf,
        /// Where the samples are.
        segments: PathBuf,
    },
}

/// Columns of `kernels.csv` that come from counters, in the order of a simulation's file.
fn kernel_counters() -> impl Iterator<Item = &'static str> {
    measurable().map(|counter| counter.name)
}

/// What `summary.json` says.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Version of this program.
    pub lockstep: &'static str,
    /// `real`, or `simulated` if none of the GPUs was real.
    pub source: &'static str,
    /// The sampled command.
    pub command: Vec<String>,
    /// Its exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// The metadata that was used, in full.
    pub metadata: Metadata,
    /// Processes by number.
    pub processes: BTreeMap<u32, String>,
    /// Jobs and ranks of those that are part of a parallel program.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub memberships: BTreeMap<u32, Membership>,
    /// Totals of every GPU, process, context, stream and kernel.
    pub totals: Vec<Total>,
    /// Streams that shared a GPU with others: their counts are estimates, right within so much.
    pub shared: Vec<SharedStream>,
    /// Records read from shared memory.
    pub records: u64,
    /// Records lost before they could be read.
    pub lost: u64,
    /// Time of each GPU that was sampled, and that should have been.
    pub gaps: BTreeMap<String, Gaps>,
    /// What could not be done, in the injectors' words.
    pub notices: Vec<String>,
    /// What was asked for and is lost; the exit code is not 0 if there is any.
    pub losses: Vec<String>,
}

/// One line of the totals.
#[derive(Debug, Serialize)]
pub struct Total {
    gpu: String,
    process: u32,
    context: u32,
    stream: u32,
    kernel: String,
    launches: u64,
    exact: bool,
    counters: BTreeMap<&'static str, u64>,
}

/// What a stream did that shared a GPU.
#[derive(Debug, Serialize)]
pub struct SharedStream {
    gpu: String,
    process: u32,
    context: u32,
    stream: u32,
    intervals: u64,
    counters: BTreeMap<&'static str, u64>,
    within: BTreeMap<&'static str, u64>,
}

/// Writes a run folder.
pub struct SampleFolder {
    path: PathBuf,
    counters: Vec<&'static str>,
    series: BufWriter<File>,
    kernels: BufWriter<File>,
    sequence: u64,
    launches: u64,
    /// GPUs that are simulated.
    simulated: BTreeSet<Arc<str>>,
}

impl SampleFolder {
    /// Where the figures of a GPU come from.
    fn source(&self, gpu: &str) -> &'static str {
        match self.simulated.contains(gpu) {
            true => "simulated",
            false => "real",
        }
    }

    /// Counters by name.
    fn named(&self, counts: &[u64]) -> BTreeMap<&'static str, u64> {
        let names = self.counters.iter().copied();
        names.zip(counts.iter().copied()).collect()
    }

    /// Where all figures come from: real as soon as one GPU is.
    fn only_source(&self, collector: &Collector) -> &'static str {
        let mut gpus = collector.totals().keys().map(|key| &key.gpu);
        match !self.simulated.is_empty() && gpus.all(|gpu| self.simulated.contains(gpu)) {
            true => "simulated",
            false => "real",
        }
    }

    /// Makes the folder and the headers of its files.
    pub fn create(path: &Path, counters: &[&'static str]) -> Result<Self, FolderError> {
        let unwritable = |path: &Path| {
            let path = path.to_owned();
            move |source| FolderError::Unwritable { path, source }
        };
        // What a program does is for its owner alone, as in the folder of a simulation.
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        made.map_err(unwritable(path))?;
        let open = |name: &str| {
            let file = path.join(name);
            // Appending makes a folder continue where a killed reader left it.
            let opened = File::options()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&file);
            opened.map(BufWriter::new).map_err(unwritable(&file))
        };
        let mut folder = Self {
            path: path.to_owned(),
            counters: counters.to_vec(),
            series: open("series.csv")?,
            kernels: open("kernels.csv")?,
            sequence: 0,
            launches: 0,
            simulated: BTreeSet::new(),
        };
        folder.headers().map_err(unwritable(path))?;
        Ok(folder)
    }

    fn headers(&mut self) -> io::Result<()> {
        if self.series.get_ref().metadata()?.len() == 0 {
            let gauges: Vec<&str> = DEVICE_GAUGES
                .iter()
                .chain(HOST_GAUGES)
                .map(|gauge| gauge.name)
                .collect();
            writeln!(
                self.series,
                "sequence,time_ns,node,gpu,process,context,stream,kernel,source,exact,{},{}",
                self.counters.join(","),
                gauges.join(",")
            )?;
        }
        if self.kernels.get_ref().metadata()?.len() == 0 {
            writeln!(
                self.kernels,
                "launch,kernel,gpu,context,stream,grid,block,start_ns,duration_ns,{},process,source,exact",
                kernel_counters().collect::<Vec<_>>().join(",")
            )?;
        }
        self.flush()
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a failed write means for the user.
    pub fn explain(&self, error: io::Error, segments: &Path) -> FolderError {
        if error.kind() == io::ErrorKind::StorageFull {
            FolderError::Full {
                path: self.path.clone(),
                segments: segments.to_owned(),
            }
        } else {
            FolderError::Unwritable {
                path: self.path.clone(),
                source: error,
            }
        }
    }

    /// Writes `summary.json`.
    pub fn summarise(
        &self,
        collector: &Collector,
        metadata: &Metadata,
        command: &[String],
        exit_code: Option<i32>,
    ) -> io::Result<Summary> {
        let (records, lost) = collector.records();
        let summary = Summary {
            lockstep: env!("CARGO_PKG_VERSION"),
            source: self.only_source(collector),
            command: command.to_vec(),
            exit_code,
            metadata: metadata.clone(),
            processes: collector
                .processes()
                .iter()
                .map(|(process, text)| (*process, text.to_string()))
                .collect(),
            memberships: collector.memberships().clone(),
            totals: collector
                .totals()
                .iter()
                .map(|(key, totals)| Total {
                    gpu: key.gpu.to_string(),
                    process: key.process,
                    context: key.context,
                    stream: key.stream,
                    kernel: key.kernel.to_string(),
                    launches: totals.launches,
                    exact: totals.exact,
                    counters: self
                        .counters
                        .iter()
                        .zip(&totals.counters)
                        .filter_map(|(name, count)| Some((*name, (*count)?)))
                        .collect(),
                })
                .collect(),
            shared: collector
                .error_bounds()
                .shared()
                .map(|((gpu, process, context, stream), shared)| SharedStream {
                    gpu: gpu.to_string(),
                    process: *process,
                    context: *context,
                    stream: *stream,
                    intervals: shared.intervals,
                    counters: self.named(&shared.counters),
                    within: self.named(&shared.within),
                })
                .collect(),
            records,
            lost,
            gaps: collector
                .gaps()
                .iter()
                .map(|(gpu, gaps)| (gpu.to_string(), *gaps))
                .collect(),
            notices: collector.notices(),
            losses: collector.losses(),
        };
        let text = serde_json::to_string_pretty(&summary)?;
        fs::write(self.path.join("summary.json"), text + "\n")?;
        Ok(summary)
    }
}

/// Text of a CSV field.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn values(values: &[Option<u64>]) -> String {
    let texts: Vec<String> = values
        .iter()
        .map(|value| value.map_or_else(String::new, |value| value.to_string()))
        .collect();
    texts.join(",")
}

impl Sink for SampleFolder {
    fn simulated(&mut self, gpu: &Arc<str>) {
        self.simulated.insert(Arc::clone(gpu));
    }

    fn series(&mut self, row: &SeriesRow) -> io::Result<()> {
        let gauges = ",".repeat(DEVICE_GAUGES.len() + HOST_GAUGES.len() - 1);
        let key = &row.key;
        writeln!(
            self.series,
            "{},{},{},{},{},{},{},{},{},{},{},{gauges}",
            self.sequence,
            row.time,
            field(&row.node),
            key.gpu,
            key.process,
            key.context,
            key.stream,
            field(&key.kernel),
            self.source(&key.gpu),
            if row.exact { "exact" } else { "estimated" },
            values(&row.counters),
        )?;
        self.sequence += 1;
        Ok(())
    }

    fn launch(&mut self, row: &LaunchRow) -> io::Result<()> {
        let counters: Vec<Option<u64>> = kernel_counters()
            .map(|name| {
                let place = self.counters.iter().position(|counter| *counter == name)?;
                row.counters.get(place).copied().flatten()
            })
            .collect();
        let key = &row.key;
        writeln!(
            self.kernels,
            "{},{},{},{},{},{}x{}x{},{}x{}x{},{},{},{},{},{},{}",
            self.launches,
            field(&key.kernel),
            key.gpu,
            key.context,
            key.stream,
            row.grid[0],
            row.grid[1],
            row.grid[2],
            row.block[0],
            row.block[1],
            row.block[2],
            row.begin,
            row.end.saturating_sub(row.begin),
            values(&counters),
            key.process,
            self.source(&key.gpu),
            if row.exact { "exact" } else { "estimated" },
        )?;
        self.launches += 1;
        Ok(())
    }

    fn gauges(&mut self, row: &GaugeRow) -> io::Result<()> {
        let counters = ",".repeat(self.counters.len());
        let (of_gpu, of_host) = if row.gpu.is_empty() {
            (",".repeat(DEVICE_GAUGES.len() - 1), values(&row.gauges))
        } else {
            (values(&row.gauges), ",".repeat(HOST_GAUGES.len() - 1))
        };
        writeln!(
            self.series,
            "{},{},{},{},{},,,,{},exact,{counters}{of_gpu},{of_host}",
            self.sequence,
            row.time,
            field(&row.node),
            row.gpu,
            row.process,
            self.source(&row.gpu),
        )?;
        self.sequence += 1;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.series.flush()?;
        self.kernels.flush()
    }
}
