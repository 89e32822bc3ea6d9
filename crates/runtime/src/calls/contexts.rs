//! Contexts, their limits and peers.

use crate::context::{Context, LIMITS, PERSISTING_LIMIT, default_limits};
use crate::device::Device;
use crate::{CallResult, Client, Runtime, fail, failure};
use lockstep_protocol::{ContextHandle, CuResult, Reply};
use std::collections::BTreeMap;
use std::sync::Arc;

/// `CUctx_flags` that a context may be created with.
const KNOWN_FLAGS: u32 = 0xff;
/// Allocations that are remembered when contexts end without freeing them.
const MOST_LEAKS: usize = 10_000;
/// `CU_LIMIT_MALLOC_HEAP_SIZE`.
const HEAP_LIMIT: u32 = 2;

impl<D: Device> Runtime<D> {
    pub(super) fn primary_retain(&mut self, client: Client, device: u32) -> CallResult<Reply> {
        self.check_device(device)?;
        if let Some(handle) = self.primary(client.process, device) {
            let context = self.context_mut(handle)?;
            context.retained = context.retained.map(|count| count + 1);
            return Ok(Reply::Context(handle));
        }
        Ok(Reply::Context(self.new_context(client, device, Some(1))))
    }

    pub(super) fn primary_release(&mut self, client: Client, device: u32) -> CallResult<Reply> {
        self.check_device(device)?;
        let Some(handle) = self.primary(client.process, device) else {
            return fail(
                CuResult::INVALID_CONTEXT,
                "the primary context is not retained",
            );
        };
        let context = self.context_mut(handle)?;
        let count = context.retained.unwrap_or(1) - 1;
        context.retained = Some(count);
        if count == 0 {
            self.destroy_context(handle);
        }
        Ok(Reply::Done)
    }

    pub(super) fn primary_reset(&mut self, client: Client, device: u32) -> CallResult<Reply> {
        self.check_device(device)?;
        if let Some(handle) = self.primary(client.process, device) {
            self.destroy_context(handle);
        }
        Ok(Reply::Done)
    }

    pub(super) fn context_create(
        &mut self,
        client: Client,
        device: u32,
        flags: u32,
    ) -> CallResult<Reply> {
        self.check_device(device)?;
        if flags & !KNOWN_FLAGS != 0 {
            return fail(CuResult::INVALID_VALUE, format!("context flags {flags:#x}"));
        }
        Ok(Reply::Context(self.new_context(client, device, None)))
    }

    pub(super) fn context_destroy(&mut self, handle: ContextHandle) -> CallResult<Reply> {
        if self.context(handle)?.retained.is_some() {
            return fail(
                CuResult::INVALID_CONTEXT,
                "a primary context is released, not destroyed",
            );
        }
        self.destroy_context(handle);
        Ok(Reply::Done)
    }

    pub(super) fn context_synchronize(&mut self, handle: ContextHandle) -> CallResult<Reply> {
        self.context(handle)?;
        for (key, _) in self.streams_of(handle) {
            let end = self.timeline.end(key);
            self.wait(key, end)?;
        }
        self.spend(self.config.host.synchronize);
        Ok(Reply::Done)
    }

    pub(super) fn limit_get(&mut self, handle: ContextHandle, limit: u32) -> CallResult<Reply> {
        let value = self.context(handle)?.limits.get(&limit).copied();
        value
            .map(Reply::Value)
            .ok_or_else(|| failure(CuResult::UNSUPPORTED_LIMIT, format!("limit {limit}")))
    }

    pub(super) fn limit_set(
        &mut self,
        handle: ContextHandle,
        limit: u32,
        value: u64,
    ) -> CallResult<Reply> {
        let Some(mut known) = LIMITS.iter().find(|known| known.number == limit).copied() else {
            return fail(CuResult::UNSUPPORTED_LIMIT, format!("limit {limit}"));
        };
        if limit == PERSISTING_LIMIT {
            // Ways of L2 are set aside, ten of sixteen at the most.
            known.unit = (self.gpu_of(handle).l2.capacity.0 / 16).max(1);
            known.most = known.unit * 10;
        }
        if known.strict && value > known.most {
            let most = known.most;
            return fail(
                CuResult::INVALID_VALUE,
                format!("limit {limit} = {value}, but it must be at most {most}"),
            );
        }
        let value = value
            .clamp(known.least, known.most)
            .next_multiple_of(known.unit);
        self.context_mut(handle)?.limits.insert(limit, value);
        if limit == HEAP_LIMIT {
            let gpu = self.context(handle)?.device;
            self.device.set_heap(gpu, value);
        }
        Ok(Reply::Done)
    }

