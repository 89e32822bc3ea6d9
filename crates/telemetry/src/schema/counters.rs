//! Every counter and gauge, with its meaning on each architecture.
//!
//! Left out: counters that no architecture can give and that no simulated GPU counts.

/// How one architecture provides a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Chip name as CUPTI spells it; `*` is every chip without a line of its own.
    pub architecture: &'static str,
    /// Metric that the range profiler counts exactly, per kernel.
    pub exact: &'static str,
    /// Metric of the same meaning that periodic sampling gives in one pass, if there is one.
    pub sampled: Option<&'static str>,
}

/// One counter: cumulative, a whole number, never decreasing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name in metadata files and outputs.
    pub name: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// The help text.
    pub summary: &'static str,
    /// Nsight names that mean the same.
    pub aliases: &'static [&'static str],
    /// First line whose architecture fits.
    pub definitions: &'static [Definition],
}

impl Counter {
    /// How `architecture` provides this counter.
    pub fn definition(&self, architecture: &str) -> Option<&'static Definition> {
        self.definitions
            .iter()
            .find(|one| one.architecture.eq_ignore_ascii_case(architecture))
            .or_else(|| self.definitions.iter().find(|one| one.architecture == "*"))
    }

    /// Whether some architecture gives it by sampling.
    pub fn can_be_sampled(&self) -> bool {
        self.definitions.iter().any(|one| one.sampled.is_some())
    }
}

/// On every chip the same: an exact metric, and one for sampling.
macro_rules! everywhere {
    ($exact:literal, $sampled:expr) => {
        &[Definition {
            architecture: "*",
            exact: $exact,
            sampled: $sampled,
        }]
    };
}

/// Cycles of warps in one state. They need several passes, so no architecture has a sampled name.
macro_rules! stalled {
    ($name:literal, $metric:literal, $summary:literal) => {
        Counter {
            name: $name,
            unit: "warp cycles",
            summary: $summary,
            aliases: &[$metric],
            definitions: everywhere!($metric, None),
        }
    };
}

