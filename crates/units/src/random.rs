//! Randomness from a configured seed (SplitMix64).

use serde::{Deserialize, Serialize};

/// By how much the state of SplitMix64 grows from draw to draw.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number that looks like chance and depends on nothing but `value`: what SplitMix64 draws after it.
#[must_use]
pub fn splitmix64(value: u64) -> u64 {
    let z = value.wrapping_add(GAMMA);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A source of numbers that is the same in every run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        let drawn = splitmix64(self.0);
        self.0 = self.0.wrapping_add(GAMMA);
        drawn
    }

    /// A number below `bound`, each as likely as the others; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        let mut random = Random::new(1_234_567);
        let drawn = [(); 3].map(|()| random.draw());
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(drawn, published);
        assert_eq!(splitmix64(1_234_567), published[0]);
        assert_eq!(random.below(0), 0);
    }
}
