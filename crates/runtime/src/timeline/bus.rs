//! The link between host and device: one copy of a direction has it at a time.
//!
//! A copy waits until the copies of its direction that began before it have sent their bytes; what it takes before its
//! first byte overlaps with theirs. So copies of several engines together go no faster than the link.
//!
//! Left out: what copies of the two directions cost each other.

use crate::host::Direction;
use lockstep_units::{Duration, Time};

/// When each direction of the link is free again.
#[derive(Debug, Default)]
pub struct Bus {
    free: [Time; 2],
}

/// What a copy takes of the link, and beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusTime {
    /// Before its first byte.
    pub latency: Duration,
    /// Its bytes on the link.
    pub busy: Duration,
    /// What the host takes for them, if that is longer.
    pub host: Duration,
}

impl Bus {
    /// Sends the bytes of a copy that begins at `at`; says when the last is there.
    pub fn send(&mut self, at: Time, direction: Direction, time: BusTime) -> Time {
        let free = &mut self.free[direction as usize];
        let begin = (at + time.latency).max(*free);
        *free = begin + time.busy;
        begin + time.busy.max(time.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const US: fn(u64) -> Duration = Duration::microseconds;

    fn at(microseconds: u64) -> Time {
        Time::ZERO + US(microseconds)
    }

    fn copy(latency: u64, busy: u64, host: u64) -> BusTime {
        BusTime {
            latency: US(latency),
            busy: US(busy),
            host: US(host),
        }
    }

    #[test]
    fn copies_of_one_direction_take_the_link_one_after_the_other() {
        let mut bus = Bus::default();
        let ends = [0, 0, 1].map(|start| bus.send(at(start), Direction::ToDevice, copy(3, 10, 0)));
        assert_eq!(ends, [at(13), at(23), at(33)]);
    }

    #[test]
    fn copies_of_both_directions_go_side_by_side() {
        let mut bus = Bus::default();
        assert_eq!(bus.send(at(0), Direction::ToDevice, copy(3, 10, 0)), at(13));
        assert_eq!(bus.send(at(0), Direction::ToHost, copy(3, 10, 0)), at(13));
    }

    #[test]
    fn a_slow_host_does_not_hold_the_link() {
        let mut bus = Bus::default();
        assert_eq!(
            bus.send(at(0), Direction::ToDevice, copy(3, 10, 40)),
            at(43)
        );
        assert_eq!(bus.send(at(0), Direction::ToDevice, copy(3, 10, 0)), at(23));
    }

    proptest! {
        /// Whatever begins when, by how many engines and after which latency: between any two times a direction
        /// carries no more than it can.
        #[test]
        fn no_direction_carries_more_than_its_bandwidth(
            copies in prop::collection::vec((0u64..100, any::<bool>(), 0u64..20, 1u64..50, 0u64..90), 1..40),
        ) {
            let mut copies = copies;
            copies.sort_by_key(|copy| copy.0);
            let mut bus = Bus::default();
            let mut sent: [Vec<(Time, Time)>; 2] = Default::default();
            for (start, to_host, latency, busy, host) in copies {
                let direction = [Direction::ToDevice, Direction::ToHost][usize::from(to_host)];
                let end = bus.send(at(start), direction, copy(latency, busy, host));
                let first = end - US(busy.max(host));
                prop_assert!(first >= at(start + latency), "a byte before its copy began");
                sent[direction as usize].push((first, first + US(busy)));
            }
            for mut times in sent {
                times.sort();
                let apart = times.windows(2).all(|pair| pair[0].1 <= pair[1].0);
                prop_assert!(apart, "two copies have the link at once: {times:?}");
            }
        }
    }
}
