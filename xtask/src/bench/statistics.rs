//! How far a measured ratio may be off.
//!
//! Two builds run a program in pairs. A pair gives one ratio, and ratios are averaged by their logarithms, so that
//! twice as fast and half as fast cancel. The interval is Student's, at 95 %.

use std::fmt;

/// The 97.5 % quantile of Student's t for 1, 2, … degrees of freedom.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// A mean of logarithms of ratios, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    mean: f64,
    /// Of the mean, not of one ratio.
    variance: f64,
    degrees: f64,
}

impl Estimate {
    /// From ratios of pairs. Without two of them nothing is known.
    pub fn of(ratios: &[f64]) -> Option<Estimate> {
        if ratios.len() < 2
            || ratios
                .iter()
                .any(|ratio| !ratio.is_finite() || *ratio <= 0.0)
        {
            return None;
        }
        let count = ratios.len() as f64;
        let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count;
        let squares: f64 = ratios.iter().map(|ratio| (ratio.ln() - mean).powi(2)).sum();
        Some(Estimate {
            mean,
            variance: squares / (count - 1.0) / count,
            degrees: count - 1.0,
        })
    }

    /// The mean of several, each with the same weight. Degrees of freedom are Satterthwaite's.
    pub fn mean_of(parts: &[Estimate]) -> Option<Estimate> {
        if parts.is_empty() {
            return None;
        }
        let count = parts.len() as f64;
        let sum: f64 = parts.iter().map(|part| part.variance).sum();
        let weighed: f64 = parts
            .iter()
            .map(|part| part.variance.powi(2) / part.degrees)
            .sum();
        Some(Estimate {
            mean: parts.iter().map(|part| part.mean).sum::<f64>() / count,
            variance: sum / count.powi(2),
            // Without any variance the interval is a point, whatever the degrees.
            degrees: if weighed > 0.0 {
                sum.powi(2) / weighed
            } else {
                1.0
            },
        })
    }

    /// The ratio with its interval.
    pub fn interval(&self) -> Interval {
        let reach = quantile(self.degrees) * self.variance.sqrt();
        Interval {
            low: (self.mean - reach).exp(),
            ratio: self.mean.exp(),
            high: (self.mean + reach).exp(),
        }
    }
}

/// A ratio and the interval that holds the true one in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// The ratio itself.
    pub ratio: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the true ratio may be at least `bound`.
    pub fn reaches(&self, bound: f64) -> bool {
        self.high >= bound
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.3} [{:.3}, {:.3}]", self.ratio, self.low, self.high)
    }
}

/// A quantile of Student's t; between whole degrees of freedom the wider one is taken.
fn quantile(degrees: f64) -> f64 {
    let whole = degrees.floor().max(1.0);
    match QUANTILES.get(whole as usize - 1) {
        Some(quantile) => *quantile,
        // Right to a thousandth beyond thirty.
        None => 1.96 + 2.4 / whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-3, "{found} is not {expected}");
    }

    #[test]
    fn equal_ratios_leave_no_doubt() {
        let interval = Estimate::of(&[0.9; 10]).expect("ten pairs").interval();
        near(interval.low, 0.9);
        near(interval.high, 0.9);
        assert!(!interval.reaches(0.98));
        assert!(interval.reaches(0.9));
    }

    #[test]
    fn twice_and_half_cancel() {
        let interval = Estimate::of(&[2.0, 0.5]).expect("two pairs").interval();
        near(interval.ratio, 1.0);
        // One degree of freedom: the mean's deviation is ln 2.
        near(interval.high.ln(), 12.706 * 2f64.ln());
    }

    #[test]
    fn an_interval_is_that_of_student() {
        // Logarithms 1 to 5: mean 3, deviation of the mean sqrt(2.5 / 5), four degrees.
        let ratios: Vec<f64> = (1..=5).map(|value| f64::from(value).exp()).collect();
        let interval = Estimate::of(&ratios).expect("five pairs").interval();
        near(interval.ratio.ln(), 3.0);
        near(interval.high.ln(), 3.0 + 2.776 * 0.5f64.sqrt());
        near(interval.low.ln(), 3.0 - 2.776 * 0.5f64.sqrt());
    }

    #[test]
    fn a_mean_over_programs_is_known_better_than_its_parts() {
        let part = Estimate::of(&[0.95, 1.0, 1.05, 0.97, 1.03]).expect("five pairs");
        let all = Estimate::mean_of(&[part; 4]).expect("four parts");
        near(all.degrees, 16.0);
        near(all.variance, part.variance / 4.0);
        near(all.mean, part.mean);
        assert!(all.interval().low > part.interval().low);
    }

    #[test]
    fn what_is_no_ratio_gives_no_estimate() {
        assert_eq!(Estimate::of(&[1.0]), None);
        assert_eq!(Estimate::of(&[1.0, 0.0]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
        assert_eq!(Estimate::mean_of(&[]), None);
    }

    #[test]
    fn quantiles_fall_with_degrees_towards_the_normal_distribution() {
        let all: Vec<f64> = (1..200)
            .map(|degrees| quantile(f64::from(degrees)))
            .collect();
        assert!(all.windows(2).all(|pair| pair[1] < pair[0]), "{all:?}");
        near(quantile(9.7), 2.262);
        near(quantile(60.0), 2.000);
    }
}
