//! Layered TOML into typed structs; unknown keys refused.

mod capability;
mod error;
pub mod gpu;

pub use capability::ComputeCapability;
pub use error::ConfigError;
pub use gpu::GpuConfig;
