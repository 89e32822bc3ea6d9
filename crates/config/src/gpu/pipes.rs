//! The sections `[sm.latency]` and `[sm.interval]`: how long instructions take and how often they issue.

use lockstep_units::Cycles;
use serde::{Deserialize, Serialize};

fn unscheduled() -> Cycles {
    Cycles(33)
}

fn unscheduled_result() -> Cycles {
    Cycles(30)
}

/// From issue to the issue of a dependent instruction; the names are those of the classes in
/// `lockstep_isa`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LatencyConfig {
    /// Integer, logic, moves.
    pub integer: Cycles,
    /// Single precision and 32-bit multiply-add.
    pub float: Cycles,
    /// Multiply-add of 32 x 32 to 64 bits.
    pub wide_multiply: Cycles,
    /// For how long an integer multiplication with a result of 64 bits holds up its warp, if the
    /// compiler's stall count is less.
    pub wide_multiply_stall: Cycles,
    /// For how long an instruction whose control bits are all empty holds up its warp: code of `ptxas -O0` for
    /// sm_90 says nothing, and hardware waits by itself.
    #[serde(default = "unscheduled")]
    pub unscheduled: Cycles,
    /// The same from its result on, if it has no fixed latency.
    #[serde(default = "unscheduled_result")]
    pub unscheduled_result: Cycles,
    /// Double precision.
    pub double: Cycles,
    /// Pairs of half precision.
    pub half: Cycles,
    /// Transcendental functions.
    pub transcendental: Cycles,
    /// Conversions, population counts, leading zeros.
    pub conversion: Cycles,
    /// Predicates and comparisons, until a guard or a branch can use them.
    pub compare: Cycles,
    /// Votes.
    pub vote: Cycles,
    /// Shuffles.
    pub shuffle: Cycles,
    /// How much longer those take that also say, as a predicate, whether there was such a lane.
    #[serde(default)]
    pub shuffle_predicate: Cycles,
    /// Reductions over a warp.
    pub warp_reduce: Cycles,
    /// Matches over a warp.
    #[serde(rename = "match")]
    pub matching: Cycles,
    /// The uniform datapath.
    pub uniform: Cycles,
    /// Reading special registers.
    pub special_register: Cycles,
    /// Matrix multiply with a short chain (1688).
    pub matrix_short: Cycles,
    /// Matrix multiply with a long chain (16816).
    pub matrix_long: Cycles,
    /// Double-precision matrix multiply.
    pub matrix_double: Cycles,
    /// Matrix multiply of a warp group, beyond the cycles that its columns take.
    #[serde(default)]
    pub matrix_group: Cycles,
    /// Branches and calls that are taken, until the next instruction of the warp.
    pub branch: Cycles,
    /// The same for an indirect branch, whose target is in a register: returns and calls of pointers.
    pub indirect_branch: Cycles,
    /// A branch that only some lanes take, until those that go first issue again.
    pub divergence: Cycles,
    /// A switch to another divergent path, because the lanes of this one wait for reconvergence or have
    /// ended.
    pub divergent_path_switch: Cycles,
    /// A fence for the GPU with nothing to wait for.
    pub fence_gpu: Cycles,
    /// A fence for the system with nothing to wait for.
    pub fence_system: Cycles,
    /// A block barrier with one warp, from arriving to going on.
    pub barrier: Cycles,
    /// What each further warp adds to a block barrier.
    pub barrier_per_warp: Cycles,
    /// Loads from shared memory without conflict.
    pub shared: Cycles,
    /// Atomics on shared memory without conflict.
    pub shared_atomic: Cycles,
    /// The same for compare and swap, or on 64 bits; each makes it longer.
    #[serde(default)]
    pub shared_cas: Cycles,
    /// Operations on an `mbarrier` in shared memory: arrivals, tests.
    #[serde(default = "mbarrier")]
    pub mbarrier: Cycles,
    /// From the end of a phase of an `mbarrier` to the next instruction of a warp that waited for it.
    #[serde(default = "mbarrier_wake")]
    pub mbarrier_wake: Cycles,
    /// How long `mbarrier.try_wait` waits.
    #[serde(default = "mbarrier_wait")]
    pub mbarrier_wait: Cycles,
    /// Texture reads that hit L1.
    #[serde(default = "texture")]
    pub texture: Cycles,
    /// Loads from constant memory that hit.
    pub constant: Cycles,
}

/// Cycles that one warp instruction occupies its unit in a sub-core; the names are those of the
/// units in `lockstep_isa`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IntervalConfig {
    /// Integer and logic.
    pub alu: Cycles,
    /// Single-precision multiply-add.
    pub fma: Cycles,
    /// Integer multiply-add, which shares that unit.
    pub integer_multiply: Cycles,
    /// Double precision.
    pub double: Cycles,
    /// Pairs of half precision.
    pub half: Cycles,
    /// Transcendental functions and conversions.
    pub transcendental: Cycles,
    /// Population counts (`popc`) and leading zeros, which share that unit.
    pub popc: Cycles,
    /// The uniform datapath.
    pub uniform: Cycles,
    /// Matrix multiply of 16 x 8 x 16 half-precision elements; larger ones in proportion.
    pub tensor: Cycles,
    /// Matrix multiply of 16 x 8 x 8 half-precision elements, and smaller ones.
    pub tensor_short: Cycles,
    /// Double-precision matrix multiply of 8 x 8 x 4.
    pub tensor_double: Cycles,
    /// Branches.
    pub branch: Cycles,
    /// Address generation and all memory.
    pub load_store: Cycles,
    /// Texture.
    pub texture: Cycles,
    /// Barriers, special registers, the rest.
    pub miscellaneous: Cycles,
}

fn mbarrier() -> Cycles {
    Cycles(20)
}

fn texture() -> Cycles {
    Cycles(80)
}

fn mbarrier_wake() -> Cycles {
    Cycles(65)
}

fn mbarrier_wait() -> Cycles {
    Cycles(8_000)
}
