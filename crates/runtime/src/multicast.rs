//! Multicast objects: addresses that reach memory of several GPUs through the switch that joins them.
//!
//! An object has a range of offsets and a fixed number of GPUs, which are added one by one. Each binds physical memory
//! of its own to parts of the range. GPUs that were given access to an address of the object are told what is bound
//! where ([`crate::Device::set_multicast`]), whenever that changes.
//!
//! An object is there as long as a context holds a handle of it or has it mapped. Memory that is bound to it is there
//! as long as it is bound, or until the context is gone that bound it.

use crate::device::{MulticastMember, MulticastView};
use lockstep_protocol::{ContextHandle, MemoryAccess, PhysicalHandle};
use std::collections::{BTreeMap, BTreeSet};

/// A multicast object.
#[derive(Debug)]
pub struct Multicast {
    /// GPUs that it has in the end.
    pub wanted: u32,
    /// Offsets that memory can be bound to.
    pub bytes: u64,
    /// Whether it may be handed to other processes.
    pub shared: bool,
    /// GPUs that were added.
    pub devices: BTreeSet<u32>,
    /// Memory by GPU and offset.
    pub bound: BTreeMap<(u32, u64), Binding>,
    /// Contexts that hold a handle.
    pub holders: BTreeSet<ContextHandle>,
    /// Where it is mapped.
    pub mappings: BTreeMap<u64, MulticastAddress>,
}

/// Memory that is bound to a multicast object.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Who bound it.
    pub context: ContextHandle,
    /// The memory.
    pub memory: PhysicalHandle,
    /// Where the first byte is.
    pub place: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A multicast object at one address.
#[derive(Clone, Debug)]
pub struct MulticastAddress {
    /// Who mapped it.
    pub context: ContextHandle,
    /// Bytes, from offset 0 on.
    pub bytes: u64,
    /// What each GPU may do.
    pub access: BTreeMap<u32, MemoryAccess>,
}

impl Multicast {
    /// Whether all of its GPUs were added.
    pub fn is_complete(&self) -> bool {
        self.devices.len() == self.wanted as usize
    }

    /// Whether a GPU has bound memory to some of these offsets.
    pub fn is_bound(&self, device: u32, offset: u64, bytes: u64) -> bool {
        let own = self.bound.range((device, 0)..=(device, u64::MAX));
        own.into_iter().any(|((_, start), binding)| {
            *start < offset.saturating_add(bytes) && offset < start + binding.bytes
        })
    }

    /// What a GPU with some access to an address has there.
    pub fn view(&self, mapping: &MulticastAddress, access: MemoryAccess) -> MulticastView {
        let members = self.devices.iter().map(|device| {
            let own = self.bound.range((*device, 0)..=(*device, u64::MAX));
            let bound =
                own.map(|((_, offset), binding)| (*offset..offset + binding.bytes, binding.place));
            MulticastMember {
                gpu: *device,
                bound: bound.collect(),
            }
        });
        MulticastView {
            bytes: mapping.bytes,
            writable: access == MemoryAccess::ReadWrite,
            members: members.collect(),
        }
    }
}
