//! The launches and the series of a run for other tools: CSV, Parquet, Perfetto.
//!
//! Start reading at `columns`: CSV and Parquet are two ways to write the same table.

mod columns;
mod csv;
mod parquet;
mod perfetto;
mod protobuf;
mod series;

pub use columns::Names;
pub use csv::csv;
pub use parquet::parquet;
pub use perfetto::perfetto;
pub use series::{series_csv, series_parquet};
