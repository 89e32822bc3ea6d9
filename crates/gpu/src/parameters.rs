//! What an SM needs of a GPU file, in the form in which it is asked for.

use lockstep_config::{ConfigError, GpuConfig};
use lockstep_isa::instruction::{LATENCIES, Latency, UNITS, Unit};
use lockstep_units::{Duration, Hertz};

use crate::crossbar::Kind;
use crate::sm::sub_core::scheduler::{WARP_SCHEDULERS, WarpScheduler};

/// Parameters of one SM.
#[derive(Clone, Debug)]
pub struct SmParameters {
    /// Whether instructions take their time.
    pub timed: bool,
    /// Whether kernels find empty caches.
    pub cold: bool,
    /// Whether reads before the compiler's own account are reported.
    pub checked: bool,
    /// SM clock.
    pub clock: Hertz,
    /// SMs of the GPU.
    pub sms: u32,
    /// Nanoseconds by which the timer that programs read advances.
    pub timer_step: u32,
    /// Warp slots.
    pub warps: u32,
    /// Block slots.
    pub blocks: u32,
    /// Cycles between the starts of two warps.
    pub warp_interval: u64,
    /// Sub-cores.
    pub sub_cores: u32,
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
    /// Cycles of a load from shared memory without conflict.
    pub shared_latency: u64,
    /// Cycles of an atomic on shared memory without conflict.
    pub shared_atomic_latency: u64,
    /// How much longer it takes if it compares before it writes, and again if it is on 64 bits.
    pub shared_swap_adds: u64,
    /// Cycles of a load from constant memory.
    pub constant_latency: u64,
    /// Cycles from the last arrival at a barrier to going on.
    pub barrier_latency: u64,
    /// Cycles between two arrivals at barriers.
    pub barrier_interval: u64,
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
    /// Whether the multiply-add unit has two halves of which one multiplies integers.
    pub split_multiply: bool,
    /// Cycles that population counts occupy their unit.
    pub population_interval: u64,
    /// Cycles that a matrix multiply of half the size occupies its unit.
    pub tensor_short_interval: u64,
    /// Cycles that a double-precision matrix multiply occupies its unit.
    pub tensor_double_interval: u64,
    /// Register banks of a sub-core.
    pub register_banks: u32,
    /// Cycles in which operands are read.
    pub read_window: u64,
    /// Memory instructions that wait in a sub-core.
    pub queue: usize,
    /// Cycles after which operands of loads are read.
    pub load_operands: u64,
    /// Cycles after which operands of stores are read.
    pub store_operands: u64,
    /// Cycles that a further word of a lane adds to a load from L1.
    pub wide_global: u64,
    /// Cycles that 128 bits a lane add to a load from shared memory.
    pub wide_shared: u64,
    /// Cycles of each further lane that wants the same word in an atomic on shared memory.
    pub shared_atomic_conflict: u64,
    /// Cycles of a fence for the GPU.
    pub fence_gpu: u64,
    /// Cycles of a fence for the system.
    pub fence_system: u64,
    /// Bytes that stores pass on in a cycle.
    pub store_bytes: u64,
    /// Cycles in which a store joins one before it to the same line.
    pub store_window: u64,
    /// Lines that stores can have on their way out.
    pub store_lines: usize,
    /// Cycles until a store is known to have arrived.
    pub store_latency: u64,
    /// Cycles for which a fence holds up the memory pipe.
    pub fence_wavefronts: u64,
    /// Cycles of a load of 32 bits that hits L1.
    pub l1_latency: u64,
    /// Sets of L1.
    pub l1_sets: u32,
    /// Lines of a set that are drawn when one must leave.
    pub l1_drawn: u32,
    /// Lines that loads look up in L1 in a cycle.
    pub l1_load_tags: u64,
    /// Bytes that L1 delivers in a cycle, as a power of two.
    pub l1_bytes_shift: u32,
    /// Between two lines that loads ask L2 for, in hundredths of a cycle.
    pub l1_miss_interval: u32,
    /// Banks of shared memory.
    pub shared_banks: u32,
    /// Wavefronts of a compare-and-swap on shared memory.
    pub shared_cas_wavefronts: u32,
    /// Lines that stores and strong accesses look up in a cycle.
    pub l1_lines_per_cycle: u64,
    /// Sectors that may be on their way to L1.
    pub l1_outstanding: u32,
    /// Sub-cores share their double-precision unit.
    pub shared_double: bool,
    /// Bytes that arrive from L2 in a cycle.
    pub ingress_bytes: u64,
    /// Lines of the instruction cache of a sub-core.
    pub l0_lines: usize,
    /// Lines of the instruction cache of an SM.
    pub l1i_lines: usize,
    /// Instructions of a line.
    pub instructions_per_line: u32,
    /// Cycles from a miss in a sub-core's instruction cache to a hit in the SM's.
    pub l1i_latency: u64,
    /// Lines that a stream buffer runs ahead.
    pub prefetch: u32,
    /// Cycles from the first block of a launch to the first line of its code.
    pub launch_code: u64,
    /// Cycles between two lines of it.
    pub launch_line: u64,
    /// Lines of constants.
    pub constant_lines: usize,
    /// Cycles that a load of a constant takes longer the first time.
    pub constant_miss: u64,
    /// Cycles until a constant is there that the launch uses for the first time on an SM.
    pub constant_first: u64,
    /// Bytes of a line of constants.
    pub constant_line: u32,
}

