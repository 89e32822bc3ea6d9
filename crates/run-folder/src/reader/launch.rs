//! `kernels.csv`: a row a launch, of simulated runs and of sampled ones.
//!
//! The file may have been cut by whatever ended its writer, so a row that does not fit the head is
//! left out and said; a file with another head is refused.

use crate::error::ReadError;
use lockstep_counters::{COUNTERS, LAUNCH_GAUGES};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// More launches than any run that one would read a report of; what comes after them is left out.
const MAXIMUM_LAUNCHES: usize = 1_000_000;
/// Sentences about rows that do not fit, at most.
const MAXIMUM_NOTES: usize = 5;

/// One launch, with what its run knows of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// Its number.
    pub number: u64,
    /// The kernel, as the run names it.
    pub kernel: String,
    /// The GPU: a number, or the UUID of a real one.
    pub gpu: String,
    /// The context.
    pub context: u64,
    /// The stream.
    pub stream: u64,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// When it began, in nanoseconds.
    pub start_ns: Option<f64>,
    /// How long it took, in nanoseconds.
    pub duration_ns: Option<f64>,
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Shared memory of a block in bytes.
    pub shared_bytes: Option<u64>,
    /// The launch whose kernel launched it.
    pub parent: Option<u64>,
    /// The rank of a job that launched it.
    pub rank: Option<u64>,
    /// When it began, in whole nanoseconds: those of a real GPU count from 1970, which the other
    /// number does not hold exactly.
    pub start: Option<u64>,
    /// In the order of the table of counters.
    counters: Vec<Option<u64>>,
    /// In the order of the gauges of launches.
    gauges: Vec<Option<f64>>,
}

impl Launch {
    /// A counter by name, if it is known.
    pub fn counter(&self, name: &str) -> Option<u64> {
        let place = COUNTERS.iter().position(|one| one.name == name)?;
        self.counters.get(place).copied().flatten()
    }

    /// All counters, in the order of the table.
    pub fn counters(&self) -> &[Option<u64>] {
        &self.counters
    }

    /// All gauges, in the order of their table.
    pub fn gauges(&self) -> &[Option<f64>] {
        &self.gauges
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        product(self.grid)
    }

    /// Threads of a block.
    pub fn threads(&self) -> u64 {
        product(self.block)
    }
}

fn product(shape: [u32; 3]) -> u64 {
    let sizes = shape.into_iter().map(u64::from);
    sizes.fold(1, u64::saturating_mul)
}

/// Where each column of interest is.
struct Columns {
    width: usize,
    number: usize,
    kernel: usize,
    gpu: Option<usize>,
    context: Option<usize>,
    stream: Option<usize>,
    grid: Option<usize>,
    block: Option<usize>,
    start_ns: Option<usize>,
    duration_ns: Option<usize>,
    registers: Option<usize>,
    shared_bytes: Option<usize>,
    parent: Option<usize>,
    rank: Option<usize>,
    counters: Vec<Option<usize>>,
    gauges: Vec<Option<usize>>,
}

impl Columns {
    fn of(head: &csv::StringRecord) -> Option<Self> {
        let find = |name: &str| head.iter().position(|column| column == name);
        Some(Self {
            width: head.len(),
            number: find("launch")?,
            kernel: find("kernel")?,
            gpu: find("gpu"),
            context: find("context"),
            stream: find("stream"),
            grid: find("grid"),
            block: find("block"),
            start_ns: find("start_ns"),
            duration_ns: find("duration_ns"),
            registers: find("registers"),
            shared_bytes: find("shared_bytes"),
            parent: find("parent"),
            rank: find("rank"),
            counters: COUNTERS.iter().map(|one| find(one.name)).collect(),
            gauges: LAUNCH_GAUGES.iter().map(|one| find(one.name)).collect(),
        })
    }

