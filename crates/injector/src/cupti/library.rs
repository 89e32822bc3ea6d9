//! CUPTI opened at run time.

use std::ffi::{CStr, c_char, c_void};
use std::fmt;

use super::layouts::*;
use super::numbers;
use crate::dynamic::function_table;
use crate::dynamic::{Library, overridden};

/// Called for contexts and launches.
pub type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);
/// Asks for an empty activity buffer.
pub type BufferRequested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// Hands back a filled activity buffer.
pub type BufferCompleted = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

function_table! {
    /// Contexts, launches and activity records: what every mode needs.
    Tracing {
        subscribe = c"cuptiSubscribe": fn(*mut *mut c_void, Callback, *mut c_void) -> i32;
        unsubscribe = c"cuptiUnsubscribe": fn(*mut c_void) -> i32;
        enable_callback = c"cuptiEnableCallback": fn(u32, *mut c_void, u32, u32) -> i32;
        context_number = c"cuptiGetContextId": fn(*mut c_void, *mut u32) -> i32;
        stream_number = c"cuptiGetStreamIdEx": fn(*mut c_void, *mut c_void, u8, *mut u32) -> i32;
        device_number = c"cuptiGetDeviceId": fn(*mut c_void, *mut u32) -> i32;
        timestamp = c"cuptiGetTimestamp": fn(*mut u64) -> i32;
        activity_register = c"cuptiActivityRegisterCallbacks": fn(BufferRequested, BufferCompleted) -> i32;
        activity_enable = c"cuptiActivityEnable": fn(u32) -> i32;
        activity_disable = c"cuptiActivityDisable": fn(u32) -> i32;
        activity_next = c"cuptiActivityGetNextRecord": fn(*mut u8, usize, *mut *mut u32) -> i32;
        activity_flush = c"cuptiActivityFlushAll": fn(u32) -> i32;
        activity_dropped = c"cuptiActivityGetNumDroppedRecords": fn(*mut c_void, u32, *mut usize) -> i32;
        result_string = c"cuptiGetResultString": fn(i32, *mut *const c_char) -> i32;
        version = c"cuptiGetVersion": fn(*mut u32) -> i32;
    }
}

function_table! {
    /// Names to configuration images, counter images to values.
    Host {
        profiler_initialize = c"cuptiProfilerInitialize": fn(*mut ProfilerInitialize) -> i32;
        chip_name = c"cuptiDeviceGetChipName": fn(*mut ChipName) -> i32;
        initialize = c"cuptiProfilerHostInitialize": fn(*mut HostInitialize) -> i32;
        deinitialize = c"cuptiProfilerHostDeinitialize": fn(*mut HostDeinitialize) -> i32;
        add_metrics = c"cuptiProfilerHostConfigAddMetrics": fn(*mut HostAddMetrics) -> i32;
        config_size = c"cuptiProfilerHostGetConfigImageSize": fn(*mut HostConfigSize) -> i32;
        config = c"cuptiProfilerHostGetConfigImage": fn(*mut HostConfig) -> i32;
        passes = c"cuptiProfilerHostGetNumOfPasses": fn(*mut HostPasses) -> i32;
        evaluate = c"cuptiProfilerHostEvaluateToGpuValues": fn(*mut HostEvaluate) -> i32;
    }
}

function_table! {
    /// Periodic sampling of a whole device.
    Sampling {
        availability = c"cuptiPmSamplingGetCounterAvailability": fn(*mut SamplingAvailability) -> i32;
        enable = c"cuptiPmSamplingEnable": fn(*mut SamplingEnable) -> i32;
        disable = c"cuptiPmSamplingDisable": fn(*mut SamplingDisable) -> i32;
        set_config = c"cuptiPmSamplingSetConfig": fn(*mut SamplingConfig) -> i32;
        start = c"cuptiPmSamplingStart": fn(*mut SamplingStart) -> i32;
        stop = c"cuptiPmSamplingStop": fn(*mut SamplingStop) -> i32;
        image_size = c"cuptiPmSamplingGetCounterDataSize": fn(*mut SamplingImageSize) -> i32;
        image_initialize = c"cuptiPmSamplingCounterDataImageInitialize": fn(*mut SamplingImageInitialize) -> i32;
        decode = c"cuptiPmSamplingDecodeData": fn(*mut SamplingDecode) -> i32;
        image_info = c"cuptiPmSamplingGetCounterDataInfo": fn(*mut SamplingImageInfo) -> i32;
        sample_info = c"cuptiPmSamplingCounterDataGetSampleInfo": fn(*mut SamplingSampleInfo) -> i32;
    }
}

