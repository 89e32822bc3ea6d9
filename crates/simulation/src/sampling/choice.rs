//! Which launches are chosen.

use super::{Group, Sampler, Shape};
use lockstep_units::splitmix64;

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
        let chance = splitmix64(self.seed ^ splitmix64(index as u64) ^ place);
        let chosen = place + chance % length;
        self.groups[index].window = (place + length, chosen);
        place == chosen
    }

    /// How many more warm launches of a group are to be measured than were: Neyman's allocation for the error that is
    /// aimed for, by what every group has taken so far and how it scatters.
    fn missing(&self, index: usize) -> f64 {
        // The cycles of a group, and those that it scatters by.
        let weight = |group: &Group| {
            let cycles = group.mean() * group.begun as f64;
            (cycles, cycles * group.variance(&self.scatter).sqrt())
        };
        let weights = self.groups.iter().map(weight);
        let (total, scattered) = weights.fold((0.0, 0.0), |(total, scattered), (cycles, error)| {
            (total + cycles, scattered + error)
        });
        let group = &self.groups[index];
        let (_, own) = weight(group);
        let aim = AIM * total;
        own * scattered / (aim * aim).max(1.0) - group.warm_samples() as f64
    }
}
