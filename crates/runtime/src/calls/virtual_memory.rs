//! Calls about memory that the program maps by itself. `virtual_memory.rs` beside `calls` says where its
//! bytes are.

use crate::device::Device;
use crate::virtual_memory::{GRANULARITY, Mapping, Physical};
use crate::{CallResult, Client, Runtime, fail, failure};
use lockstep_protocol::{
    ContextHandle, CuResult, MemoryAccess, PhysicalHandle, PointerKind, Reply,
};
use std::collections::{BTreeMap, BTreeSet};

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
        self.make_room(address, bytes)?;
        self.virtual_memory.reservations.remove(&address);
        self.virtual_memory.reserved.give(address);
        Ok(Reply::Done)
    }

    /// Moves bytes without a mapping away from a range; refuses if something is mapped there.
    pub(super) fn make_room(&mut self, address: u64, bytes: u64) -> CallResult<()> {
        let multicasts = self.virtual_memory.mapped_multicasts(address, bytes);
        if !self.virtual_memory.mapped(address, bytes).is_empty() || !multicasts.is_empty() {
            return fail(
                CuResult::INVALID_VALUE,
                format!("memory is mapped at {address:#x}"),
            );
        }
        for handle in self.virtual_memory.overlapping(address, bytes) {
            self.move_home(handle, None);
        }
        Ok(())
    }

    pub(super) fn physical_create(
        &mut self,
        context: ContextHandle,
        device: u32,
        bytes: u64,
        shared: bool,
    ) -> CallResult<Reply> {
        self.context(context)?;
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
                device,
                bytes,
                backing,
                home: backing,
                shared,
                named: shared,
                holders: BTreeSet::from([context]),
                mappings: BTreeMap::new(),
            },
        );
        Ok(Reply::Physical(handle))
    }

    /// Lets a context hold memory by a handle that came from elsewhere, or from what it has mapped.
    pub(super) fn physical_open(
        &mut self,
        client: Client,
        context: ContextHandle,
        handle: PhysicalHandle,
    ) -> CallResult<Reply> {
        self.context(context)?;
        if self.virtual_memory.multicasts.contains_key(&handle) {
            return self.multicast_open(client, context, handle);
        }
        let physical = self.physical(handle)?;
        let users = physical.mappings.values().map(|mapping| mapping.context);
        let users: Vec<ContextHandle> = users.chain(physical.holders.iter().copied()).collect();
        physical.holders.insert(context);
        self.note_sharing(client, &users);
        Ok(Reply::Done)
    }

    /// A process has memory in common with those whose contexts use it.
    pub(super) fn note_sharing(&mut self, client: Client, users: &[ContextHandle]) {
        for user in users {
            if let Some(owner) = self.contexts.get(user) {
                self.sharing.note(client.process, owner.process);
            }
        }
    }

    pub(super) fn physical_release(
        &mut self,
        context: ContextHandle,
        handle: PhysicalHandle,
    ) -> CallResult<Reply> {
        if self.virtual_memory.multicasts.contains_key(&handle) {
            return self.multicast_release(context, handle);
        }
        let physical = self.physical(handle)?;
        if !physical.holders.remove(&context) {
            return fail(CuResult::INVALID_HANDLE, format!("{handle} was released"));
        }
        self.drop_unused(handle);
        Ok(Reply::Done)
    }

    pub(super) fn physical_map(
        &mut self,
        context: ContextHandle,
        address: u64,
        bytes: u64,
        handle: PhysicalHandle,
    ) -> CallResult<Reply> {
        self.context(context)?;
        if self.virtual_memory.multicasts.contains_key(&handle) {
            return self.multicast_map(context, address, bytes, handle);
        }
        let physical = self.physical(handle)?;
        if !physical.holders.contains(&context) {
            return fail(CuResult::INVALID_VALUE, format!("{handle} was released"));
        }
        if bytes != physical.bytes || !address.is_multiple_of(GRANULARITY) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{bytes} bytes at {address:#x} of {} bytes", physical.bytes),
            );
        }
        self.check_reserved(address, bytes)?;
        if self.physical(handle)?.home != address {
            self.make_room(address, bytes)?;
        } else if !self.virtual_memory.mapped(address, bytes).is_empty()
            || !self
                .virtual_memory
                .mapped_multicasts(address, bytes)
                .is_empty()
        {
            return fail(
                CuResult::INVALID_VALUE,
                format!("memory is mapped at {address:#x} already"),
            );
        }
        if !self.physical(handle)?.mappings.is_empty() {
            self.keep_at_own_address(handle)?;
        }
        self.spend(self.config.host.allocate);
        let physical = self.physical(handle)?;
        let access = BTreeMap::new();
        physical
            .mappings
            .insert(address, Mapping { context, access });
        let (device, named, backing) = (physical.device, physical.named, physical.backing);
        if named {
            self.device.name(address, bytes, Some(backing));
        } else {
            self.move_home(handle, Some(address));
        }
        self.memory.insert_mapped(context, device, address, bytes);
        Ok(Reply::Address(self.physical(handle)?.home))
    }

    /// Refuses addresses that the program did not reserve.
    pub(super) fn check_reserved(&self, address: u64, bytes: u64) -> CallResult<()> {
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
        Ok(())
    }

    /// Brings the bytes of memory to its own address for good, and lets the address that they were at
    /// name them.
    pub(super) fn keep_at_own_address(&mut self, handle: PhysicalHandle) -> CallResult<()> {
        if self.physical(handle)?.named {
            return Ok(());
        }
        self.wait_for_users(handle)?;
        let physical = self.physical(handle)?;
        let (bytes, backing, home) = (physical.bytes, physical.backing, physical.device);
        physical.named = true;
        let mapped = physical.mappings.clone();
        for mapping in physical.mappings.values_mut() {
            mapping.access.clear();
        }
        for (address, mapping) in &mapped {
            if mapping.most() != MemoryAccess::None {
                let none = MemoryAccess::None;
                self.device.set_access(home, *address, bytes, none);
            }
        }
        self.move_home(handle, None);
        for (address, mapping) in mapped {
            self.device.name(address, bytes, Some(backing));
            // It was within the reach of all GPUs of the node.
            let access = mapping.most();
            for gpu in self.device.neighbours(home) {
                self.grant(handle, address, gpu, access);
            }
        }
        Ok(())
    }

    /// Waits for work that may still use memory.
    fn wait_for_users(&mut self, handle: PhysicalHandle) -> CallResult<()> {
        let mappings = self.physical(handle)?.mappings.values();
        let users: BTreeSet<ContextHandle> = mappings.map(|mapping| mapping.context).collect();
        for context in users {
            self.context_synchronize(context)?;
        }
        Ok(())
    }

    pub(super) fn physical_unmap(&mut self, address: u64, bytes: u64) -> CallResult<Reply> {
        let found = self.virtual_memory.mapped(address, bytes);
        let multicasts = self.virtual_memory.mapped_multicasts(address, bytes);
        let partial = |(_, place, length): &(PhysicalHandle, u64, u64)| {
            *place < address || place + length > address.saturating_add(bytes)
        };
        if found.iter().chain(&multicasts).any(partial) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{bytes} bytes at {address:#x} hold only a part of what is mapped there"),
            );
        }
        if found.is_empty() && multicasts.is_empty() {
            return fail(
                CuResult::INVALID_VALUE,
                format!("nothing is mapped in {bytes} bytes at {address:#x}"),
            );
        }
        for (handle, place, _) in found {
            // Work that may still use the memory comes first.
            let mappings = &self.physical(handle)?.mappings;
            if let Some(context) = mappings.get(&place).map(|mapping| mapping.context) {
                self.context_synchronize(context)?;
            }
            self.unmap_physical(handle, place);
            self.drop_unused(handle);
        }
        for (handle, place, _) in multicasts {
            let multicast = self.virtual_memory.multicasts.get(&handle);
            let mapping = multicast.and_then(|multicast| multicast.mappings.get(&place));
            if let Some(context) = mapping.map(|mapping| mapping.context) {
                self.context_synchronize(context)?;
            }
            self.multicast_unmap(handle, place);
        }
        Ok(Reply::Done)
    }

    pub(super) fn access_set(
        &mut self,
        device: u32,
        address: u64,
        bytes: u64,
        access: MemoryAccess,
    ) -> CallResult<Reply> {
        let found = self.virtual_memory.mapped(address, bytes);
        let multicasts = self.virtual_memory.mapped_multicasts(address, bytes);
        let all = found.iter().chain(&multicasts);
        let covered: u64 = all.map(|(.., length)| length).sum();
        for (handle, place, _) in found {
            self.grant(handle, place, device, access);
        }
        for (handle, place, _) in multicasts {
            self.multicast_grant(handle, place, device, access)?;
        }
        if covered < bytes {
            return fail(
                CuResult::INVALID_VALUE,
                format!("only {covered} of {bytes} bytes at {address:#x} are mapped"),
            );
        }
        Ok(Reply::Done)
    }

    /// Says what kernels of a GPU may do with memory at one of its addresses.
    fn grant(&mut self, handle: PhysicalHandle, address: u64, gpu: u32, access: MemoryAccess) {
        let Ok(physical) = self.physical(handle) else {
            return;
        };
        let (bytes, backing, named) = (physical.bytes, physical.backing, physical.named);
        let home = physical.device;
        let Some(mapping) = physical.mappings.get_mut(&address) else {
            return;
        };
        let before = match named {
            true => mapping.access.insert(gpu, access),
            false => {
                let before = mapping.most();
                mapping.access = BTreeMap::from([(gpu, access)]);
                Some(before)
            }
        };
        if before.unwrap_or(MemoryAccess::None) == access {
            return;
        }
        match named {
            true => self.device.grant(gpu, address, bytes, backing, access),
            false => self.device.set_access(home, address, bytes, access),
        }
    }

    /// Refuses the use of mapped memory for what the program has not allowed, as a driver does before
    /// it copies.
    pub(super) fn check_access(
        &self,
        address: u64,
        bytes: u64,
        wanted: MemoryAccess,
    ) -> CallResult<()> {
        let multicasts = self.virtual_memory.mapped_multicasts(address, bytes);
        if let Some((_, start, length)) = multicasts.first() {
            return fail(
                CuResult::INVALID_VALUE,
                format!(
                    "{bytes} bytes at {address:#x}: {start:#x} to {:#x} is a multicast object, which only kernels use",
                    start + length
                ),
            );
        }
        for (handle, place, length) in self.virtual_memory.mapped(address, bytes) {
            let physical = self.virtual_memory.physicals.get(&handle);
            let mapping = physical.and_then(|physical| physical.mappings.get(&place));
            let Some(access) = mapping.map(Mapping::most) else {
                continue;
            };
            if access < wanted {
                let end = place + length;
                let may = match access {
                    MemoryAccess::None => "not be accessed",
                    _ => "only be read",
                };
                return fail(
                    CuResult::INVALID_VALUE,
                    format!(
                        "{bytes} bytes at {address:#x}: {place:#x} to {end:#x} may {may}, see cuMemSetAccess"
                    ),
                );
            }
        }
        Ok(())
    }

    /// Gives up all physical memory that a context has, as far as no other has it too.
    pub(crate) fn drop_physicals_of(&mut self, context: ContextHandle) {
        self.drop_multicasts_of(context);
        let all: Vec<PhysicalHandle> = self.virtual_memory.physicals.keys().copied().collect();
        for handle in all {
            let Ok(physical) = self.physical(handle) else {
                continue;
            };
            physical.holders.remove(&context);
            let mappings = physical.mappings.iter();
            let own = mappings.filter(|(_, mapping)| mapping.context == context);
            let own: Vec<u64> = own.map(|(address, _)| *address).collect();
            for address in own {
                self.unmap_physical(handle, address);
            }
            self.drop_unused(handle);
        }
    }

    /// Takes physical memory away from an address; its bytes stay.
    fn unmap_physical(&mut self, handle: PhysicalHandle, address: u64) {
        let Ok(physical) = self.physical(handle) else {
            return;
        };
        let (bytes, named, backing) = (physical.bytes, physical.named, physical.backing);
        let home = physical.device;
        let Some(mapping) = physical.mappings.remove(&address) else {
            return;
        };
        if named {
            for (gpu, access) in mapping.access {
                if access != MemoryAccess::None {
                    let none = MemoryAccess::None;
                    self.device.grant(gpu, address, bytes, backing, none);
                }
            }
            self.device.name(address, bytes, None);
        } else if mapping.most() != MemoryAccess::None {
            let none = MemoryAccess::None;
            self.device.set_access(home, address, bytes, none);
        }
        self.memory.remove_mapped(address);
    }

    /// Frees physical memory that nobody has any more.
    pub(super) fn drop_unused(&mut self, handle: PhysicalHandle) {
        let physicals = &self.virtual_memory.physicals;
        let used =
            |physical: &Physical| !(physical.holders.is_empty() && physical.mappings.is_empty());
        if physicals.get(&handle).is_none_or(used) || self.virtual_memory.is_bound(handle) {
            return;
        }
        let physicals = &mut self.virtual_memory.physicals;
        if let Some(physical) = physicals.remove(&handle) {
            self.device.unmap(physical.home, physical.bytes);
            // The addresses of its own were only set aside.
            let _ = self.memory.free(physical.backing);
        }
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

    pub(super) fn physical(&mut self, handle: PhysicalHandle) -> CallResult<&mut Physical> {
        self.virtual_memory
            .physicals
            .get_mut(&handle)
            .ok_or_else(|| failure(CuResult::INVALID_HANDLE, format!("there is no {handle}")))
    }
}
