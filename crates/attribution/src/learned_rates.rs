//! What each kernel does per warp (or per nanosecond), learned from intervals that kernels share.
//!
//! An interval says: so many warps of each of these kernels made this many instructions together.
//! Intervals that mix kernels in different proportions tell their rates apart; the rates that
//! explain a window of recent intervals best are found by expectation maximisation, a few steps
//! with every new interval. Kernels that always come in the same proportion cannot be told apart,
//! and share by warps.

use std::collections::{BTreeMap, VecDeque};

use crate::Key;

/// Intervals that are remembered.
const WINDOW: usize = 128;
/// Steps with every new interval; what is learned stays, so few are enough.
const STEPS: usize = 4;
/// Intervals with more kernels than this teach nothing about any of them.
const MOST_KERNELS: usize = 64;

struct Remembered {
    bases: Vec<(usize, f64)>,
    growth: Vec<Option<f64>>,
}

/// The rates of all kernels of one GPU.
pub(crate) struct LearnedRates {
    counters: usize,
    numbers: BTreeMap<Key, usize>,
    /// By kernel, then by counter; nothing before the first interval.
    rates: Vec<Vec<Option<f64>>>,
    window: VecDeque<Remembered>,
}

impl LearnedRates {
    pub fn new(counters: usize) -> Self {
        Self {
            counters,
            numbers: BTreeMap::new(),
            rates: Vec::new(),
            window: VecDeque::with_capacity(WINDOW),
        }
    }

    /// What one warp (or nanosecond) of `key` adds to a counter, if anything is known.
    pub fn rate(&self, key: &Key, counter: usize) -> Option<f64> {
        self.rates[*self.numbers.get(key)?][counter]
    }

    /// Learns from one interval.
    pub fn learn(&mut self, bases: &[(Key, f64)], growth: &[Option<u64>]) {
        let total: f64 = bases.iter().map(|(_, base)| base).sum();
        if bases.is_empty() || bases.len() > MOST_KERNELS || total <= 0.0 {
            return;
        }
        let bases: Vec<(usize, f64)> = bases
            .iter()
            .map(|(key, base)| (self.number(key), *base))
            .collect();
        for (i, whole) in growth.iter().enumerate() {
            let Some(whole) = *whole else { continue };
            for (kernel, _) in &bases {
                // A start above zero: a rate of nothing could never grow again.
                self.rates[*kernel][i].get_or_insert((whole as f64 / total).max(1e-9));
            }
        }
        let growth = growth
            .iter()
            .map(|growth| growth.map(|growth| growth as f64))
            .collect();
        self.window.push_back(Remembered { bases, growth });
        if self.window.len() > WINDOW {
            self.window.pop_front();
        }
        for _ in 0..STEPS {
            self.step();
        }
    }

    fn number(&mut self, key: &Key) -> usize {
        if let Some(known) = self.numbers.get(key) {
            return *known;
        }
        let number = self.rates.len();
        self.numbers.insert(key.clone(), number);
        self.rates.push(vec![None; self.counters]);
        number
    }

    /// Divides every remembered interval by the rates, and takes new rates from the parts.
    fn step(&mut self) {
        for i in 0..self.counters {
            let mut parts: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
            for remembered in &self.window {
                let Some(whole) = remembered.growth[i] else {
                    continue;
                };
                let weight =
                    |(kernel, base): &(usize, f64)| base * self.rates[*kernel][i].unwrap_or(0.0);
                let total: f64 = remembered.bases.iter().map(weight).sum();
                if total <= 0.0 {
                    continue;
                }
                for share in &remembered.bases {
                    let (count, base) = parts.entry(share.0).or_default();
                    *count += whole * weight(share) / total;
                    *base += share.1;
                }
            }
            for (kernel, (count, base)) in parts {
                self.rates[kernel][i] = Some((count / base).max(1e-9));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kernel: &str) -> Key {
        Key {
            gpu: "GPU-1".into(),
            process: 1,
            context: 1,
            stream: 1,
            kernel: kernel.into(),
        }
    }

    #[test]
    fn mixtures_in_different_proportions_tell_kernels_apart() {
        let mut habits = LearnedRates::new(1);
        for i in 0..100u64 {
            // 10 a warp and 40 a warp, in proportions that change.
            let (a, b) = (20 + i * 7 % 60, 20 + i * 11 % 50);
            habits.learn(
                &[(key("a"), a as f64), (key("b"), b as f64)],
                &[Some(10 * a + 40 * b)],
            );
        }
        assert!((habits.rate(&key("a"), 0).unwrap() - 10.0).abs() < 0.5);
        assert!((habits.rate(&key("b"), 0).unwrap() - 40.0).abs() < 0.5);
    }

    #[test]
    fn the_same_proportion_every_time_is_shared_by_warps() {
        let mut habits = LearnedRates::new(1);
        for _ in 0..50 {
            habits.learn(&[(key("a"), 10.0), (key("b"), 30.0)], &[Some(800)]);
        }
        assert!((habits.rate(&key("a"), 0).unwrap() - 20.0).abs() < 1e-6);
        assert!((habits.rate(&key("b"), 0).unwrap() - 20.0).abs() < 1e-6);
    }

    #[test]
    fn nothing_is_known_of_a_kernel_that_never_ran() {
        let mut habits = LearnedRates::new(1);
        habits.learn(&[(key("a"), 10.0)], &[Some(0)]);
        assert!(habits.rate(&key("b"), 0).is_none());
        assert!(habits.rate(&key("a"), 0).unwrap() < 1e-6);
    }
}