/// All counters; the order is the order of columns and of the documentation.
///
/// The sampled names of GH100 were chosen so that the default set fits one pass there: the unit
/// (`sm__`, `tpc__`) matters to the pass count although the raw event is the same.
pub const COUNTERS: &[Counter] = &[
    Counter {
        name: "inst_executed",
        unit: "warp instructions",
        summary: "Instructions that warps executed; a warp's instruction counts once for all its threads.",
        aliases: &[
            "smsp__inst_executed.sum",
            "sm__inst_executed.sum",
            "sm__inst_executed_realtime.sum",
        ],
        definitions: &[
            // Equal to the plain counter, and the smallest to stream of those that share a pass.
            Definition {
                architecture: "GH100",
                exact: "smsp__inst_executed.sum",
                sampled: Some("sm__inst_executed_realtime.sum"),
            },
            Definition {
                architecture: "*",
                exact: "smsp__inst_executed.sum",
                sampled: Some("sm__inst_executed.sum"),
            },
        ],
    },
    Counter {
        name: "active_cycles",
        unit: "cycles",
        summary: "Cycles in which a multiprocessor had at least one warp, summed over multiprocessors.",
        aliases: &["sm__cycles_active.sum"],
        definitions: everywhere!("sm__cycles_active.sum", Some("sm__cycles_active.sum")),
    },
    Counter {
        name: "inst_issued",
        unit: "warp instructions",
        summary: "Instructions issued, those issued again included.",
        aliases: &["smsp__inst_issued.sum", "sm__inst_issued.sum"],
        definitions: everywhere!("smsp__inst_issued.sum", Some("sm__inst_issued.sum")),
    },
    Counter {
        name: "thread_inst_executed",
        unit: "thread instructions",
        summary: "Instructions executed, counted once per active thread, predicated off or not.",
        aliases: &["smsp__thread_inst_executed.sum"],
        // Sampling this one needs two passes on GH100, so no architecture has a sampled name.
        definitions: everywhere!("smsp__thread_inst_executed.sum", None),
    },
    Counter {
        name: "thread_inst_executed_pred_on",
        unit: "thread instructions",
        summary: "Instructions executed, counted once per active thread whose predicate was true.",
        aliases: &[
            "smsp__thread_inst_executed_pred_on.sum",
            "sm__thread_inst_executed_pred_on_realtime.sum",
        ],
        definitions: &[
            Definition {
                architecture: "GH100",
                exact: "smsp__thread_inst_executed_pred_on.sum",
                sampled: Some("sm__thread_inst_executed_pred_on_realtime.sum"),
            },
            Definition {
                architecture: "*",
                exact: "smsp__thread_inst_executed_pred_on.sum",
                sampled: Some("smsp__thread_inst_executed_pred_on.sum"),
            },
        ],
    },
    Counter {
        name: "warps_launched",
        unit: "warps",
        summary: "Warps launched.",
        aliases: &[
            "sm__warps_launched.sum",
            "smsp__warps_launched.sum",
            "tpc__warps_launched_shader_cs.sum",
        ],
        definitions: &[
            Definition {
                architecture: "GH100",
                exact: "smsp__warps_launched.sum",
                sampled: Some("tpc__warps_launched_shader_cs.sum"),
            },
            Definition {
                architecture: "*",
                exact: "smsp__warps_launched.sum",
                sampled: Some("sm__warps_launched.sum"),
            },
        ],
    },
    Counter {
        name: "cycles",
        unit: "cycles",
        summary: "Cycles from the start of a kernel to its end, of the multiprocessor that saw most.",
        aliases: &["sm__cycles_elapsed.max"],
        definitions: everywhere!("sm__cycles_elapsed.max", None),
    },
    Counter {
        name: "l1_sectors",
        unit: "sectors",
        summary: "Sectors of 32 bytes that the first-level caches looked up.",
        aliases: &["l1tex__t_sectors.sum"],
        definitions: everywhere!("l1tex__t_sectors.sum", None),
    },
    Counter {
        name: "l1_sector_hits",
        unit: "sectors",
        summary: "Sectors that the first-level caches held.",
        aliases: &["l1tex__t_sectors_lookup_hit.sum"],
        definitions: everywhere!("l1tex__t_sectors_lookup_hit.sum", None),
    },
    Counter {
        name: "l2_sectors",
        unit: "sectors",
        summary: "Sectors of 32 bytes that the second-level cache looked up.",
        aliases: &["lts__t_sectors.sum"],
        definitions: everywhere!("lts__t_sectors.sum", None),
    },
    Counter {
        name: "l2_sector_hits",
        unit: "sectors",
        summary: "Sectors that the second-level cache held.",
        aliases: &["lts__t_sectors_lookup_hit.sum"],
        definitions: everywhere!("lts__t_sectors_lookup_hit.sum", None),
    },
    Counter {
        name: "dram_bytes_read",
        unit: "bytes",
        summary: "Bytes read from device memory.",
        aliases: &["dram__bytes_read.sum"],
        definitions: everywhere!("dram__bytes_read.sum", Some("dram__bytes_read.sum")),
    },
    Counter {
        name: "dram_bytes_written",
        unit: "bytes",
        summary: "Bytes written to device memory.",
        aliases: &["dram__bytes_write.sum"],
        definitions: everywhere!("dram__bytes_write.sum", Some("dram__bytes_write.sum")),
    },
    stalled!(
        "stalled_selected",
        "smsp__warps_issue_stalled_selected.sum",
        "Cycles in which warps issued, summed over warps."
    ),
    stalled!(
        "stalled_not_selected",
        "smsp__warps_issue_stalled_not_selected.sum",
        "Cycles in which warps could have issued and another warp did, summed over warps."
    ),
    stalled!(
        "stalled_wait",
        "smsp__warps_issue_stalled_wait.sum",
        "Cycles in which warps waited for the fixed number of cycles that an instruction keeps its warp, summed over warps."
    ),
    stalled!(
        "stalled_long_scoreboard",
        "smsp__warps_issue_stalled_long_scoreboard.sum",
        "Cycles in which warps waited for a value from global or local memory, summed over warps."
    ),
    stalled!(
        "stalled_short_scoreboard",
        "smsp__warps_issue_stalled_short_scoreboard.sum",
        "Cycles in which warps waited for a value from shared memory, a shuffle or the transcendental unit, summed over warps."
    ),
    stalled!(
        "stalled_math_pipe_throttle",
        "smsp__warps_issue_stalled_math_pipe_throttle.sum",
        "Cycles in which warps waited for a busy unit, summed over warps."
    ),
    stalled!(
        "stalled_lg_throttle",
        "smsp__warps_issue_stalled_lg_throttle.sum",
        "Cycles in which warps waited for room in the queue of accesses to global and local memory, summed over warps."
    ),
    stalled!(
        "stalled_mio_throttle",
        "smsp__warps_issue_stalled_mio_throttle.sum",
        "Cycles in which warps waited for room in the queue of other memory instructions, summed over warps."
    ),
    stalled!(
        "stalled_barrier",
        "smsp__warps_issue_stalled_barrier.sum",
        "Cycles in which warps waited for the other warps of the block, summed over warps."
    ),
    stalled!(
        "stalled_membar",
        "smsp__warps_issue_stalled_membar.sum",
        "Cycles in which warps waited for their accesses to be seen by others, summed over warps."
    ),
    stalled!(
        "stalled_branch_resolving",
        "smsp__warps_issue_stalled_branch_resolving.sum",
        "Cycles in which warps waited for the target of a branch, summed over warps."
    ),
    stalled!(
        "stalled_no_instruction",
        "smsp__warps_issue_stalled_no_instruction.sum",
        "Cycles in which warps waited for their next instruction, summed over warps."
    ),
    stalled!(
        "stalled_imc_miss",
        "smsp__warps_issue_stalled_imc_miss.sum",
        "Cycles in which warps waited for a constant, summed over warps."
    ),
    stalled!(
        "stalled_sleeping",
        "smsp__warps_issue_stalled_sleeping.sum",
        "Cycles in which warps slept, summed over warps."
    ),
];