function_table! {
    /// Exact counts, kernel by kernel.
    Range {
        enable = c"cuptiRangeProfilerEnable": fn(*mut RangeEnable) -> i32;
        disable = c"cuptiRangeProfilerDisable": fn(*mut RangeDisable) -> i32;
        set_config = c"cuptiRangeProfilerSetConfig": fn(*mut RangeConfig) -> i32;
        start = c"cuptiRangeProfilerStart": fn(*mut RangeStart) -> i32;
        stop = c"cuptiRangeProfilerStop": fn(*mut RangeStop) -> i32;
        decode = c"cuptiRangeProfilerDecodeData": fn(*mut RangeDecode) -> i32;
        image_size = c"cuptiRangeProfilerGetCounterDataSize": fn(*mut RangeImageSize) -> i32;
        image_initialize = c"cuptiRangeProfilerCounterDataImageInitialize": fn(*mut RangeImageInitialize) -> i32;
        image_info = c"cuptiRangeProfilerGetCounterDataInfo": fn(*mut RangeImageInfo) -> i32;
    }
}

/// A call that CUPTI refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CuptiError {
    /// The step that failed, as a verb.
    pub doing: &'static str,
    /// CUPTI's number for the reason.
    pub number: i32,
    /// CUPTI's word for it.
    pub word: String,
}

impl fmt::Display for CuptiError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} ({})", self.doing, self.word, self.number)?;
        let hint = match self.number {
            numbers::INSUFFICIENT_PRIVILEGES => {
                "the driver lets only administrators read counters (NVreg_RestrictProfilingToAdminUsers)"
            }
            numbers::HARDWARE_BUSY => "another profiler, or DCGM, holds the counters of this GPU",
            numbers::MULTIPLE_SUBSCRIBERS => "another tool already listens in this process",
            33 | 40 => "the hypervisor does not give counters to this virtual GPU",
            41 => "confidential computing hides the counters",
            43 => "a partition of a GPU (MIG) has no sampling of its own",
            _ => return Ok(()),
        };
        write!(formatter, "; {hint}")
    }
}

/// CUPTI, as far as this machine has it.
#[derive(Clone, Copy)]
pub struct Cupti {
    /// Always there.
    pub tracing: Tracing,
    /// Since CUPTI 12.6.
    pub host: Option<Host>,
    /// Since CUPTI 12.6.
    pub sampling: Option<Sampling>,
    /// Since CUPTI 12.6.
    pub range: Option<Range>,
}

/// Where CUPTI lies when it is not on the loader's path.
const PLACES: &[&str] = &[
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so",
    "/usr/local/cuda/lib64/libcupti.so",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
    "/usr/local/cuda/targets/x86_64-linux/lib/libcupti.so",
    "/usr/local/cuda/targets/sbsa-linux/lib/libcupti.so",
];

impl Cupti {
    /// Opens the machine's CUPTI.
    pub fn open() -> Result<Self, String> {
        let library = match overridden("LOCKSTEP_CUPTI") {
            Some(path) => Library::open(&[&path]),
            None => Library::open(PLACES),
        }
        .map_err(|error| format!("CUPTI cannot be opened ({error})"))?;
        let tracing = Tracing::find(library).map_err(|name| format!("this CUPTI has no {name}"))?;
        Ok(Self {
            tracing,
            host: Host::find(library).ok(),
            sampling: Sampling::find(library).ok(),
            range: Range::find(library).ok(),
        })
    }

    /// Turns a result into an error that names what was attempted.
    pub fn check(&self, doing: &'static str, number: i32) -> Result<(), CuptiError> {
        if number == numbers::SUCCESS {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: a valid place for the pointer; the string is CUPTI's own constant.
        let known = unsafe { (self.tracing.result_string)(number, &mut text) } == numbers::SUCCESS
            && !text.is_null();
        let word = if known {
            // SAFETY: not null, and terminated by CUPTI.
            unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned()
        } else {
            "unknown error".to_owned()
        };
        Err(CuptiError {
            doing,
            number,
            word,
        })
    }
}
