//! Which SM receives the next block.
//!
//! Start reading at [`DispatchPolicy::pick`].

use serde::{Deserialize, Serialize};

use super::slots::{FreestFirst, SmSlots};

/// A policy with its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DispatchPolicy {
    /// The SM with the fewest warps, the lowest rank first.
    MostFree,
    /// One SM after the other.
    RoundRobin {
        /// Where to look first.
        next: u32,
    },
    /// GPC after GPC while SMs are empty (`rounds.rs`), then the freest SM.
    GpcRounds {
        /// The GPC whose turn it is.
        next: u32,
    },
}

/// A policy that a GPU file can name.
pub struct Policy {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Makes one.
    pub build: fn() -> DispatchPolicy,
}

/// All policies, in the order of the documentation.
pub const DISPATCH_POLICIES: &[Policy] = &[
    Policy {
        name: "most-free",
        summary: "the SM with the fewest warps, those named by `first` before others",
        build: || DispatchPolicy::MostFree,
    },
    Policy {
        name: "round-robin",
        summary: "one SM after the other",
        build: || DispatchPolicy::RoundRobin { next: 0 },
    },
    Policy {
        name: "gpc-rounds",
        summary: "a block for every SM of a GPC, then for those of the next, as long as all find room; those named by `first` have turns of their own; then as `most-free`",
        build: || DispatchPolicy::GpcRounds { next: 0 },
    },
];

impl DispatchPolicy {
    /// The policy with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let policy = DISPATCH_POLICIES
            .iter()
            .find(|policy| policy.name == name)?;
        Some((policy.build)())
    }

    /// An SM where the block fits.
    pub fn pick(
        &mut self,
        sms: &[SmSlots],
        freest: &FreestFirst,
        fits: impl Fn(&SmSlots) -> bool,
    ) -> Option<u32> {
        match self {
            Self::MostFree | Self::GpcRounds { .. } => {
                freest.iter().find(|sm| fits(&sms[*sm as usize]))
            }
            Self::RoundRobin { next } => {
                let count = sms.len() as u32;
                let order = (0..count).map(|step| (*next + step) % count);
                let found = order.into_iter().find(|sm| fits(&sms[*sm as usize]))?;
                *next = (found + 1) % count;
                Some(found)
            }
        }
    }
}

/// The place of each SM among SMs that are equally free: first the named ones, then one of every
/// TPC, then the others; the number itself if none is named.
#[must_use]
pub fn ranks(first: &[u32], sms: u32) -> Vec<u32> {
    if first.is_empty() {
        return (0..sms).collect();
    }
    let rest = (0..sms).step_by(2).chain((1..sms).step_by(2));
    let order = first.iter().copied().filter(|sm| *sm < sms);
    let order = order.chain(rest.filter(|sm| !first.contains(sm)));
    let mut ranks = vec![0; sms as usize];
    for (rank, sm) in order.enumerate() {
        ranks[sm as usize] = rank as u32;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_sms_come_first_and_second_ones_of_tpcs_last() {
        assert_eq!(ranks(&[], 4), [0, 1, 2, 3]);
        // The order is 4, 0, 2, 1, 3, 5.
        assert_eq!(ranks(&[4], 6), [1, 3, 2, 4, 0, 5]);
    }
}
