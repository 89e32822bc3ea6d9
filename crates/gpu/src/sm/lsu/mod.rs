//! The load/store unit of an SM: address coalescing, shared memory banks, L1TEX with its MSHRs and
//! write combining, and the port to the memory system.

pub mod access;
pub mod coalescing;
pub mod in_flight;
pub mod l1tex;
pub mod mshr;
pub mod port;
pub mod shared_banks;
pub mod write_combining;
