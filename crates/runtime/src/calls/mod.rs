//! Every request and its meaning, a chapter a file.

mod annotations;
mod contexts;
mod copies;
mod events;
mod graphs;
mod launches;
mod managed;
mod memory;
mod modules;
mod multicast;
mod polls;
mod sharing;
mod streams;
mod textures;
mod virtual_memory;
mod waits;

pub use annotations::{Annotations, Within};
pub use graphs::{Graph, GraphRun};
pub use managed::HostViews;
pub(crate) use polls::Polls;
pub(crate) use sharing::Sharing;

use crate::device::Device;
use crate::{CallResult, Client, Runtime, fail};
use lockstep_protocol::{ContextHandle, CuResult, ProgramStep, Reply, Request};

impl<D: Device> Runtime<D> {
    // A request a line: the list is read as a table.
    #[rustfmt::skip]
    pub(crate) fn answer(&mut self, client: Client, request: &Request) -> CallResult<Reply> {
        use Request as R;
        if !request.is_of_library() {
            self.spend(self.config.host.call);
        }
        match request {
            R::PrimaryContextRetain { device } => self.primary_retain(client, *device),
            R::PrimaryContextRelease { device } => self.primary_release(client, *device),
            R::PrimaryContextReset { device } => self.primary_reset(client, *device),
            R::ContextCreate { device, flags } => self.context_create(client, *device, *flags),
            R::ContextDestroy { context } => self.context_destroy(*context),
            R::ContextSynchronize { context } => self.context_synchronize(*context),
            R::LimitGet { context, limit } => self.limit_get(*context, *limit),
            R::LimitSet { context, limit, value } => self.limit_set(*context, *limit, *value),
            R::PeerAccessEnable { context, peer } => self.peer_enable(*context, *peer),
            R::PeerAccessDisable { context, peer } => self.peer_disable(*context, *peer),
            R::ModuleLoad { context, images } => self.module_load(*context, images),
            R::ModuleUnload { module } => self.module_unload(*module),
            R::ModuleFunction { module, name } => self.module_function(*module, name),
            R::ModuleFunctionNames { module } => self.module_function_names(*module),
            R::ModuleGlobal { module, name } => self.module_global(*module, name),
            R::ModuleTexture { module, name } => self.module_texture(*module, name),
            R::FunctionSetAttribute { function, attribute, value } =>
                self.function_set_attribute(*function, *attribute, *value),
            R::FunctionCachePreference { function, preference } =>
                self.function_cache_preference(*function, *preference),
            R::OccupancyBlocks { function, block_threads, dynamic_shared, .. } =>
                self.occupancy_blocks(*function, *block_threads, *dynamic_shared),
            R::OccupancyClusters { launch } => self.occupancy_clusters(launch),
            R::Allocate { context, bytes } | R::AllocateAsync { context, bytes, .. } =>
                self.allocate(*context, *bytes),
            R::AllocateHost { context, bytes, flags } => self.allocate_host(*context, *bytes, *flags),
            R::RegisterHost { context, address, bytes, place } =>
                self.register_host(*context, *address, *bytes, *place),
            R::AllocateManaged { context, bytes, flags } => self.allocate_managed(*context, *bytes, *flags),
            R::Free { context, address } => self.free(*context, *address),
            R::FreeAsync { context, stream, address } => self.free_async(client, *context, *stream, *address),
            R::MemoryInfo { context } => self.memory_info(*context),
            R::DeviceState { device, .. } => self.device_state(*device).map(Reply::DeviceState),
            R::PointerInfo { address } => self.pointer_info(client, *address),
            R::Prefetch { context, stream, address, bytes, location } =>
                self.prefetch(client, *context, *stream, *address, *bytes, *location),
            R::Advise { address, bytes, advice, location } => self.advise(*address, *bytes, *advice, *location),
            R::HostAccess { address, write } => self.host_access(client, *address, *write),
            R::HostAccessMeans { means } => self.host_access_means(client, *means),
            R::ThreadBegins => Ok(Reply::Done),
            R::HostVisible => Ok(Reply::Pages(self.host_visible())),
            R::HostPoll { address, polls } => self.host_poll(client, *address, *polls),
            R::Copy(copy) => self.copy(client, copy),
            R::Fill(fill) => self.fill(client, fill),
            R::Launch(launch) => self.launch(client, launch),
            R::HostFunction { context, stream } => self.host_function(client, *context, *stream),
            R::Value { context, stream, work } => self.value(client, *context, *stream, *work),
            R::GraphCreate { context, nodes } => self.graph_create(*context, nodes),
            R::GraphDestroy { graph } => self.graph_destroy(*graph),
            R::GraphLaunch { context, stream, graph } => self.graph_launch(client, *context, *stream, *graph),
            R::GraphContinue { launch, node, .. } =>
                self.graph_continue(ProgramStep { launch: *launch, node: *node }),
            R::AddressReserve { context, bytes, alignment } =>
                self.address_reserve(*context, *bytes, *alignment),
            R::AddressFree { address, bytes } => self.address_free(*address, *bytes),
            R::PhysicalCreate { context, device, bytes, shared } => self.physical_create(*context, *device, *bytes, *shared),
            R::PhysicalOpen { context, physical } => self.physical_open(client, *context, *physical),
            R::PhysicalRelease { context, physical } => self.physical_release(*context, *physical),
            R::PhysicalMap { context, address, bytes, physical } => {
                self.physical_map(*context, *address, *bytes, *physical)
            }
            R::PhysicalUnmap { address, bytes } => self.physical_unmap(*address, *bytes),
            R::MulticastCreate { context, devices, bytes, shared } =>
                self.multicast_create(*context, *devices, *bytes, *shared),
            R::MulticastAddDevice { multicast, device } => self.multicast_add_device(*multicast, *device),
            R::MulticastBind { multicast, device, offset, memory, bytes } =>
                self.multicast_bind(*multicast, *device, *offset, *memory, *bytes),
            R::MulticastUnbind { multicast, device, offset, bytes } =>
                self.multicast_unbind(*multicast, *device, *offset, *bytes),
            R::TextureCreate(context, object) => self.texture_create(*context, object),
            R::TextureDestroy(context, handle) => self.texture_destroy(*context, *handle),
            R::TextureBind(context, handle, object) => self.texture_bind(*context, *handle, object.as_deref()),
            R::AccessSet { device, address, bytes, access } => self.access_set(*device, *address, *bytes, *access),
            R::StreamCreate { context, flags, priority } => self.stream_create(*context, *flags, *priority),
            R::StreamPriority { stream, priority } => self.stream_priority(*stream, *priority),
            R::StreamDestroy { stream } => self.stream_destroy(*stream),
            R::StreamSynchronize { context, stream } => self.stream_synchronize(client, *context, *stream),
            R::StreamQuery { context, stream } => self.stream_query(client, *context, *stream),
            R::StreamWaitEvent { context, stream, event } =>
                self.stream_wait_event(client, *context, *stream, *event),
            R::EventCreate { context, flags } => self.event_create(*context, *flags),
            R::EventDestroy { event } => self.event_destroy(*event),
            R::EventRecord { context, stream, event } => self.event_record(client, *context, *stream, *event),
            R::EventSynchronize { event } => self.event_synchronize(*event),
            R::EventQuery { event } => self.event_query(*event),
            R::EventElapsed { start, end } => self.event_elapsed(*start, *end),
            R::Profiler { start } => self.profiler(client, *start),
            R::Range(step) => self.range(client, step),
            R::Unsupported { name, manner } => { self.note_unsupported(name, *manner); Ok(Reply::Done) }
        }
    }

