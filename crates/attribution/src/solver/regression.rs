//! What a warp of each kernel adds to a counter, from how the counter and the work change together.
//!
//! Where a group ran inside its time is a guess; how much of each kernel ran within several turns of
//! all contexts is not. So work and growth are summed over a window that slides over the run, longer
//! than a rotation of turns, and the rates that explain the sums best are sought (least squares,
//! none negative). Sums from the beginning of the run on are explained too: what is known wrongly of
//! them never exceeds a few turns, however long the run is.
//!
//! Evidence is kept from one run to the next, so that a short run, or one in which all kernels come
//! in the same proportion everywhere, is divided by what was learned before. Where nothing tells
//! kernels apart, a small weight that draws the rates to a guess decides.

/// Turns take two milliseconds; a rotation of several contexts fits in this many nanoseconds.
const ROTATION: u64 = 8_000_000;
/// How much sums from the beginning of a run count beside those of a window.
const FROM_BEGINNING: f64 = 0.1;
/// How much rates are drawn to the guess, beside what was measured.
const DRAWN: f64 = 6e-4;
/// What is left of evidence after so many nanoseconds: programs change.
const KEPT: f64 = 0.5;
const KEPT_AFTER: f64 = 4e9;
/// Sweeps of the descent, and the change of a part that ends it.
const SWEEPS: usize = 2_000;
const SETTLED: f64 = 1e-9;

/// What runs have told about the kernels of one GPU, each known by a number.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Sums over windows of work times work, by two kernels.
    products: Vec<Vec<f64>>,
    /// The same of work times growth, by counter and kernel.
    sought: Vec<Vec<f64>>,
    /// Warps of each kernel.
    work: Vec<f64>,
    /// Growth of each counter.
    growth: Vec<f64>,
}

impl Evidence {
    /// Learns from a run: `work` has the warps by kernel and interval, `kernels` the numbers of the
    /// kernels, `growth` the counters by counter and interval; an interval lasts `length`
    /// nanoseconds.
    pub fn learn(
        &mut self,
        kernels: &[usize],
        work: &[Vec<f64>],
        growth: &[Vec<f64>],
        length: u64,
    ) {
        self.make_room(kernels, growth.len());
        let intervals = growth.first().map_or(0, Vec::len);
        self.decay(KEPT.powf(intervals as f64 * length as f64 / KEPT_AFTER));
        let window = usize::try_from(ROTATION / length.max(1))
            .unwrap_or(1)
            .max(1);
        let columns: Vec<Vec<f64>> = work.iter().map(|kernel| sums(kernel, window)).collect();
        for (a, column) in kernels.iter().zip(&columns) {
            for (b, other) in kernels.iter().zip(&columns) {
                self.products[*a][*b] += product(column, other);
            }
        }
        for (counter, growth) in growth.iter().enumerate() {
            let measured = sums(growth, window);
            for (kernel, column) in kernels.iter().zip(&columns) {
                self.sought[counter][*kernel] += product(column, &measured);
            }
            self.growth[counter] += growth.iter().sum::<f64>();
        }
        for (kernel, work) in kernels.iter().zip(work) {
            self.work[*kernel] += work.iter().sum::<f64>();
        }
    }

    fn make_room(&mut self, kernels: &[usize], counters: usize) {
        let most = kernels.iter().max().map_or(0, |most| most + 1);
        let count = self.work.len().max(most);
        self.work.resize(count, 0.0);
        self.products.resize(count, Vec::new());
        self.products
            .iter_mut()
            .for_each(|one| one.resize(count, 0.0));
        self.growth.resize(counters, 0.0);
        self.sought.resize(counters, Vec::new());
        self.sought
            .iter_mut()
            .for_each(|one| one.resize(count, 0.0));
    }

    fn decay(&mut self, kept: f64) {
        let sums = self.products.iter_mut().chain(&mut self.sought).flatten();
        sums.for_each(|sum| *sum *= kept * kept);
        let totals = self.work.iter_mut().chain(&mut self.growth);
        totals.for_each(|total| *total *= kept);
    }

