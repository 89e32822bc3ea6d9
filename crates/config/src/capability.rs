//! Compute capabilities: `9.0`, ordered, with the number that images carry (90).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A compute capability, `major.minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ComputeCapability {
    /// The generation.
    pub major: u32,
    /// The variant within it.
    pub minor: u32,
}

impl ComputeCapability {
    /// The number after `sm_`: 90 for 9.0, 120 for 12.0.
    pub fn architecture(self) -> u32 {
        self.major * 10 + self.minor
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for ComputeCapability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (major, minor) = text.split_once('.')?;
            let found = Self {
                major: major.parse().ok()?,
                minor: minor.parse().ok()?,
            };
            (found.major < 100 && found.minor < 10).then_some(found)
        };
        parse().ok_or_else(|| format!("`{text}` is not a compute capability; write it as \"9.0\""))
    }
}

impl TryFrom<String> for ComputeCapability {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ComputeCapability> for String {
    fn from(capability: ComputeCapability) -> Self {
        capability.to_string()
    }
}