    pub(super) fn peer_enable(
        &mut self,
        handle: ContextHandle,
        peer: ContextHandle,
    ) -> CallResult<Reply> {
        if self.context(handle)?.device == self.context(peer)?.device {
            return fail(CuResult::INVALID_DEVICE, "a device is not its own peer");
        }
        let (own, other) = (self.context(handle)?.device, self.context(peer)?.device);
        if !self.device.neighbours(own).contains(&other) {
            return fail(
                CuResult::PEER_ACCESS_UNSUPPORTED,
                format!(
                    "{} and {} are on different nodes",
                    self.gpu_name(own),
                    self.gpu_name(other)
                ),
            );
        }
        let peers = &mut self.context_mut(handle)?.peers;
        if peers.contains(&peer) {
            return fail(CuResult::PEER_ACCESS_ALREADY_ENABLED, "");
        }
        peers.push(peer);
        self.set_peer_access(handle, peer, true)
    }

    pub(super) fn peer_disable(
        &mut self,
        handle: ContextHandle,
        peer: ContextHandle,
    ) -> CallResult<Reply> {
        let peers = &mut self.context_mut(handle)?.peers;
        let Some(place) = peers.iter().position(|known| *known == peer) else {
            return fail(CuResult::PEER_ACCESS_NOT_ENABLED, "");
        };
        peers.remove(place);
        let (own, other) = (self.context(handle)?.device, self.context(peer)?.device);
        let mut left = self.contexts.values().filter(|known| known.device == own);
        let still = left.any(|known| {
            let mut devices = known
                .peers
                .iter()
                .filter_map(|peer| self.contexts.get(peer));
            devices.any(|peer| peer.device == other)
        });
        match still {
            true => Ok(Reply::Done),
            false => self.set_peer_access(handle, peer, false),
        }
    }

    /// Memory is mapped for a whole GPU, so a context gives leave for all that share it.
    fn set_peer_access(
        &mut self,
        handle: ContextHandle,
        peer: ContextHandle,
        allowed: bool,
    ) -> CallResult<Reply> {
        let (gpu, peer) = (self.context(handle)?.device, self.context(peer)?.device);
        self.device.set_peer_access(gpu, peer, allowed);
        Ok(Reply::Done)
    }

    /// Destroys a context with all that lives in it, once its work is done.
    pub(crate) fn destroy_context(&mut self, handle: ContextHandle) {
        // A fault or a stop on the way ends the work just as well.
        let _ = self.context_synchronize(handle);
        for (key, _) in self.streams_of(handle) {
            self.timeline.remove(key);
        }
        self.streams.retain(|_, stream| stream.context != handle);
        self.events.retain(|_, event| event.context != handle);
        self.graphs.retain(|_, graph| graph.context != handle);
        self.graph_runs.retain(|_, run| run.context != handle);
        self.functions
            .retain(|_, function| function.context != handle);
        let left = self.left_in(handle);
        self.leaks
            .extend(left.into_iter().take(MOST_LEAKS - self.leaks.len()));
        self.modules.retain(|_, module| module.context != handle);
        self.drop_physicals_of(handle);
        for base in self.memory.owned_by(handle) {
            if let Ok(allocation) = self.memory.free(base) {
                self.vacate(&allocation);
            }
        }
        self.contexts.remove(&handle);
    }

    pub(super) fn context(&self, handle: ContextHandle) -> CallResult<&Context> {
        self.contexts
            .get(&handle)
            .ok_or_else(|| failure(CuResult::INVALID_CONTEXT, format!("there is no {handle}")))
    }

    pub(super) fn context_mut(&mut self, handle: ContextHandle) -> CallResult<&mut Context> {
        self.contexts
            .get_mut(&handle)
            .ok_or_else(|| failure(CuResult::INVALID_CONTEXT, format!("there is no {handle}")))
    }

    fn primary(&self, process: u32, device: u32) -> Option<ContextHandle> {
        self.contexts
            .iter()
            .find(|(_, context)| {
                context.process == process && context.device == device && context.retained.is_some()
            })
            .map(|(handle, _)| *handle)
    }

    fn new_context(&mut self, client: Client, device: u32, retained: Option<u32>) -> ContextHandle {
        let handle = ContextHandle(self.fresh());
        let legacy = self.fresh();
        self.device.open(device);
        self.timeline.create(legacy, device);
        self.contexts.insert(
            handle,
            Context {
                device,
                process: client.process,
                retained,
                sticky: None,
                legacy,
                per_thread: BTreeMap::new(),
                limits: default_limits(self.gpu(device).device.sms),
                peers: Vec::new(),
                textures: Arc::default(),
            },
        );
        handle
    }
}
