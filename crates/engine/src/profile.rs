//! Where the time of the host goes: working, waiting for one another, or what only one can do.
//!
//! Nothing simulated depends on any of this.

use std::time::{Duration, Instant};

/// A clock of the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "what the host spends never shows in what is simulated"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since the start.
    pub(crate) fn read(self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// What several workers did between an opening of the epoch barrier and the last arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Number of barriers.
    pub times: u64,
    /// From opening the barrier to the last arrival, summed up.
    pub wall: Duration,
    /// The same, times the workers that took part: what they could have worked.
    pub available: Duration,
    /// What the workers worked, together.
    pub busy: Duration,
    /// What the one with the most to do worked, times the workers that took part.
    pub longest: Duration,
}

impl Phase {
    /// Enters one barrier, from what each worker worked.
    pub(crate) fn enter(&mut self, wall: u64, busy: impl ExactSizeIterator<Item = u64> + Clone) {
        let workers = busy.len() as u32;
        let longest = busy.clone().max().unwrap_or(0);
        self.times += 1;
        self.wall += Duration::from_nanos(wall);
        self.available += Duration::from_nanos(wall) * workers;
        self.busy += Duration::from_nanos(busy.sum());
        self.longest += Duration::from_nanos(longest) * workers;
    }

    /// What workers waited because another had more to do.
    pub fn imbalance(&self) -> Duration {
        self.longest.saturating_sub(self.busy)
    }

    /// What workers waited because starting and synchronising takes its time.
    pub fn synchronisation(&self) -> Duration {
        self.available.saturating_sub(self.longest)
    }
}

/// Where the time of the host went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Inside [`Engine::run`](crate::Engine::run).
    pub total: Duration,
    /// Running partitions, together.
    pub running: Phase,
    /// Committing logs, together.
    pub committing: Phase,
    /// Of the epochs that the calling thread ran alone: how many were measured, and how long they
    /// took.
    pub alone_measured: (u64, Duration),
}

impl Profile {
    /// What the epochs that one thread ran alone took, all in all, going by those that were
    /// measured.
    pub fn alone(&self, alone: u64) -> Duration {
        let (count, time) = self.alone_measured;
        if count == 0 {
            return Duration::ZERO;
        }
        time.mul_f64(alone as f64 / count as f64)
    }

    /// What nobody could share: planning, gathering, deciding.
    pub fn serial(&self, alone: u64) -> Duration {
        self.total
            .saturating_sub(self.running.wall)
            .saturating_sub(self.committing.wall)
            .saturating_sub(self.alone(alone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_imbalance_or_synchronisation() {
        let mut phase = Phase::default();
        phase.enter(100, [90, 40].into_iter());
        phase.enter(50, [20].into_iter());
        assert_eq!(phase.busy, Duration::from_nanos(150));
        assert_eq!(phase.imbalance(), Duration::from_nanos(50));
        assert_eq!(phase.synchronisation(), Duration::from_nanos(20 + 30));
        let all = phase.busy + phase.imbalance() + phase.synchronisation();
        assert_eq!(all, phase.available);
    }

    #[test]
    fn what_was_not_measured_is_estimated() {
        let profile = Profile {
            total: Duration::from_nanos(1_000),
            alone_measured: (2, Duration::from_nanos(100)),
            ..Profile::default()
        };
        assert_eq!(profile.alone(8), Duration::from_nanos(400));
        assert_eq!(profile.serial(8), Duration::from_nanos(600));
        assert_eq!(Profile::default().alone(8), Duration::ZERO);
    }
}
