//! The table: every counter of a launch, once.
//!
//! To add one, add an entry and count it where it happens: nothing else. An entry is its sentence,
//! its name, its scope and unit, then what else is known: names in Nsight Compute, how real GPUs
//! provide it, how it is compared with them. Counters of an SM or a sub-core are added to a block's
//! [`Counters`] and also appear in `stats.csv` for every SM.
//!
//! The sampled names of GH100 were chosen so that the default set fits one pass there: the unit
//! (`sm__`, `tpc__`) matters to the pass count although the raw event is the same.

use lockstep_stats::{Description, Statistics, Value};
use serde::{Deserialize, Serialize};

use crate::declare::counters;
use crate::metric::{
    Comparison::{Relative, Traffic},
    Definition, Metric, Scope, counter, everywhere,
};

/// Bytes of a sector.
const SECTOR: u32 = 32;

/// How names of counters of warp cycles begin.
pub(crate) const STALLED: &str = "stalled_";

/// Cycles of warps in one state. They need several passes, so no architecture has a sampled name.
macro_rules! stalled {
    ($ncu:literal) => {
        counter(Scope::SubCore, "warp cycles")
            .ncu(&[$ncu])
            .on_gpus(everywhere!($ncu, None))
    };
}

/// What a profiler sees beside the kernel and the model does not count, by an estimate.
const fn overhead(unit: &'static str, of: &'static str) -> Metric {
    counter(Scope::Kernel, unit).added_to(of)
}

