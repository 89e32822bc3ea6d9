//! What is known of launches that are alike, and what that says of another one.

use super::Counts;
use serde::{Deserialize, Serialize};

/// Launches whose instructions differ by less than one part in so many are of one stratum.
const NEARLY: u64 = 50;

/// What one launch is taken to scatter by, relative to its projection, before anything was measured.
const UNKNOWN: f64 = 0.02;
/// Measurements that this counts as, over all groups, and that what is known of all groups counts as in one.
const WEIGHT: (f64, f64) = (4.0, 2.0);

/// What one launch scatters by if only one with cold caches was measured.
const COLD: f64 = 0.10;

/// Relative differences between projections and measurements.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Scatter {
    sum: f64,
    squares: f64,
    pub count: u32,
}

impl Scatter {
    fn add(&mut self, difference: f64) {
        self.sum += difference;
        self.squares += difference * difference;
        self.count += 1;
    }

    /// By how much measurements are above what was projected for them, on average.
    pub fn bias(&self) -> f64 {
        let (weight, _) = WEIGHT;
        self.sum / (f64::from(self.count) + weight)
    }

    /// The relative variance over all groups.
    pub fn pooled(&self) -> f64 {
        let (weight, _) = WEIGHT;
        (self.squares + weight * UNKNOWN * UNKNOWN) / (f64::from(self.count) + weight)
    }

    /// The relative variance of a group, beside what is known of all.
    fn beside(&self, all: &Self) -> f64 {
        let (_, weight) = WEIGHT;
        (self.squares + weight * all.pooled()) / (f64::from(self.count) + weight)
    }
}

/// A launch that took its time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sample {
    counts: Counts,
    cycles: u64,
}

/// What is projected for a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Its cycles.
    pub cycles: f64,
    /// The measurements that this is the mean of.
    pub of: u32,
    /// Whether these had the same counts.
    pub exact: bool,
}

/// Launches of one kernel with one shape.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Group {
    /// Launches that have begun.
    pub begun: u64,
    /// The first launch, if it took its time.
    cold: Option<Sample>,
    /// Later launches that did.
    warm: Vec<Sample>,
    /// Launches that did not, by number.
    pub untimed: Vec<(u64, Counts)>,
    scatter: Scatter,
    /// Launches up to which one was chosen, counted in the group, and the chosen one.
    pub window: (u64, u64),
}

impl Group {
    /// Launches that were measured.
    pub fn samples(&self) -> u64 {
        self.warm.len() as u64 + u64::from(self.cold.is_some())
    }

    /// Launches that were measured after the first.
    pub fn warm_samples(&self) -> u64 {
        self.warm.len() as u64
    }

    /// Cycles of launches that were measured.
    pub fn measured(&self) -> u64 {
        let all = self.warm.iter().chain(&self.cold);
        all.map(|sample| sample.cycles).sum()
    }

    /// What a launch of it takes, on average, as far as is known.
    pub fn mean(&self) -> f64 {
        self.measured() as f64 / self.samples().max(1) as f64
    }

    /// The relative variance of launches around their projections.
    pub fn variance(&self, all: &Scatter) -> f64 {
        match self.warm.is_empty() {
            true => COLD * COLD,
            false => self.scatter.beside(all),
        }
    }

    /// A launch was measured.
    pub fn add_sample(&mut self, counts: Counts, cycles: u64, floor: u64, all: &mut Scatter) {
        let sample = Sample { counts, cycles };
        // The one that has begun last need not be the one that ends, but no other has begun before the first ended.
        if self.samples() == 0 && self.untimed.is_empty() {
            self.cold = Some(sample);
            return;
        }
        if !self.warm.is_empty()
            && let Some(prediction) = self.predict(counts, floor)
        {
            let difference = cycles as f64 / prediction.cycles.max(1.0) - 1.0;
            self.scatter.add(difference);
            all.add(difference);
        }
        self.warm.push(sample);
    }

    /// The cycles of a launch with these counts: the mean of its stratum, or else what lies between the nearest
    /// strata. An empty launch takes `floor`. Nothing if none was measured.
    pub fn predict(&self, counts: Counts, floor: u64) -> Option<Prediction> {
        let known = match self.warm.is_empty() {
            true => self.cold.as_slice(),
            false => &self.warm,
        };
        let alike = |other: &Sample| other.counts == counts;
        let nearly = |other: &Sample| {
            let difference = other.counts.instructions.abs_diff(counts.instructions);
            difference.saturating_mul(NEARLY) <= counts.instructions
        };
        let exact = mean(known, alike).map(|found| Prediction {
            exact: true,
            ..found
        });
        exact
            .or_else(|| mean(known, nearly))
            .or_else(|| between(known, counts.instructions, floor as f64))
    }
}

/// The mean of the samples that belong together, if there are any.
fn mean(known: &[Sample], belongs: impl Fn(&Sample) -> bool) -> Option<Prediction> {
    let (mut sum, mut of) = (0.0, 0);
    for sample in known.iter().filter(|sample| belongs(sample)) {
        sum += sample.cycles as f64;
        of += 1;
    }
    (of > 0).then(|| Prediction {
        cycles: sum / f64::from(of),
        of,
        exact: false,
    })
}

/// On the line between the nearest samples below and above, or from an empty launch through the nearest one.
fn between(known: &[Sample], instructions: u64, floor: f64) -> Option<Prediction> {
    let below = known
        .iter()
        .filter(|sample| sample.counts.instructions <= instructions)
        .max_by_key(|sample| sample.counts.instructions);
    let above = known
        .iter()
        .filter(|sample| sample.counts.instructions > instructions)
        .min_by_key(|sample| sample.counts.instructions);
    let at = |sample: &Sample| (sample.counts.instructions as f64, sample.cycles as f64);
    let (from, to) = match (below, above) {
        (Some(below), Some(above)) => (at(below), at(above)),
        (Some(only), None) | (None, Some(only)) => {
            let (x, y) = at(only);
            ((0.0, floor.min(y)), (x.max(1.0), y))
        }
        (None, None) => return None,
    };
    let slope = (to.1 - from.1) / (to.0 - from.0);
    Some(Prediction {
        cycles: from.1 + slope * (instructions as f64 - from.0),
        of: 1,
        exact: false,
    })
}
