//! `copies.csv`: a row a transfer of a copy engine.

use crate::error::ReadError;
use serde::Serialize;
use std::fs::File;
use std::path::Path;

/// More transfers than any run that one would look at; what comes after them is left out.
const MAXIMUM_COPIES: usize = 1_000_000;

/// One transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Copy {
    /// The copy engine.
    pub engine: u32,
    /// The stream.
    pub stream: u64,
    /// From where to where.
    pub direction: String,
    /// Bytes.
    pub bytes: u64,
    /// When it began, in nanoseconds of simulated time.
    pub start_ns: f64,
    /// How long it took.
    pub duration_ns: f64,
}

/// The transfers of a file; a row that does not fit is left out.
pub fn read(path: &Path, file: File) -> Result<Vec<Copy>, ReadError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let head = reader.headers();
    let head = head.map_err(|error| ReadError::malformed(path, error.to_string()))?;
    let names = [
        "engine",
        "stream",
        "direction",
        "bytes",
        "start_ns",
        "duration_ns",
    ];
    let places = names.map(|name| head.iter().position(|column| column == name));
    let mut copies = Vec::new();
    for row in reader.records().filter_map(Result::ok) {
        let cell = |place: usize| row.get(places[place]?);
        let time = |place: usize| {
            let number: f64 = cell(place)?.parse().ok()?;
            (number.is_finite() && number >= 0.0).then_some(number)
        };
        let copy = || {
            Some(Copy {
                engine: cell(0)?.parse().ok()?,
                stream: cell(1)?.parse().ok()?,
                direction: cell(2)?.to_string(),
                bytes: cell(3)?.parse().ok()?,
                start_ns: time(4)?,
                duration_ns: time(5)?,
            })
        };
        copies.extend(copy());
        if copies.len() == MAXIMUM_COPIES {
            break;
        }
    }
    Ok(copies)
}
