//! What a lane did wrong.

use crate::fault::FaultKind;

/// What a lane did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Lane.
    pub lane: usize,
    /// What.
    pub kind: FaultKind,
}
