//! One folder for all ranks of a parallel program, made of the folders that each rank left below it.
//!
//! Every rank samples itself into `ranks/N` and, when it ends, gathers what all ranks have left so far; the last one
//! that ends leaves the whole. Times are those of the node's clock plus what aligns it ([`RankInfo`]), counted
//! from the earliest of them. The series has a row for each rank and interval; their sum is the job's.
//!
//! Left out: how many ranks there should have been. One that never began is in no folder.
//!
//! Start reading at [`gather`].

mod rank;
mod samples;
mod summary;

use crate::error::ReportError;
use lockstep_run_folder::series::{self, Part, Recorder, SERIES, Sample};
use rank::Rank;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

pub use rank::RankInfo;

/// Where ranks leave their folders.
const RANKS: &str = "ranks";
/// Held by the rank that gathers.
const LOCK: &str = "ranks.lock";

/// The folder of a rank within that of its job.
pub fn rank_folder(job: &Path, rank: u32) -> PathBuf {
    job.join(RANKS).join(rank.to_string())
}

/// Gathers what the ranks of a job have left, in the place of what was gathered before. Returns how many there are.
///
/// # Errors
/// A file of a rank is not what its name says, or the folder cannot be written.
pub fn gather(job: &Path) -> Result<usize, ReportError> {
    let failed = |error| ReportError::system(job, error);
    // Ranks that end at the same time gather one after the other.
    let lock = File::create(job.join(LOCK)).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let ranks = Rank::all(&job.join(RANKS))?;
    let tables = ranks.iter().map(Rank::launches);
    let tables = tables.collect::<Result<Vec<_>, _>>()?;
    let sampled = ranks.iter().map(samples::read);
    let sampled: Vec<_> = sampled.collect::<Result<_, _>>()?;
    let begun = tables.iter().flat_map(|table| table.first_start());
    let begun = begun.chain(
        sampled
            .iter()
            .flat_map(|one| one.first().map(|one| one.begin)),
    );
    let begun = begun.min().unwrap_or(0);
    rank::write_launches(job, &ranks, tables, begun)?;
    write_series(job, &ranks, sampled, begun)?;
    summary::write(job, &ranks, begun)?;
    Ok(ranks.len())
}

/// Writes the samples of all ranks in the order of time.
fn write_series(
    job: &Path,
    ranks: &[Rank],
    sampled: Vec<Vec<samples::RankSample>>,
    begun: u64,
) -> Result<(), ReportError> {
    let failed = |error| ReportError::system(job, error);
    let numbered = ranks.iter().zip(sampled);
    let mut all: Vec<(u32, samples::RankSample)> = numbered
        .flat_map(|(rank, some)| some.into_iter().map(|one| (rank.info.rank, one)))
        .collect();
    if all.is_empty() {
        return Ok(());
    }
    all.sort_by_key(|(rank, one)| (one.end, *rank));
    let file = File::create(job.join(SERIES)).map_err(failed)?;
    let mut recorder = Recorder::begin(file).map_err(failed)?;
    for (rank, one) in all {
        let sample = Sample {
            time_ns: one.end.saturating_sub(begun) as f64,
            interval_ns: one.end.saturating_sub(one.begin) as f64,
            gpu: 0,
            launch: None,
        };
        let added = recorder.add(&sample, |rows| rows.add(Part::Gpu, rank, &one.counters));
        if !added {
            break;
        }
    }
    recorder.finish().map_err(failed)?;
    let next = job.join("series.next");
    let mut sink = BufWriter::new(File::create(&next).map_err(failed)?);
    series::finish(job, &mut sink)?;
    sink.flush().map_err(failed)?;
    fs::rename(&next, job.join(SERIES)).map_err(failed)
}

/// Puts a text in the place of a file at once.
fn replace(path: &Path, text: &[u8]) -> Result<(), ReportError> {
    let next = path.with_extension("next");
    let written = fs::write(&next, text).and_then(|()| fs::rename(&next, path));
    written.map_err(|error| ReportError::system(path, error))
}
