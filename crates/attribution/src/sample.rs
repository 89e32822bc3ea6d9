//! What is known of a GPU, and what is made of it.

use crate::Key;

/// One interval of a whole GPU.
#[derive(Clone, Debug)]
pub struct DeviceSample {
    /// Nanoseconds since 1970.
    pub begin: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    /// Growth of each counter.
    pub growth: Vec<Option<u64>>,
    /// Samples before it are missing.
    pub after_gap: bool,
}

/// The part of one key in one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The kernel, and where it ran.
    pub key: Key,
    /// No other key had a part.
    pub exact: bool,
    /// Estimated while several streams, contexts or processes were at work ([`SHARED_ERROR_BOUND`]).
    pub shared: bool,
    /// Its part of each counter.
    pub growth: Vec<Option<u64>>,
}

/// How far the part of a stream may be off while the GPU is shared, in parts of what the whole GPU did
/// in the intervals that it shared. Of all streams recorded on an H200 none was off by so much
/// (`recorded`); kernels of one stream are told apart less well.
pub const SHARED_ERROR_BOUND: f64 = 0.08;

/// Launches of a stream up to `launch` were over at `end`, and not all of them at `begin`.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Number of the launch.
    pub launch: u64,
    /// Nanoseconds since 1970.
    pub begin: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
}

/// Divides `whole` by `weights`; the parts add up to it.
pub(crate) fn split(whole: u64, weights: &[f64]) -> Vec<u64> {
    let total: f64 = weights.iter().sum();
    let mut given = 0;
    let mut before = 0.0;
    let last = weights.len().saturating_sub(1);
    weights
        .iter()
        .enumerate()
        .map(|(i, weight)| {
            before += weight;
            let until = match () {
                () if i == last => whole,
                () if total > 0.0 => {
                    ((whole as f64 * (before / total)).round() as u64).clamp(given, whole)
                }
                () => whole * (i as u64 + 1) / weights.len() as u64,
            };
            let part = until - given;
            given = until;
            part
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        assert_eq!(split(10, &[1.0, 1.0, 1.0]).iter().sum::<u64>(), 10);
        assert_eq!(split(7, &[0.0, 0.0]).iter().sum::<u64>(), 7);
        assert_eq!(split(u64::MAX, &[1e-9, 5.0]).iter().sum::<u64>(), u64::MAX);
        assert_eq!(split(5, &[0.0, 3.0]), [0, 5]);
    }
}
