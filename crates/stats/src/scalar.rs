//! Statistics that are one number.

use serde::{Deserialize, Serialize};

use crate::declare::{Kind, Measure, Value};

/// How often something happened, or how much of it: only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counter(u64);

/// How much of something there is: grows and shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gauge(u64);

/// The largest value ever seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Maximum(u64);

impl Counter {
    /// One more.
    #[inline]
    pub fn increment(&mut self) {
        self.0 += 1;
    }

    /// So many more.
    #[inline]
    pub fn add(&mut self, amount: u64) {
        self.0 += amount;
    }

    /// How many so far.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Gauge {
    /// So much more.
    #[inline]
    pub fn rise(&mut self, amount: u64) {
        self.0 += amount;
    }

    /// So much less.
    #[inline]
    pub fn fall(&mut self, amount: u64) {
        self.0 -= amount;
    }

    /// So much from now on.
    #[inline]
    pub fn set(&mut self, level: u64) {
        self.0 = level;
    }

    /// The present value.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Maximum {
    /// Has seen a value.
    #[inline]
    pub fn see(&mut self, value: u64) {
        self.0 = self.0.max(value);
    }

    /// The largest so far; zero before any.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Measure for Counter {
    const KIND: Kind = Kind::Counter;

    fn value(&self) -> Value<'_> {
        Value::Number(self.0)
    }

    fn merge(&mut self, other: &Self) {
        self.0 += other.0;
    }

    fn since(&self, earlier: &Self) -> Self {
        Self(self.0 - earlier.0)
    }
}

impl Measure for Gauge {
    const KIND: Kind = Kind::Gauge;

    fn value(&self) -> Value<'_> {
        Value::Number(self.0)
    }

    /// Levels of two components add up to the level of both.
    fn merge(&mut self, other: &Self) {
        self.0 += other.0;
    }

    /// A level has no difference over time: it is what it is now.
    fn since(&self, _: &Self) -> Self {
        *self
    }
}

impl Measure for Maximum {
    const KIND: Kind = Kind::Maximum;

    fn value(&self) -> Value<'_> {
        Value::Number(self.0)
    }

    fn merge(&mut self, other: &Self) {
        self.see(other.0);
    }

    /// The largest value of an interval cannot be told from those of its ends; this is the
    /// largest until now.
    fn since(&self, _: &Self) -> Self {
        *self
    }
}
