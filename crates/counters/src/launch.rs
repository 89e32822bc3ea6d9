//! Counters of one launch, as far as its mode knows them.

use crate::{COUNTERS, Counters, Metric};
use serde::{Deserialize, Serialize};

/// What was counted for a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchCounters {
    /// The counts.
    pub values: Counters,
    /// Whether instructions took their time; without, only some counters are known.
    pub timed: bool,
}

impl LaunchCounters {
    /// Every counter, with its value where the mode knows it.
    pub fn all(&self) -> impl Iterator<Item = (&'static Metric, Option<u64>)> {
        let timed = self.timed;
        COUNTERS
            .iter()
            .zip(self.values.values())
            .map(move |(metric, value)| (metric, (timed || metric.untimed).then_some(value)))
    }

    /// A counter by name, if the mode knows it.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.all().find(|(metric, _)| metric.name == name)?.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functional_mode_knows_no_cycles() {
        let mut launch = LaunchCounters::default();
        launch.values.cycles = 7;
        launch.values.inst_executed = 9;
        assert_eq!(launch.get("cycles"), None);
        assert_eq!(launch.get("inst_executed"), Some(9));
        launch.timed = true;
        assert_eq!(launch.get("cycles"), Some(7));
        assert_eq!(launch.get("no such counter"), None);
    }
}