/// A value that goes up and down: read now and then, never accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Name in metadata files and outputs.
    pub name: &'static str,
    /// Unit of the whole number that is stored.
    pub unit: &'static str,
    /// The help text.
    pub summary: &'static str,
}

/// All gauges of a GPU, in the order of their columns. The first four come from the board's
/// sensors, the rest from its memory accounting.
pub const GAUGES: &[Gauge] = &[
    Gauge {
        name: "power",
        unit: "milliwatts",
        summary: "Power drawn by the board.",
    },
    Gauge {
        name: "temperature",
        unit: "degrees Celsius",
        summary: "Temperature of the GPU.",
    },
    Gauge {
        name: "sm_clock",
        unit: "megahertz",
        summary: "Clock of the multiprocessors.",
    },
    Gauge {
        name: "memory_clock",
        unit: "megahertz",
        summary: "Clock of the device memory.",
    },
    Gauge {
        name: "memory_used",
        unit: "bytes",
        summary: "Device memory in use by all processes.",
    },
];

/// What a sampled process reports about its own host side, in the order of the columns.
pub const HOST_GAUGES: &[Gauge] = &[
    Gauge {
        name: "host_cpu_time",
        unit: "nanoseconds",
        summary: "Processor time that the process has used, all threads, user and system.",
    },
    Gauge {
        name: "host_memory",
        unit: "bytes",
        summary: "Resident memory of the process.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_or_alias_means_two_counters() {
        let mut names: Vec<&str> = COUNTERS
            .iter()
            .flat_map(|one| one.aliases.iter().copied().chain([one.name]))
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
                assert!(
                    counter.aliases.contains(&definition.exact),
                    "{}",
                    counter.name
                );
                if let Some(sampled) = definition.sampled {
                    assert!(counter.aliases.contains(&sampled), "{}", counter.name);
                }
            }
        }
    }

    #[test]
    fn every_stall_column_of_a_simulation_is_a_counter() {
        for column in crate::run_folder::STALL_COLUMNS {
            assert!(COUNTERS.iter().any(|one| one.name == column), "{column}");
        }
    }

    #[test]
    fn hopper_has_its_own_line_where_the_pass_count_needs_one() {
        let warps = COUNTERS
            .iter()
            .find(|one| one.name == "warps_launched")
            .unwrap();
        assert_eq!(
            warps.definition("gh100").unwrap().sampled,
            Some("tpc__warps_launched_shader_cs.sum")
        );
        assert_eq!(
            warps.definition("GA100").unwrap().sampled,
            Some("sm__warps_launched.sum")
        );
    }
}
