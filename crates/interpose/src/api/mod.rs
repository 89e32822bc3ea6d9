//! CUDA's functions, one file a chapter, the runtime's and the driver's spelling side by
//! side. Names and arguments are CUDA's.

mod capture;
mod context;
mod copy;
mod device;
mod driver_copy;
pub mod entry_point;
mod error;
mod error_table;
mod event;
mod fill;
mod function;
mod host_function;
mod launch;
mod legacy_driver_launch;
mod legacy_launch;
mod library;
mod managed;
mod memory;
mod module;
mod occupancy;
mod peer;
mod pointer;
mod pool;
mod profiler;
mod properties;
mod property_table;
mod register;
mod registration;
mod stream;
mod symbol;
mod version;
