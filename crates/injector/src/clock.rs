//! Host time, and how the sampling hardware's clock maps to it.

/// Nanoseconds since 1970, the clock of activity records.
pub fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Maps timestamps of samples to host time.
///
/// The driver keeps the clock of the sampling hardware at host time: on an H200 the two agree to a
/// microsecond (`validation/hardware/h200/counters`). A sample is over when its decoding returns,
/// so one that ends later, or an hour earlier, shows a driver that does not; then the smallest
/// difference ever seen stands for the offset, which is late by at most the time between decodes.
#[derive(Clone, Debug, Default)]
pub struct MatchedClock {
    /// Host time minus device time, where the clocks differ.
    offset: i64,
}

/// Differences below this are the time that a sample waited to be decoded.
const BELIEVABLE: i64 = 10_000_000_000;

impl MatchedClock {
    /// A sample that ended at `end` (device time) was decoded by host time `now`.
    pub fn observe(&mut self, end: u64, now: u64) {
        let difference = now.wrapping_sub(end) as i64;
        if self.offset != 0 {
            self.offset = self.offset.min(difference);
        } else if !(0..BELIEVABLE).contains(&difference) {
            self.offset = difference;
        }
    }

    /// Host time of device time `timestamp`.
    pub fn host_time(&self, timestamp: u64) -> u64 {
        timestamp.wrapping_add(self.offset as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_at_host_time_is_left_alone() {
        let mut clock = MatchedClock::default();
        clock.observe(1_000_000, 3_000_000);
        assert_eq!(clock.host_time(1_000_000), 1_000_000);
    }

    #[test]
    fn another_clock_is_matched_by_its_quickest_decode() {
        let mut clock = MatchedClock::default();
        let device = |host: u64| host - 3_600_000_000_000;
        let host = 7_200_000_000_000;
        for (end, wait) in [(0, 900_000), (10_000_000, 20_000), (20_000_000, 500_000)] {
            clock.observe(device(host + end), host + end + wait);
        }
        assert_eq!(clock.host_time(device(host)), host + 20_000);
    }
}
