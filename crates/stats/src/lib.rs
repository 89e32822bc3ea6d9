//! Statistics: declared once with unit and sentence; snapshot, merge, digest.
//!
//! A component declares what it counts with [`statistics!`]. Counting is adding to a plain integer
//! in its own struct; names, units and help texts are constants beside it, so every output (CSV,
//! Parquet, reference pages) says the same. [`Digest`]s of all components form a [`DigestTree`],
//! which says whether two runs were the same run, and if not, where they differ.
//!
//! Left out: time series. They are snapshots taken at intervals, by whoever writes them.
//!
//! Start reading at [`statistics!`] and [`Statistics`].

// The macro names this crate in paths that must also resolve inside it.
extern crate self as lockstep_stats;

mod declare;
mod digest;
mod histogram;
mod scalar;
mod table;

#[doc(hidden)]
pub use declare::Measure as __Measure;
pub use declare::{Description, Kind, Statistics, Value};
pub use digest::{Difference, Digest, DigestError, DigestTree, Hasher};
pub use histogram::Histogram;
pub use scalar::{Counter, Gauge, Maximum};
pub use table::{Row, Table, Values};

/// What the macro's expansion needs, whatever its user depends on.
#[doc(hidden)]
pub mod reexported {
    pub use serde;
}
