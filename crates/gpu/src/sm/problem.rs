//! What a lane did wrong.

use crate::fault::FaultKind;

/// What a lane did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The lane.
    pub lane: usize,
    /// What it did.
    pub kind: FaultKind,
}