    /// What a warp of every kernel adds to `counter`; `guess` has a rate for each of `kernels`, the
    /// others are not drawn. Nothing if the counter did not grow.
    pub fn rates(&self, counter: usize, kernels: &[usize], guess: &[f64]) -> Option<Vec<f64>> {
        let whole = self.growth[counter];
        if whole <= 0.0 {
            return None;
        }
        // As parts of all growth, so that kernels count alike, whatever a warp of them does.
        let scale: Vec<f64> = self.work.iter().map(|work| work.max(1.0)).collect();
        let count = scale.len();
        let mut products: Vec<Vec<f64>> = (0..count)
            .map(|a| {
                let row = self.products[a].iter().zip(&scale);
                row.map(|(product, b)| product / (scale[a] * b)).collect()
            })
            .collect();
        let mut sought: Vec<f64> = (0..count)
            .map(|kernel| self.sought[counter][kernel] / (scale[kernel] * whole))
            .collect();
        let norms: f64 = kernels.iter().map(|k| products[*k][*k].sqrt()).sum();
        let drawn = DRAWN * (norms / kernels.len().max(1) as f64).powi(2);
        let mut parts = vec![0.0; count];
        for (kernel, guess) in kernels.iter().zip(guess) {
            parts[*kernel] = guess * scale[*kernel] / whole;
            products[*kernel][*kernel] += drawn;
            sought[*kernel] += drawn * parts[*kernel];
        }
        for _ in 0..SWEEPS {
            let mut change: f64 = 0.0;
            for kernel in 0..count {
                let own = products[kernel][kernel];
                if own <= 0.0 {
                    parts[kernel] = 0.0;
                    continue;
                }
                let rest = sought[kernel] - product(&products[kernel], &parts);
                let part = (parts[kernel] + rest / own).max(0.0);
                change = change.max((part - parts[kernel]).abs());
                parts[kernel] = part;
            }
            if change < SETTLED {
                break;
            }
        }
        let rate = |kernel: &usize| parts[*kernel] * whole / scale[*kernel];
        Some(kernels.iter().map(rate).collect())
    }
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Sums over every window that touches the run, then those from its beginning on.
fn sums(values: &[f64], window: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let mut all: Vec<f64> = (0..values.len() + window - 1)
        .map(|end| {
            sum += values.get(end).copied().unwrap_or(0.0);
            if let Some(left) = end.checked_sub(window) {
                sum -= values[left];
            }
            sum
        })
        .collect();
    let mut sum = 0.0;
    all.extend(values.iter().map(|value| {
        sum += value;
        FROM_BEGINNING * sum
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 1_000_000;

    fn rates(work: &[Vec<f64>], growth: Vec<f64>, guess: &[f64]) -> Option<Vec<f64>> {
        let kernels: Vec<usize> = (0..work.len()).collect();
        let mut evidence = Evidence::default();
        evidence.learn(&kernels, work, &[growth], LENGTH);
        evidence.rates(0, &kernels, guess)
    }

    #[test]
    fn work_that_is_placed_wrongly_by_some_intervals_is_still_told_apart() {
        // A short kernel in every seventh interval, seen two intervals early, beside a long one.
        let at = |i: usize, place: usize| i % 7 == place && i < 90;
        let work = vec![
            (0..200)
                .map(|i| if at(i, 0) { 50.0 } else { 0.0 })
                .collect::<Vec<f64>>(),
            vec![10.0; 200],
        ];
        let growth = (0..200)
            .map(|i| 10.0 * 300.0 + if at(i, 2) { 50.0 * 2.0 } else { 0.0 })
            .collect();
        let rates = rates(&work, growth, &[100.0, 100.0]).unwrap();
        assert!((rates[1] - 300.0).abs() < 3.0, "{rates:?}");
        assert!(rates[0] < 10.0, "{rates:?}");
    }

    #[test]
    fn kernels_in_the_same_proportion_share_as_guessed() {
        let work = vec![vec![3.0; 50], vec![1.0; 50]];
        let rates = rates(&work, vec![8.0; 50], &[4.0 / 3.0, 4.0]).unwrap();
        assert!((rates[0] - 4.0 / 3.0).abs() < 0.02 && (rates[1] - 4.0).abs() < 0.02);
    }

    #[test]
    fn what_was_learned_before_divides_a_run_that_tells_nothing() {
        let mut evidence = Evidence::default();
        // Rates of 5 and 40, one kernel after the other; then both in one proportion.
        let one = |n: f64, first: bool| -> Vec<f64> {
            (0..100)
                .map(|i| if (i < 50) == first { n } else { 0.0 })
                .collect()
        };
        let growth = (0..100).map(|i| if i < 50 { 50.0 } else { 80.0 });
        evidence.learn(
            &[0, 1],
            &[one(10.0, true), one(2.0, false)],
            &[growth.collect()],
            LENGTH,
        );
        evidence.learn(
            &[1, 0],
            &[vec![2.0; 10], vec![10.0; 10]],
            &[vec![130.0; 10]],
            LENGTH,
        );
        let rates = evidence.rates(0, &[1, 0], &[1.0, 30.0]).unwrap();
        assert!((rates[0] - 40.0).abs() < 0.5, "{rates:?}");
        assert!((rates[1] - 5.0).abs() < 0.1, "{rates:?}");
    }

    #[test]
    fn a_counter_that_stands_still_says_nothing() {
        assert_eq!(rates(&[vec![1.0; 4]], vec![0.0; 4], &[1.0]), None);
    }
}
