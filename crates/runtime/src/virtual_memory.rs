//! Memory that the program maps by itself: addresses apart from what is behind them.
//!
//! Contents of memory are found by address. Physical memory that is mapped at one address has its bytes
//! there. They stay while it is unmapped, out of the reach of kernels, and move when it is mapped
//! elsewhere or something else comes to its place.
//!
//! Memory that may be shared by a handle, or that is mapped at a second address, has its bytes at an
//! address of its own on its device, for good. All addresses that it is mapped at only name that one
//! ([`crate::Device::name`]), for the GPUs that were given access.
//!
//! Physical memory is there as long as a context holds a handle of it or has it mapped, or it is bound to a multicast
//! object.

use crate::multicast::Multicast;
use crate::ranges::Ranges;
use lockstep_protocol::layout::Region;
use lockstep_protocol::{ContextHandle, MemoryAccess, PhysicalHandle};
use std::collections::{BTreeMap, BTreeSet};

/// Sizes and addresses are multiples of this.
pub const GRANULARITY: u64 = 2 << 20;

/// Reserved addresses and physical memory of a node.
#[derive(Debug)]
pub struct VirtualMemory {
    /// Addresses that can be reserved.
    pub reserved: Ranges,
    /// Addresses that the program has reserved, and bytes.
    pub reservations: BTreeMap<u64, u64>,
    /// All physical memory.
    pub physicals: BTreeMap<PhysicalHandle, Physical>,
    /// All multicast objects, which are mapped as memory is.
    pub multicasts: BTreeMap<PhysicalHandle, Multicast>,
}

/// Physical memory.
#[derive(Debug)]
pub struct Physical {
    /// The device that has it.
    pub device: u32,
    /// Bytes.
    pub bytes: u64,
    /// Addresses of its own, where the bytes are when they are nowhere else.
    pub backing: u64,
    /// Address at which the bytes are now.
    pub home: u64,
    /// Whether handles of it may go to other processes.
    pub shared: bool,
    /// Whether they stay at addresses of their own, whatever is mapped.
    pub named: bool,
    /// Contexts that hold a handle.
    pub holders: BTreeSet<ContextHandle>,
    /// Where it is mapped.
    pub mappings: BTreeMap<u64, Mapping>,
}

/// Physical memory at one address.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Who mapped it.
    pub context: ContextHandle,
    /// What each GPU may do; memory that no address names is the same to all of them.
    pub access: BTreeMap<u32, MemoryAccess>,
}

impl Mapping {
    /// What at least one GPU may do.
    pub fn most(&self) -> MemoryAccess {
        let given = self.access.values().copied();
        given.max().unwrap_or(MemoryAccess::None)
    }
}

impl Physical {
    /// Where its bytes are, and every address at which it is mapped.
    fn places(&self) -> impl Iterator<Item = u64> {
        let mapped = self.mappings.keys().copied();
        mapped.chain([self.home])
    }
}

fn overlap(start: u64, length: u64, address: u64, bytes: u64) -> bool {
    start < address.saturating_add(bytes) && address < start + length
}

impl VirtualMemory {
    /// Without reservations.
    pub fn new() -> Self {
        let range = Region::Reserved.range();
        Self {
            reserved: Ranges::new(range.start, range.end),
            reservations: BTreeMap::new(),
            physicals: BTreeMap::new(),
            multicasts: BTreeMap::new(),
        }
    }

    /// Physical memory whose mapping, or whose bytes without one, overlap a range.
    pub fn overlapping(&self, address: u64, bytes: u64) -> Vec<PhysicalHandle> {
        self.physicals
            .iter()
            .filter(|(_, physical)| {
                let overlaps = |place| overlap(place, physical.bytes, address, bytes);
                physical.places().any(overlaps)
            })
            .map(|(handle, _)| *handle)
            .collect()
    }

    /// What is mapped in a range: memory, address and bytes.
    pub fn mapped(&self, address: u64, bytes: u64) -> Vec<(PhysicalHandle, u64, u64)> {
        let mut found = Vec::new();
        for (handle, physical) in &self.physicals {
            let places = physical.mappings.keys().copied();
            let inside = places.filter(|place| overlap(*place, physical.bytes, address, bytes));
            found.extend(inside.map(|place| (*handle, place, physical.bytes)));
        }
        found
    }

    /// Multicast objects that are mapped in a range: object, address and bytes.
    pub fn mapped_multicasts(&self, address: u64, bytes: u64) -> Vec<(PhysicalHandle, u64, u64)> {
        let mut found = Vec::new();
        for (handle, multicast) in &self.multicasts {
            let places = multicast.mappings.iter();
            let places = places.map(|(place, mapping)| (*handle, *place, mapping.bytes));
            found.extend(
                places.filter(|(_, place, length)| overlap(*place, *length, address, bytes)),
            );
        }
        found
    }

    /// Whether memory is bound to a multicast object.
    pub fn is_bound(&self, memory: PhysicalHandle) -> bool {
        let mut bound = self.multicasts.values().flat_map(|one| one.bound.values());
        bound.any(|binding| binding.memory == memory)
    }
}
