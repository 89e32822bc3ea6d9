//! The engine's epoch barrier and exchange over the primitives of `loom`, which explores every interleaving of
//! their threads.
//!
//! The files are those of the engine itself. They stand in a crate of their own so that the engine is built once, with
//! the primitives of the host.

#![cfg(test)]
#![allow(dead_code, reason = "the models use a part of the engine's files")]

#[path = "../../src/epoch_barrier.rs"]
mod epoch_barrier;
#[path = "../../src/exchange.rs"]
mod exchange;
mod interleavings;
#[path = "../../src/order.rs"]
mod order;
#[path = "../../src/prefetch.rs"]
mod prefetch;
mod primitives;
#[path = "../../src/sync.rs"]
mod sync;

pub use lockstep_engine::PartitionId;
