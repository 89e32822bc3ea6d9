//! What is known of the folders, read again when they change.

use crate::counter::Counter;
use lockstep_run_folder::series::{Part, SERIES, Series};
use lockstep_run_folder::{ReadError, Run};
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
    series: Option<Stamp>,
    /// Counters that were asked for, the latest last.
    counters: Vec<((Part, String), Slot)>,
}

/// A counter, once somebody has read it; whoever asks for the same one meanwhile waits, and nobody else.
type Slot = Arc<Mutex<Option<Arc<Counter>>>>;

/// Rows that are kept in all, ten bytes each: further counters take the place of those asked for longest ago.
const MOST_ROWS: usize = 64_000_000;

/// Counters that the page shows before anybody chooses others.
pub const FIRST: [(Part, &[&str]); 3] = [
    (
        Part::Gpu,
        &["inst_executed", "dram_bytes_read", "l2_sectors"],
    ),
    (Part::Sm, &["inst_executed"]),
    (Part::Slice, &["l2_sectors"]),
];

impl Folder {
    /// Reads a folder for the first time.
    ///
    /// # Errors
    /// No run left it.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
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
    pub fn run(&self) -> Result<Arc<Run>, ReadError> {
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
        names.push(SERIES);
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
    pub fn counter(&self, part: Part, name: &str) -> Result<Option<Arc<Counter>>, ReadError> {
        let Some(series) = Series::open(&self.path) else {
            return Ok(None);
        };
        let slot = self.slot(part, name);
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*slot {
            return Ok(Some(Arc::clone(known)));
        }
        let mut counter = Counter::default();
        series.each(part, &[name], |block| {
            counter.add(block);
            Ok(())
        })?;
        let counter = Arc::new(counter);
        *slot = Some(Arc::clone(&counter));
        Ok(Some(counter))
    }

    /// Reads what the page will ask for first of a kind of part. Whoever asks meanwhile waits for this one, so nothing
    /// is read twice.
    pub fn read_ahead(&self, part: Part) {
        let first = FIRST.iter().filter(|(one, _)| *one == part);
        for name in first.flat_map(|(_, names)| *names) {
            // Whoever asks for it is told what is wrong.
            let _ = self.counter(part, name);
        }
    }

    /// The place of a counter, where it may be already. What belongs to files of before is forgotten.
    fn slot(&self, part: Part, name: &str) -> Slot {
        let stamp = self.stamp(&[SERIES]);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.series.as_ref() != Some(&stamp) {
            state.series = Some(stamp);
            state.counters.clear();
        }
        let key = (part, name.to_string());
        let known = state.counters.iter().position(|(one, _)| *one == key);
        let asked = match known {
            Some(place) => state.counters.remove(place),
            None => (key, Slot::default()),
        };
        let slot = Arc::clone(&asked.1);
        state.counters.push(asked);
        while state.counters.len() > 1 && rows(&state.counters) > MOST_ROWS {
            state.counters.remove(0);
        }
        slot
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

/// Rows of the counters that have been read.
fn rows(counters: &[((Part, String), Slot)]) -> usize {
    let of = |slot: &Slot| {
        // One that is being read counts when it is there.
        let counter = slot.try_lock().ok()?;
        counter.as_ref().map(|counter| counter.rows())
    };
    counters.iter().filter_map(|(_, slot)| of(slot)).sum()
}