    /// The context that a request is about, whose sticky error would be its answer.
    pub(crate) fn context_of(&self, request: &Request) -> Option<ContextHandle> {
        use Request as R;
        match request {
            R::ContextDestroy { context }
            | R::ContextSynchronize { context }
            | R::LimitGet { context, .. }
            | R::LimitSet { context, .. }
            | R::PeerAccessEnable { context, .. }
            | R::PeerAccessDisable { context, .. }
            | R::ModuleLoad { context, .. }
            | R::Allocate { context, .. }
            | R::AllocateAsync { context, .. }
            | R::AllocateHost { context, .. }
            | R::RegisterHost { context, .. }
            | R::AllocateManaged { context, .. }
            | R::Free { context, .. }
            | R::FreeAsync { context, .. }
            | R::MemoryInfo { context }
            | R::Prefetch { context, .. }
            | R::HostFunction { context, .. }
            | R::Value { context, .. }
            | R::GraphCreate { context, .. }
            | R::GraphLaunch { context, .. }
            | R::GraphContinue { context, .. }
            | R::AddressReserve { context, .. }
            | R::PhysicalCreate { context, .. }
            | R::PhysicalOpen { context, .. }
            | R::MulticastCreate { context, .. }
            | R::StreamCreate { context, .. }
            | R::TextureCreate(context, _)
            | R::TextureDestroy(context, _)
            | R::TextureBind(context, ..)
            | R::StreamSynchronize { context, .. }
            | R::StreamQuery { context, .. }
            | R::StreamWaitEvent { context, .. }
            | R::EventCreate { context, .. }
            | R::EventRecord { context, .. } => Some(*context),
            R::Copy(copy) => Some(copy.context),
            R::Fill(fill) => Some(fill.context),
            R::Launch(launch) => Some(launch.context),
            R::OccupancyClusters { launch } => Some(launch.context),
            R::ModuleUnload { module }
            | R::ModuleFunction { module, .. }
            | R::ModuleFunctionNames { module }
            | R::ModuleTexture { module, .. }
            | R::ModuleGlobal { module, .. } => {
                self.modules.get(module).map(|module| module.context)
            }
            R::FunctionSetAttribute { function, .. }
            | R::FunctionCachePreference { function, .. }
            | R::OccupancyBlocks { function, .. } => self
                .functions
                .get(function)
                .map(|function| function.context),
            R::StreamPriority { stream, .. } | R::StreamDestroy { stream } => {
                self.streams.get(stream).map(|stream| stream.context)
            }
            R::EventDestroy { event } | R::EventSynchronize { event } | R::EventQuery { event } => {
                self.events.get(event).map(|event| event.context)
            }
            R::GraphDestroy { graph } => self.graphs.get(graph).map(|graph| graph.context),
            R::EventElapsed { start, .. } => self.events.get(start).map(|event| event.context),
            R::PrimaryContextRetain { .. }
            | R::PrimaryContextRelease { .. }
            | R::PrimaryContextReset { .. }
            | R::ContextCreate { .. }
            | R::PointerInfo { .. }
            | R::Advise { .. }
            | R::HostAccess { .. }
            | R::HostAccessMeans { .. }
            | R::HostPoll { .. }
            | R::HostVisible
            | R::ThreadBegins
            | R::AddressFree { .. }
            | R::PhysicalRelease { .. }
            | R::PhysicalMap { .. }
            | R::PhysicalUnmap { .. }
            | R::MulticastAddDevice { .. }
            | R::MulticastBind { .. }
            | R::MulticastUnbind { .. }
            | R::AccessSet { .. }
            | R::Profiler { .. }
            | R::Range(_)
            | R::DeviceState { .. }
            | R::Unsupported { .. } => None,
        }
    }

    /// Refuses a device that is not there.
    fn check_device(&self, device: u32) -> CallResult<()> {
        let gpus = self.device.gpus();
        if device < gpus {
            return Ok(());
        }
        fail(
            CuResult::INVALID_DEVICE,
            format!("device {device} of {gpus}"),
        )
    }
}
