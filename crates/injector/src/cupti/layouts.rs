//! Parameter blocks and records, byte for byte as CUPTI 13 lays them out.
//!
//! Fields carry CUPTI's own spelling, so that a reader can hold this page against the headers; the
//! test `layouts_agree_with_the_headers` does just that with a C compiler where they are installed.
//! Only what this crate uses is declared.

#![allow(
    non_snake_case,
    reason = "CUPTI's spelling, compared with its headers by a test"
)]
#![allow(
    missing_docs,
    reason = "the fields are documented in CUPTI's headers under the same names"
)]

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

/// A block whose first field is its own size.
///
/// # Safety
/// The type is plain data for which all zeros is a value, and begins with a `usize`.
pub unsafe trait Block: Sized {
    /// Bytes up to the end of the last field, as CUPTI counts them.
    const SIZE: usize;

    /// All zeros but the size.
    fn new() -> Self {
        // SAFETY: the trait promises that all zeros is a value.
        let mut block: Self = unsafe { std::mem::zeroed() };
        // SAFETY: the trait promises that a `usize`, the size, comes first.
        unsafe {
            std::ptr::from_mut(&mut block)
                .cast::<usize>()
                .write(Self::SIZE)
        };
        block
    }
}

/// What the headers call a block, for comparison.
pub struct Layout {
    pub name: &'static str,
    pub size: usize,
    pub fields: &'static [(&'static str, usize)],
}

macro_rules! blocks {
    ($($name:ident = $spelling:literal { $($field:ident: $type:ty,)* ; $last:ident: $last_type:ty })*) => {
        $(
            #[repr(C)]
            pub struct $name {
                pub structSize: usize,
                pub pPriv: *mut c_void,
                $(pub $field: $type,)*
                pub $last: $last_type,
            }
            // SAFETY: integers and pointers only, and `structSize` comes first.
            unsafe impl Block for $name {
                const SIZE: usize = offset_of!($name, $last) + size_of::<$last_type>();
            }
        )*

        /// Every block above.
        pub const BLOCKS: &[Layout] = &[$(Layout {
            name: $spelling,
            size: <$name as Block>::SIZE,
            fields: &[
                $((stringify!($field), offset_of!($name, $field)),)*
                (stringify!($last), offset_of!($name, $last)),
            ],
        },)*];
    };
}

type Opaque = *mut c_void;

