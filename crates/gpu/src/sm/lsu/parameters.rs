//! Parameters of the load/store unit.

use lockstep_config::{ConfigError, GpuConfig};

use super::write_combining::CombiningWindow;
use crate::crossbar::Kind;

/// What the load/store unit of an SM needs of a GPU file.
#[derive(Clone, Debug)]
pub struct LsuParameters {
    /// Cycles of a load from shared memory without conflict.
    pub shared_latency: u64,
    /// Cycles of an operation on an `mbarrier`.
    pub mbarrier_latency: u64,
    /// Cycles from the end of its phase to a warp that waited.
    pub mbarrier_wake: u64,
    /// Cycles for which a warp waits there if the program does not say.
    pub mbarrier_wait: u64,
    /// Cycles of an atomic on shared memory without conflict.
    pub shared_atomic_latency: u64,
    /// How much longer it takes if it compares before it writes, and again if it is on 64 bits.
    pub shared_swap_adds: u64,
    /// Memory instructions that wait in a sub-core.
    pub queue: usize,
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
    /// Cycles in which a store is combined with one before it to the same line.
    pub store_window: CombiningWindow,
    /// Lines that stores can have on their way out.
    pub store_lines: usize,
    /// Cycles until a store is known to have arrived.
    pub store_latency: u64,
    /// Cycles for which a fence holds up the memory pipe.
    pub fence_wavefronts: u64,
    /// Eighths of the wavefronts of the instruction before that a fence waits for.
    pub fence_wait_eighths: u64,
    /// Cycles of a texture read that hits L1.
    pub texture_latency: u64,
    /// Cycles of a load of 32 bits that hits L1.
    pub l1_latency: u64,
    /// Sets of L1.
    pub l1_sets: u32,
    /// Replacement candidates: lines of a set of which the least recently used leaves.
    pub l1_candidates: u32,
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
    /// Bytes that arrive from L2 in a cycle.
    pub ingress_bytes: u64,
}

impl LsuParameters {
    /// From a GPU file.
    ///
    /// # Errors
    /// If it names an interconnect that does not exist.
    pub fn new(config: &GpuConfig) -> Result<Self, ConfigError> {
        let (latency, lsu) = (&config.sm.latency, &config.sm.lsu);
        Ok(Self {
            shared_latency: latency.shared.0,
            mbarrier_latency: latency.mbarrier.0,
            mbarrier_wake: latency.mbarrier_wake.0,
            mbarrier_wait: latency.mbarrier_wait.0,
            shared_atomic_latency: latency.shared_atomic.0,
            shared_swap_adds: (latency.shared_cas.0).saturating_sub(latency.shared_atomic.0),
            queue: lsu.mio_queue as usize,
            wide_global: lsu.l1_word_latency.0,
            wide_shared: lsu.shared_vector_latency.0,
            shared_atomic_conflict: lsu.shared_atomic_conflict.0,
            fence_gpu: latency.fence_gpu.0,
            fence_system: latency.fence_system.0,
            store_bytes: config.l1.store_bytes_per_cycle.get().max(1),
            store_window: CombiningWindow {
                own: config.l1.write_combining_window.0,
                other: (config.l1.cross_warp_combining_window.0)
                    .min(config.l1.write_combining_window.0),
            },
            store_lines: config.l1.write_combining_lines.max(1) as usize,
            store_latency: config.interconnect.request_latency.0
                + config.l2.hit_latency.0
                + config.interconnect.distance_spread.0 / 2
                + config.interconnect.reply_latency.0,
            fence_wavefronts: lsu.fence_interval.0,
            fence_wait_eighths: u64::from(lsu.fence_wait_eighths),
            texture_latency: latency.texture.0,
            l1_latency: config.l1.hit_latency.0,
            l1_sets: config.l1.sets,
            l1_candidates: config.l1.replacement_candidates,
            l1_load_tags: u64::from(config.l1.load_tag_lookups_per_cycle),
            l1_bytes_shift: config.l1.bytes_per_cycle.get().trailing_zeros(),
            l1_miss_interval: config.l1.miss_interval,
            shared_banks: config.sm.shared_banks,
            shared_cas_wavefronts: lsu.shared_cas_wavefronts,
            l1_lines_per_cycle: u64::from(config.l1.tag_lookups_per_cycle),
            l1_outstanding: config.l1.mshrs.max(1),
            // Where packets do not meet or meet in a network, they do not do so here.
            ingress_bytes: match Kind::of(config)? {
                Kind::Crossbar => config.interconnect.reply_bytes_per_cycle.get(),
                Kind::Simple | Kind::Mesh | Kind::Switched => u64::from(u32::MAX),
            },
        })
    }
}
