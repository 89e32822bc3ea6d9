//! What a CUDA program asks of the simulator, at the granularity of the driver API.
//!
//! One request, one [`Response`](crate::Response), in order, on each connection; a host
//! thread has a connection of its own. Every variant names the reply it expects. What the
//! program can answer by itself (device queries, the current context, error strings)
//! never comes here.

use crate::work::{Copy, Fill, GraphNode, Launch, ValueWork};
use crate::{
    ContextHandle, EventHandle, FunctionHandle, GraphHandle, ModuleHandle, PhysicalHandle,
    RangeStep, StreamHandle, StreamName, TextureObject,
};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    // Contexts.
    /// Retain the primary context of a device → `Context`.
    PrimaryContextRetain {
        /// Ordinal of the device.
        device: u32,
    },
    /// Release it → `Done`.
    PrimaryContextRelease {
        /// Ordinal of the device.
        device: u32,
    },
    /// Destroy all that lives in it (`cudaDeviceReset`) → `Done`. The context is dead
    /// afterwards; the next retain answers another.
    PrimaryContextReset {
        /// Ordinal of the device.
        device: u32,
    },
    /// Create a context → `Context`.
    ContextCreate {
        /// Ordinal of the device.
        device: u32,
        /// `CUctx_flags`.
        flags: u32,
    },
    /// Destroy a created context and all that lives in it → `Done`.
    ContextDestroy {
        /// The context.
        context: ContextHandle,
    },
    /// Wait for all work of the context → `Done`.
    ContextSynchronize {
        /// The context.
        context: ContextHandle,
    },
    /// Read a `CUlimit` → `Value`.
    LimitGet {
        /// The context.
        context: ContextHandle,
        /// `CUlimit`.
        limit: u32,
    },
    /// Set a `CUlimit` → `Done`.
    LimitSet {
        /// The context.
        context: ContextHandle,
        /// `CUlimit`.
        limit: u32,
        /// The wanted value; the simulator may clamp it, as a GPU does.
        value: u64,
    },
    /// Let kernels of `context` use memory of the peer's device → `Done`.
    PeerAccessEnable {
        /// The context.
        context: ContextHandle,
        /// The context whose memory becomes visible.
        peer: ContextHandle,
    },
    /// Take that back → `Done`.
    PeerAccessDisable {
        /// The context.
        context: ContextHandle,
        /// The context whose memory is no longer visible.
        peer: ContextHandle,
    },

    // Modules.
    /// Load code → `Module`. A failure's message is the log of the JIT compiler.
    ModuleLoad {
        /// The context.
        context: ContextHandle,
        /// What the program handed over: one image, or the linked image of a relocatable
        /// build followed by its images from before linking.
        images: Vec<ModuleImage>,
    },
    /// Unload a module → `Done`.
    ModuleUnload {
        /// The module.
        module: ModuleHandle,
    },
    /// Find a kernel by mangled name → `Function`, or failure 500 (not found).
    ModuleFunction {
        /// The module.
        module: ModuleHandle,
        /// Mangled name.
        name: String,
    },
    /// Names of all kernels of a module → `Names`.
    ModuleFunctionNames {
        /// The module.
        module: ModuleHandle,
    },
    /// Find a variable by mangled name → `Global`, or failure 500 (not found).
    ModuleGlobal {
        /// The module.
        module: ModuleHandle,
        /// Mangled name.
        name: String,
    },
    /// Find a texture reference by mangled name → `Value`, its handle, or failure 500 (not found).
    ModuleTexture {
        /// The module.
        module: ModuleHandle,
        /// Mangled name.
        name: String,
    },
    /// Set a `CUfunction_attribute` → `Done`.
    FunctionSetAttribute {
        /// The kernel.
        function: FunctionHandle,
        /// `CUfunction_attribute`.
        attribute: u32,
        /// The value.
        value: i32,
    },
    /// Say whether a kernel prefers shared memory or L1 → `Done`.
    FunctionCachePreference {
        /// The kernel.
        function: FunctionHandle,
        /// `CUfunc_cache`.
        preference: u32,
    },
    /// Most blocks of this shape that fit an SM at once → `Value`.
    OccupancyBlocks {
        /// The kernel.
        function: FunctionHandle,
        /// Threads of a block.
        block_threads: u32,
        /// Dynamic shared memory of a block, in bytes.
        dynamic_shared: u64,
        /// `CUoccupancy_flags`.
        flags: u32,
    },
    /// Most clusters of this shape that fit the GPU at once → `Value`.
    OccupancyClusters {
        /// The launch; its stream and parameters do not matter.
        launch: Box<Launch>,
    },

    // Memory.
    /// Allocate device memory → `Address`, aligned to 256 bytes or more.
    Allocate {
        /// The context.
        context: ContextHandle,
        /// Bytes, not 0.
        bytes: u64,
    },
    /// Allocate device memory in stream order → `Address`.
    AllocateAsync {
        /// The context.
        context: ContextHandle,
        /// The stream.
        stream: StreamName,
        /// Bytes, not 0.
        bytes: u64,
    },
    /// Allocate pinned host memory → `Address`.
    AllocateHost {
        /// The context.
        context: ContextHandle,
        /// Bytes, not 0.
        bytes: u64,
        /// `CU_MEMHOSTALLOC_*`.
        flags: u32,
    },
    /// Let addresses of the program's own name pinned memory that it was given, until that is
    /// freed → `Done`.
    RegisterHost {
        /// The context.
        context: ContextHandle,
        /// First address.
        address: u64,
        /// Bytes, not 0.
        bytes: u64,
        /// Where the memory lies in the window.
        place: u64,
    },
    /// Allocate managed memory → `Address`.
    AllocateManaged {
        /// The context.
        context: ContextHandle,
        /// Bytes, not 0.
        bytes: u64,
        /// `CUmemAttach_flags`.
        flags: u32,
    },
    /// Free memory of any kind, by the address that was allocated → `Done`.
    Free {
        /// The context.
        context: ContextHandle,
        /// Its first address.
        address: u64,
    },
    /// Free device memory in stream order → `Done`.
    FreeAsync {
        /// The context.
        context: ContextHandle,
        /// The stream.
        stream: StreamName,
        /// Its first address.
        address: u64,
    },
    /// Free and total device memory → `Memory`.
    MemoryInfo {
        /// The context.
        context: ContextHandle,
    },
    /// What an address of the window belongs to → `Pointer`.
    PointerInfo {
        /// Any address of the window.
        address: u64,
    },
    /// Move managed memory ahead of its use → `Done`.
    Prefetch {
        /// The context.
        context: ContextHandle,
        /// The stream.
        stream: StreamName,
        /// First byte.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// Destination: a device or the host.
        location: MemoryLocation,
    },
    /// The program touched a managed page that had left the host → `Pages`.
    HostAccess {
        /// Address that was touched.
        address: u64,
        /// True for a write.
        write: bool,
    },
    /// What stops such accesses in this process → `Done`. Said once, when the first page leaves.
    HostAccessMeans {
        /// The means.
        means: HostAccessMeans,
    },
    /// The program looks again and again at memory that kernels can write, without a call →
    /// `Polled`.
    HostPoll {
        /// Address that was read.
        address: u64,
        /// How often it was, at long intervals, since the last call.
        polls: u32,
    },
    /// A thread is about to make its first call → `Done`. So threads that begin at the same time
    /// go on in one order.
    ThreadBegins,
    /// Which memory of the program the device can reach → `Pages`.
    HostVisible,
    /// Advise on the use of managed memory → `Done`.
    Advise {
        /// First byte.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// `CUmem_advise`.
        advice: u32,
        /// The place that the advice is about.
        location: MemoryLocation,
    },

    // Work in streams.
    /// Copy memory → `Done`. See [`struct@Copy`] for who moves the bytes.
    Copy(Copy),
    /// Fill memory with a pattern → `Done`. The simulator writes it, in stream order.
    Fill(Fill),
    /// Launch a kernel → `Done`.
    Launch(Box<Launch>),
    /// Wait until the stream has reached this point → `Done`. The program then runs a
    /// host function or callback before it sends anything more to this stream.
    HostFunction {
        /// The context.
        context: ContextHandle,
        /// The stream.
        stream: StreamName,
    },

    /// Wait for a value in memory, or write one, in stream order → `Done`, at once.
    Value {
        /// The context.
        context: ContextHandle,
        /// The stream.
        stream: StreamName,
        /// What is waited for or written.
        work: ValueWork,
    },

    // Graphs.
    /// Make a graph ready for launching → `Graph`.
    GraphCreate {
        /// The context.
        context: ContextHandle,
        /// Its nodes, each after those that it depends on.
        nodes: Vec<GraphNode>,
    },
    /// Forget a graph; launches of it go on → `Done`.
    GraphDestroy {
        /// The graph.
        graph: GraphHandle,
    },
    /// Launch a graph → `Step`. Without steps of the program's the answer comes at once;
    /// else when the first of them is due or all are complete.
    GraphLaunch {
        /// The context.
        context: ContextHandle,
        /// The stream.
        stream: StreamName,
        /// The graph.
        graph: GraphHandle,
    },
    /// The program has performed the step that it was told last → `Step`, the next one.
    GraphContinue {
        /// The context.
        context: ContextHandle,
        /// The launch, as the step named it.
        launch: u64,
        /// The node, as the step named it.
        node: u32,
    },

    // Memory that the program maps by itself.
    /// Reserve addresses → `Address`.
    AddressReserve {
        /// The context.
        context: ContextHandle,
        /// Bytes.
        bytes: u64,
        /// A power of two, or 0.
        alignment: u64,
    },
    /// Give reserved addresses back → `Done`.
    AddressFree {
        /// First address.
        address: u64,
        /// Bytes, all that were reserved.
        bytes: u64,
    },
    /// Create physical memory → `Physical`.
    PhysicalCreate {
        /// The context.
        context: ContextHandle,
        /// The device that has it.
        device: u32,
        /// Bytes.
        bytes: u64,
        /// Whether it may be handed to other processes.
        shared: bool,
    },
    /// Hold physical memory that is there already → `Done`.
    PhysicalOpen {
        /// The context.
        context: ContextHandle,
        /// The memory.
        physical: PhysicalHandle,
    },
    /// Hold physical memory no longer: it goes once nobody holds it and nothing maps it → `Done`.
    PhysicalRelease {
        /// The context that held it.
        context: ContextHandle,
        /// The memory.
        physical: PhysicalHandle,
    },
    /// Map physical memory to reserved addresses → `Address`, where its bytes are: there, or elsewhere
    /// for all addresses that it is mapped at.
    PhysicalMap {
        /// A context that holds it.
        context: ContextHandle,
        /// First address.
        address: u64,
        /// Bytes, all of the memory.
        bytes: u64,
        /// The memory.
        physical: PhysicalHandle,
    },
    /// Unmap what is mapped in a range → `Done`.
    PhysicalUnmap {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// Create a multicast object, which is opened, released, mapped and unmapped as physical memory is → `Physical`.
    MulticastCreate {
        /// The context.
        context: ContextHandle,
        /// GPUs that it will have.
        devices: u32,
        /// Bytes that each of them can bind.
        bytes: u64,
        /// Whether it may be handed to other processes.
        shared: bool,
    },
    /// Add a GPU to a multicast object → `Done`.
    MulticastAddDevice {
        /// The object.
        multicast: PhysicalHandle,
        /// The GPU.
        device: u32,
    },
    /// Bind physical memory to a multicast object → `Address`, where the bytes of the memory are from now on.
    MulticastBind {
        /// The object.
        multicast: PhysicalHandle,
        /// The GPU whose memory it must be, if the program says so.
        device: Option<u32>,
        /// First byte of the object.
        offset: u64,
        /// The memory.
        memory: MulticastMemory,
        /// Bytes.
        bytes: u64,
    },
    /// Unbind what was bound → `Done`.
    MulticastUnbind {
        /// The object.
        multicast: PhysicalHandle,
        /// The GPU whose memory it is.
        device: u32,
        /// First byte of the object, as when it was bound.
        offset: u64,
        /// Bytes, as when it was bound.
        bytes: u64,
    },
    /// Make a texture or a surface → `Value`, its handle.
    TextureCreate(ContextHandle, Box<TextureObject>),
    /// Destroy it → `Done`.
    TextureDestroy(ContextHandle, u32),
    /// Bind a texture reference to a texture, or to nothing → `Done`. Launches that were made before keep what they had.
    TextureBind(ContextHandle, u32, Option<Box<TextureObject>>),
    /// Say what kernels of a device may do with what is mapped in a range → `Done`.
    AccessSet {
        /// The device.
        device: u32,
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// What they may do.
        access: MemoryAccess,
    },

    // Streams.
    /// Create a stream → `Stream`.
    StreamCreate {
        /// The context.
        context: ContextHandle,
        /// `CUstream_flags`: 1 is non-blocking.
        flags: u32,
        /// Priority; lower is more urgent.
        priority: i32,
    },
    /// Give a stream another priority, for what it is given from now on → `Done`.
    StreamPriority {
        /// The stream.
        stream: StreamHandle,
        /// Priority; lower is more urgent.
        priority: i32,
    },
    /// Destroy a stream once its work is done → `Done`, at once.
    StreamDestroy {
        /// The stream.
        stream: StreamHandle,
    },
    /// Wait for the work of a stream → `Done`.
    StreamSynchronize {
        /// The context.
        context: ContextHandle,
        /// The stream.
        stream: StreamName,
    },
    /// Ask whether the work of a stream is done → `Done`, or failure 600 (not ready).
    StreamQuery {
        /// The context.
        context: ContextHandle,
        /// The stream.
        stream: StreamName,
    },
    /// Make later work of a stream wait for an event → `Done`, at once.
    StreamWaitEvent {
        /// The context.
        context: ContextHandle,
        /// The stream.
        stream: StreamName,
        /// The event.
        event: EventHandle,
    },

    // Events.
    /// Create an event → `Event`.
    EventCreate {
        /// The context.
        context: ContextHandle,
        /// `CUevent_flags`: 2 is without timing.
        flags: u32,
    },
    /// Destroy an event → `Done`.
    EventDestroy {
        /// The event.
        event: EventHandle,
    },
    /// Record an event in a stream → `Done`, at once.
    EventRecord {
        /// The context.
        context: ContextHandle,
        /// The stream.
        stream: StreamName,
        /// The event.
        event: EventHandle,
    },
    /// Wait for an event → `Done`; one never recorded is complete.
    EventSynchronize {
        /// The event.
        event: EventHandle,
    },
    /// Ask whether an event is complete → `Done`, or failure 600 (not ready).
    EventQuery {
        /// The event.
        event: EventHandle,
    },
    /// Simulated time between two events → `Elapsed`.
    EventElapsed {
        /// The earlier event.
        start: EventHandle,
        /// The later event.
        end: EventHandle,
    },

    // The run.
    /// Begin or end a region of interest → `Done`.
    Profiler {
        /// True to start profiling, false to stop.
        start: bool,
    },
    /// Note for the list at the end of the run: a call that we lack → `Done`. Sent once a
    /// process for each name and manner.
    Unsupported {
        /// Name of the entry point, with its ABI suffix.
        name: String,
        /// How the program came to it.
        manner: UnsupportedManner,
    },

    // Looking on.
    /// How a device is used at this moment, by all processes → `DeviceState`. It is no call of a
    /// program: it has no place in the order of calls, takes no simulated time and is not recorded.
    DeviceState {
        /// Ordinal of the device.
        device: u32,
        /// Whether the doorbell of the process was rung for it.
        rung: bool,
    },

    /// A range begins or ends by which the program says what it is at → `Value`, how many ranges of its thread and
    /// domain are around it, or failure 1 (invalid value) where none is open. Sent where somebody asked for ranges.
    Range(RangeStep),
}

