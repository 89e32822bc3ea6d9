//! Parameters of a sub-core.

use lockstep_config::{ConfigError, GpuConfig};
use lockstep_isa::instruction::{LATENCIES, Latency, UNITS, Unit};

use super::scheduler::{WARP_SCHEDULERS, WarpScheduler};

/// What a sub-core needs of a GPU file.
#[derive(Clone, Debug)]
pub struct SubCoreParameters {
    /// The scheduler of each sub-core, to be cloned.
    pub scheduler: WarpScheduler,
    /// Cycles from issue to the issue of a dependent, by class.
    pub latency: [u64; LATENCIES],
    /// Cycles that an instruction occupies its unit.
    pub interval: [u64; UNITS],
    /// Cycles until a predicate can guard.
    pub predicate_latency: u64,
    /// Cycles that a shuffle with a predicate takes longer.
    pub shuffle_predicate: u64,
    /// Cycles of a load from constant memory.
    pub constant_latency: u64,
    /// Cycles until the next instruction of a warp after a branch that is taken.
    pub branch_latency: u64,
    /// The same after one that only some lanes take.
    pub divergence_latency: u64,
    /// Cycles until other lanes go on after those that were active cannot.
    pub switch_latency: u64,
    /// The same after a jump to an address in a register: returns and calls of pointers.
    pub indirect_latency: u64,
    /// Cycles that an integer multiplication occupies its half of the multiply-add unit.
    pub multiply_interval: u64,
    /// Cycles for which an integer multiplication with a result of 64 bits holds up its warp.
    pub wide_multiply_stall: u64,
    /// Cycles for which an instruction without control bits holds up its warp.
    pub unscheduled_stall: u64,
    /// The same after its result, if it has no fixed latency.
    pub unscheduled_result: u64,
    /// Whether the multiply-add unit has two halves of which one multiplies integers.
    pub split_multiply: bool,
    /// Cycles that population counts occupy their unit.
    pub population_interval: u64,
    /// Cycles that a matrix multiply of half the size occupies its unit.
    pub tensor_short_interval: u64,
    /// Cycles that a double-precision matrix multiply occupies its unit.
    pub tensor_double_interval: u64,
    /// Cycles from issue to the end of a product of a warp group, beyond those of its columns.
    pub group_latency: u64,
    /// Register banks of a sub-core.
    pub register_banks: u32,
    /// Cycles in which operands are read.
    pub read_window: u64,
    /// Cycles after which operands of loads are read.
    pub load_operands: u64,
    /// Cycles after which operands of stores are read.
    pub store_operands: u64,
    /// Sub-cores share their double-precision unit.
    pub shared_double: bool,
}

impl SubCoreParameters {
    /// From a GPU file.
    ///
    /// # Errors
    /// If it names a scheduler that does not exist.
    pub fn new(config: &GpuConfig) -> Result<Self, ConfigError> {
        let name = &config.sm.scheduler;
        let scheduler =
            WarpScheduler::named(name, config.sm.scheduler_group.max(1)).ok_or_else(|| {
                let known = WARP_SCHEDULERS.iter().map(|policy| policy.name);
                ConfigError::unknown_policy("warp scheduler", name, known)
            })?;
        let (latency, interval) = (&config.sm.latency, &config.sm.interval);
        Ok(Self {
            scheduler,
            latency: latencies(config),
            interval: intervals(config),
            predicate_latency: latency.compare.0,
            shuffle_predicate: latency.shuffle_predicate.0,
            constant_latency: latency.constant.0,
            branch_latency: latency.branch.0,
            divergence_latency: latency.divergence.0,
            switch_latency: latency.divergent_path_switch.0,
            indirect_latency: latency.indirect_branch.0,
            multiply_interval: interval.integer_multiply.0.max(1),
            wide_multiply_stall: latency.wide_multiply_stall.0.min(15),
            unscheduled_stall: latency.unscheduled.0.min(255),
            unscheduled_result: latency.unscheduled_result.0.min(255),
            split_multiply: interval.fma.0 == 1 && interval.integer_multiply.0 > 1,
            population_interval: interval.popc.0.max(1),
            tensor_short_interval: interval.tensor_short.0.max(1),
            tensor_double_interval: interval.tensor_double.0.max(1),
            group_latency: latency.matrix_group.0,
            register_banks: config.sm.register_file.banks,
            read_window: config.sm.register_file.read_window.0,
            load_operands: config.sm.lsu.load_war_latency.0,
            store_operands: config.sm.lsu.store_war_latency.0,
            shared_double: config.sm.fp64_unit_shared,
        })
    }
}

fn latencies(config: &GpuConfig) -> [u64; LATENCIES] {
    let latency = &config.sm.latency;
    let mut table = [0; LATENCIES];
    let rows = [
        (Latency::Integer, latency.integer),
        (Latency::Float, latency.float),
        (Latency::WideMultiply, latency.wide_multiply),
        (Latency::Double, latency.double),
        (Latency::Half, latency.half),
        (Latency::Transcendental, latency.transcendental),
        (Latency::Conversion, latency.conversion),
        (Latency::Compare, latency.integer),
        (Latency::Vote, latency.vote),
        (Latency::Shuffle, latency.shuffle),
        (Latency::WarpReduce, latency.warp_reduce),
        (Latency::Match, latency.matching),
        (Latency::Uniform, latency.uniform),
        (Latency::SpecialRegister, latency.special_register),
        (Latency::Constant, latency.constant),
        (Latency::MatrixShort, latency.matrix_short),
        (Latency::MatrixLong, latency.matrix_long),
        (Latency::MatrixDouble, latency.matrix_double),
        (Latency::Branch, latency.branch),
        (Latency::Memory, latency.shared),
        (Latency::Barrier, latency.barrier),
    ];
    for (class, cycles) in rows {
        table[class as usize] = cycles.0.max(1);
    }
    table
}

fn intervals(config: &GpuConfig) -> [u64; UNITS] {
    let interval = &config.sm.interval;
    let mut table = [1; UNITS];
    let rows = [
        (Unit::Alu, interval.alu),
        (Unit::Fma, interval.fma),
        (Unit::Double, interval.double),
        (Unit::Half, interval.half),
        (Unit::Transcendental, interval.transcendental),
        (Unit::Uniform, interval.uniform),
        (Unit::Tensor, interval.tensor),
        (Unit::Branch, interval.branch),
        (Unit::LoadStore, interval.load_store),
        (Unit::Texture, interval.texture),
        (Unit::Miscellaneous, interval.miscellaneous),
    ];
    for (unit, cycles) in rows {
        table[unit as usize] = cycles.0.max(1);
    }
    table
}
