//! Layered TOML into typed structs; unknown keys refused.
//!
//! A GPU of the catalogue lies lowest, with the chip, the DRAM devices and the floorsweeping that it
//! names; then the user's file, then `--set KEY=VALUE`. The result is a [`GpuConfig`], checked once;
//! every run writes it back in full.
//!
//! Start reading at [`load`] for the layers and at [`gpu`] for what can be set.

pub mod aliases;
mod bounds;
mod capability;
mod catalogue;
mod error;
pub mod gpu;
mod import;
mod layers;
mod limits;
mod listing;
pub mod occupancy;
mod tree;
pub mod uvm;

pub use capability::ComputeCapability;
pub use catalogue::{CATALOGUE, CHIPS, CatalogueEntry, DEFAULT_GPU, DRAMS, FLOORSWEEPINGS, find};
pub use error::ConfigError;
pub use gpu::{GpuConfig, HostMachineConfig, NetworkConfig, TranslationConfig};
pub use import::{Imported, import};
pub use layers::{Resolved, load, nearest, resolve, to_toml};
pub use listing::listing;
pub use uvm::UvmConfig;
