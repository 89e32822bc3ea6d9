//! Ranges by which a program says what it is at (NVTX).

use serde::{Deserialize, Serialize};

/// What a range is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RangeName {
    /// Its message.
    pub name: String,
    /// The domain that it belongs to; empty for the default one.
    pub domain: String,
}

/// A range begins or ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RangeStep {
    /// The calling thread opens one inside those that it has open in the domain.
    Push(RangeName),
    /// The calling thread closes the innermost one of a domain.
    Pop {
        /// The domain.
        domain: String,
    },
    /// The process opens one, which any thread may close.
    Start {
        /// A number that the process gives to no other.
        id: u64,
        /// What it is called.
        name: RangeName,
    },
    /// The process closes one.
    End {
        /// The number that it was opened with.
        id: u64,
    },
}
