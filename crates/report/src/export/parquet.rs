//! Launches as a Parquet file.

use super::columns::{Names, columns};
use crate::error::ReportError;
use lockstep_run_folder::Run;

/// A file with a row a launch.
///
/// # Errors
/// The columns are more than the format can hold.
pub fn parquet(run: &Run, names: Names) -> Result<Vec<u8>, ReportError> {
    crate::columns::parquet("launches", &columns(run, names))
}
