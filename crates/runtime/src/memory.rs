//! Allocations of all kinds: where they are, whose they are, and what may be touched.

use crate::heap::{Heap, LARGE_UNIT, LARGEST_SMALL, SMALL_UNIT};
use crate::{CallResult, fail, failure};
use lockstep_config::GpuConfig;
use lockstep_protocol::layout::{Region, region_of};
use lockstep_protocol::{ContextHandle, CuResult, PointerInfo, PointerKind};
use std::collections::{BTreeMap, VecDeque};

/// Pinned and managed memory that a run may have, in bytes: what a large host could offer.
const HOST_CAPACITY: u64 = 1 << 40;

/// Addresses at the end of each region that belong to the system: the heap of device code.
pub const SYSTEM_SPACE: u64 = 64 << 30;

/// Managed allocations begin at multiples of this: no two share a page.
const MANAGED_UNIT: u64 = 4096;
/// From this size on managed memory has large units of its own.
const MANAGED_ALONE: u64 = 1 << 20;

/// One allocation.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// What a program may learn of it.
    pub info: PointerInfo,
    /// Bytes that it occupies, from its base on.
    pub occupied: u64,
    /// Whether the program mapped it by itself, and so unmaps it by itself.
    pub mapped: bool,
    /// The number of the call that made it, counted from 1.
    pub call: u64,
}

impl Allocation {
    fn story(&self) -> String {
        let PointerInfo { base, bytes, .. } = self.info;
        let call = self.call;
        format!("the {bytes} bytes at {base:#x} were allocated by CUDA call {call}")
    }
}

/// Freed allocations that are remembered, for messages.
const REMEMBERED: usize = 4096;

/// An allocation that is gone.
#[derive(Clone, Copy, Debug)]
struct Freed {
    base: u64,
    bytes: u64,
    allocated: u64,
    freed: u64,
}

/// All allocations of all devices, and of the host memory that they see.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Of each device, by its ordinal.
    devices: Vec<Heap>,
    pinned: Heap,
    managed: Heap,
    allocations: BTreeMap<u64, Allocation>,
    /// Memory without an address, by the addresses that it takes up all the same.
    hidden: BTreeMap<u64, Allocation>,
    /// Memory of each device, and what of it no program can have.
    sizes: Vec<(u64, u64)>,
    identities: u64,
    /// Whether small managed allocations lie side by side.
    packs_managed: bool,
    /// The number of the call that is being answered.
    call: u64,
    /// What was freed last, the latest at the end.
    freed: VecDeque<Freed>,
}

