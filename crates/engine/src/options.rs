//! How the host runs a simulation. Nothing here changes what is simulated.

use lockstep_units::splitmix64;
use serde::{Deserialize, Serialize};

/// How partitions are assigned to workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Every partition has its worker, dealt out in turn: caches stay warm.
    #[default]
    Static,
    /// Every partition has its worker, dealt out by measured cost, from time to time anew.
    Balanced,
    /// As balanced, and workers that are done take over what others have left: loads even out.
    Dynamic,
}

/// Delays that shake the workers out of step, to show that it does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Perturbation {
    /// What the delays follow from.
    pub seed: u64,
}

impl Perturbation {
    /// A number that looks random and depends on nothing but its arguments.
    pub(crate) fn draw(self, step: u64, salt: u64) -> u64 {
        splitmix64(splitmix64(splitmix64(self.seed) ^ step) ^ salt)
    }

    /// Holds the calling worker up before it runs a partition.
    pub(crate) fn delay(self, step: u64, worker: usize, partition: u32) {
        let drawn = self.draw(step, (worker as u64) << 32 | u64::from(partition));
        match drawn % 64 {
            0 => std::thread::sleep(std::time::Duration::from_micros(drawn >> 8 & 63)),
            1..8 => std::thread::yield_now(),
            8..32 => (0..drawn >> 8 & 1023).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }
}

/// How the host runs a simulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Options {
    /// Worker threads, the calling one included; at least one.
    pub threads: usize,
    /// How partitions are assigned to workers.
    pub schedule: Schedule,
    /// Whether time jumps over what nobody has to do. Off, every partition runs in every epoch,
    /// which is slow and gives the same answer.
    pub jumping: bool,
    /// With fewer partitions to run than this, the calling thread runs them all.
    pub together_from: usize,
    /// What each worker of a step must be expected to have to do, in nanoseconds, since meeting the
    /// others takes time. With less for all together, fewer take part, down to the calling thread
    /// alone. Zero has all of them take part.
    pub together_from_nanoseconds: u64,
    /// Delays for tests.
    pub perturbation: Option<Perturbation>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 1,
            schedule: Schedule::Static,
            jumping: true,
            together_from: 2,
            together_from_nanoseconds: 1_500,
            perturbation: None,
        }
    }
}
