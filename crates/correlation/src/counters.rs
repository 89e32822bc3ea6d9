//! The counters that are compared, each with its name in the tables and the rule for its error.

/// How the error of a counter is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Relative to hardware, summed over the launches of a kernel.
    Relative,
    /// As traffic: relative to at least 5 % of the footprint. Holds the bytes of one unit.
    Traffic(u32),
    /// A share: not summed but averaged, weighted by cycles, and compared as a difference.
    Share,
}

/// One counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    /// Its column, in `kernels.csv` and in the tables of hardware alike.
    pub name: &'static str,
    /// How its error is measured.
    pub rule: Rule,
    /// What hardware's value is divided by to give the simulator's unit.
    pub scale: f64,
    /// What it counts.
    pub sentence: &'static str,
}

const fn counter(name: &'static str, rule: Rule, sentence: &'static str) -> Counter {
    Counter {
        name,
        rule,
        scale: 1.0,
        sentence,
    }
}

/// In the order in which they are printed; the first is the one that the headline is about.
pub const COUNTERS: &[Counter] = &[
    counter("cycles", Rule::Relative, "elapsed cycles of the SM clock"),
    counter(
        "active_cycles",
        Rule::Relative,
        "cycles of SMs that had a warp, summed over SMs",
    ),
    counter("inst_executed", Rule::Relative, "warp instructions"),
    counter(
        "thread_inst_executed",
        Rule::Relative,
        "thread instructions",
    ),
    counter("warps_launched", Rule::Relative, "warps"),
    counter(
        "inst_issued",
        Rule::Relative,
        "warp instructions issued, repeated ones too",
    ),
    counter("l1_sectors", Rule::Traffic(32), "sectors asked of the L1"),
    counter("l1_sector_hits", Rule::Traffic(32), "of them, found there"),
    counter("l2_sectors", Rule::Traffic(32), "sectors asked of the L2"),
    counter("l2_sector_hits", Rule::Traffic(32), "of them, found there"),
    counter(
        "l2_sectors_of_kernel",
        Rule::Traffic(32),
        "sectors that GPCs and the fabric between its halves asked of the L2",
    ),
    counter(
        "l2_sectors_of_sms",
        Rule::Traffic(32),
        "sectors that SMs asked of the L2",
    ),
    counter("dram_bytes_read", Rule::Traffic(1), "bytes read from DRAM"),
    counter(
        "dram_bytes_written",
        Rule::Traffic(1),
        "bytes written to DRAM",
    ),
    Counter {
        name: "achieved_occupancy",
        rule: Rule::Share,
        scale: 100.0,
        sentence: "warps present, of the most that fit",
    },
];

/// The counters that must agree exactly, for launches whose hardware counts repeat.
pub const EXACT: &[&str] = &["inst_executed", "thread_inst_executed", "warps_launched"];

/// The counter of this name.
pub fn named(name: &str) -> Option<&'static Counter> {
    COUNTERS.iter().find(|counter| counter.name == name)
}
