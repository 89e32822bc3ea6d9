//! Allocating, freeing and asking about memory.

use crate::device::Device;
use crate::timeline::{Effect, Work};
use crate::{CallResult, Client, Runtime, fail};
use lockstep_protocol::layout::region_of;
use lockstep_protocol::{
    ContextHandle, CuResult, DeviceState, PointerKind, ProcessOnDevice, Reply, StreamName,
};
use std::collections::BTreeMap;

/// Portable, mapped, write-combined.
const KNOWN_HOST_FLAGS: u32 = 7;
/// Global, host, single.
const KNOWN_ATTACH_FLAGS: u32 = 7;

impl<D: Device> Runtime<D> {
    pub(super) fn allocate(&mut self, context: ContextHandle, bytes: u64) -> CallResult<Reply> {
        self.allocate_kind(PointerKind::Device, context, bytes, 0)
    }

    pub(super) fn allocate_host(
        &mut self,
        context: ContextHandle,
        bytes: u64,
        flags: u32,
    ) -> CallResult<Reply> {
        if flags & !KNOWN_HOST_FLAGS != 0 {
            return fail(
                CuResult::INVALID_VALUE,
                format!("host allocation flags {flags:#x}"),
            );
        }
        self.allocate_kind(PointerKind::Host, context, bytes, flags)
    }

    /// Lets addresses of the program name pinned memory.
    pub(super) fn register_host(
        &mut self,
        context: ContextHandle,
        address: u64,
        bytes: u64,
        place: u64,
    ) -> CallResult<Reply> {
        let gpu = self.context(context)?.device;
        let kind = self.memory.covering(place, bytes)?.info.kind;
        let end = address.checked_add(bytes);
        if kind != PointerKind::Host || bytes == 0 || end.is_none() {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{bytes} bytes at {address:#x} cannot be registered as {place:#x}"),
            );
        }
        if region_of(address).is_some() || !self.device.alias(gpu, address, bytes, place) {
            return fail(
                CuResult::NOT_SUPPORTED,
                format!("another process has registered memory at {address:#x}"),
            );
        }
        Ok(Reply::Done)
    }

    pub(super) fn allocate_managed(
        &mut self,
        context: ContextHandle,
        bytes: u64,
        flags: u32,
    ) -> CallResult<Reply> {
        if flags == 0 || flags & !KNOWN_ATTACH_FLAGS != 0 {
            return fail(
                CuResult::INVALID_VALUE,
                format!("managed allocation flags {flags:#x}"),
            );
        }
        self.allocate_kind(PointerKind::Managed, context, bytes, flags)
    }

    pub(super) fn free(&mut self, context: ContextHandle, address: u64) -> CallResult<Reply> {
        if address == 0 {
            return Ok(Reply::Done);
        }
        if self
            .memory
            .find(address)
            .is_none_or(|allocation| allocation.info.base != address || allocation.mapped)
        {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{address:#x} is not the start of an allocation"),
            );
        }
        // As CUDA does: freeing waits for work that may still use the memory.
        self.context_synchronize(context)?;
        self.spend(self.config.host.allocate);
        let allocation = self.memory.free(address)?;
        self.vacate(&allocation);
        Ok(Reply::Done)
    }

    pub(super) fn free_async(
        &mut self,
        client: Client,
        context: ContextHandle,
        stream: StreamName,
        address: u64,
    ) -> CallResult<Reply> {
        if self
            .memory
            .find(address)
            .is_none_or(|allocation| allocation.info.base != address || allocation.mapped)
        {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{address:#x} is not the start of an allocation"),
            );
        }
        let key = self.stream_key(client, context, stream)?;
        self.enqueue(context, key, Work::Instant(Effect::Free { address }));
        Ok(Reply::Done)
    }

    pub(super) fn memory_info(&mut self, context: ContextHandle) -> CallResult<Reply> {
        let device = self.context(context)?.device;
        let (free, total) = self.memory.info(device);
        Ok(Reply::Memory { free, total })
    }

    /// How a device is used now; processes by the numbers of their clients.
    ///
    /// # Errors
    /// There is no such device.
    pub fn device_state(&self, device: u32) -> CallResult<DeviceState> {
        self.check_device(device)?;
        let (free, total) = self.memory.info(device);
        let mut processes: BTreeMap<u32, u64> = BTreeMap::new();
        for (handle, context) in &self.contexts {
            if context.device == device {
                *processes.entry(context.process).or_default() += self.memory.taken_by(*handle);
            }
        }
        Ok(DeviceState {
            total,
            free,
            reserved: self.memory.reserved(device),
            processes: processes
                .into_iter()
                .map(|(process, bytes)| ProcessOnDevice { process, bytes })
                .collect(),
        })
    }

    /// Allocates memory of any kind that a kernel may touch from now on.
    pub(super) fn allocate_kind(
        &mut self,
        kind: PointerKind,
        context: ContextHandle,
        bytes: u64,
        flags: u32,
    ) -> CallResult<Reply> {
        let device = self.context(context)?.device;
        if kind == PointerKind::Managed
            && let Some(sentence) = self.device.refuses_managed()
        {
            self.warn(sentence.into());
            return fail(CuResult::NOT_SUPPORTED, sentence);
        }
        self.spend(self.config.host.allocate);
        let allocation = self.memory.allocate(kind, context, device, bytes, flags)?;
        self.device.map(device, allocation.info.base, bytes);
        if kind == PointerKind::Managed {
            self.device.managed_map(allocation.info.base, bytes);
            if self.is_unseen(self.context(context)?.process) {
                self.device.managed_populated(allocation.info.base, bytes);
            }
        }
        Ok(Reply::Address(allocation.info.base))
    }
}