#[rustfmt::skip]
counters! {
    /// Cycles from the start of a kernel to its end, of the multiprocessor that saw most.
    cycles = counter(Scope::Kernel, "cycles")
        .compared(Relative)
        .ncu(&["sm__cycles_elapsed.max"])
        .on_gpus(everywhere!("sm__cycles_elapsed.max", None));
    /// Cycles in which a multiprocessor had at least one warp, summed over multiprocessors.
    active_cycles = counter(Scope::Sm, "cycles")
        .compared(Relative)
        .ncu(&["sm__cycles_active.sum"])
        .on_gpus(everywhere!("sm__cycles_active.sum", Some("sm__cycles_active.sum")));
    /// Instructions that warps executed; a warp's instruction counts once for all its threads.
    inst_executed = counter(Scope::SubCore, "warp instructions").untimed()
        .compared(Relative)
        .ncu(&["smsp__inst_executed.sum", "sm__inst_executed.sum", "sm__inst_executed_realtime.sum"])
        .on_gpus(&[
            // Equal to the plain counter, and the smallest to stream of those that share a pass.
            Definition { architecture: "GH100", exact: "smsp__inst_executed.sum", sampled: Some("sm__inst_executed_realtime.sum") },
            Definition { architecture: "*", exact: "smsp__inst_executed.sum", sampled: Some("sm__inst_executed.sum") },
        ]);
    /// Instructions issued, those issued again included.
    inst_issued = counter(Scope::SubCore, "warp instructions")
        .compared(Relative)
        .ncu(&["smsp__inst_issued.sum", "sm__inst_issued.sum"])
        .on_gpus(everywhere!("smsp__inst_issued.sum", Some("sm__inst_issued.sum")));
    /// Instructions executed, counted once per active thread, predicated off or not.
    thread_inst_executed = counter(Scope::SubCore, "thread instructions").untimed()
        .compared(Relative)
        .ncu(&["smsp__thread_inst_executed.sum"])
        // Sampling this one needs two passes on GH100, so no architecture has a sampled name.
        .on_gpus(everywhere!("smsp__thread_inst_executed.sum", None));
    /// Instructions executed, counted once per active thread whose predicate was true.
    thread_inst_executed_pred_on = counter(Scope::SubCore, "thread instructions").untimed()
        .ncu(&["smsp__thread_inst_executed_pred_on.sum", "sm__thread_inst_executed_pred_on_realtime.sum"])
        .on_gpus(&[
            Definition { architecture: "GH100", exact: "smsp__thread_inst_executed_pred_on.sum", sampled: Some("sm__thread_inst_executed_pred_on_realtime.sum") },
            Definition { architecture: "*", exact: "smsp__thread_inst_executed_pred_on.sum", sampled: Some("smsp__thread_inst_executed_pred_on.sum") },
        ]);
    /// Warps launched.
    warps_launched = counter(Scope::SubCore, "warps").untimed()
        .compared(Relative)
        .ncu(&["sm__warps_launched.sum", "smsp__warps_launched.sum", "tpc__warps_launched_shader_cs.sum"])
        .on_gpus(&[
            Definition { architecture: "GH100", exact: "smsp__warps_launched.sum", sampled: Some("tpc__warps_launched_shader_cs.sum") },
            Definition { architecture: "*", exact: "smsp__warps_launched.sum", sampled: Some("sm__warps_launched.sum") },
        ]);
    /// Blocks (CTAs) that have ended.
    blocks_completed = counter(Scope::Sm, "blocks").untimed();
    /// Resident warps, summed over the active cycles of all SMs.
    warp_cycles = counter(Scope::Sm, "warp cycles")
        .ncu(&["sm__warps_active.sum"]);
    /// Sectors of 32 bytes that the first-level caches looked up.
    l1_sectors = counter(Scope::Sm, "sectors")
        .compared(Traffic(SECTOR))
        .ncu(&["l1tex__t_sectors.sum"])
        .on_gpus(everywhere!("l1tex__t_sectors.sum", None));
    /// Sectors that the first-level caches held.
    l1_sector_hits = counter(Scope::Sm, "sectors")
        .compared(Traffic(SECTOR))
        .ncu(&["l1tex__t_sectors_lookup_hit.sum"])
        .on_gpus(everywhere!("l1tex__t_sectors_lookup_hit.sum", None));
    /// Wavefronts of the data stage of L1TEX: passes over its banks for global, local and shared memory.
    l1_wavefronts = counter(Scope::Sm, "wavefronts")
        .ncu(&["l1tex__data_pipe_lsu_wavefronts.sum"])
        .on_gpus(everywhere!("l1tex__data_pipe_lsu_wavefronts.sum", None));
    /// Warp instructions that accessed shared memory.
    shared_accesses = counter(Scope::Sm, "warp instructions").untimed();
    /// Strong accesses (atomics, reductions, volatile, acquire and release) sent to L2, a sector each.
    strong_accesses = counter(Scope::Sm, "accesses").untimed();
    /// Weak accesses that followed a strong one to the same sector to its slice.
    diverted_accesses = counter(Scope::Sm, "accesses").untimed();
    /// Sectors of 32 bytes that the second-level cache looked up.
    l2_sectors = counter(Scope::Slice, "sectors")
        .compared(Traffic(SECTOR))
        .ncu(&["lts__t_sectors.sum"])
        .on_gpus(everywhere!("lts__t_sectors.sum", None));
    /// Sectors that the second-level cache held.
    l2_sector_hits = counter(Scope::Slice, "sectors")
        .compared(Traffic(SECTOR))
        .ncu(&["lts__t_sectors_lookup_hit.sum"])
        .on_gpus(everywhere!("lts__t_sectors_lookup_hit.sum", None));
    /// Sectors that GPCs and the fabric between L2 partitions asked of the second-level cache:
    /// `lts__t_sectors_srcnode_gpc.sum` and `lts__t_sectors_srcunit_ltcfabric.sum` together.
    l2_sectors_of_kernel = counter(Scope::Slice, "sectors")
        .compared(Traffic(SECTOR));
    /// Sectors that SMs asked of the second-level cache.
    l2_sectors_of_sms = counter(Scope::Slice, "sectors")
        .compared(Traffic(SECTOR))
        .ncu(&["lts__t_sectors_srcunit_tex.sum"]);
    /// Bytes read from device memory.
    dram_bytes_read = counter(Scope::Channel, "bytes")
        .compared(Traffic(1))
        .ncu(&["dram__bytes_read.sum"])
        .on_gpus(everywhere!("dram__bytes_read.sum", Some("dram__bytes_read.sum")));
    /// Bytes written to device memory.
    dram_bytes_written = counter(Scope::Channel, "bytes")
        .compared(Traffic(1))
        .ncu(&["dram__bytes_write.sum"])
        .on_gpus(everywhere!("dram__bytes_write.sum", Some("dram__bytes_write.sum")));
    /// Sectors that a profiler counts for the launch itself, its code, its end and others on the GPU,
    /// estimated; added to `l2_sectors` for comparison.
    l2_sectors_overhead = overhead("sectors", "l2_sectors");
    /// The same of `l2_sector_hits`: whatever surrounds a launch is found in L2 as good as always.
    l2_sector_hits_overhead = overhead("sectors", "l2_sector_hits");
    /// The same of `l2_sectors_of_kernel`, without what others on the GPU ask.
    l2_sectors_of_kernel_overhead = overhead("sectors", "l2_sectors_of_kernel");
    /// Bytes that a profiler counts for code and launch, estimated; added to `dram_bytes_read` for
    /// comparison.
    dram_bytes_read_overhead = overhead("bytes", "dram_bytes_read");

    [mix; MIXES: "Warp instructions by `Mix` of the instruction set."] {
        /// Single and half precision instructions.
        inst_fp32 = counter(Scope::SubCore, "warp instructions").untimed();
        /// Double precision instructions.
        inst_fp64 = counter(Scope::SubCore, "warp instructions").untimed();
        /// Integer and logic instructions.
        inst_integer = counter(Scope::SubCore, "warp instructions").untimed();
        /// Branches, calls and barriers of convergence.
        inst_control = counter(Scope::SubCore, "warp instructions").untimed();
        /// Loads, stores and atomics.
        inst_load_store = counter(Scope::SubCore, "warp instructions").untimed();
        /// All other instructions.
        inst_other = counter(Scope::SubCore, "warp instructions").untimed();
    }

    // Under the names that Nsight Compute has. What no warp of the model waits for has no counter.
    [stalls; STALLS: "Cycles of warps by what they did."] {
        /// Cycles in which warps issued, summed over warps.
        stalled_selected = stalled!("smsp__warps_issue_stalled_selected.sum");
        /// Cycles in which warps could have issued and another warp did, summed over warps.
        stalled_not_selected = stalled!("smsp__warps_issue_stalled_not_selected.sum");
        /// Cycles in which warps waited for the fixed number of cycles that an instruction keeps its
        /// warp, summed over warps.
        stalled_wait = stalled!("smsp__warps_issue_stalled_wait.sum");
        /// Cycles in which warps waited for a value from global or local memory, summed over warps.
        stalled_long_scoreboard = stalled!("smsp__warps_issue_stalled_long_scoreboard.sum");
        /// Cycles in which warps waited for a value from shared memory, a shuffle or the
        /// transcendental unit, summed over warps.
        stalled_short_scoreboard = stalled!("smsp__warps_issue_stalled_short_scoreboard.sum");
        /// Cycles in which warps waited for a busy unit, summed over warps.
        stalled_math_pipe_throttle = stalled!("smsp__warps_issue_stalled_math_pipe_throttle.sum");
        /// Cycles in which warps waited for room in the queue of accesses to global and local memory,
        /// summed over warps.
        stalled_lg_throttle = stalled!("smsp__warps_issue_stalled_lg_throttle.sum");
        /// Cycles in which warps waited for room in the queue of other memory instructions, summed
        /// over warps.
        stalled_mio_throttle = stalled!("smsp__warps_issue_stalled_mio_throttle.sum");
        /// Cycles in which warps waited for the other warps of the block, summed over warps.
        stalled_barrier = stalled!("smsp__warps_issue_stalled_barrier.sum");
        /// Cycles in which warps waited for their accesses to be seen by others, summed over warps.
        stalled_membar = stalled!("smsp__warps_issue_stalled_membar.sum");
        /// Cycles in which warps waited for the target of a branch, summed over warps.
        stalled_branch_resolving = stalled!("smsp__warps_issue_stalled_branch_resolving.sum");
        /// Cycles in which warps waited for their next instruction, summed over warps.
        stalled_no_instruction = stalled!("smsp__warps_issue_stalled_no_instruction.sum");
        /// Cycles in which warps waited for a constant, summed over warps.
        stalled_imc_miss = stalled!("smsp__warps_issue_stalled_imc_miss.sum");
        /// Cycles in which warps slept, summed over warps.
        stalled_sleeping = stalled!("smsp__warps_issue_stalled_sleeping.sum");
    }
}

