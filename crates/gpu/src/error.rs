//! What can go wrong around a GPU, besides a kernel that fails.

use lockstep_config::ConfigError;
use lockstep_engine::{EngineError, LoadError, TopologyError};
use thiserror::Error;

use crate::fault::Fault;

/// Why a GPU could not be made, launched on, run or loaded.
#[derive(Debug, Error)]
pub enum GpuError {
    /// The configuration cannot be built.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The parts do not fit together.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Saved state could not be taken on.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A launch that the hardware cannot take.
    #[error("kernel `{kernel}` cannot be launched: {because}")]
    Launch {
        /// Its name.
        kernel: String,
        /// The reason.
        because: String,
    },
    /// A change that only a GPU without kernels can make.
    #[error("a kernel still waits or runs on the GPU; wait for it first")]
    Busy,
    /// What only memory outside a GPU can do, or a request that it does not have.
    #[error("memory outside the GPU: {0}")]
    Outside(String),
    /// A kernel failed.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
}
