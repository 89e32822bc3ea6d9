//! When a page is used where it is, over the link, and when it moves.

use lockstep_config::uvm::ZeroCopyConfig;

/// When pages are used where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Off,
    Always,
    Oversubscribed,
    Adaptive,
}

/// The policy with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroCopy {
    mode: Mode,
    threshold: u32,
    penalty: u32,
}

/// How full the device is, as a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Frames that are kept, used or wanted.
    pub taken: u64,
    /// Frames that there are or that are becoming free.
    pub all: u64,
}

impl ZeroCopy {
    /// From a configuration that was checked.
    #[must_use]
    pub fn new(config: &ZeroCopyConfig) -> Self {
        Self {
            mode: match config.mode.as_str() {
                "always" => Mode::Always,
                "oversubscribed" => Mode::Oversubscribed,
                "adaptive" => Mode::Adaptive,
                _ => Mode::Off,
            },
            threshold: config.threshold,
            penalty: config.penalty,
        }
    }

    /// Uses of a block after which it moves; a block with fewer is read where it is.
    #[must_use]
    pub fn threshold(&self, oversubscribed: bool, occupancy: Occupancy, round_trips: u8) -> u32 {
        match (self.mode, oversubscribed) {
            (Mode::Off, _) | (Mode::Oversubscribed, false) => 0,
            (Mode::Always, _) | (Mode::Oversubscribed, true) => self.threshold,
            (Mode::Adaptive, _) => migration_threshold(
                self.threshold,
                self.penalty,
                oversubscribed,
                occupancy.taken,
                occupancy.all,
                round_trips,
            ),
        }
    }
}

/// The threshold of the adaptive policy: before oversubscription it grows with how full the
/// device is, afterwards with how often the block was evicted.
#[must_use]
pub fn migration_threshold(
    threshold: u32,
    penalty: u32,
    oversubscribed: bool,
    taken: u64,
    all: u64,
    round_trips: u8,
) -> u32 {
    if oversubscribed {
        return threshold
            .saturating_mul(penalty)
            .saturating_mul(u32::from(round_trips) + 1);
    }
    let grown = u64::from(threshold).saturating_mul(taken) / all.max(1);
    u32::try_from(1 + grown).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_those_of_the_adaptive_policy() {
        let before = |taken| migration_threshold(8, 8, false, taken, 2, 0);
        assert_eq!([before(0), before(1), before(2)], [1, 5, 9]);
        let after = |penalty, trips| migration_threshold(8, penalty, true, 2, 2, trips);
        assert_eq!(
            [after(8, 0), after(8, 1), after(8, 3), after(2, 0)],
            [64, 128, 256, 16]
        );
    }
}