/// How a program came to a call that we lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UnsupportedManner {
    /// It called it and was answered 801 (not supported).
    Called,
    /// It asked `cuGetProcAddress` for it and was answered "not found".
    AskedFor,
    /// It called one that we have, with an option that we lack (the name says which), and was refused.
    Option,
    /// It called one that we have, with an option that is accepted and not modelled.
    Accepted,
}

/// One piece of code of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleImage {
    /// What the bytes are, by their first ones.
    pub kind: ImageKind,
    /// Whether it is the image itself or one from before linking.
    pub role: ImageRole,
    /// The bytes: PTX text without its closing zero, an ELF file, or a fat binary from its
    /// 16-byte header on.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// Takes the letters and digits that a text begins with, and refuses the rest.
struct FirstWord(String);

impl fmt::Write for FirstWord {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let end = piece.find(|letter: char| !letter.is_alphanumeric());
        self.0.push_str(&piece[..end.unwrap_or(piece.len())]);
        end.map_or(Ok(()), |_| Err(fmt::Error))
    }
}

/// What an image is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageKind {
    /// PTX text.
    Ptx,
    /// An ELF file with machine code.
    Cubin,
    /// A fat binary: several of the others, possibly compressed.
    FatBinary,
}

/// What an image is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageRole {
    /// The image to run.
    Main,
    /// A translation unit from before linking (relocatable device code): the only place
    /// where such a program carries PTX.
    BeforeLinking,
}

