//! What is known of the folders, read again when they change.

use crate::resample::Columns;
use lockstep_report::series::{Part, STORED, Series};
use lockstep_report::{ReportError, Run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

/// Files that change while a run goes on.
const WATCHED: [&str; 3] = ["summary.json", "kernels.csv", "lines.csv"];

/// When files were written last and how long they are.
type Stamp = Vec<Option<(u128, u64)>>;

/// One folder.
pub struct Folder {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    run: Option<(Stamp, Arc<Run>)>,
    /// Counters that were asked for, by part and name.
    series: Option<Stamp>,
    counters: BTreeMap<(Part, String), Arc<Counter>>,
}

/// One counter of all parts of a kind.
pub struct Counter {
    /// Beginning and end of each interval, number of the part, what was counted.
    rows: Vec<(f64, f64, u32, f64)>,
    /// The highest number of a part.
    pub parts: u32,
}

impl Counter {
    /// Sums over all parts.
    pub fn sums(&self, columns: Columns) -> Vec<f64> {
        let mut sums = vec![0.0; columns.count];
        for (begin, end, _, counted) in &self.rows {
            columns.add(&mut sums, *begin, *end, *counted);
        }
        sums
    }

    /// Sums for each part, one part after the other.
    pub fn by_part(&self, columns: Columns) -> Vec<f64> {
        let mut sums = vec![0.0; columns.count * self.parts as usize];
        for (begin, end, number, counted) in &self.rows {
            let from = *number as usize * columns.count;
            columns.add(
                &mut sums[from..from + columns.count],
                *begin,
                *end,
                *counted,
            );
        }
        sums
    }

    /// The end of the last interval.
    pub fn end(&self) -> f64 {
        self.rows.iter().map(|row| row.1).fold(0.0, f64::max)
    }
}

/// More parts than any GPU has.
const MOST_PARTS: u32 = 4096;

impl Folder {
    /// Reads a folder for the first time.
    ///
    /// # Errors
    /// No run left it.
    pub fn open(path: &Path) -> Result<Self, ReportError> {
        let folder = Self {
            path: path.to_owned(),
            state: Mutex::default(),
        };
        folder.run()?;
        Ok(folder)
    }

    /// The run as it is now.
    ///
    /// # Errors
    /// The folder is gone, or a file in it is not what its name says.
    pub fn run(&self) -> Result<Arc<Run>, ReportError> {
        let stamp = self.stamp(&WATCHED);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, run)) = &state.run
            && *known == stamp
        {
            return Ok(Arc::clone(run));
        }
        let run = Arc::new(Run::read(&self.path)?);
        state.run = Some((stamp, Arc::clone(&run)));
        Ok(run)
    }

    /// A number that changes when the folder does.
    pub fn version(&self) -> u64 {
        let mut names = WATCHED.to_vec();
        names.extend(series_files());
        let stamps = self.stamp(&names);
        let parts = stamps.iter().flatten();
        parts.fold(0, |sum: u64, (time, length)| {
            let time = *time as u64;
            sum.rotate_left(7) ^ time ^ length.rotate_left(32)
        }) & ((1 << 53) - 1)
    }

    /// Whether there is a series, and whether it is complete.
    pub fn series(&self) -> Option<bool> {
        Series::open(&self.path).map(|series| series.is_complete())
    }

    /// A counter of a kind of part; none without a series.
    ///
    /// # Errors
    /// The series cannot be read.
    pub fn counter(&self, part: Part, name: &str) -> Result<Option<Arc<Counter>>, ReportError> {
        let Some(series) = Series::open(&self.path) else {
            return Ok(None);
        };
        let files: Vec<&str> = series_files().collect();
        let stamp = self.stamp(&files);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.series.as_ref() != Some(&stamp) {
            state.series = Some(stamp);
            state.counters.clear();
        }
        let key = (part, name.to_string());
        if let Some(known) = state.counters.get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let (mut rows, mut parts) = (Vec::new(), 0);
        series.each(part, &[name], |block| {
            rows.reserve(block.time_ns.len());
            for (row, end) in block.time_ns.iter().enumerate() {
                let (number, counted) = (block.number[row], block.counters[0][row]);
                if number < MOST_PARTS && counted > 0 {
                    parts = parts.max(number + 1);
                    let begin = end - block.interval_ns[row];
                    rows.push((begin, *end, number, counted as f64));
                }
            }
            Ok(())
        })?;
        let counter = Arc::new(Counter { rows, parts });
        state.counters.insert(key, Arc::clone(&counter));
        Ok(Some(counter))
    }

    fn stamp(&self, names: &[&str]) -> Stamp {
        let of = |name: &&str| {
            let about = self.path.join(name).metadata().ok()?;
            let changed = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some((changed.as_nanos(), about.len()))
        };
        names.iter().map(of).collect()
    }
}

fn series_files() -> impl Iterator<Item = &'static str> {
    Part::ALL.into_iter().map(Part::pieces).chain([STORED])
}
