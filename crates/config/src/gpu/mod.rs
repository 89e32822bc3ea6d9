//! What one simulated GPU is: the sections of a GPU file, as typed structs.
//!
//! The hardware crate reads these; the numbers live in `configs/*/*.toml`, each with its source. A
//! duration in cycles counts cycles of the SM clock unless its sentence says otherwise. Latencies of
//! links are one way and include the fixed pipeline stages at both ends: they are the lookahead of the
//! engine, so the epoch follows from them.
//!
//! Start reading at [`GpuConfig`]; [`GpuConfig::check`] refuses what cannot be built.

mod check;
mod copy;
mod device;
mod dram;
mod host;
mod interconnect;
mod l1;
mod l2;
mod launch;
mod pipes;
mod sm;
mod translation;

pub use copy::CopyConfig;
pub use device::DeviceConfig;
pub use dram::{CommandTimingConfig, DramConfig};
pub use host::{HostConfig, HostMachineConfig};
pub use interconnect::{InterconnectConfig, NetworkConfig};
pub use l1::L1Config;
pub use l2::L2Config;
pub use launch::{DispatchConfig, LaunchConfig};
pub use pipes::{IntervalConfig, LatencyConfig};
pub use sm::{FrontEndConfig, LsuConfig, RegisterFileConfig, SmConfig};
pub use translation::TranslationConfig;

use crate::UvmConfig;
use serde::{Deserialize, Serialize};

/// One simulated GPU and the host it is attached to.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GpuConfig {
    /// The chip as a whole: name, clocks, memory size.
    pub device: DeviceConfig,
    /// One streaming multiprocessor.
    pub sm: SmConfig,
    /// The data cache of one SM.
    pub l1: L1Config,
    /// Translation of device memory.
    #[serde(default)]
    pub translation: TranslationConfig,
    /// The cache shared by all SMs, in slices.
    pub l2: L2Config,
    /// The network between SMs and L2 slices.
    pub interconnect: InterconnectConfig,
    /// The memory behind the L2 slices.
    pub dram: DramConfig,
    /// How blocks reach SMs.
    pub dispatch: DispatchConfig,
    /// What a kernel launch costs on the device.
    pub launch: LaunchConfig,
    /// What calls cost on the host.
    pub host: HostConfig,
    /// The engines and the bus that move data between host and device.
    pub copy: CopyConfig,
    /// Managed memory: translation, faults, migration.
    #[serde(default)]
    pub uvm: UvmConfig,
}