impl SmParameters {
    /// From a GPU file.
    ///
    /// # Errors
    /// If it names a scheduler that does not exist.
    pub fn new(config: &GpuConfig, timed: bool) -> Result<Self, ConfigError> {
        let name = &config.sm.scheduler;
        let scheduler = WarpScheduler::named(name).ok_or_else(|| {
            let known = WARP_SCHEDULERS.iter().map(|policy| policy.name);
            ConfigError::unknown_policy("warp scheduler", name, known)
        })?;
        Ok(Self {
            timed,
            cold: false,
            checked: false,
            clock: config.device.clock,
            sms: config.device.sms,
            timer_step: (config.device.globaltimer_resolution.0 / Duration::nanoseconds(1).0)
                as u32,
            warps: config.sm.warps,
            blocks: config.sm.blocks,
            warp_interval: config.dispatch.warp_interval.0,
            sub_cores: config.sm.sub_cores,
            scheduler,
            latency: latencies(config),
            interval: intervals(config),
            predicate_latency: config.sm.latency.compare.0,
            shuffle_predicate: config.sm.latency.shuffle_predicate.0,
            shared_latency: config.sm.latency.shared.0,
            shared_atomic_latency: config.sm.latency.shared_atomic.0,
            shared_swap_adds: (config.sm.latency.shared_cas.0)
                .saturating_sub(config.sm.latency.shared_atomic.0),
            constant_latency: config.sm.latency.constant.0,
            barrier_latency: if timed {
                config.sm.latency.barrier.0
            } else {
                0
            },
            barrier_interval: config.sm.latency.barrier_per_warp.0,
            branch_latency: config.sm.latency.branch.0,
            divergence_latency: config.sm.latency.divergence.0,
            switch_latency: config.sm.latency.divergent_path_switch.0,
            indirect_latency: config.sm.latency.indirect_branch.0,
            multiply_interval: config.sm.interval.integer_multiply.0.max(1),
            wide_multiply_stall: config.sm.latency.wide_multiply_stall.0.min(15),
            split_multiply: config.sm.interval.fma.0 == 1
                && config.sm.interval.integer_multiply.0 > 1,
            population_interval: config.sm.interval.popc.0.max(1),
            tensor_short_interval: config.sm.interval.tensor_short.0.max(1),
            tensor_double_interval: config.sm.interval.tensor_double.0.max(1),
            register_banks: config.sm.register_file.banks,
            read_window: config.sm.register_file.read_window.0,
            queue: config.sm.lsu.mio_queue as usize,
            load_operands: config.sm.lsu.load_war_latency.0,
            store_operands: config.sm.lsu.store_war_latency.0,
            wide_global: config.sm.lsu.l1_word_latency.0,
            wide_shared: config.sm.lsu.shared_vector_latency.0,
            shared_atomic_conflict: config.sm.lsu.shared_atomic_conflict.0,
            fence_gpu: config.sm.latency.fence_gpu.0,
            fence_system: config.sm.latency.fence_system.0,
            store_bytes: config.l1.store_bytes_per_cycle.get().max(1),
            store_window: config.l1.write_combining_window.0,
            store_lines: config.l1.write_combining_lines.max(1) as usize,
            store_latency: config.interconnect.request_latency.0
                + config.l2.hit_latency.0
                + config.interconnect.distance_spread.0 / 2
                + config.interconnect.reply_latency.0,
            shared_double: config.sm.fp64_unit_shared,
            fence_wavefronts: config.sm.lsu.fence_interval.0,
            l1_latency: config.l1.hit_latency.0,
            l1_sets: config.l1.sets,
            l1_drawn: config.l1.replacement_candidates,
            l1_load_tags: u64::from(config.l1.load_tag_lookups_per_cycle),
            l1_bytes_shift: config.l1.bytes_per_cycle.get().trailing_zeros(),
            l1_miss_interval: config.l1.miss_interval,
            shared_banks: config.sm.shared_banks,
            shared_cas_wavefronts: config.sm.lsu.shared_cas_wavefronts,
            l1_lines_per_cycle: u64::from(config.l1.tag_lookups_per_cycle),
            l1_outstanding: config.l1.mshrs.max(1),
            // Where packets do not meet or meet in a network, they do not do so here.
            ingress_bytes: match Kind::of(config)? {
                Kind::Crossbar => config.interconnect.reply_bytes_per_cycle.get(),
                Kind::Simple | Kind::Mesh | Kind::Switched => u64::from(u32::MAX),
            },
            l0_lines: (config.sm.front_end.l0.0 / config.sm.front_end.line.0) as usize,
            l1i_lines: (config.sm.front_end.l1.0 / config.sm.front_end.line.0) as usize,
            instructions_per_line: (config.sm.front_end.line.0 / 16).max(1) as u32,
            l1i_latency: config.sm.front_end.l1_latency.0,
            prefetch: config.sm.front_end.stream_buffer_lines,
            launch_code: config.sm.front_end.cold_fetch_latency.0,
            launch_line: config.sm.front_end.cold_fetch_interval.0,
            constant_lines: (config.sm.front_end.constant_cache.0
                / config.sm.front_end.constant_cache_line.0) as usize,
            constant_miss: config.sm.front_end.constant_miss_latency.0,
            constant_first: config.sm.front_end.constant_cold_miss_latency.0,
            constant_line: config.sm.front_end.constant_cache_line.0 as u32,
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
