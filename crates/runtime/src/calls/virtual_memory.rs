//! Memory that the program maps by itself: addresses apart from what is behind them.
//!
//! Contents of memory are found by address, so physical memory has its bytes where it was mapped
//! last. They stay there while it is unmapped, out of the reach of kernels, and move when it is
//! mapped elsewhere or something else comes to its place.

use crate::device::Device;
use crate::ranges::Ranges;
use crate::{CallResult, Runtime, fail, failure};
use lockstep_protocol::layout::Region;
use lockstep_protocol::{
    ContextHandle, CuResult, MemoryAccess, PhysicalHandle, PointerKind, Reply,
};
use std::collections::BTreeMap;

/// Sizes and addresses are multiples of this.
const GRANULARITY: u64 = 2 << 20;

/// Reserved addresses and physical memory of one device.
#[derive(Debug)]
pub struct VirtualMemory {
    reserved: Ranges,
    reservations: BTreeMap<u64, u64>,
    physicals: BTreeMap<PhysicalHandle, Physical>,
}

#[derive(Debug)]
struct Physical {
    context: ContextHandle,
    bytes: u64,
    /// Addresses of its own, where the bytes are when they are nowhere else.
    backing: u64,
    /// Address at which the bytes are now.
    home: u64,
    mapped: bool,
    access: MemoryAccess,
    released: bool,
}

impl VirtualMemory {
    /// Without reservations.
    pub fn new() -> Self {
        let range = Region::Reserved.range();
        Self {
            reserved: Ranges::new(range.start, range.end),
            reservations: BTreeMap::new(),
            physicals: BTreeMap::new(),
        }
    }

    /// Physical memory whose mapping, or whose bytes without one, overlap a range.
    fn overlapping(&self, address: u64, bytes: u64) -> Vec<PhysicalHandle> {
        self.physicals
            .iter()
            .filter(|(_, physical)| {
                physical.home < address.saturating_add(bytes)
                    && address < physical.home + physical.bytes
            })
            .map(|(handle, _)| *handle)
            .collect()
    }

    fn owned_by(&self, context: ContextHandle) -> Vec<PhysicalHandle> {
        self.physicals
            .iter()
            .filter(|(_, physical)| physical.context == context)
            .map(|(handle, _)| *handle)
            .collect()
    }
}

