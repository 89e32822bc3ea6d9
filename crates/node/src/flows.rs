//! Transfers over links: those that share a link share its rate.
//!
//! A transfer is a flow over all links of its route at one rate. Rates are max-min fair: links are
//! divided evenly, and what a flow cannot use because another link holds it back goes to the others.
//! They change only when a flow begins or ends. Everything is a whole number of bytes a second and of
//! femtoseconds, so the answer is the same on every host.
//!
//! Start reading at [`Flows::begin`].

use lockstep_units::{Bandwidth, Time};
use std::collections::BTreeMap;

/// Femtoseconds of a second: what is left of a flow is counted in bytes times this.
const SECOND: u128 = 1_000_000_000_000_000;

#[derive(Clone, Debug)]
struct Flow {
    route: Vec<usize>,
    /// Bytes that are left, in parts of a femtosecond at one byte a second.
    left: u128,
    /// Bytes a second.
    rate: u64,
}

impl Flow {
    /// When the last byte has passed, seen from a time.
    fn end(&self, now: Time) -> Time {
        let takes = self.left.div_ceil(u128::from(self.rate.max(1)));
        let takes = u64::try_from(takes).unwrap_or(u64::MAX);
        Time(now.0.saturating_add(takes))
    }
}

/// The transfers that are under way on a set of links.
#[derive(Clone, Debug)]
pub struct Flows {
    /// Bytes a second of each link.
    capacities: Vec<u64>,
    /// By number.
    active: BTreeMap<u64, Flow>,
    now: Time,
}

impl Flows {
    /// Links with nothing on them.
    pub fn new(links: impl IntoIterator<Item = Bandwidth>) -> Self {
        Self {
            capacities: links.into_iter().map(Bandwidth::get).collect(),
            active: BTreeMap::new(),
            now: Time::ZERO,
        }
    }

    /// Begins to send bytes over the links of a route. Call [`Flows::ended`] up to this time before.
    pub fn begin(&mut self, number: u64, at: Time, route: Vec<usize>, bytes: u64) {
        self.pass(at);
        let left = u128::from(bytes) * SECOND;
        self.active.insert(
            number,
            Flow {
                route,
                left,
                rate: 0,
            },
        );
        self.share();
    }

    /// Gives a flow up.
    pub fn give_up(&mut self, number: u64) {
        self.active.remove(&number);
        self.share();
    }

    /// When the next flow ends, if nothing begins before.
    pub fn next_end(&self) -> Option<Time> {
        self.active.values().map(|flow| flow.end(self.now)).min()
    }

    /// Lets time pass; the flows that ended, with when, in that order.
    pub fn ended(&mut self, until: Time) -> Vec<(Time, u64)> {
        let mut all = Vec::new();
        while let Some(end) = self.next_end().filter(|end| *end <= until) {
            self.pass(end);
            let done: Vec<u64> = self
                .active
                .iter()
                .filter(|(_, flow)| flow.left == 0)
                .map(|(number, _)| *number)
                .collect();
            for number in done {
                self.active.remove(&number);
                all.push((end, number));
            }
            self.share();
        }
        self.pass(until);
        all
    }

    /// What each link carries now, in bytes a second.
    pub fn loads(&self) -> Vec<u64> {
        let mut loads = vec![0; self.capacities.len()];
        for flow in self.active.values() {
            for link in &flow.route {
                loads[*link] += flow.rate;
            }
        }
        loads
    }

    /// Lets bytes pass at the present rates.
    fn pass(&mut self, until: Time) {
        if until <= self.now {
            return;
        }
        let length = u128::from(until.0 - self.now.0);
        for flow in self.active.values_mut() {
            flow.left = flow.left.saturating_sub(u128::from(flow.rate) * length);
        }
        self.now = until;
    }

