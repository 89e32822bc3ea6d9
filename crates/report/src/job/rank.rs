//! What one rank left, and the launches of all of them as one table.

use super::replace;
use crate::error::ReportError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Longer files of a rank are not read.
const LARGEST: u64 = 2 << 30;
/// More ranks than any machine starts.
const MOST_RANKS: usize = 100_000;

/// What a rank says of itself when it begins: `rank.json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RankInfo {
    /// Its number in the job.
    pub rank: u32,
    /// Its node.
    pub node: String,
    /// What is added to the node's clock to have that of the shared folder, in nanoseconds.
    pub clock_offset_ns: i64,
    /// How far that may be off.
    pub clock_within_ns: u64,
}

impl RankInfo {
    /// The file.
    const FILE: &'static str = "rank.json";

    /// Writes it into the folder of the rank.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        replace(&folder.join(Self::FILE), &text)
    }

    /// What is added to its times. Clocks that may be equal are taken as they are: what keeps those of a cluster
    /// together is finer than the clock of a file system.
    fn offset(&self) -> i64 {
        match self.clock_offset_ns.unsigned_abs() > self.clock_within_ns {
            true => self.clock_offset_ns,
            false => 0,
        }
    }
}

/// One rank.
pub(super) struct Rank {
    pub info: RankInfo,
    pub path: PathBuf,
    /// Its summary, once it has ended.
    pub summary: Option<Value>,
    /// What aligns its times: the same for all ranks of a node.
    offset: i64,
}

/// Rows of a rank's `kernels.csv`.
pub(super) struct Launches {
    head: csv::StringRecord,
    /// Aligned beginnings, and rows.
    rows: Vec<(u64, csv::StringRecord)>,
    start: usize,
    number: usize,
}

impl Launches {
    /// The earliest beginning.
    pub fn first_start(&self) -> Option<u64> {
        self.rows.iter().map(|(start, _)| *start).min()
    }
}

impl Rank {
    /// Those that have begun, by number.
    pub fn all(folder: &Path) -> Result<Vec<Self>, ReportError> {
        let mut ranks: Vec<Self> = Vec::new();
        let listed = fs::read_dir(folder).map_err(|error| ReportError::system(folder, error))?;
        for entry in listed.flatten().take(MOST_RANKS) {
            let path = entry.path();
            let Some(text) = read(&path.join(RankInfo::FILE))? else {
                continue;
            };
            let info: RankInfo = parse(&path.join(RankInfo::FILE), &text)?;
            let summary = match read(&path.join("summary.json"))? {
                Some(text) => Some(parse(&path.join("summary.json"), &text)?),
                None => None,
            };
            ranks.push(Self {
                offset: info.offset(),
                info,
                path,
                summary,
            });
        }
        ranks.sort_by_key(|rank| rank.info.rank);
        let mut clocks: BTreeMap<String, (u64, i64)> = BTreeMap::new();
        for rank in &ranks {
            // The rank that knows best speaks for its node.
            let known = (rank.info.clock_within_ns, rank.offset);
            let best = clocks.entry(rank.info.node.clone()).or_insert(known);
            *best = (*best).min(known);
        }
        for rank in &mut ranks {
            rank.offset = clocks.get(&rank.info.node).map_or(0, |(_, offset)| *offset);
        }
        Ok(ranks)
    }

    /// What is added to the times of its node, in nanoseconds.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// A time of its node on the clock of the job.
    pub fn aligned(&self, time: u64) -> u64 {
        time.saturating_add_signed(self.offset)
    }

    /// Rows of a table of this rank; none if it has none.
    pub fn table(&self, name: &str) -> Result<Option<Table>, ReportError> {
        let path = self.path.join(name);
        let Some(text) = read(&path)? else {
            return Ok(None);
        };
        let malformed = |error: csv::Error| ReportError::malformed(&path, error.to_string());
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(&*text);
        let head = reader.headers().map_err(malformed)?.clone();
        let mut rows = Vec::new();
        for row in reader.records() {
            let row = row.map_err(malformed)?;
            // What killed the rank may have cut the last one.
            if row.len() == head.len() {
                rows.push(row);
            }
        }
        Ok(Some((head, rows)))
    }

    /// Its launches.
    pub fn launches(&self) -> Result<Launches, ReportError> {
        let (head, rows) = self.table("kernels.csv")?.unwrap_or_default();
        let place = |name: &str| head.iter().position(|one| one == name);
        let (start, number) = match (place("start_ns"), place("launch")) {
            (Some(start), Some(number)) => (start, number),
            _ if rows.is_empty() => (0, 0),
            _ => {
                let because = "its head has no `launch` and `start_ns`";
                let path = self.path.join("kernels.csv");
                return Err(ReportError::malformed(&path, because));
            }
        };
        let timed = |row: csv::StringRecord| {
            let begun: u64 = row.get(start)?.parse().ok()?;
            Some((self.aligned(begun), row))
        };
        Ok(Launches {
            rows: rows.into_iter().filter_map(timed).collect(),
            head,
            start,
            number,
        })
    }
}

/// A head and its rows.
pub(super) type Table = (csv::StringRecord, Vec<csv::StringRecord>);

/// Writes the launches of all ranks in the order of time, numbered anew.
pub(super) fn write_launches(
    job: &Path,
    ranks: &[Rank],
    tables: Vec<Launches>,
    begun: u64,
) -> Result<(), ReportError> {
    let path = job.join("kernels.csv");
    let mut head: Option<csv::StringRecord> = None;
    let mut all = Vec::new();
    for (rank, table) in ranks.iter().zip(tables) {
        if table.rows.is_empty() {
            continue;
        }
        let known = head.get_or_insert_with(|| table.head.clone());
        if *known != table.head {
            let because =
                "its head is not that of the other ranks: all need the same version and counters";
            return Err(ReportError::malformed(
                &rank.path.join("kernels.csv"),
                because,
            ));
        }
        for (start, row) in table.rows {
            all.push((start, rank, table.start, table.number, row));
        }
    }
    all.sort_by_key(|(start, rank, ..)| (*start, rank.info.rank));
    let Some(head) = head else {
        return Ok(());
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    let malformed = |error: csv::Error| ReportError::malformed(&path, error.to_string());
    let columns = head.iter().chain(["rank", "node"]);
    writer.write_record(columns).map_err(malformed)?;
    for (launch, (start, rank, start_place, number_place, row)) in all.into_iter().enumerate() {
        let mut cells: Vec<String> = row.iter().map(str::to_string).collect();
        cells[start_place] = start.saturating_sub(begun).to_string();
        cells[number_place] = launch.to_string();
        cells.push(rank.info.rank.to_string());
        cells.push(rank.info.node.clone());
        writer.write_record(cells).map_err(malformed)?;
    }
    let text = writer.into_inner();
    let text = text.map_err(|error| ReportError::malformed(&path, error.to_string()))?;
    replace(&path, &text)
}

/// The bytes of a file, if it is there and something stands in it.
fn read(path: &Path) -> Result<Option<Vec<u8>>, ReportError> {
    let failed = |error| ReportError::system(path, error);
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(ReportError::malformed(path, "it is not a plain file"));
    }
    let mut bytes = Vec::new();
    let read = file.take(LARGEST).read_to_end(&mut bytes);
    read.map_err(failed)?;
    Ok((!bytes.is_empty()).then_some(bytes))
}

fn parse<'text, T: Deserialize<'text>>(path: &Path, text: &'text [u8]) -> Result<T, ReportError> {
    let parsed = serde_json::from_slice(text);
    parsed.map_err(|error| ReportError::malformed(path, format!("not what a rank writes: {error}")))
}