    /// A launch, or what is wrong with its row.
    fn launch(&self, row: &csv::StringRecord) -> Result<Launch, String> {
        if row.len() != self.width {
            let (found, width) = (row.len(), self.width);
            return Err(format!("has {found} fields of {width}"));
        }
        let cell = |place: Option<usize>| place.and_then(|place| row.get(place)).unwrap_or("");
        let number = cell(Some(self.number));
        let wrong = |what: &str, found: &str| {
            let found: String = found.chars().take(40).collect();
            format!("has `{found}` as {what}")
        };
        let shape_of = |place: Option<usize>, what: &str| match cell(place) {
            "" => Ok([1; 3]),
            text => shape(text).ok_or_else(|| wrong(what, text)),
        };
        let decimal = |place| number_of(cell(place));
        let count = |place: Option<usize>| cell(place).parse::<u64>().ok();
        Ok(Launch {
            number: number.parse().map_err(|_| wrong("its number", number))?,
            kernel: cell(Some(self.kernel)).to_string(),
            gpu: cell(self.gpu).to_string(),
            context: count(self.context).unwrap_or(0),
            stream: count(self.stream).unwrap_or(0),
            grid: shape_of(self.grid, "its grid")?,
            block: shape_of(self.block, "its block")?,
            start_ns: decimal(self.start_ns),
            start: whole_part(cell(self.start_ns)),
            duration_ns: decimal(self.duration_ns),
            registers: cell(self.registers).parse().ok(),
            shared_bytes: count(self.shared_bytes),
            parent: count(self.parent),
            rank: count(self.rank),
            counters: self.counters.iter().map(|place| count(*place)).collect(),
            gauges: self.gauges.iter().map(|place| decimal(*place)).collect(),
        })
    }
}

/// A number that is one: what is infinite or negative was not measured.
fn number_of(text: &str) -> Option<f64> {
    let number = text.parse::<f64>().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// What stands before the point.
fn whole_part(text: &str) -> Option<u64> {
    text.split('.').next()?.parse().ok()
}

/// `XxYxZ`.
fn shape(text: &str) -> Option<[u32; 3]> {
    let mut sizes = text.split('x').map(|size| size.parse().ok());
    let shape = [sizes.next()??, sizes.next()??, sizes.next()??];
    sizes.next().is_none().then_some(shape)
}

/// Whether the last line was cut: its last number may have more digits.
fn is_cut(mut file: &File) -> io::Result<bool> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut last = *b"\n";
    if length > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    file.rewind()?;
    Ok(last != *b"\n")
}

/// The launches of a file, and what the reader should know about it.
pub fn read(path: &Path, file: File) -> Result<(Vec<Launch>, Vec<String>), ReadError> {
    let cut = is_cut(&file).map_err(|error| ReadError::system(path, error))?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let head = reader.headers();
    let head = head.map_err(|error| ReadError::malformed(path, error.to_string()))?;
    let columns = Columns::of(head).ok_or_else(|| {
        let found: String = head.iter().take(4).collect::<Vec<_>>().join(",");
        let found: String = found.chars().take(80).collect();
        ReadError::malformed(
            path,
            format!("not a table of launches: it begins with `{found}` and lacks the columns `launch` and `kernel`"),
        )
    })?;
    let (mut launches, mut notes, mut wrong) = (Vec::new(), Vec::new(), 0usize);
    let mut last_is_read = false;
    for row in reader.records() {
        let line = row.as_ref().ok().and_then(|row| row.position());
        let line = line.map_or(0, csv::Position::line);
        let read = row.map_err(|error| format!("cannot be read ({error})"));
        let read = read.and_then(|row| columns.launch(&row));
        last_is_read = read.is_ok();
        match read {
            Ok(launch) => launches.push(launch),
            Err(because) => {
                wrong += 1;
                if notes.len() < MAXIMUM_NOTES {
                    notes.push(format!(
                        "kernels.csv: line {line} {because}; that launch is left out"
                    ));
                }
            }
        }
        if launches.len() == MAXIMUM_LAUNCHES {
            notes.push(format!(
                "kernels.csv: only its first {MAXIMUM_LAUNCHES} launches are read"
            ));
            break;
        }
    }
    if cut && last_is_read && launches.pop().is_some() {
        notes.push("kernels.csv: its last line has no end; that launch is left out".to_string());
    }
    if wrong > MAXIMUM_NOTES {
        notes.push(format!("kernels.csv: {wrong} lines are left out in all"));
    }
    // A run that goes on writes them as they end.
    launches.sort_by_key(|launch| launch.number);
    Ok((launches, notes))
}
