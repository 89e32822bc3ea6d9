//! Checks of programs: what they do wrong although hardware lets it pass.
//!
//! | file | what |
//! |---|---|
//! | `findings.rs` | what was found: each instruction of a kernel once, with a count |
//! | `outside.rs` | accesses outside every allocation, with or without a check |
//! | `uninitialised.rs` | reads of device memory that nobody has written |
//! | `race/` | hazards between threads of a block in shared memory |
//! | `barriers.rs` | barriers that threads use in ways that are not allowed |
//!
//! Without a check there is no state for it. A check never changes what a kernel computes, nor when.
//!
//! Start reading at [`Checks`], then at [`Findings`].

pub mod barriers;
mod findings;
pub mod outside;
pub mod race;
pub mod uninitialised;

pub use findings::{Culprits, Finding, Findings, Subject, note, note_fault};

use serde::{Deserialize, Serialize};

/// What a finding is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Check {
    /// An access that a GPU lets pass although no allocation holds it; noted without being asked.
    Outside,
    /// An access that no allocation holds, or a misaligned one; the kernel stops.
    Memory,
    /// A read of device memory that nobody has written.
    Initialised,
    /// Two accesses to shared memory that nothing orders.
    Race,
    /// A barrier used in a way that is not allowed.
    Barriers,
}

impl Check {
    /// Its name, as options and tables have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Memory => "memory",
            Self::Initialised => "initialised",
            Self::Race => "race",
            Self::Barriers => "barriers",
        }
    }
}

/// Checks that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Stop at the first access that no allocation holds.
    pub memory: bool,
    /// Find reads of device memory that nobody has written.
    pub initialised: bool,
    /// Find accesses to shared memory that race.
    pub race: bool,
    /// Find misused barriers.
    pub barriers: bool,
    /// Stop at reads that come before the compiler's control bits allow them (SASS only).
    pub control_bits: bool,
}