/// A place that memory can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryLocation {
    /// No place in particular.
    None,
    /// A device.
    Device(u32),
    /// The host.
    Host,
    /// A NUMA node of the host.
    HostNuma(i32),
}

/// What kernels and copies may do with mapped memory, from the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MemoryAccess {
    /// Nothing.
    #[default]
    None,
    /// Read it.
    Read,
    /// Read and write it.
    ReadWrite,
}

impl Request {
    /// The name of the call, without its arguments.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = FirstWord(String::new());
        // It ends with an error, before arguments of many megabytes become text.
        let _ = write!(name, "{self:?}");
        name.0
    }

    /// Whether the program waits for the device and does nothing else; afterwards it may look at
    /// what kernels wrote.
    #[must_use]
    pub fn synchronizes(&self) -> bool {
        matches!(
            self,
            Self::ContextSynchronize { .. }
                | Self::StreamSynchronize { .. }
                | Self::EventSynchronize { .. }
        )
    }

    /// Whether the library in the program asks by itself: no call of the program, so it takes no time
    /// of the host.
    #[must_use]
    pub fn is_of_library(&self) -> bool {
        matches!(
            self,
            Self::HostPoll { .. }
                | Self::HostVisible
                | Self::HostAccessMeans { .. }
                | Self::ThreadBegins
                | Self::DeviceState { .. }
                | Self::Range(_)
                | Self::Unsupported {
                    manner: UnsupportedManner::Accepted,
                    ..
                }
        )
    }
}

/// Memory that is bound to a multicast object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MulticastMemory {
    /// Physical memory, and the first byte of it.
    Handle(PhysicalHandle, u64),
    /// Physical memory by an address at which it is mapped.
    Address(u64),
}

/// What stops the host's accesses to managed pages that have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostAccessMeans {
    /// The kernel, for programs and for system calls.
    Kernel,
    /// Protection of pages, a signal, and wrappers of system calls.
    Protection,
    /// Nothing: pages move back when the host waits for the GPU.
    None,
}