impl Memory {
    /// Nothing allocated on so many devices in a host, each as `gpu` says.
    pub fn new<'gpu>(
        config: &GpuConfig,
        devices: u32,
        gpu: impl Fn(u32) -> &'gpu GpuConfig,
    ) -> Self {
        let heap = |region: Region, capacity: u64| {
            let range = region.range();
            let end = range.end - SYSTEM_SPACE;
            Heap::new(range.start, end, capacity.min(end - range.start))
        };
        let sizes = |ordinal| {
            let device = &gpu(ordinal).device;
            (device.memory.0, device.reserved_memory.0)
        };
        let sizes: Vec<(u64, u64)> = (0..devices).map(sizes).collect();
        let machine = &config.host.machine;
        let host = match machine.is_modelled() {
            true => machine.ddr_capacity.0.min(HOST_CAPACITY),
            false => HOST_CAPACITY,
        };
        Self {
            devices: (0..)
                .zip(&sizes)
                .map(|(ordinal, (total, reserved))| heap(Region::Device(ordinal), total - reserved))
                .collect(),
            pinned: heap(Region::Pinned, host),
            managed: heap(Region::Managed, host),
            allocations: BTreeMap::new(),
            hidden: BTreeMap::new(),
            sizes,
            identities: 0,
            packs_managed: config.uvm.packing,
            call: 0,
            freed: VecDeque::new(),
        }
    }

    /// A call begins, with its number.
    pub fn begin_call(&mut self, call: u64) {
        self.call = call;
    }

    /// What is known of the allocation that holds an address or held it: who made it, and who freed it.
    pub fn story_inside(&self, address: u64) -> Option<String> {
        if self.find(address).is_none() {
            let inside = |freed: &&Freed| address.wrapping_sub(freed.base) < freed.bytes;
            if let Some(freed) = self.freed.iter().rev().find(inside) {
                let Freed {
                    base,
                    bytes,
                    allocated,
                    freed,
                } = freed;
                return Some(format!(
                    "{bytes} bytes at {base:#x} were allocated by CUDA call {allocated} and freed by call {freed}"
                ));
            }
        }
        self.find(address).map(Allocation::story)
    }

    /// The same, or of the allocation beside the address if none ever held it.
    pub fn story(&self, address: u64) -> Option<String> {
        if let Some(story) = self.story_inside(address) {
            return Some(story);
        }
        let before = self.allocations.range(..=address).next_back();
        let after = self.allocations.range(address..).next();
        let distance = |(base, allocation): (&u64, &Allocation)| {
            let end = base + allocation.info.bytes;
            base.saturating_sub(address)
                .max(address.saturating_sub(end))
        };
        let nearest = match (before, after) {
            (Some(before), Some(after)) if distance(after) < distance(before) => after,
            (Some(before), _) => before,
            (None, after) => after?,
        };
        Some(nearest.1.story())
    }

    /// Allocates memory of a kind; the caller makes it legal to touch.
    pub fn allocate(
        &mut self,
        kind: PointerKind,
        context: ContextHandle,
        device: u32,
        bytes: u64,
        flags: u32,
    ) -> CallResult<Allocation> {
        if bytes == 0 {
            return fail(CuResult::INVALID_VALUE, "an allocation of 0 bytes");
        }
        // Managed memory moves by pages, and in pieces of a large unit: it begins at one or shares
        // one.
        let least = match kind {
            PointerKind::Managed if self.packs_managed && bytes <= MANAGED_ALONE - MANAGED_UNIT => {
                bytes.checked_next_multiple_of(MANAGED_UNIT)
            }
            PointerKind::Managed => bytes.checked_next_multiple_of(LARGE_UNIT),
            PointerKind::Device | PointerKind::Host => Some(bytes),
        };
        let Some(least) = least else {
            return fail(CuResult::OUT_OF_MEMORY, format!("{bytes} bytes asked for"));
        };
        let heap = self.heap(kind, device)?;
        let available = heap.available();
        let Some(base) = heap.allocate(least) else {
            return fail(
                CuResult::OUT_OF_MEMORY,
                format!("{bytes} bytes asked for, {available} bytes left"),
            );
        };
        self.identities += 1;
        let occupied = if least > LARGEST_SMALL {
            least.next_multiple_of(LARGE_UNIT)
        } else {
            least.next_multiple_of(SMALL_UNIT)
        };
        let identity = self.identities;
        let info = PointerInfo {
            kind,
            device,
            context,
            base,
            bytes,
            identity,
            flags,
        };
        let allocation = Allocation {
            info,
            occupied,
            mapped: false,
            call: self.call,
        };
        self.allocations.insert(base, allocation.clone());
        Ok(allocation)
    }

    /// Makes an allocation one that no program can name: memory without an address.
    pub fn hide(&mut self, base: u64) {
        if let Some(allocation) = self.allocations.remove(&base) {
            self.hidden.insert(base, allocation);
        }
    }

    /// Notes memory that the program mapped to addresses that it reserved.
    pub fn insert_mapped(&mut self, context: ContextHandle, device: u32, base: u64, bytes: u64) {
        self.identities += 1;
        let info = PointerInfo {
            kind: PointerKind::Device,
            device,
            context,
            base,
            bytes,
            identity: self.identities,
            flags: 0,
        };
        let allocation = Allocation {
            info,
            occupied: bytes,
            mapped: true,
            call: self.call,
        };
        self.allocations.insert(base, allocation);
    }

    /// Forgets such memory.
    pub fn remove_mapped(&mut self, base: u64) {
        self.allocations.remove(&base);
    }

    /// Frees the allocation that starts at `base`.
    pub fn free(&mut self, base: u64) -> CallResult<Allocation> {
        let visible = self
            .allocations
            .get(&base)
            .is_some_and(|found| !found.mapped);
        let removed = if visible {
            self.allocations.remove(&base)
        } else {
            self.hidden.remove(&base)
        };
        let Some(allocation) = removed else {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{base:#x} is not the start of an allocation"),
            );
        };
        let PointerInfo { kind, device, .. } = allocation.info;
        self.heap(kind, device)?.free(base);
        if self.freed.len() == REMEMBERED {
            self.freed.pop_front();
        }
        self.freed.push_back(Freed {
            base,
            bytes: allocation.info.bytes,
            allocated: allocation.call,
            freed: self.call,
        });
        Ok(allocation)
    }

    /// The allocation that holds an address.
    pub fn find(&self, address: u64) -> Option<&Allocation> {
        let (_, allocation) = self.allocations.range(..=address).next_back()?;
        (address - allocation.info.base < allocation.info.bytes).then_some(allocation)
    }

    /// The one allocation that holds all of a range, or why there is none.
    pub fn covering(&self, address: u64, bytes: u64) -> CallResult<&Allocation> {
        let found = self.find(address);
        match found {
            Some(allocation)
                if bytes <= allocation.info.bytes - (address - allocation.info.base) =>
            {
                Ok(allocation)
            }
            // What was mapped piece by piece is used as one.
            Some(allocation) if allocation.mapped => {
                let here = allocation.info.bytes - (address - allocation.info.base);
                self.covering(address + here, bytes - here)
            }
            Some(allocation) => fail(
                CuResult::INVALID_VALUE,
                format!(
                    "{bytes} bytes at {address:#x} pass the end of the allocation of {} bytes at {:#x}",
                    allocation.info.bytes, allocation.info.base
                ),
            ),
            None => fail(
                CuResult::INVALID_VALUE,
                format!(
                    "no allocation holds {address:#x}{}",
                    self.describe_place(address)
                ),
            ),
        }
    }

    /// Bases of everything that belongs to a context.
    pub fn owned_by(&self, context: ContextHandle) -> Vec<u64> {
        self.allocations
            .values()
            .filter(|allocation| allocation.info.context == context && !allocation.mapped)
            .map(|allocation| allocation.info.base)
            .collect()
    }

    /// Allocations of host memory that the device sees, by address.
    pub fn host_visible(&self) -> impl Iterator<Item = &Allocation> {
        self.allocations
            .values()
            .filter(|allocation| allocation.info.kind != PointerKind::Device)
    }

    /// Free and total memory of a device.
    pub fn info(&self, device: u32) -> (u64, u64) {
        let heap = self.devices.get(device as usize);
        (heap.map_or(0, Heap::available), self.sizes_of(device).0)
    }

    /// Device memory that no program can have.
    pub fn reserved(&self, device: u32) -> u64 {
        self.sizes_of(device).1
    }

    fn sizes_of(&self, device: u32) -> (u64, u64) {
        let sizes = self.sizes.get(device as usize);
        sizes.copied().unwrap_or_default()
    }

    /// Bytes of device memory that a context has taken. What is mapped is counted once, where it was
    /// taken.
    pub fn taken_by(&self, context: ContextHandle) -> u64 {
        self.allocations
            .values()
            .chain(self.hidden.values())
            .filter(|allocation| {
                let info = &allocation.info;
                info.kind == PointerKind::Device && info.context == context && !allocation.mapped
            })
            .map(|allocation| allocation.occupied)
            .sum()
    }

    fn heap(&mut self, kind: PointerKind, device: u32) -> CallResult<&mut Heap> {
        match kind {
            PointerKind::Device => self.devices.get_mut(device as usize).ok_or_else(|| {
                failure(
                    CuResult::INVALID_DEVICE,
                    format!("there is no device {device}"),
                )
            }),
            PointerKind::Host => Ok(&mut self.pinned),
            PointerKind::Managed => Ok(&mut self.managed),
        }
    }

    fn describe_place(&self, address: u64) -> String {
        let before = self
            .allocations
            .range(..=address)
            .next_back()
            .map(|(_, found)| found);
        match (region_of(address), before) {
            (None, _) => ", which is ordinary memory of the program".into(),
            (Some(_), None) => String::new(),
            (Some(_), Some(before)) => {
                let end = before.info.base + before.info.bytes;
                format!(
                    "; the nearest below it ends {} bytes before, at {end:#x}",
                    address - end
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: ContextHandle = ContextHandle(1);

    fn memory() -> Memory {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        Memory::new(&config, 1, |_| &config)
    }

    #[test]
    fn addresses_are_fixed_and_kinds_lie_apart() {
        let mut memory = memory();
        let mut base = |kind| memory.allocate(kind, CONTEXT, 0, 100, 0).unwrap().info.base;
        assert_eq!(base(PointerKind::Device), 0x2000_0000_0000);
        assert_eq!(base(PointerKind::Device), 0x2000_0000_0200);
        assert_eq!(base(PointerKind::Host), 0x2800_0000_0000);
        assert_eq!(base(PointerKind::Managed), 0x2c00_0000_0000);
    }

    #[test]
    fn a_range_must_lie_in_one_allocation() {
        let mut memory = memory();
        let base = memory
            .allocate(PointerKind::Device, CONTEXT, 0, 1000, 0)
            .unwrap()
            .info
            .base;
        assert!(memory.covering(base, 1000).is_ok());
        assert!(memory.covering(base + 999, 1).is_ok());
        let past = memory.covering(base + 8, 1000).unwrap_err();
        assert_eq!(past.code, CuResult::INVALID_VALUE);
        assert!(
            past.message
                .contains("pass the end of the allocation of 1000 bytes"),
            "{}",
            past.message
        );
        let outside = memory.covering(base + 2000, 1).unwrap_err();
        assert!(
            outside.message.contains("ends 1000 bytes before"),
            "{}",
            outside.message
        );
        assert!(memory.covering(u64::MAX, u64::MAX).is_err());
        assert_eq!(
            memory.free(base + 8).unwrap_err().code,
            CuResult::INVALID_VALUE
        );
        memory.free(base).unwrap();
        assert_eq!(memory.free(base).unwrap_err().code, CuResult::INVALID_VALUE);
    }

    #[test]
    fn an_allocation_has_a_story() {
        let mut memory = memory();
        memory.begin_call(3);
        let base = |memory: &mut Memory| {
            let made = memory.allocate(PointerKind::Device, CONTEXT, 0, 100, 0);
            made.unwrap().info.base
        };
        let first = base(&mut memory);
        memory.begin_call(4);
        let second = base(&mut memory);
        let story = |memory: &Memory, address| memory.story(address).unwrap();
        assert!(story(&memory, first + 120).ends_with("allocated by CUDA call 3"));
        assert!(story(&memory, second - 8).ends_with("allocated by CUDA call 4"));
        memory.begin_call(9);
        memory.free(first).unwrap();
        let gone = story(&memory, first + 99);
        assert!(
            gone.ends_with("by CUDA call 3 and freed by call 9"),
            "{gone}"
        );
        memory.begin_call(10);
        assert_eq!(base(&mut memory), first, "the place is used again");
        assert!(story(&memory, first + 99).ends_with("allocated by CUDA call 10"));
    }

    #[test]
    fn memory_ends_at_the_capacity_of_the_gpu() {
        let mut memory = memory();
        let (free, total) = memory.info(0);
        assert!(free < total);
        let refused = memory
            .allocate(PointerKind::Device, CONTEXT, 0, total, 0)
            .unwrap_err();
        assert_eq!(refused.code, CuResult::OUT_OF_MEMORY);
        let all = memory
            .allocate(PointerKind::Device, CONTEXT, 0, free, 0)
            .unwrap();
        assert_eq!(
            memory
                .allocate(PointerKind::Device, CONTEXT, 0, 1, 0)
                .unwrap_err()
                .code,
            CuResult::OUT_OF_MEMORY
        );
        memory.free(all.info.base).unwrap();
        assert_eq!(memory.info(0), (free, total));
    }
}
