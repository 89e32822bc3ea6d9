//! The launches of a run for other tools: CSV, Parquet, Perfetto.
//!
//! Start reading at [`columns`]: CSV and Parquet are two ways to write the same table. Parquet and
//! Perfetto's packets are written here byte by byte; `docs/decisions/0060-reports-and-exports.md` says
//! why.

mod columns;
mod csv;
mod parquet;
mod perfetto;
mod protobuf;
mod thrift;

pub use columns::Names;
pub use csv::csv;
pub use parquet::parquet;
pub use perfetto::perfetto;
