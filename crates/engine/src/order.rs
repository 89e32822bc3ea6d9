//! The one order of messages that every run agrees on.

use lockstep_units::Time;
use serde::{Deserialize, Serialize};

use crate::PartitionId;

/// The place of a message in the order of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Order {
    pub due: Time,
    pub sender: PartitionId,
    pub sequence: u64,
}
