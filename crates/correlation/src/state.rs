//! In which state a launch finds the GPU's caches.

use serde::{Deserialize, Serialize};

/// What was done to caches before a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// Emptied before every launch, as a profiler does by default.
    #[default]
    #[serde(rename = "cold")]
    Cold,
    /// Left as the program left them: the state in which programs run.
    #[serde(rename = "as-run")]
    AsRun,
}

impl State {
    /// Its name, on the command line and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::AsRun => "as-run",
        }
    }

    /// What the measurements of empty kernels call it.
    pub(crate) const fn of_floors(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::AsRun => "warm",
        }
    }
}
