//! Calls about multicast objects. `multicast.rs` beside `calls` says what they are.

use crate::attributes::supports_multicast;
use crate::device::Device;
use crate::multicast::{Binding, Multicast, MulticastAddress};
use crate::virtual_memory::GRANULARITY;
use crate::{CallResult, Client, Runtime, fail, failure};
use lockstep_protocol::{
    ContextHandle, CuResult, MemoryAccess, MulticastMemory, PhysicalHandle, Reply,
};
use std::collections::{BTreeMap, BTreeSet};

impl<D: Device> Runtime<D> {
    pub(super) fn multicast_create(
        &mut self,
        context: ContextHandle,
        devices: u32,
        bytes: u64,
        shared: bool,
    ) -> CallResult<Reply> {
        let device = self.context(context)?.device;
        self.check_multicast(device)?;
        let gpus = self.device.neighbours(device).len() as u32;
        if devices == 0 || devices > gpus || bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
            return fail(
                CuResult::INVALID_VALUE,
                format!(
                    "a multicast object of {devices} GPUs, of {gpus}, and {bytes} bytes, in units of {GRANULARITY}"
                ),
            );
        }
        self.spend(self.config.host.allocate);
        let handle = PhysicalHandle(self.fresh());
        let multicast = Multicast {
            wanted: devices,
            bytes,
            shared,
            devices: BTreeSet::new(),
            bound: BTreeMap::new(),
            holders: BTreeSet::from([context]),
            mappings: BTreeMap::new(),
        };
        self.virtual_memory.multicasts.insert(handle, multicast);
        Ok(Reply::Physical(handle))
    }

    /// Refuses GPUs that no multicast object can have.
    fn check_multicast(&self, device: u32) -> CallResult<()> {
        let links = self.timeline.links();
        if links.is_some_and(|topology| supports_multicast(self.gpu(device), topology, device)) {
            return Ok(());
        }
        fail(
            CuResult::NOT_SUPPORTED,
            format!(
                "GPU {device} has no multicast: that takes compute capability 9.0 and several GPUs whose NVLinks go to a switch"
            ),
        )
    }

    pub(super) fn multicast_add_device(
        &mut self,
        handle: PhysicalHandle,
        device: u32,
    ) -> CallResult<Reply> {
        self.check_device(device)?;
        self.check_multicast(device)?;
        let neighbours = self.device.neighbours(device);
        let multicast = self.multicast(handle)?;
        if multicast
            .devices
            .iter()
            .any(|other| !neighbours.contains(other))
        {
            return fail(
                CuResult::INVALID_DEVICE,
                format!("GPU {device} is on another node than the others of the multicast object"),
            );
        }
        if multicast.is_complete() || !multicast.devices.insert(device) {
            return fail(
                CuResult::INVALID_VALUE,
                format!(
                    "GPU {device} cannot be added: the multicast object of {} GPUs has {:?}",
                    multicast.wanted, multicast.devices
                ),
            );
        }
        Ok(Reply::Done)
    }

    /// Binds memory of a GPU. A driver waits here until all GPUs were added; nobody is waited for in the simulator.
    pub(super) fn multicast_bind(
        &mut self,
        handle: PhysicalHandle,
        device: Option<u32>,
        offset: u64,
        memory: MulticastMemory,
        bytes: u64,
    ) -> CallResult<Reply> {
        let (memory, memory_offset) = self.memory_to_bind(memory)?;
        let multicast = self.multicast(handle)?;
        let (size, shared) = (multicast.bytes, multicast.shared);
        let is_complete = multicast.is_complete();
        if !is_complete {
            return fail(
                CuResult::ILLEGAL_STATE,
                format!(
                    "memory is bound to a multicast object that has {} of {} GPUs: a driver would wait for the others",
                    multicast.devices.len(),
                    multicast.wanted
                ),
            );
        }
        let physical = self.virtual_memory.physicals.get(&memory);
        let Some(physical) = physical else {
            return fail(CuResult::INVALID_VALUE, format!("there is no {memory}"));
        };
        let (gpu, length, is_shared) = (physical.device, physical.bytes, physical.shared);
        let holder = physical.holders.first().copied();
        let holder = holder.or_else(|| Some(physical.mappings.values().next()?.context));
        let unaligned = [offset, memory_offset, bytes]
            .iter()
            .any(|value| !value.is_multiple_of(GRANULARITY));
        let fits = |start: u64, all: u64| bytes > 0 && start <= all && bytes <= all - start;
        if unaligned || !fits(offset, size) || !fits(memory_offset, length) {
            return fail(
                CuResult::INVALID_VALUE,
                format!(
                    "{bytes} bytes at {memory_offset} of {length} cannot be bound at {offset} of {size}, in units of {GRANULARITY}"
                ),
            );
        }
        if shared && !is_shared {
            return fail(
                CuResult::INVALID_VALUE,
                "memory that cannot be shared is bound to a multicast object that can",
            );
        }
        let multicast = self.multicast(handle)?;
        if device.is_some_and(|device| device != gpu) || !multicast.devices.contains(&gpu) {
            return fail(
                CuResult::INVALID_DEVICE,
                format!(
                    "memory of GPU {gpu} is bound to a multicast object of the GPUs {:?}",
                    multicast.devices
                ),
            );
        }
        if multicast.is_bound(gpu, offset, bytes) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("GPU {gpu} has bound memory there already"),
            );
        }
        let Some(context) = holder else {
            return fail(CuResult::INVALID_VALUE, format!("{memory} was released"));
        };
        self.keep_at_own_address(memory)?;
        self.spend(self.config.host.allocate);
        let home = self.physical(memory)?.backing;
        let place = home + memory_offset;
        let binding = Binding {
            context,
            memory,
            place,
            bytes,
        };
        let multicast = self.multicast(handle)?;
        multicast.bound.insert((gpu, offset), binding);
        self.tell_of_multicast(handle);
        Ok(Reply::Address(home))
    }

    /// The memory that a program names, and the first byte of it.
    fn memory_to_bind(&self, memory: MulticastMemory) -> CallResult<(PhysicalHandle, u64)> {
        match memory {
            MulticastMemory::Handle(handle, offset) => Ok((handle, offset)),
            MulticastMemory::Address(address) => {
                let found = self.virtual_memory.mapped(address, 1);
                let found = found
                    .first()
                    .map(|(handle, start, _)| (*handle, address - start));
                found.ok_or_else(|| {
                    let words = format!("no memory of cuMemCreate is mapped at {address:#x}");
                    failure(CuResult::INVALID_VALUE, words)
                })
            }
        }
    }

    pub(super) fn multicast_unbind(
        &mut self,
        handle: PhysicalHandle,
        device: u32,
        offset: u64,
        bytes: u64,
    ) -> CallResult<Reply> {
        self.check_device(device)?;
        let multicast = self.multicast(handle)?;
        if !multicast.devices.contains(&device) {
            return fail(
                CuResult::INVALID_DEVICE,
                format!("GPU {device} is none of the multicast object"),
            );
        }
        let known = multicast.bound.get(&(device, offset));
        if known.is_none_or(|binding| binding.bytes != bytes) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("GPU {device} did not bind {bytes} bytes at {offset}"),
            );
        }
        // Work that may still use the memory comes first.
        self.wait_for_multicast(handle)?;
        self.unbind(handle, device, offset);
        Ok(Reply::Done)
    }

    /// Takes memory away from an object; it goes if nobody else has it.
    fn unbind(&mut self, handle: PhysicalHandle, device: u32, offset: u64) {
        let Ok(multicast) = self.multicast(handle) else {
            return;
        };
        let Some(binding) = multicast.bound.remove(&(device, offset)) else {
            return;
        };
        self.tell_of_multicast(handle);
        self.drop_unused(binding.memory);
    }

    /// Waits for the work of those who have an object mapped.
    fn wait_for_multicast(&mut self, handle: PhysicalHandle) -> CallResult<()> {
        let mappings = self.multicast(handle)?.mappings.values();
        let users: BTreeSet<ContextHandle> = mappings.map(|mapping| mapping.context).collect();
        for context in users {
            self.context_synchronize(context)?;
        }
        Ok(())
    }

    pub(super) fn multicast_open(
        &mut self,
        client: Client,
        context: ContextHandle,
        handle: PhysicalHandle,
    ) -> CallResult<Reply> {
        let multicast = self.multicast(handle)?;
        let users = multicast.mappings.values().map(|mapping| mapping.context);
        let bound = multicast.bound.values().map(|binding| binding.context);
        let held = multicast.holders.iter().copied();
        let users: Vec<ContextHandle> = users.chain(bound).chain(held).collect();
        multicast.holders.insert(context);
        self.note_sharing(client, &users);
        Ok(Reply::Done)
    }

    pub(super) fn multicast_release(
        &mut self,
        context: ContextHandle,
        handle: PhysicalHandle,
    ) -> CallResult<Reply> {
        if !self.multicast(handle)?.holders.remove(&context) {
            return fail(CuResult::INVALID_HANDLE, format!("{handle} was released"));
        }
        self.drop_unused_multicast(handle);
        Ok(Reply::Done)
    }

    pub(super) fn multicast_map(
        &mut self,
        context: ContextHandle,
        address: u64,
        bytes: u64,
        handle: PhysicalHandle,
    ) -> CallResult<Reply> {
        let device = self.context(context)?.device;
        let multicast = self.multicast(handle)?;
        if !multicast.holders.contains(&context) {
            return fail(CuResult::INVALID_VALUE, format!("{handle} was released"));
        }
        if !multicast.is_complete() {
            return fail(
                CuResult::ILLEGAL_STATE,
                format!(
                    "a multicast object is mapped that has {} of {} GPUs: a driver would wait for the others",
                    multicast.devices.len(),
                    multicast.wanted
                ),
            );
        }
        let size = multicast.bytes;
        let aligned = address.is_multiple_of(GRANULARITY) && bytes.is_multiple_of(GRANULARITY);
        if bytes == 0 || bytes > size || !aligned {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{bytes} bytes at {address:#x} of a multicast object of {size} bytes"),
            );
        }
        self.check_reserved(address, bytes)?;
        self.make_room(address, bytes)?;
        self.spend(self.config.host.allocate);
        let mapping = MulticastAddress {
            context,
            bytes,
            access: BTreeMap::new(),
        };
        self.multicast(handle)?.mappings.insert(address, mapping);
        self.memory.insert_mapped(context, device, address, bytes);
        Ok(Reply::Address(address))
    }

    /// Says what kernels of a GPU may do at an address of an object.
    pub(super) fn multicast_grant(
        &mut self,
        handle: PhysicalHandle,
        address: u64,
        gpu: u32,
        access: MemoryAccess,
    ) -> CallResult<()> {
        let multicast = self.multicast(handle)?;
        if access != MemoryAccess::None && !multicast.devices.contains(&gpu) {
            return fail(
                CuResult::INVALID_DEVICE,
                format!("GPU {gpu} is none of the multicast object at {address:#x}"),
            );
        }
        if let Some(mapping) = multicast.mappings.get_mut(&address) {
            mapping.access.insert(gpu, access);
        }
        self.tell_of_multicast(handle);
        Ok(())
    }

    /// Takes an object away from an address, behind the work that may use it.
    pub(super) fn multicast_unmap(&mut self, handle: PhysicalHandle, address: u64) {
        let Ok(multicast) = self.multicast(handle) else {
            return;
        };
        let Some(mapping) = multicast.mappings.remove(&address) else {
            return;
        };
        for (gpu, access) in mapping.access {
            if access != MemoryAccess::None {
                self.device.set_multicast(gpu, address, None);
            }
        }
        self.memory.remove_mapped(address);
        self.drop_unused_multicast(handle);
    }

    /// Gives up what a context has of all objects: handles, addresses, and memory that it bound.
    pub(super) fn drop_multicasts_of(&mut self, context: ContextHandle) {
        let all: Vec<PhysicalHandle> = self.virtual_memory.multicasts.keys().copied().collect();
        for handle in all {
            let Ok(multicast) = self.multicast(handle) else {
                continue;
            };
            multicast.holders.remove(&context);
            let own = multicast.bound.iter();
            let own = own.filter(|(_, binding)| binding.context == context);
            let bound: Vec<(u32, u64)> = own.map(|(place, _)| *place).collect();
            let own = multicast.mappings.iter();
            let own = own.filter(|(_, mapping)| mapping.context == context);
            let mapped: Vec<u64> = own.map(|(address, _)| *address).collect();
            for (device, offset) in bound {
                self.unbind(handle, device, offset);
            }
            for address in mapped {
                self.multicast_unmap(handle, address);
            }
            self.drop_unused_multicast(handle);
        }
    }

    /// Forgets an object that nobody has any more.
    fn drop_unused_multicast(&mut self, handle: PhysicalHandle) {
        let multicasts = &mut self.virtual_memory.multicasts;
        let unused =
            |multicast: &Multicast| multicast.holders.is_empty() && multicast.mappings.is_empty();
        if !multicasts.get(&handle).is_some_and(unused) {
            return;
        }
        if let Some(multicast) = multicasts.remove(&handle) {
            for binding in multicast.bound.into_values() {
                self.drop_unused(binding.memory);
            }
        }
    }

    /// Tells every GPU that may use an object what it is.
    fn tell_of_multicast(&mut self, handle: PhysicalHandle) {
        let Some(multicast) = self.virtual_memory.multicasts.get(&handle) else {
            return;
        };
        for (address, mapping) in &multicast.mappings {
            for (gpu, access) in &mapping.access {
                let view =
                    (*access != MemoryAccess::None).then(|| multicast.view(mapping, *access));
                self.device.set_multicast(*gpu, *address, view);
            }
        }
    }

    fn multicast(&mut self, handle: PhysicalHandle) -> CallResult<&mut Multicast> {
        self.virtual_memory
            .multicasts
            .get_mut(&handle)
            .ok_or_else(|| {
                let words = format!("{handle} is no multicast object");
                failure(CuResult::INVALID_VALUE, words)
            })
    }
}