blocks! {
    ProfilerInitialize = "CUpti_Profiler_Initialize_Params" { ; reserved: [u8; 0] }
    ChipName = "CUpti_Device_GetChipName_Params" { deviceIndex: usize, ; pChipName: *const c_char }

    HostInitialize = "CUpti_Profiler_Host_Initialize_Params" {
        profilerType: u32, pChipName: *const c_char, pCounterAvailabilityImage: *const u8, pHostObject: Opaque, ;
        pSinglePassMetricSetName: *const c_char
    }
    HostDeinitialize = "CUpti_Profiler_Host_Deinitialize_Params" { ; pHostObject: Opaque }
    HostAddMetrics = "CUpti_Profiler_Host_ConfigAddMetrics_Params" {
        pHostObject: Opaque, ppMetricNames: *const *const c_char, ; numMetrics: usize
    }
    HostConfigSize = "CUpti_Profiler_Host_GetConfigImageSize_Params" { pHostObject: Opaque, ; configImageSize: usize }
    HostConfig = "CUpti_Profiler_Host_GetConfigImage_Params" {
        pHostObject: Opaque, configImageSize: usize, ; pConfigImage: *mut u8
    }
    HostPasses = "CUpti_Profiler_Host_GetNumOfPasses_Params" {
        configImageSize: usize, pConfigImage: *mut u8, ; numOfPasses: usize
    }
    HostEvaluate = "CUpti_Profiler_Host_EvaluateToGpuValues_Params" {
        pHostObject: Opaque, pCounterDataImage: *const u8, counterDataImageSize: usize, rangeIndex: usize,
        ppMetricNames: *const *const c_char, numMetrics: usize, ;
        pMetricValues: *mut f64
    }

    SamplingAvailability = "CUpti_PmSampling_GetCounterAvailability_Params" {
        deviceIndex: usize, counterAvailabilityImageSize: usize, ; pCounterAvailabilityImage: *mut u8
    }
    SamplingEnable = "CUpti_PmSampling_Enable_Params" { deviceIndex: usize, ; pPmSamplingObject: Opaque }
    SamplingDisable = "CUpti_PmSampling_Disable_Params" { ; pPmSamplingObject: Opaque }
    SamplingStart = "CUpti_PmSampling_Start_Params" { ; pPmSamplingObject: Opaque }
    SamplingStop = "CUpti_PmSampling_Stop_Params" { ; pPmSamplingObject: Opaque }
    SamplingConfig = "CUpti_PmSampling_SetConfig_Params" {
        pPmSamplingObject: Opaque, configSize: usize, pConfig: *const u8, hardwareBufferSize: usize,
        samplingInterval: u64, triggerMode: u32, ;
        hwBufferAppendMode: u32
    }
    SamplingImageSize = "CUpti_PmSampling_GetCounterDataSize_Params" {
        pPmSamplingObject: Opaque, pMetricNames: *const *const c_char, numMetrics: usize, maxSamples: u32, ;
        counterDataSize: usize
    }
    SamplingImageInitialize = "CUpti_PmSampling_CounterDataImage_Initialize_Params" {
        pPmSamplingObject: Opaque, counterDataSize: usize, ; pCounterData: *mut u8
    }
    SamplingDecode = "CUpti_PmSampling_DecodeData_Params" {
        pPmSamplingObject: Opaque, pCounterDataImage: *mut u8, counterDataImageSize: usize, decodeStopReason: u32, ;
        overflow: u8
    }
    SamplingImageInfo = "CUpti_PmSampling_GetCounterDataInfo_Params" {
        pCounterDataImage: *const u8, counterDataImageSize: usize, numTotalSamples: usize,
        numPopulatedSamples: usize, ;
        numCompletedSamples: usize
    }
    SamplingSampleInfo = "CUpti_PmSampling_CounterData_GetSampleInfo_Params" {
        pPmSamplingObject: Opaque, pCounterDataImage: *const u8, counterDataImageSize: usize, sampleIndex: usize,
        startTimestamp: u64, ;
        endTimestamp: u64
    }

    RangeEnable = "CUpti_RangeProfiler_Enable_Params" { ctx: Opaque, ; pRangeProfilerObject: Opaque }
    RangeDisable = "CUpti_RangeProfiler_Disable_Params" { ; pRangeProfilerObject: Opaque }
    RangeStart = "CUpti_RangeProfiler_Start_Params" { ; pRangeProfilerObject: Opaque }
    RangeStop = "CUpti_RangeProfiler_Stop_Params" {
        pRangeProfilerObject: Opaque, passIndex: usize, targetNestingLevel: usize, ; isAllPassSubmitted: u8
    }
    RangeConfig = "CUpti_RangeProfiler_SetConfig_Params" {
        pRangeProfilerObject: Opaque, configSize: usize, pConfig: *const u8, counterDataImageSize: usize,
        pCounterDataImage: *mut u8, range: u32, replayMode: u32, maxRangesPerPass: usize, numNestingLevels: u16,
        minNestingLevel: u16, passIndex: usize, ;
        targetNestingLevel: u16
    }
    RangeDecode = "CUpti_RangeProfiler_DecodeData_Params" { pRangeProfilerObject: Opaque, ; numOfRangeDropped: usize }
    RangeImageSize = "CUpti_RangeProfiler_GetCounterDataSize_Params" {
        pRangeProfilerObject: Opaque, pMetricNames: *const *const c_char, numMetrics: usize, maxNumOfRanges: usize,
        maxNumRangeTreeNodes: u32, ;
        counterDataSize: usize
    }
    RangeImageInitialize = "CUpti_RangeProfiler_CounterDataImage_Initialize_Params" {
        pRangeProfilerObject: Opaque, counterDataSize: usize, ; pCounterData: *mut u8
    }
    RangeImageInfo = "CUpti_RangeProfiler_GetCounterDataInfo_Params" {
        pCounterDataImage: *const u8, counterDataImageSize: usize, ; numTotalRanges: usize
    }
}

impl HostInitialize {
    /// Size of the block before the single-pass set was added to it.
    pub const SHORTER: usize = offset_of!(HostInitialize, pHostObject) + size_of::<Opaque>();
}

/// What a callback of the driver's functions is given.
#[repr(C)]
pub struct CallbackData {
    pub callbackSite: u32,
    pub functionName: *const c_char,
    pub functionParams: *const c_void,
    pub functionReturnValue: *mut c_void,
    pub symbolName: *const c_char,
    pub context: Opaque,
    pub contextUid: u32,
    pub correlationData: *mut u64,
    pub correlationId: u32,
}

