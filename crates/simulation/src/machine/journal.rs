//! What a run writes into its folder while it goes on: launches as they end, transfers as they begin,
//! and now and then every statistic. Whatever kills the simulator, this is there.
//!
//! Nothing here flows back into the simulation.

use super::Machine;
use super::series::SeriesRecording;
use crate::description::{Interval, Mode};
use crate::results;
use lockstep_run_folder::{CopyRow, Growing, RunFolder, RunFolderError};
use lockstep_runtime::LaunchSummary;
use lockstep_runtime::device::{KernelResult, Transfer};
use lockstep_stats::Table;
use lockstep_units::Time;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often statistics are written at most.
const STATISTICS: Duration = Duration::from_secs(10);
/// And at most this part of the time is spent on it.
const SHARE: u32 = 100;

/// What a run has written so far.
pub struct Journal {
    folder: Arc<RunFolder>,
    /// None once the file could not be written: the run is stopped for want of room elsewhere.
    kernels: Option<Growing>,
    copies: Option<Growing>,
    /// Launches that have not ended.
    pub(super) announced: BTreeMap<u64, LaunchSummary>,
    /// Samples of counters, if they are asked for.
    pub(super) series: Option<SeriesRecording>,
    written: Instant,
    /// When statistics are due again.
    pause: Duration,
}

#[allow(
    clippy::disallowed_methods,
    reason = "when statistics are written changes no answer"
)]
impl Journal {
    /// Begins the tables.
    fn begin(folder: &Arc<RunFolder>) -> Result<Self, RunFolderError> {
        Ok(Self {
            kernels: Some(folder.begin_kernels()?),
            copies: Some(folder.begin_copies()?),
            folder: folder.clone(),
            announced: BTreeMap::new(),
            series: None,
            written: Instant::now(),
            pause: STATISTICS,
        })
    }

    /// Writes every statistic, if that is due.
    fn statistics(&mut self, gather: impl FnOnce() -> Table) {
        if self.written.elapsed() < self.pause {
            return;
        }
        let began = Instant::now();
        // The last ones are written at the end, where a failure is told.
        let _ = self.folder.write_statistics(&gather());
        self.written = Instant::now();
        self.pause = STATISTICS.max(began.elapsed() * SHARE);
    }
}

/// Adds a row to a table that can still be written.
fn add(table: &mut Option<Growing>, row: impl FnOnce(&mut Growing) -> std::io::Result<()>) {
    if table.as_mut().is_some_and(|table| row(table).is_err()) {
        *table = None;
    }
}

impl Machine {
    /// Writes down from now on what happens.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write_down(
        &mut self,
        folder: &Arc<RunFolder>,
        series: Option<Interval>,
    ) -> Result<(), RunFolderError> {
        let mut journal = Journal::begin(folder)?;
        if let Some(interval) = series {
            let clock = self.config.device.clock;
            let begun = SeriesRecording::begin(folder, interval, clock);
            journal.series = Some(begun.map_err(|error| RunFolderError::of(folder.path(), error))?);
        }
        self.journal = Some(Box::new(journal));
        Ok(())
    }

    /// When the GPU is to stop for a sample at the latest.
    pub(super) fn sample_due(&mut self) -> Time {
        let now = self.gpu.now();
        let journal = self.journal.as_mut();
        let series = journal.and_then(|journal| journal.series.as_mut());
        series.map_or(Time::NEVER, |series| series.due(now))
    }

    /// A fault has taken what blocks had counted.
    pub(super) fn reset_samples(&mut self) {
        let journal = self.journal.as_mut();
        if let Some(series) = journal.and_then(|journal| journal.series.as_mut()) {
            series.reset(&self.gpu);
        }
    }

    pub(super) fn note_announced(&mut self, launch: &LaunchSummary) {
        if let Some(journal) = &mut self.journal {
            journal.announced.insert(launch.id, launch.clone());
        }
    }

    pub(super) fn note_ended(&mut self, ended: &[KernelResult]) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        // Launches by kernels are numbered when all are known.
        for result in ended.iter().filter(|result| result.by_kernel.is_none()) {
            let Some(mut launch) = journal.announced.remove(&result.id) else {
                continue;
            };
            launch.result = Some(result.clone());
            let mode = match result.counters.timed {
                true => Mode::Timing,
                false => Mode::Functional,
            };
            let mut row = results::row(&launch, mode.name(), self.config.sm.warps);
            row.region = self.selection.region_of(&launch);
            add(&mut journal.kernels, |table| table.kernel(&row));
        }
        let gpu = &self.gpu;
        journal.statistics(|| {
            let mut table = Table::default();
            gpu.statistics("gpu 0", &mut table);
            table
        });
    }

    pub(super) fn note_transfer(&mut self, transfer: &Transfer) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        let nanoseconds = |femtoseconds: u64| femtoseconds as f64 / 1e6;
        let row = CopyRow {
            copy: transfer.number,
            engine: transfer.engine,
            stream: transfer.stream,
            direction: transfer.moves.way,
            bytes: transfer.moves.bytes,
            start_ns: nanoseconds(transfer.start.0),
            duration_ns: nanoseconds(transfer.end.since(transfer.start).0),
            gpu: 0,
        };
        add(&mut journal.copies, |table| table.copy(&row));
    }
}