impl<D: Device> Runtime<D> {
    pub(super) fn address_reserve(
        &mut self,
        context: ContextHandle,
        bytes: u64,
        alignment: u64,
    ) -> CallResult<Reply> {
        self.context(context)?;
        if bytes == 0
            || !bytes.is_multiple_of(GRANULARITY)
            || (alignment != 0 && !alignment.is_power_of_two())
        {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{bytes} bytes of addresses, aligned to {alignment}"),
            );
        }
        self.spend(self.config.host.allocate);
        let alignment = alignment.max(GRANULARITY);
        let virtual_memory = &mut self.virtual_memory;
        let Some(address) = virtual_memory.reserved.take(bytes, alignment) else {
            return fail(
                CuResult::OUT_OF_MEMORY,
                format!("{bytes} bytes of addresses are not left"),
            );
        };
        virtual_memory.reservations.insert(address, bytes);
        Ok(Reply::Address(address))
    }

    pub(super) fn address_free(&mut self, address: u64, bytes: u64) -> CallResult<Reply> {
        if self.virtual_memory.reservations.get(&address) != Some(&bytes) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{address:#x} is not the start of {bytes} reserved bytes"),
            );
        }
        for handle in self.virtual_memory.overlapping(address, bytes) {
            if self.physical(handle)?.mapped {
                return fail(
                    CuResult::INVALID_VALUE,
                    format!("memory is still mapped at {address:#x}"),
                );
            }
            self.move_home(handle, None);
        }
        self.virtual_memory.reservations.remove(&address);
        self.virtual_memory.reserved.give(address);
        Ok(Reply::Done)
    }

    pub(super) fn physical_create(
        &mut self,
        context: ContextHandle,
        bytes: u64,
    ) -> CallResult<Reply> {
        let device = self.context(context)?.device;
        if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{bytes} bytes of memory are no multiple of {GRANULARITY}"),
            );
        }
        self.spend(self.config.host.allocate);
        let backing = self
            .memory
            .allocate(PointerKind::Device, context, device, bytes, 0)?
            .info
            .base;
        self.memory.hide(backing);
        let handle = PhysicalHandle(self.fresh());
        self.virtual_memory.physicals.insert(
            handle,
            Physical {
                context,
                bytes,
                backing,
                home: backing,
                mapped: false,
                access: MemoryAccess::None,
                released: false,
            },
        );
        Ok(Reply::Physical(handle))
    }

    pub(super) fn physical_release(&mut self, handle: PhysicalHandle) -> CallResult<Reply> {
        let physical = self.physical(handle)?;
        if physical.released {
            return fail(CuResult::INVALID_HANDLE, format!("{handle} was released"));
        }
        physical.released = true;
        if !physical.mapped {
            self.drop_physical(handle);
        }
        Ok(Reply::Done)
    }

    pub(super) fn physical_map(
        &mut self,
        address: u64,
        bytes: u64,
        handle: PhysicalHandle,
    ) -> CallResult<Reply> {
        let physical = self.physical(handle)?;
        if physical.released || physical.mapped {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{handle} was released, or is mapped already"),
            );
        }
        if bytes != physical.bytes || !address.is_multiple_of(GRANULARITY) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{bytes} bytes at {address:#x} of {} bytes", physical.bytes),
            );
        }
        let context = physical.context;
        let (start, length) = self
            .virtual_memory
            .reservations
            .range(..=address)
            .next_back()
            .map_or((0, 0), |(start, length)| (*start, *length));
        if address - start > length || bytes > length - (address - start) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{bytes} bytes at {address:#x} are not reserved"),
            );
        }
        for other in self.virtual_memory.overlapping(address, bytes) {
            if other == handle {
                continue;
            }
            if self.physical(other)?.mapped {
                return fail(
                    CuResult::INVALID_VALUE,
                    format!("memory is mapped at {address:#x} already"),
                );
            }
            self.move_home(other, None);
        }
        self.spend(self.config.host.allocate);
        self.move_home(handle, Some(address));
        let device = self.context(context)?.device;
        self.memory.insert_mapped(context, device, address, bytes);
        self.physical(handle)?.mapped = true;
        Ok(Reply::Done)
    }

    pub(super) fn physical_unmap(&mut self, address: u64, bytes: u64) -> CallResult<Reply> {
        let found = self.virtual_memory.overlapping(address, bytes);
        let mut inside = Vec::new();
        for handle in found {
            let physical = self.physical(handle)?;
            if !physical.mapped {
                continue;
            }
            if physical.home < address
                || physical.home + physical.bytes > address.saturating_add(bytes)
            {
                return fail(
                    CuResult::INVALID_VALUE,
                    format!(
                        "{bytes} bytes at {address:#x} hold only a part of what is mapped there"
                    ),
                );
            }
            inside.push((handle, physical.context));
        }
        if inside.is_empty() {
            return fail(
                CuResult::INVALID_VALUE,
                format!("nothing is mapped in {bytes} bytes at {address:#x}"),
            );
        }
        for (handle, context) in inside {
            // Work that may still use the memory comes first.
            self.context_synchronize(context)?;
            self.unmap_physical(handle);
        }
        Ok(Reply::Done)
    }

    pub(super) fn access_set(
        &mut self,
        address: u64,
        bytes: u64,
        access: MemoryAccess,
    ) -> CallResult<Reply> {
        let mut covered = 0;
        for handle in self.virtual_memory.overlapping(address, bytes) {
            let physical = self.physical(handle)?;
            if !physical.mapped {
                continue;
            }
            covered += physical.bytes;
            let (home, size, context) = (physical.home, physical.bytes, physical.context);
            if physical.access != access {
                physical.access = access;
                let gpu = self.context(context)?.device;
                self.device.set_access(gpu, home, size, access);
            }
        }
        if covered < bytes {
            return fail(
                CuResult::INVALID_VALUE,
                format!("only {covered} of {bytes} bytes at {address:#x} are mapped"),
            );
        }
        Ok(Reply::Done)
    }

    /// Refuses the use of mapped memory for what the program has not allowed, as a driver does before
    /// it copies.
    pub(super) fn check_access(
        &self,
        address: u64,
        bytes: u64,
        wanted: MemoryAccess,
    ) -> CallResult<()> {
        for handle in self.virtual_memory.overlapping(address, bytes) {
            let Some(physical) = self.virtual_memory.physicals.get(&handle) else {
                continue;
            };
            if physical.mapped && physical.access < wanted {
                let (home, end) = (physical.home, physical.home + physical.bytes);
                let may = match physical.access {
                    MemoryAccess::None => "not be accessed",
                    _ => "only be read",
                };
                return fail(
                    CuResult::INVALID_VALUE,
                    format!(
                        "{bytes} bytes at {address:#x}: {home:#x} to {end:#x} may {may}, see cuMemSetAccess"
                    ),
                );
            }
        }
        Ok(())
    }

    /// Gives up all physical memory of a context that goes.
    pub(crate) fn drop_physicals_of(&mut self, context: ContextHandle) {
        for handle in self.virtual_memory.owned_by(context) {
            self.unmap_physical(handle);
            self.drop_physical(handle);
        }
    }

    /// Takes physical memory away from its addresses; its bytes stay.
    fn unmap_physical(&mut self, handle: PhysicalHandle) {
        let Ok(physical) = self.physical(handle) else {
            return;
        };
        if !physical.mapped {
            return;
        }
        let (home, bytes) = (physical.home, physical.bytes);
        let (access, released) = (physical.access, physical.released);
        let context = physical.context;
        physical.mapped = false;
        physical.access = MemoryAccess::None;
        if access != MemoryAccess::None
            && let Some(context) = self.contexts.get(&context)
        {
            let none = MemoryAccess::None;
            self.device.set_access(context.device, home, bytes, none);
        }
        self.memory.remove_mapped(home);
        if released {
            self.drop_physical(handle);
        }
    }

    fn drop_physical(&mut self, handle: PhysicalHandle) {
        let Some(physical) = self.virtual_memory.physicals.remove(&handle) else {
            return;
        };
        self.device.unmap(physical.home, physical.bytes);
        // The addresses of its own were only set aside.
        let _ = self.memory.free(physical.backing);
    }

    /// Moves the bytes of physical memory to an address, or to its own.
    fn move_home(&mut self, handle: PhysicalHandle, to: Option<u64>) {
        let Ok(physical) = self.physical(handle) else {
            return;
        };
        let (from, to, bytes) = (
            physical.home,
            to.unwrap_or(physical.backing),
            physical.bytes,
        );
        physical.home = to;
        if from != to {
            self.device.relocate(to, from, bytes);
        }
    }

    fn physical(&mut self, handle: PhysicalHandle) -> CallResult<&mut Physical> {
        self.virtual_memory
            .physicals
            .get_mut(&handle)
            .ok_or_else(|| failure(CuResult::INVALID_HANDLE, format!("there is no {handle}")))
    }
}
