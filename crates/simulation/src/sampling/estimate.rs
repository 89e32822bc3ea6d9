//! Cycles of all launches, with a confidence interval.

use super::group::{Group, Prediction, Scatter};
use super::{Counts, Sampler};
use lockstep_stats::{Digest, Hasher};
use std::collections::BTreeMap;

/// What sampling says of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Where chance came from.
    pub seed: u64,
    /// Cycles of all launches, measured and projected.
    pub cycles: u64,
    /// Half of the width of the 95 % confidence interval around them.
    pub half_width: f64,
    /// Launches that took their time.
    pub measured: u64,
    /// Cycles of the others, by number.
    pub projected: BTreeMap<u64, u64>,
    /// Warp instructions of launches that took their time.
    pub measured_instructions: u64,
    /// Warp instructions of all launches.
    pub instructions: u64,
    /// Kernels, with a shape each.
    pub groups: u64,
    /// Groups of launches with nearly the same counts, of which cycles were projected.
    pub strata: u64,
}

impl Sampled {
    /// Half of the width of the interval, in parts of the whole.
    pub fn relative_half_width(&self) -> f64 {
        match self.cycles {
            0 => 0.0,
            cycles => self.half_width / cycles as f64,
        }
    }

    /// One number for all of it.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new("sampled");
        hasher.number(self.cycles);
        hasher.number(self.half_width.to_bits());
        for (number, cycles) in &self.projected {
            hasher.number(*number);
            hasher.number(*cycles);
        }
        hasher.finish()
    }
}

impl Sampler {
    /// What sampling says of the launches that have ended. Every projection is made again with all that was measured.
    pub fn finish(&self) -> Sampled {
        let mut sampled = Sampled {
            seed: self.seed,
            groups: self.groups.len() as u64,
            measured_instructions: self.detailed,
            instructions: self.detailed,
            ..Sampled::default()
        };
        let mut variance = 0.0;
        for group in &self.groups {
            sampled.measured += group.samples();
            sampled.cycles += group.measured();
            variance += self.add_projections(group, &mut sampled);
        }
        // Measurements that are all above or all below what was projected for them are no chance: the pilot differs
        // from later launches, or caches do that were kept for them.
        let projected: u64 = sampled.projected.values().sum();
        let bias = self.scatter.bias() * projected as f64;
        let chance = quantile(&self.scatter) * variance.sqrt();
        sampled.half_width = (chance * chance + bias * bias).sqrt();
        sampled
    }

    /// Adds what is projected for a group; gives the variance of its sum.
    fn add_projections(&self, group: &Group, sampled: &mut Sampled) -> f64 {
        let relative = group.variance(&self.scatter);
        let unknown = Prediction {
            cycles: self.floor as f64,
            of: 1,
            exact: false,
        };
        let mut strata: BTreeMap<Counts, (Prediction, u64)> = BTreeMap::new();
        for (number, counts) in &group.untimed {
            sampled.instructions += counts.instructions;
            let (found, launches) = strata.entry(*counts).or_insert_with(|| {
                let known = group.predict(*counts, self.floor);
                (known.unwrap_or(unknown), 0)
            });
            *launches += 1;
            let cycles = found.cycles.round() as u64;
            sampled.cycles += cycles;
            sampled.projected.insert(*number, cycles);
        }
        sampled.strata += strata.len() as u64;
        // Projections from the same measurements are wrong together; launches scatter each for itself. What was
        // measured for other counts may be in use for many.
        let (mut variance, mut together) = (0.0, 0.0);
        for (found, launches) in strata.into_values() {
            let sum = found.cycles * launches as f64;
            variance += relative * found.cycles * sum;
            match found.exact {
                true => variance += relative * sum * sum / f64::from(found.of),
                false => together += sum / f64::from(found.of).sqrt(),
            }
        }
        variance + relative * together * together
    }
}

/// How many standard errors hold 95 %: Student's quantile for as many differences as were seen, beside those that
/// were supposed (expansion of Cornish and Fisher).
fn quantile(scatter: &Scatter) -> f64 {
    let freedom = f64::from(scatter.count) + 3.0;
    let (first, second, third) = (2.372, 2.823, 2.556);
    1.960 + first / freedom + second / (freedom * freedom) + third / (freedom * freedom * freedom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_measurements_widen_the_interval() {
        let with = |count| {
            let mut scatter = Scatter::default();
            scatter.count = count;
            quantile(&scatter)
        };
        // Student's quantiles for 3, 10 and very many.
        assert!((with(0) - 3.182).abs() < 0.1);
        assert!((with(7) - 2.228).abs() < 0.01);
        assert!((with(100_000) - 1.960).abs() < 0.001);
    }
}
