//! Unified memory: translation, far faults, migration, prefetching, eviction.
//!
//! Everything here is a pure machine that counts core cycles: requests go in, answers come out,
//! and nothing depends on the host. The hardware crate makes partitions of it.
//!
//! ```text
//!  SM ── MicroTlb (TLB, misses under way) ──▶ Gmmu (L2 TLB, walkers, far-fault MSHRs)
//!                 ▲  translated, nack, replay, shootdown │ fault buffer
//!                 └──────────────────────────────────────┤
//!                                       host runtime: service, prefetcher, evictor
//!                                                        │ transfers
//!                                       Link: one channel each way
//! ```
//!
//! With several GPUs on a node, each has such a machine, and a [`Directory`] says where pages are:
//!
//! ```text
//!  Gmmu ── claims, pages given ──▶ Directory ── recalls, grants ──▶ Gmmu
//!                                      └── pages to carry ──▶ links between GPUs
//! ```
//!
//! A policy is one file in `prefetch/` or `evict/` and one line in the registry there.
//!
//! Start reading at [`Gmmu::run`], then `gmmu/service.rs`.

mod channel;
mod directory;
mod geometry;
mod gmmu;
mod link;
mod log;
mod micro_tlb;
mod news;
mod page_set;
mod prefetch;
mod settings;
mod space;
mod split;
mod statistics;
mod tlb;
mod tree;
mod walk;
mod zero_copy;

#[cfg(test)]
mod batch_tests;
mod evict;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod vectors;

pub use directory::Directory;
pub use evict::{EVICTORS, EvictionCandidates, Evictor, Victim};
pub use geometry::{BLOCK_PAGES, LARGE_PAGES, PAGE, PageSize, tree_pages};
pub use gmmu::{Advice, Gmmu, NeighbourLink, Output, Request};
pub use link::{LINK_PROFILES, Link, LinkProfile};
pub use log::{Cause, Direction, FaultRecord, MigrationRecord};
pub use micro_tlb::{Lookup, MicroTlb};
pub use news::{Carry, ClaimId, News, Order, Placed, Source};
pub use page_set::PageSet;
pub use prefetch::{Event, Memory, PREFETCHERS, Prefetcher};
pub use settings::{Service, Settings};
pub use space::Space;
pub use split::{Split, Transfer, split};
pub use statistics::{GmmuStats, NeighbourStats, TlbStats};
pub use tlb::{Scope, Tlb};
pub use tree::{TakenBack, Tree};
pub use walk::{PageWalk, WalkCache};
pub use zero_copy::migration_threshold;