/// [`COUNTERS`] as statistics.
static DESCRIPTIONS: [Description; COUNTERS.len()] = {
    let mut all = [COUNTERS[0].description(); COUNTERS.len()];
    let mut at = 0;
    while at < COUNTERS.len() {
        all[at] = COUNTERS[at].description();
        at += 1;
    }
    all
};

/// Counters of warp cycles as statistics, in the order of `Counters::stalls`.
pub static STALL_STATISTICS: [Description; STALLS] = {
    let mut all = [COUNTERS[0].description(); STALLS];
    let mut at = 0;
    while at < STALLS {
        all[at] = COUNTERS[COUNTERS.len() - STALLS + at].description();
        at += 1;
    }
    all
};

impl Counters {
    /// Of other counters, without those that an SM does not count by itself.
    fn of_sm(&self) -> impl Iterator<Item = (&'static Description, u64)> {
        let values = DESCRIPTIONS.iter().zip(self.values());
        let mut scopes = COUNTERS.iter().map(|metric| metric.scope);
        values.filter(move |_| matches!(scopes.next(), Some(Scope::Sm | Scope::SubCore)))
    }
}

/// As the statistics of an SM: those counters that an SM counts by itself.
impl Statistics for Counters {
    const HELP: &'static str = "What one SM counts, over the blocks that have ended.";
    const DESCRIPTIONS: &'static [Description] = &DESCRIPTIONS;

