//! How values are distributed, in buckets of powers of two.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::declare::{Kind, Measure, Value};

/// Bucket 0 holds zeros; bucket `b` holds values from 2^(b-1) up to and without 2^b.
const BUCKETS: usize = 65;

/// How often values of each magnitude were seen, with their sum and the largest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: [u64; BUCKETS],
    sum: u64,
    largest: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            sum: 0,
            largest: 0,
        }
    }
}

impl Histogram {
    /// Has seen a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.buckets[(u64::BITS - value.leading_zeros()) as usize] += 1;
        self.sum = self.sum.wrapping_add(value);
        self.largest = self.largest.max(value);
    }

    /// How many values were seen.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Their sum, modulo 2^64.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The largest of them; zero before any.
    pub const fn largest(&self) -> u64 {
        self.largest
    }

    /// The buckets that hold something: the largest value that would fall in, and how many did.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets
            .iter()
            .enumerate()
            .filter(|(_, count)| **count != 0)
            .map(|(bucket, &count)| {
                let last = match bucket {
                    0 => 0,
                    _ => u64::MAX >> (u64::BITS as usize - bucket),
                };
                (last, count)
            })
    }

    /// The smallest bucket bound that at least `percent` of all values do not exceed: a quantile
    /// within a factor of two.
    pub fn quantile(&self, percent: u64) -> u64 {
        let wanted = u128::from(self.count()) * u128::from(percent.min(100));
        let mut seen = 0u128;
        for (last, count) in self.buckets() {
            seen += u128::from(count);
            if seen * 100 >= wanted {
                return last.min(self.largest);
            }
        }
        self.largest
    }
}

impl Measure for Histogram {
    const KIND: Kind = Kind::Histogram;

    fn value(&self) -> Value<'_> {
        Value::Histogram(self)
    }

    fn merge(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
        self.sum = self.sum.wrapping_add(other.sum);
        self.largest = self.largest.max(other.largest);
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            buckets: std::array::from_fn(|bucket| self.buckets[bucket] - earlier.buckets[bucket]),
            sum: self.sum.wrapping_sub(earlier.sum),
            largest: self.largest,
        }
    }
}

/// As saved: buckets up to the last that is not empty.
#[derive(Serialize, Deserialize)]
struct Saved {
    buckets: Vec<u64>,
    sum: u64,
    largest: u64,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let used = self
            .buckets
            .iter()
            .rposition(|&count| count != 0)
            .map_or(0, |last| last + 1);
        let buckets = self.buckets[..used].to_vec();
        Saved {
            buckets,
            sum: self.sum,
            largest: self.largest,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Saved {
            buckets: saved,
            sum,
            largest,
        } = Saved::deserialize(deserializer)?;
        let mut buckets = [0; BUCKETS];
        buckets
            .get_mut(..saved.len())
            .ok_or_else(|| D::Error::custom(format!("a histogram has {BUCKETS} buckets")))?
            .copy_from_slice(&saved);
        Ok(Self {
            buckets,
            sum,
            largest,
        })
    }
}
