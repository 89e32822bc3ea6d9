//! A sampler plugin of LDMS, the Lightweight Distributed Metric Service: figures of GPUs as metric
//! sets, one for each GPU, with a flat schema that every store takes.
//!
//! ```text
//! load name=lockstep_sampler
//! config name=lockstep_sampler producer=n1 instance=n1/gpu component_id=1 [segments=DIR] [metadata=FILE] [records=N]
//! start name=lockstep_sampler interval=1000000
//! ```
//!
//! It reads the segments that sampled programs and `lockstep sampled` publish, as the exporter does.
//! Whatever is wrong is a sentence in ldmsd's log and an absent set: one plugin must never take the
//! monitoring of a node down. The interface is that of LDMS 4.5, whose plugins are a structure
//! `ldmsd_plugin_interface`; nothing of LDMS is needed to build this.
//!
//! With `records=N` a set also has a list with a row for each process, context and kernel, for stores that take
//! lists.
//!
//! Start reading at [`ldmsd_plugin_interface`].

mod abi;
mod plugin;
mod records;
mod schema;

pub use abi::Sampler;

/// What ldmsd looks for in the library.
#[allow(non_upper_case_globals, reason = "the name that ldmsd looks for")]
#[unsafe(no_mangle)]
pub static ldmsd_plugin_interface: Sampler = plugin::INTERFACE;
