//! Which launches are chosen.

use super::{Sampler, Shape};

/// The relative standard error that is aimed for: half of one percent, about one percent at 95 %.
const AIM: f64 = 0.005;

/// Launches of a window where more measurements are wanted, and where enough is known. The longer one watches for
/// launches that change while their counts do not.
const SHORT: u64 = 8;
const LONG: u64 = 128;

/// Launches of a group that take their time before chance decides: the first, with cold caches, and a pilot.
const PILOT: u64 = 2;

impl Sampler {
    /// Whether the launch that begins is chosen, which is the next of its group.
    pub(super) fn is_chosen(&mut self, number: u64, shape: &Shape, index: usize) -> bool {
        let place = self.groups[index].begun;
        let missing = self.missing(index);
        if let Some(plan) = &mut self.plan
            && let Some(chosen) = plan.chooses(number, shape, missing, self.seed)
        {
            return chosen;
        }
        if place < PILOT {
            return true;
        }
        let (end, chosen) = self.groups[index].window;
        if place < end {
            return place == chosen;
        }
        let length = if missing > 0.0 { SHORT } else { LONG };
        let chance = mix(self.seed ^ mix(index as u64) ^ place);
        let chosen = place + chance % length;
        self.groups[index].window = (place + length, chosen);
        place == chosen
    }

    /// How many more warm launches of a group are to be measured than were: Neyman's allocation for the error that is
    /// aimed for, by what every group has taken so far and how it scatters.
    fn missing(&self, index: usize) -> f64 {
        let weights = self.groups.iter().map(|group| {
            let cycles = group.mean() * group.begun as f64;
            (cycles, cycles * group.variance(&self.scatter).sqrt())
        });
        let (total, scattered) = weights.fold((0.0, 0.0), |(total, scattered), (cycles, error)| {
            (total + cycles, scattered + error)
        });
        let group = &self.groups[index];
        let own = group.mean() * group.begun as f64 * group.variance(&self.scatter).sqrt();
        let aim = AIM * total;
        own * scattered / (aim * aim).max(1.0) - group.warm_samples() as f64
    }
}

/// A number that looks like chance (the finaliser of SplitMix64).
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
