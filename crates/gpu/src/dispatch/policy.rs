//! Which SM receives the next block.

use serde::{Deserialize, Serialize};

use super::slots::SmSlots;

/// A policy with its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DispatchPolicy {
    /// The SM with the fewest warps, the lowest number first.
    MostFree,
    /// One SM after the other.
    RoundRobin {
        /// Where to look first.
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
        summary: "the SM with the fewest warps, the lowest number first",
        build: || DispatchPolicy::MostFree,
    },
    Policy {
        name: "round-robin",
        summary: "one SM after the other",
        build: || DispatchPolicy::RoundRobin { next: 0 },
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
    pub fn pick(&mut self, sms: &[SmSlots], fits: impl Fn(&SmSlots) -> bool) -> Option<u32> {
        match self {
            Self::MostFree => {
                let fitting = sms.iter().enumerate().filter(|(_, slots)| fits(slots));
                let best = fitting.min_by_key(|(number, slots)| (slots.warps, *number));
                best.map(|(number, _)| number as u32)
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
