//! Enumeration values of CUPTI's headers that this crate uses.

/// Success.
pub const SUCCESS: i32 = 0;
/// A parameter block or a value in it was refused.
pub const INVALID_PARAMETER: i32 = 1;
/// The hardware buffer overflowed, or memory ran out.
pub const OUT_OF_MEMORY: i32 = 8;
/// No more records in an activity buffer.
pub const MAX_LIMIT_REACHED: i32 = 12;
/// A metric of that name does not exist on the chip.
pub const INVALID_METRIC_NAME: i32 = 17;
/// Another profiler holds the hardware.
pub const HARDWARE_BUSY: i32 = 26;
/// The user may not read counters.
pub const INSUFFICIENT_PRIVILEGES: i32 = 35;
/// Another tool in this process already listens.
pub const MULTIPLE_SUBSCRIBERS: i32 = 39;

/// Callback domain of the driver's functions.
pub const DOMAIN_DRIVER: u32 = 1;
/// Callback domain of contexts, streams and modules.
pub const DOMAIN_RESOURCE: u32 = 3;
/// A context was made.
pub const RESOURCE_CONTEXT_CREATED: u32 = 1;
/// A context is about to go.
pub const RESOURCE_CONTEXT_DESTROY_STARTING: u32 = 2;

/// An executable graph was made.
pub const RESOURCE_GRAPH_EXECUTABLE_CREATED: u32 = 18;
/// An executable graph is about to go.
pub const RESOURCE_GRAPH_EXECUTABLE_DESTROY_STARTING: u32 = 19;

/// `cuLaunchKernel`, its per-thread form, and the cooperative ones: same first parameters.
pub const DRIVER_LAUNCH: [u32; 4] = [307, 442, 477, 478];
/// `cuLaunchKernelEx` and its per-thread form.
pub const DRIVER_LAUNCH_EX: [u32; 2] = [652, 653];
/// `cuGraphLaunch` and its per-thread form.
pub const DRIVER_GRAPH_LAUNCH: [u32; 2] = [514, 515];

/// What makes or changes an executable graph: `cuGraphInstantiate` and its later forms,
/// `cuGraphExecUpdate`, `cuGraphExecKernelNodeSetParams`, each with its second version,
/// `cuGraphExecNodeSetParams`, and `cuGraphUpload` in both forms.
pub const DRIVER_GRAPH_MAKE: [u32; 12] =
    [513, 578, 643, 656, 657, 561, 696, 538, 692, 714, 580, 581];

/// What makes or ends contexts, modules, memory and streams, by name and number.
pub const DRIVER_CHANGES: &[(&str, u32)] = &[
    // Contexts, primary and green ones too.
    ("cuCtxDestroy", 11),
    ("cuCtxCreate_v2", 235),
    ("cuCtxDestroy_v2", 322),
    ("cuDevicePrimaryCtxRetain", 386),
    ("cuDevicePrimaryCtxRelease", 387),
    ("cuDevicePrimaryCtxReset", 389),
    ("cuDevicePrimaryCtxRelease_v2", 544),
    ("cuDevicePrimaryCtxReset_v2", 545),
    ("cuCtxCreate_v3", 645),
    ("cuCtxCreate_v4", 757),
    ("cuGreenCtxCreate", 743),
    ("cuGreenCtxDestroy", 744),
    // Modules and libraries.
    ("cuModuleLoad", 18),
    ("cuModuleLoadData", 19),
    ("cuModuleLoadDataEx", 20),
    ("cuModuleLoadFatBinary", 21),
    ("cuModuleUnload", 22),
    ("cuLibraryLoadData", 678),
    ("cuLibraryLoadFromFile", 679),
    ("cuLibraryUnload", 680),
    // Memory of the device and of the host.
    ("cuMemAlloc_v2", 243),
    ("cuMemAllocPitch_v2", 244),
    ("cuMemFree_v2", 245),
    ("cuMemAllocManaged", 371),
    ("cuMemAllocHost_v2", 294),
    ("cuMemFreeHost", 38),
    ("cuMemHostAlloc_v2", 271),
    ("cuMemHostRegister_v2", 379),
    ("cuMemHostUnregister", 302),
    ("cuArrayCreate_v2", 272),
    ("cuArray3DCreate_v2", 274),
    ("cuArrayDestroy", 89),
    ("cuMemCreate", 549),
    ("cuMemRelease", 550),
    ("cuMemMap", 551),
    ("cuMemUnmap", 552),
    // Streams, and executable graphs that go.
    ("cuStreamCreate", 124),
    ("cuStreamCreateWithPriority", 367),
    ("cuStreamDestroy_v2", 326),
    ("cuGraphExecDestroy", 516),
];

/// Whether a call changes what a process has on a GPU.
pub fn is_change(number: u32) -> bool {
    DRIVER_CHANGES.iter().any(|(_, change)| *change == number)
}

/// `cuStreamBeginCapture` and its other forms.
pub const DRIVER_CAPTURE_BEGIN: [u32; 6] = [495, 496, 539, 540, 720, 721];
/// `cuStreamEndCapture` and its per-thread form.
pub const DRIVER_CAPTURE_END: [u32; 2] = [497, 498];

/// Those of the above whose default stream is the thread's own.
pub const DRIVER_PER_THREAD: [u32; 4] = [442, 478, 653, 515];

/// Before the call.
pub const SITE_ENTER: u32 = 0;

/// Activity records of kernels that may overlap.
pub const ACTIVITY_CONCURRENT_KERNEL: u32 = 10;
/// Activity records of kernels one by one.
pub const ACTIVITY_KERNEL: u32 = 3;

/// Host object for ranges.
pub const PROFILER_RANGE: u32 = 0;
/// Host object for periodic sampling.
pub const PROFILER_SAMPLING: u32 = 1;

/// Sampling interval in nanoseconds.
pub const TRIGGER_TIME: u32 = 1;
/// A full hardware buffer keeps its oldest records and says so.
pub const KEEP_OLDEST: u32 = 0;
/// Decoding stopped because the counter image was full.
pub const STOPPED_IMAGE_FULL: u32 = 1;

/// One range per kernel.
pub const RANGE_AUTOMATIC: u32 = 1;
/// A kernel is repeated until all passes are done.
pub const REPLAY_KERNEL: u32 = 2;
