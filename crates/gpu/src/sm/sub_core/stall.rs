//! Why warps wait, under the names that Nsight Compute has for it.

/// What a warp did in a cycle in which it was resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// It issued.
    Selected,
    /// It could have; another warp did.
    NotSelected,
    /// The fixed number of cycles that an instruction keeps its warp.
    Wait,
    /// A value from global or local memory.
    LongScoreboard,
    /// A value from shared memory, a shuffle, the transcendental unit.
    ShortScoreboard,
    /// Its unit is busy.
    MathPipeThrottle,
    /// The queue of memory instructions is full, and the access is to global or local memory.
    LgThrottle,
    /// The queue of memory instructions is full.
    MioThrottle,
    /// The others of its block.
    Barrier,
    /// Its accesses to be seen by others.
    Membar,
    /// The target of a branch.
    BranchResolving,
    /// Its next instruction.
    NoInstruction,
    /// A constant.
    ImcMiss,
    /// It sleeps.
    Sleeping,
}

/// Number of [`Reason`]s.
pub const REASONS: usize = 14;

/// Their names, in order.
pub const REASON_NAMES: [&str; REASONS] = [
    "selected",
    "not_selected",
    "wait",
    "long_scoreboard",
    "short_scoreboard",
    "math_pipe_throttle",
    "lg_throttle",
    "mio_throttle",
    "barrier",
    "membar",
    "branch_resolving",
    "no_instruction",
    "imc_miss",
    "sleeping",
];