/// What a callback about a context is given.
#[repr(C)]
pub struct ResourceData {
    pub context: Opaque,
    pub stream: Opaque,
    pub resourceDescriptor: *mut c_void,
}

/// What a callback about a graph describes.
#[repr(C)]
pub struct GraphData {
    pub graph: Opaque,
    pub originalGraph: Opaque,
    pub node: Opaque,
    pub originalNode: Opaque,
    pub nodeType: u32,
    pub dependency: Opaque,
    pub graphExec: Opaque,
}

/// First parameters of `cuLaunchKernel` and its siblings.
#[repr(C)]
pub struct LaunchParameters {
    pub f: Opaque,
    pub gridDim: [u32; 3],
    pub blockDim: [u32; 3],
    pub sharedMemBytes: u32,
    pub hStream: Opaque,
}

/// First parameter of `cuLaunchKernelEx`.
#[repr(C)]
pub struct LaunchExParameters {
    pub config: *const LaunchConfig,
    pub f: Opaque,
}

/// How `cuLaunchKernelEx` launches.
#[repr(C)]
pub struct LaunchConfig {
    pub gridDim: [u32; 3],
    pub blockDim: [u32; 3],
    pub sharedMemBytes: u32,
    pub hStream: Opaque,
}

/// First parameters of `cuGraphLaunch`.
#[repr(C)]
pub struct GraphLaunchParameters {
    pub hGraph: Opaque,
    pub hStream: Opaque,
}

/// The part of a kernel's activity record that versions 9 to 12 share.
#[repr(C)]
pub struct KernelActivity {
    pub kind: u32,
    pub cacheConfig: u8,
    pub sharedMemoryConfig: u8,
    pub registersPerThread: u16,
    pub partitionedGlobalCacheRequested: u32,
    pub partitionedGlobalCacheExecuted: u32,
    pub start: u64,
    pub end: u64,
    pub completed: u64,
    pub deviceId: u32,
    pub contextId: u32,
    pub streamId: u32,
    pub gridX: i32,
    pub gridY: i32,
    pub gridZ: i32,
    pub blockX: i32,
    pub blockY: i32,
    pub blockZ: i32,
    pub staticSharedMemory: i32,
    pub dynamicSharedMemory: i32,
    pub localMemoryPerThread: u32,
    pub localMemoryTotal: u32,
    pub correlationId: u32,
    pub gridId: i64,
    pub name: *const c_char,
}

macro_rules! fields {
    ($type:ident: $($field:ident),*) => { &[$((stringify!($field), offset_of!($type, $field))),*] };
}

/// Records without a size of their own.
pub const RECORDS: &[Layout] = &[
    Layout {
        name: "CUpti_CallbackData",
        size: size_of::<CallbackData>(),
        fields: fields!(CallbackData: callbackSite, functionName, functionParams, symbolName, context, contextUid, correlationId),
    },
    Layout {
        name: "CUpti_ResourceData",
        size: size_of::<ResourceData>(),
        fields: fields!(ResourceData: context, resourceDescriptor),
    },
    Layout {
        name: "CUpti_GraphData",
        size: size_of::<GraphData>(),
        fields: fields!(GraphData: graph, originalGraph, node, nodeType, graphExec),
    },
    Layout {
        name: "cuLaunchKernel_params",
        size: 0,
        fields: fields!(LaunchParameters: f, sharedMemBytes, hStream),
    },
    Layout {
        name: "cuLaunchKernelEx_params",
        size: 0,
        fields: fields!(LaunchExParameters: config, f),
    },
    Layout {
        name: "cuGraphLaunch_params",
        size: 0,
        fields: fields!(GraphLaunchParameters: hGraph, hStream),
    },
    Layout {
        name: "CUlaunchConfig",
        size: 0,
        fields: fields!(LaunchConfig: sharedMemBytes, hStream),
    },
    Layout {
        name: "CUpti_ActivityKernel12",
        size: 0,
        fields: fields!(KernelActivity: kind, registersPerThread, start, end, deviceId, contextId, streamId,
            gridX, gridY, gridZ, blockX, blockY, blockZ, correlationId, gridId, name),
    },
    Layout {
        name: "CUpti_ActivityKernel9",
        size: 0,
        fields: fields!(KernelActivity: start, end, deviceId, contextId, streamId, gridX, blockX, correlationId, name),
    },
];