    fn visit(&self, f: &mut dyn FnMut(&'static Description, Value<'_>)) {
        for (description, value) in self.of_sm() {
            f(description, Value::Number(value));
        }
    }

    fn merge(&mut self, other: &Self) {
        self.add(other);
    }

    fn since(&self, earlier: &Self) -> Self {
        self.minus(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> &'static Metric {
        COUNTERS.iter().find(|one| one.name == name).unwrap()
    }

    #[test]
    fn no_name_or_alias_means_two_counters() {
        let mut names: Vec<&str> = COUNTERS
            .iter()
            .flat_map(|one| one.ncu.iter().copied().chain([one.name]))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_definition_is_also_an_alias_so_that_both_spellings_are_accepted() {
        for counter in COUNTERS {
            for definition in counter.definitions {
                assert!(counter.ncu.contains(&definition.exact), "{}", counter.name);
                if let Some(sampled) = definition.sampled {
                    assert!(counter.ncu.contains(&sampled), "{}", counter.name);
                }
            }
        }
    }

    #[test]
    fn hopper_has_its_own_line_where_the_pass_count_needs_one() {
        let warps = find("warps_launched");
        assert_eq!(
            warps.definition("gh100").unwrap().sampled,
            Some("tpc__warps_launched_shader_cs.sum")
        );
        assert_eq!(
            warps.definition("GA100").unwrap().sampled,
            Some("sm__warps_launched.sum")
        );
    }

    #[test]
    fn an_overhead_is_added_to_a_counter_that_is_compared() {
        for overhead in COUNTERS.iter().filter_map(|one| one.added_to) {
            assert!(find(overhead).comparison.is_some(), "{overhead}");
        }
    }

    #[test]
    fn values_stand_at_the_place_of_their_name_and_add_up() {
        let mut sum = Counters {
            cycles: 1,
            dram_bytes_read_overhead: 2,
            ..Counters::default()
        };
        sum.mix[1] = 3;
        sum.stalls[13] = 4;
        let all = sum;
        sum.add(&all);
        let value = |name: &str| {
            let place = COUNTERS.iter().position(|one| one.name == name).unwrap();
            sum.values()[place]
        };
        assert_eq!(value("cycles"), 2);
        assert_eq!(value("dram_bytes_read_overhead"), 4);
        assert_eq!(value("inst_fp64"), 6);
        assert_eq!(value("stalled_sleeping"), 8);
        assert_eq!(sum.minus(&all), all);
    }

    #[test]
    fn counters_of_warp_cycles_are_the_last() {
        assert_eq!(STALL_STATISTICS[0].name, "stalled_selected");
        assert!(
            STALL_STATISTICS
                .iter()
                .all(|one| one.name.starts_with(STALLED))
        );
    }

    #[test]
    fn an_sm_shows_what_it_counts_by_itself() {
        let mut names = Vec::new();
        Counters::default().visit(&mut |description, _| names.push(description.name));
        assert!(names.contains(&"inst_executed") && names.contains(&"stalled_wait"));
        assert!(!names.contains(&"dram_bytes_read") && !names.contains(&"cycles"));
    }
}
