//! What was issued and waited for, by instruction: for those who look for the hottest lines.
//!
//! A profile lives outside the GPU that it is of, as what probes note does: nothing here is part of its
//! state or of a digest, and a GPU that was saved and loaded goes on with the same one. Sums do not depend on
//! the order in which SMs add to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lockstep_counters::STALLS;

/// What was counted for one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Times that a warp issued it.
    pub issued: u64,
    /// Cycles of warps before they issued it, by what they did; the issue itself included.
    pub stalls: [u64; STALLS],
}

impl LineCounts {
    fn add(&mut self, other: &Self) {
        self.issued += other.issued;
        for (sum, more) in self.stalls.iter_mut().zip(other.stalls) {
            *sum += more;
        }
    }
}

/// Counts by number of the module and index of the instruction in it.
pub type Lines = BTreeMap<(u64, u32), LineCounts>;

/// What one SM adds to; only that SM does, so nobody waits.
#[derive(Clone, Debug, Default)]
pub struct SmProfile(Arc<Mutex<Lines>>);

impl SmProfile {
    /// A warp issued an instruction; these were the stalls of its block before and after.
    pub fn add(&self, place: (u64, u32), before: &[u64; STALLS], after: &[u64; STALLS]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = lines.entry(place).or_default();
        counts.issued += 1;
        for (sum, (less, more)) in counts.stalls.iter_mut().zip(before.iter().zip(after)) {
            *sum += more - less;
        }
    }
}

/// A profile of all SMs of a GPU.
#[derive(Clone, Debug)]
pub struct Profile(Arc<[SmProfile]>);

impl Profile {
    /// An empty one, for so many SMs.
    #[must_use]
    pub fn new(sms: u32) -> Self {
        Self((0..sms).map(|_| SmProfile::default()).collect())
    }

    /// What an SM adds to.
    #[must_use]
    pub fn of_sm(&self, number: u32) -> Option<SmProfile> {
        self.0.get(number as usize).cloned()
    }

    /// Sums over all SMs.
    #[must_use]
    pub fn lines(&self) -> Lines {
        let mut all = Lines::new();
        for sm in &*self.0 {
            let lines = sm.0.lock().unwrap_or_else(PoisonError::into_inner);
            for (place, counts) in &*lines {
                all.entry(*place).or_default().add(counts);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_all_sms() {
        let profile = Profile::new(2);
        let (mut before, mut after) = ([1; STALLS], [1; STALLS]);
        after[2] = 6;
        profile.of_sm(0).unwrap().add((0, 7), &before, &after);
        before[2] = 5;
        profile.of_sm(1).unwrap().add((0, 7), &before, &after);
        assert!(profile.of_sm(2).is_none());
        let lines = profile.lines();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[&(0, 7)].issued, 2);
        assert_eq!(lines[&(0, 7)].stalls[2], 6);
        assert_eq!(lines[&(0, 7)].stalls.iter().sum::<u64>(), 6);
    }
}
