//! Simulates a record of calls by itself: a program's run again, on any GPU, without the program.
//!
//! A full record has the calls in their order, the images that they load and the bytes that the host wrote. From
//! these the hardware does what it did, so the same GPU gives the same cycles, counters and digest. It is the form
//! in which a run is kept where its behaviour is wanted and not its text; Accel-Sim's traces are made from it
//! (`docs/decisions/0088-records-are-our-traces.md`).

use crate::description::Description;
use crate::in_folder::in_folder;
use crate::program::RunError;
use crate::replay::replay_into;
use crate::results::Results;
use lockstep_run_folder::RECORD;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// How a record that stands alone is called.
const EXTENSION: &str = "record";

/// The record of a run folder, or a record itself.
pub fn record_of(place: &Path) -> PathBuf {
    match place.is_dir() {
        true => place.join(RECORD),
        false => place.to_path_buf(),
    }
}

/// The record that a path names: itself, or that of a run folder. Nothing if it names something else.
pub fn record_at(place: &Path) -> Option<PathBuf> {
    let inside = place.join(RECORD);
    if inside.is_file() {
        return Some(inside);
    }
    let named = place.extension().is_some_and(|known| known == EXTENSION);
    (named && place.is_file()).then(|| place.to_path_buf())
}

/// Simulates what a record holds and writes a run folder. On the GPU and in the mode that it was made with, as the
/// summary beside it says, every answer must be the one that the program had; otherwise times are others, and only
/// what the program read must be the same.
///
/// # Errors
/// The record cannot be read, or nothing could be simulated.
pub fn replay_record(description: &Description, record: &Path) -> Result<Results, RunError> {
    let same_times = is_as_recorded(description, record);
    let command = [record.display().to_string()];
    let simulated = in_folder(description, &command, |folder, interrupts| {
        let results = replay_into(description, record, folder, interrupts, same_times)?;
        Ok((results, ()))
    });
    simulated.map(|(results, ())| results)
}

/// Whether a run has the configuration and the mode of the one that left a record. Without a summary that says so it
/// has not.
fn is_as_recorded(description: &Description, record: &Path) -> bool {
    let summary = std::fs::read(record.with_file_name("summary.json")).ok();
    let summary: Option<Value> = summary.and_then(|text| serde_json::from_slice(&text).ok());
    let Some(summary) = summary else {
        return false;
    };
    let ours = serde_json::to_value(&description.config).unwrap_or(Value::Null);
    let everything = description.sampling.is_none() && description.selection.is_everything();
    everything && summary["configuration"] == ours && summary["mode"] == description.mode.name()
}
