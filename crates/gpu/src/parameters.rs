//! What an SM needs of a GPU file, in the form in which it is asked for.

use lockstep_config::{ConfigError, GpuConfig};
use lockstep_isa::instruction::{LATENCIES, Latency, UNITS, Unit};
use lockstep_units::Hertz;

use crate::sm::scheduler::{WARP_SCHEDULERS, WarpScheduler};

/// Parameters of one SM.
#[derive(Clone, Debug)]
pub struct SmParameters {
    /// Whether instructions take their time.
    pub timed: bool,
    /// SM clock.
    pub clock: Hertz,
    /// SMs of the GPU.
    pub sms: u32,
    /// Warp slots.
    pub warps: u32,
    /// Block slots.
    pub blocks: u32,
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
    /// Cycles of a load from shared memory without conflict.
    pub shared_latency: u64,
    /// Cycles of an atomic on shared memory without conflict.
    pub shared_atomic_latency: u64,
    /// Cycles of a load from constant memory.
    pub constant_latency: u64,
    /// Cycles of a load from local memory.
    pub local_latency: u64,
    /// Cycles from the last arrival at a barrier to going on.
    pub barrier_latency: u64,
    /// Cycles after which operands of memory instructions are read.
    pub operand_latency: u64,
}

impl SmParameters {
    /// From a GPU file.
    ///
    /// # Errors
    /// If it names a scheduler that does not exist.
    pub fn new(config: &GpuConfig, timed: bool) -> Result<Self, ConfigError> {
        let name = &config.sm.scheduler;
        let scheduler = WarpScheduler::named(name).ok_or_else(|| ConfigError::UnknownPolicy {
            kind: "warp scheduler",
            name: name.clone(),
            known: WARP_SCHEDULERS
                .iter()
                .map(|policy| policy.name)
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        Ok(Self {
            timed,
            clock: config.device.clock,
            sms: config.device.sms,
            warps: config.sm.warps,
            blocks: config.sm.blocks,
            sub_cores: config.sm.sub_cores,
            scheduler,
            latency: latencies(config),
            interval: intervals(config),
            predicate_latency: config.sm.latency.compare.0,
            shared_latency: config.sm.latency.shared.0,
            shared_atomic_latency: config.sm.latency.shared_atomic.0,
            constant_latency: config.sm.latency.constant.0,
            local_latency: config.l1.hit_latency.0,
            barrier_latency: if timed {
                config.sm.latency.barrier.0
            } else {
                0
            },
            operand_latency: 11,
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
