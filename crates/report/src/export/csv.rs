//! Launches as CSV.

use super::columns::{Names, columns};
use crate::columns::Values;
use crate::error::ReportError;
use crate::folder::Run;

/// A head and a row a launch.
///
/// # Errors
/// The text cannot be made.
pub fn csv(run: &Run, names: Names) -> Result<Vec<u8>, ReportError> {
    let failed = |because: String| ReportError::Export {
        what: "CSV",
        because,
    };
    let columns = columns(run, names);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = writer.write_record(columns.iter().map(|column| &column.name));
    head.map_err(|error| failed(error.to_string()))?;
    for row in 0..run.launches.len() {
        let cells = columns.iter().map(|column| match &column.values {
            Values::Text(values) => values[row].clone().unwrap_or_default(),
            Values::Whole(values) => shown(values[row]),
            Values::Signed(values) => shown(values[row]),
            Values::Decimal(values) => shown(values[row]),
        });
        let written = writer.write_record(cells);
        written.map_err(|error| failed(error.to_string()))?;
    }
    let text = writer.into_inner();
    text.map_err(|error| failed(error.to_string()))
}

fn shown<V: ToString>(value: Option<V>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
