//! Launches as CSV.

use super::columns::{Names, columns};
use crate::columns::{Column, Values};
use crate::error::ReportError;
use lockstep_run_folder::Run;

/// A head and a row a launch.
///
/// # Errors
/// The text cannot be made.
pub fn csv(run: &Run, names: Names) -> Result<Vec<u8>, ReportError> {
    let mut text = Vec::new();
    rows(&mut text, &columns(run, names))?;
    Ok(text)
}

/// Adds rows to a text, and the head if it is empty.
pub(super) fn rows(text: &mut Vec<u8>, columns: &[Column]) -> Result<(), ReportError> {
    let failed = |because: String| ReportError::Export {
        what: "CSV",
        because,
    };
    let is_first = text.is_empty();
    let mut writer = csv::Writer::from_writer(text);
    if is_first {
        let head = writer.write_record(columns.iter().map(|column| &column.name));
        head.map_err(|error| failed(error.to_string()))?;
    }
    let length = columns.first().map_or(0, |column| column.values.len());
    for row in 0..length {
        let cells = columns.iter().map(|column| match &column.values {
            Values::Text(values) => values[row].as_deref().unwrap_or_default().to_string(),
            Values::Whole(values) => shown(values[row]),
            Values::Signed(values) => shown(values[row]),
            Values::Decimal(values) => shown(values[row]),
            Values::Counted(values) => values[row].to_string(),
        });
        let written = writer.write_record(cells);
        written.map_err(|error| failed(error.to_string()))?;
    }
    writer.flush().map_err(|error| failed(error.to_string()))
}

fn shown<V: ToString>(value: Option<V>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
