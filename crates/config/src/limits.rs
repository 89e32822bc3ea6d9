//! Bounds of single keys, as rows of data.

use crate::ConfigError;

/// The bounds of one key, with the value that was found.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    key: &'static str,
    found: u64,
    least: u64,
    most: u64,
    power_of_two: bool,
}

impl Limit {
    /// A key without bounds.
    pub fn new(key: &'static str, found: impl Into<u64>) -> Self {
        Self {
            key,
            found: found.into(),
            least: 0,
            most: u64::MAX,
            power_of_two: false,
        }
    }

    /// At least so much.
    pub fn from(mut self, least: u64) -> Self {
        self.least = least;
        self
    }

    /// At most so much.
    pub fn to(mut self, most: u64) -> Self {
        self.most = most;
        self
    }

    /// Only powers of two.
    pub fn power_of_two(mut self) -> Self {
        self.power_of_two = true;
        self
    }

    /// Refuses a value that is not within the bounds.
    pub fn check(&self) -> Result<(), ConfigError> {
        let because = if self.found == 0 && self.least > 0 {
            "it must not be 0".to_string()
        } else if self.found < self.least {
            format!("it must be at least {}", self.least)
        } else if self.found > self.most {
            format!("at most {} can be simulated", self.most)
        } else if self.power_of_two && !self.found.is_power_of_two() {
            "it must be a power of two".to_string()
        } else {
            return Ok(());
        };
        Err(ConfigError::impossible(self.key, self.found, because))
    }
}
