//! What an SM needs of a GPU file, in the form in which it is asked for. Each part of an SM has its own.

use lockstep_config::{ConfigError, GpuConfig, TranslationConfig};
use lockstep_units::{Duration, Hertz};

use crate::check::Checks;
use crate::sm::front_end::parameters::FrontEndParameters;
use crate::sm::lsu::parameters::LsuParameters;
use crate::sm::sub_core::parameters::SubCoreParameters;

/// Parameters of one SM.
#[derive(Clone, Debug)]
pub struct SmParameters {
    /// Whether instructions take their time.
    pub timed: bool,
    /// Whether kernels find empty caches.
    pub cold: bool,
    /// What programs are checked for.
    pub checks: Checks,
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
    /// Cycles from the last arrival at a barrier to going on.
    pub barrier_latency: u64,
    /// Cycles between two arrivals at barriers.
    pub barrier_interval: u64,
    /// Of the front end.
    pub front_end: FrontEndParameters,
    /// TLBs of device memory.
    pub translation: TranslationConfig,
    /// Of each sub-core.
    pub sub_core: SubCoreParameters,
    /// Of the load/store unit.
    pub lsu: LsuParameters,
}

impl SmParameters {
    /// From a GPU file.
    ///
    /// # Errors
    /// If it names a policy that does not exist.
    pub fn new(config: &GpuConfig, timed: bool) -> Result<Self, ConfigError> {
        Ok(Self {
            timed,
            cold: false,
            checks: Checks::default(),
            clock: config.device.clock,
            sms: config.device.sms,
            timer_step: (config.device.globaltimer_resolution.0 / Duration::nanoseconds(1).0)
                as u32,
            warps: config.sm.warps,
            blocks: config.sm.blocks,
            warp_interval: config.dispatch.warp_interval.0,
            sub_cores: config.sm.sub_cores,
            barrier_latency: if timed {
                config.sm.latency.barrier.0
            } else {
                0
            },
            barrier_interval: config.sm.latency.barrier_per_warp.0,
            front_end: FrontEndParameters::new(config),
            translation: config.translation.clone(),
            sub_core: SubCoreParameters::new(config)?,
            lsu: LsuParameters::new(config)?,
        })
    }
}
