//! What the parts of an SM count over a whole run, beside the counters of its blocks.
//!
//! Each part adds to plain numbers of its own; they are put together when somebody asks.

use lockstep_counters::{STALL_STATISTICS, STALLS};
use lockstep_stats::{Description, Kind, Statistics, Value};
use serde::{Deserialize, Serialize};

use super::front_end::issue_table::PIPES;
use crate::statistics::{AccessStats, CreditStats, LineCacheStats, MshrStats};

/// Kinds of accesses of L1TEX, as statistics name them.
pub(super) const L1_KINDS: [&str; 5] = [
    "global_load",
    "local_load",
    "bypass_load",
    "global_store",
    "local_store",
];

/// What a sub-core counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubCoreStats {
    /// Instructions issued, by pipe.
    pub issued: [u64; PIPES],
    /// Cycles of warps, by what they did.
    pub stalls: [u64; STALLS],
}

const fn issued(name: &'static str, help: &'static str) -> Description {
    Description {
        name,
        kind: Kind::Counter,
        unit: "warp instructions",
        help,
    }
}

/// Instructions by pipe, in the order of `Pipe`; the field's names, as in ncu's
/// `sm__inst_executed_pipe_NAME`.
static ISSUED: [Description; PIPES] = [
    issued(
        "issued_alu",
        "Instructions issued to the integer and logic pipe.",
    ),
    issued(
        "issued_fma",
        "Instructions issued to either half of the multiply-add pipe.",
    ),
    issued(
        "issued_fmaheavy",
        "Instructions issued to the half of the multiply-add pipe that also multiplies integers.",
    ),
    issued(
        "issued_fp64",
        "Instructions issued to the double precision pipe.",
    ),
    issued(
        "issued_fp16",
        "Instructions issued to the pipe for pairs of half precision.",
    ),
    issued(
        "issued_xu",
        "Instructions issued to the pipe for transcendental functions and conversions.",
    ),
    issued(
        "issued_uniform",
        "Instructions issued to the uniform datapath.",
    ),
    issued("issued_tensor", "Instructions issued to the tensor core."),
    issued(
        "issued_cbu",
        "Branches and instructions of convergence issued.",
    ),
    issued("issued_lsu", "Instructions issued to the load/store unit."),
    issued("issued_tex", "Instructions issued to the texture unit."),
    issued(
        "issued_other",
        "Barriers, special registers and other instructions issued.",
    ),
];

impl Statistics for SubCoreStats {
    const HELP: &'static str = "What one sub-core counts.";
    const DESCRIPTIONS: &'static [Description] = &ISSUED;

    fn visit(&self, f: &mut dyn FnMut(&'static Description, Value<'_>)) {
        let issued = ISSUED.iter().zip(self.issued);
        let stalled = STALL_STATISTICS.iter().zip(self.stalls);
        for (description, value) in issued.chain(stalled) {
            f(description, Value::Number(value));
        }
    }

    fn merge(&mut self, other: &Self) {
        let own = self.issued.iter_mut().chain(&mut self.stalls);
        for (sum, more) in own.zip(other.issued.iter().chain(&other.stalls)) {
            *sum += more;
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        let mut left = self.clone();
        let own = left.issued.iter_mut().chain(&mut left.stalls);
        for (left, less) in own.zip(earlier.issued.iter().chain(&earlier.stalls)) {
            *left -= less;
        }
        left
    }
}

/// What the parts of an SM counted in timing mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartStats {
    /// Sub-cores, and the instruction cache of each.
    pub(super) sub_cores: Vec<(SubCoreStats, LineCacheStats)>,
    /// L1TEX by kind of access.
    pub(super) l1: [AccessStats; L1_KINDS.len()],
    pub(super) mshrs: MshrStats,
    /// The room that slices had for its requests.
    pub(super) credits: CreditStats,
    /// The instruction cache that the sub-cores share.
    pub(super) instructions: LineCacheStats,
    pub(super) constants: LineCacheStats,
}

impl PartStats {
    pub(super) fn merge(&mut self, other: &Self) {
        if self.sub_cores.len() < other.sub_cores.len() {
            self.sub_cores
                .resize(other.sub_cores.len(), Default::default());
        }
        for (own, more) in self.sub_cores.iter_mut().zip(&other.sub_cores) {
            own.0.merge(&more.0);
            own.1.merge(&more.1);
        }
        for (own, more) in self.l1.iter_mut().zip(&other.l1) {
            own.merge(more);
        }
        self.mshrs.merge(&other.mshrs);
        self.credits.merge(&other.credits);
        self.instructions.merge(&other.instructions);
        self.constants.merge(&other.constants);
    }
}