    /// Divides the links among the flows: again and again, the link that has the least for each of its
    /// flows settles them.
    fn share(&mut self) {
        let mut free = self.capacities.clone();
        let mut open: Vec<u64> = self.active.keys().copied().collect();
        while !open.is_empty() {
            let mut users = vec![0u64; free.len()];
            for flow in open.iter().filter_map(|number| self.active.get(number)) {
                for link in &flow.route {
                    users[*link] += 1;
                }
            }
            let shares = (0..free.len()).filter(|link| users[*link] > 0);
            let least = shares.map(|link| (free[link] / users[link], link)).min();
            // A flow over no link at all has nothing to wait for.
            let (share, link) = least.unwrap_or((u64::MAX, usize::MAX));
            open.retain(|number| {
                let Some(flow) = self.active.get_mut(number) else {
                    return false;
                };
                if link != usize::MAX && !flow.route.contains(&link) {
                    return true;
                }
                flow.rate = share;
                for used in &flow.route {
                    free[*used] -= share;
                }
                false
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_units::Duration;
    use proptest::prelude::*;

    fn links(rates: &[u64]) -> Flows {
        Flows::new(rates.iter().map(|rate| Bandwidth::new(*rate).unwrap()))
    }

    fn after(nanoseconds: u64) -> Time {
        Time::ZERO + Duration::nanoseconds(nanoseconds)
    }

    #[test]
    fn a_flow_alone_has_the_narrowest_link_of_its_way() {
        let mut flows = links(&[8_000_000_000, 2_000_000_000]);
        flows.begin(1, Time::ZERO, vec![0, 1], 2000);
        assert_eq!(flows.next_end(), Some(after(1000)));
        assert_eq!(flows.ended(after(1000)), [(after(1000), 1)]);
        assert_eq!(flows.next_end(), None);
    }

    #[test]
    fn flows_that_share_a_link_share_its_rate() {
        let mut flows = links(&[1_000_000_000]);
        flows.begin(1, Time::ZERO, vec![0], 1000);
        flows.begin(2, Time::ZERO, vec![0], 3000);
        // 1000 bytes each until 2000 ns, then the second alone.
        assert_eq!(
            flows.ended(Time::NEVER),
            [(after(2000), 1), (after(4000), 2)]
        );
    }

    #[test]
    fn what_one_cannot_use_goes_to_the_others() {
        let mut flows = links(&[3_000_000_000, 1_000_000_000]);
        flows.begin(1, Time::ZERO, vec![0, 1], 1000);
        flows.begin(2, Time::ZERO, vec![0], 2000);
        assert_eq!(flows.loads(), [3_000_000_000, 1_000_000_000]);
        assert_eq!(
            flows.ended(after(1000)),
            [(after(1000), 1), (after(1000), 2)]
        );
    }

    #[test]
    fn one_that_is_given_up_leaves_its_share() {
        let mut flows = links(&[1_000_000_000]);
        flows.begin(1, Time::ZERO, vec![0], 1000);
        flows.begin(2, Time::ZERO, vec![0], 1000);
        assert_eq!(flows.ended(after(1000)), []);
        flows.give_up(1);
        assert_eq!(flows.ended(after(1500)), [(after(1500), 2)]);
    }

    proptest! {
        /// Whatever begins whenever: no link carries more than its rate, now or over the whole time, and
        /// every flow ends.
        #[test]
        fn no_link_carries_more_than_its_bandwidth(
            rates in proptest::collection::vec(1_000_000_000u64..500_000_000_000, 2..6),
            wanted in proptest::collection::vec((0u64..5000, 0usize..6, 0usize..6, 1u64..100_000), 1..20),
        ) {
            let mut flows = links(&rates);
            let mut sent = vec![0u128; rates.len()];
            let mut starts: Vec<_> = wanted.clone();
            starts.sort_unstable();
            let mut ends = Vec::new();
            for (number, (start, first, second, bytes)) in starts.iter().enumerate() {
                let at = after(*start);
                ends.extend(flows.ended(at));
                let (first, second) = (first % rates.len(), second % rates.len());
                let mut route = vec![first, second];
                route.dedup();
                for link in &route {
                    sent[*link] += u128::from(*bytes);
                }
                flows.begin(number as u64, at, route, *bytes);
                for (load, rate) in flows.loads().iter().zip(&rates) {
                    prop_assert!(load <= rate);
                }
            }
            ends.extend(flows.ended(Time::NEVER));
            prop_assert_eq!(ends.len(), starts.len());
            let (first, last) = (after(starts[0].0), ends.last().unwrap().0);
            for (bytes, rate) in sent.iter().zip(&rates) {
                let could = u128::from(*rate) * u128::from(last.since(first).0);
                prop_assert!(bytes * SECOND <= could);
            }
        }
    }
}
