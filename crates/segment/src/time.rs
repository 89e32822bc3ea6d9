//! The clock of samples of real GPUs.

use std::time::SystemTime;

/// Nanoseconds since 1970: the clock of every record.
#[allow(
    clippy::disallowed_methods,
    reason = "samples of a real GPU are in real time"
)]
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
