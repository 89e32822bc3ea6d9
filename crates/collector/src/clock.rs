//! How far this node's clock is from that of a file system that several nodes share.
//!
//! Ranks of a job need no network of ours: every one of them makes files in the job's folder, and whoever keeps the
//! folder stamps them. The stamp is coarse, so only clocks that are visibly apart can be told to be.

use lockstep_segment::now;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

/// Files that are made: the one that took least time knows best.
const PROBES: u32 = 8;
/// Stamps are this coarse, in nanoseconds: the tick of a slow kernel.
const TICK: u64 = 10_000_000;

/// What a node's clock lacks to that of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// To be added to the node's times, in nanoseconds.
    pub offset: i64,
    /// How far that may be off.
    pub within: u64,
}

impl ClockOffset {
    /// Asks a folder.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub fn of_folder(folder: &Path) -> io::Result<Self> {
        let path = folder.join("clock");
        let mut best: Option<Self> = None;
        for _ in 0..PROBES {
            let before = now();
            let mut file = File::create(&path)?;
            file.write_all(b"now\n")?;
            file.sync_all()?;
            drop(file);
            let stamped = fs::metadata(&path)?.modified()?;
            let after = now();
            fs::remove_file(&path)?;
            let stamped = stamped.duration_since(SystemTime::UNIX_EPOCH);
            let stamped = stamped.map_err(io::Error::other)?.as_nanos();
            let found = Self::between(before, u64::try_from(stamped).unwrap_or(u64::MAX), after);
            if best.is_none_or(|best| found.within < best.within) {
                best = Some(found);
            }
        }
        best.ok_or_else(|| io::Error::other("no file could be made"))
    }

    /// What a stamp says that was given between two readings of this node's clock.
    fn between(before: u64, stamped: u64, after: u64) -> Self {
        let half = after.saturating_sub(before) / 2;
        let middle = before.saturating_add(half);
        let apart = i128::from(stamped) - i128::from(middle);
        Self {
            offset: apart.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            within: half.saturating_add(TICK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_between_two_readings_tells_how_far_clocks_are_apart() {
        let same = ClockOffset::between(1_000, 1_500, 2_000);
        assert_eq!((same.offset, same.within), (0, TICK + 500));
        let ahead = ClockOffset::between(1_000, 60_001_500, 2_000);
        assert_eq!(ahead.offset, 60_000_000);
        let behind = ClockOffset::between(60_001_000, 1_500, 60_002_000);
        assert_eq!(behind.offset, -60_000_000);
    }

    #[test]
    fn a_folder_of_this_node_has_its_clock() {
        let folder = std::env::temp_dir().join(format!("lockstep-clock-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let found = ClockOffset::of_folder(&folder).unwrap();
        let left = fs::read_dir(&folder).unwrap().count();
        fs::remove_dir_all(&folder).unwrap();
        assert!(found.offset.unsigned_abs() <= found.within, "{found:?}");
        assert_eq!(left, 0, "nothing stays");
    }
}
