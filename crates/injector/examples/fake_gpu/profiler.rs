//! Host objects, periodic sampling and the range profiler.

use std::ffi::{CStr, c_char};

use lockstep_injector::cupti::layouts::*;
use lockstep_injector::cupti::numbers;

use crate::begin;
use crate::state::{
    Hardware, HostObject, Image, METRICS, RangeObject, Sample, SamplingObject, Stage, State, Work,
    demand, device_now, failure, lock_works, state,
};

const CHIP: &CStr = c"GH100";

unsafe fn names(list: *const *const c_char, count: usize) -> Vec<String> {
    (0..count)
        .map(|i| {
            unsafe { CStr::from_ptr(*list.add(i)) }
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiProfilerInitialize(block: *mut ProfilerInitialize) -> i32 {
    begin!("cuptiProfilerInitialize", block);
    state().initialised = true;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiDeviceGetChipName(block: *mut ChipName) -> i32 {
    begin!("cuptiDeviceGetChipName", block);
    demand(
        state().initialised,
        "cuptiDeviceGetChipName: before cuptiProfilerInitialize",
    );
    unsafe { (*block).pChipName = CHIP.as_ptr() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostInitialize(block: *mut HostInitialize) -> i32 {
    begin!("cuptiProfilerHostInitialize", block);
    let block = unsafe { &mut *block };
    let mut state = state();
    demand(
        state.initialised,
        "cuptiProfilerHostInitialize: before cuptiProfilerInitialize",
    );
    demand(
        unsafe { CStr::from_ptr(block.pChipName) } == CHIP,
        "cuptiProfilerHostInitialize: another chip",
    );
    if block.profilerType == numbers::PROFILER_SAMPLING {
        demand(
            !block.pCounterAvailabilityImage.is_null(),
            "cuptiProfilerHostInitialize: sampling without availability",
        );
    }
    let handle = state.handle();
    state.hosts.insert(
        handle,
        HostObject {
            kind: block.profilerType,
            metrics: Vec::new(),
        },
    );
    block.pHostObject = handle as *mut _;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostDeinitialize(block: *mut HostDeinitialize) -> i32 {
    begin!("cuptiProfilerHostDeinitialize", block);
    let known = state()
        .hosts
        .remove(&(unsafe { (*block).pHostObject } as usize))
        .is_some();
    demand(known, "cuptiProfilerHostDeinitialize: not an object");
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostConfigAddMetrics(block: *mut HostAddMetrics) -> i32 {
    begin!("cuptiProfilerHostConfigAddMetrics", block);
    let block = unsafe { &mut *block };
    let list = unsafe { names(block.ppMetricNames, block.numMetrics) };
    if list
        .iter()
        .any(|name| Work::default().total(name).is_none())
    {
        return numbers::INVALID_METRIC_NAME;
    }
    let mut state = state();
    match state.hosts.get_mut(&(block.pHostObject as usize)) {
        Some(host) => host.metrics.extend(list),
        None => demand(false, "cuptiProfilerHostConfigAddMetrics: not an object"),
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostGetConfigImageSize(block: *mut HostConfigSize) -> i32 {
    begin!("cuptiProfilerHostGetConfigImageSize", block);
    unsafe { (*block).configImageSize = 64 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostGetConfigImage(block: *mut HostConfig) -> i32 {
    begin!("cuptiProfilerHostGetConfigImage", block);
    let block = unsafe { &mut *block };
    demand(
        block.configImageSize == 64,
        "cuptiProfilerHostGetConfigImage: another size than asked for",
    );
    let mut state = state();
    let Some(host) = state.hosts.get(&(block.pHostObject as usize)) else {
        return 1;
    };
    // What sampling can take at once on the real chip, in the same spirit.
    let sampling = host.kind == numbers::PROFILER_SAMPLING;
    let heavy = host
        .metrics
        .iter()
        .filter(|name| name.starts_with("smsp__thread") || *name == "sm__warps_launched.sum");
    let memory = host
        .metrics
        .iter()
        .filter(|name| name.starts_with("dram__"))
        .count();
    let crowded = usize::from(memory > 0 && host.metrics.len() > 4);
    let passes = if sampling {
        1 + heavy.count() + crowded
    } else {
        1
    };
    let metrics = host.metrics.clone();
    let mut image = vec![0; 64];
    image[0] = passes as u8;
    image[1] = state.configurations.len() as u8;
    unsafe { std::ptr::copy_nonoverlapping(image.as_ptr(), block.pConfigImage, 64) };
    state.configurations.insert(image, metrics);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostGetNumOfPasses(block: *mut HostPasses) -> i32 {
    begin!("cuptiProfilerHostGetNumOfPasses", block);
    let block = unsafe { &mut *block };
    block.numOfPasses = usize::from(unsafe { *block.pConfigImage });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiProfilerHostEvaluateToGpuValues(block: *mut HostEvaluate) -> i32 {
    begin!("cuptiProfilerHostEvaluateToGpuValues", block);
    let block = unsafe { &mut *block };
    let list = unsafe { names(block.ppMetricNames, block.numMetrics) };
    let state = state();
    let Some(image) = state.images.get(&(block.pCounterDataImage as usize)) else {
        demand(
            false,
            "cuptiProfilerHostEvaluateToGpuValues: an image that was not initialised",
        );
        return 1;
    };
    demand(
        image.size == block.counterDataImageSize,
        "cuptiProfilerHostEvaluateToGpuValues: another image size",
    );
    for (i, name) in list.iter().enumerate() {
        let value = if let Some(sample) = image.samples.get(block.rangeIndex) {
            METRICS
                .iter()
                .position(|known| known == name)
                .map_or(0, |place| sample.values[place])
        } else if let Some(work) = image.ranges.get(block.rangeIndex) {
            work.total(name).unwrap_or(0)
        } else {
            demand(
                false,
                "cuptiProfilerHostEvaluateToGpuValues: no such sample or range",
            );
            0
        };
        unsafe { *block.pMetricValues.add(i) = value as f64 };
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingGetCounterAvailability(
    block: *mut SamplingAvailability,
) -> i32 {
    begin!("cuptiPmSamplingGetCounterAvailability", block);
    let block = unsafe { &mut *block };
    let busy = state()
        .sampling
        .values()
        .any(|one| one.device as usize == block.deviceIndex);
    demand(
        !busy,
        "cuptiPmSamplingGetCounterAvailability: while the device is sampled",
    );
    if block.pCounterAvailabilityImage.is_null() {
        block.counterAvailabilityImageSize = 128;
    } else {
        demand(
            block.counterAvailabilityImageSize == 128,
            "availability: another size than asked for",
        );
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingEnable(block: *mut SamplingEnable) -> i32 {
    begin!("cuptiPmSamplingEnable", block);
    let block = unsafe { &mut *block };
    let mut state = state();
    demand(
        state.initialised,
        "cuptiPmSamplingEnable: before cuptiProfilerInitialize",
    );
    if state
        .sampling
        .values()
        .any(|one| one.device as usize == block.deviceIndex)
    {
        return 7;
    }
    let handle = state.handle();
    let device = block.deviceIndex as u32;
    let object = SamplingObject {
        device,
        stage: Stage::Enabled,
        interval: 0,
        next: 0,
        stopped: 0,
        most_samples: 0,
    };
    state.sampling.insert(handle, object);
    block.pPmSamplingObject = handle as *mut _;
    0
}

/// The object, if the call comes at a stage that allows it.
macro_rules! at_stage {
    ($state:ident, $handle:expr, $function:literal, $stages:pat) => {{
        let Some(object) = $state.sampling.get_mut(&($handle as usize)) else {
            demand(false, concat!($function, ": not an object"));
            return 1;
        };
        demand(
            matches!(object.stage, $stages),
            &format!("{}: at stage {:?}", $function, object.stage),
        );
        object
    }};
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingDisable(block: *mut SamplingDisable) -> i32 {
    begin!("cuptiPmSamplingDisable", block);
    let handle = unsafe { (*block).pPmSamplingObject } as usize;
    let mut state = state();
    at_stage!(
        state,
        handle,
        "cuptiPmSamplingDisable",
        Stage::Enabled | Stage::Configured | Stage::Stopped
    );
    state.sampling.remove(&handle);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingSetConfig(block: *mut SamplingConfig) -> i32 {
    begin!("cuptiPmSamplingSetConfig", block);
    let block = unsafe { &mut *block };
    let image = unsafe { std::slice::from_raw_parts(block.pConfig, block.configSize) }.to_vec();
    let mut state = state();
    demand(
        state.configurations.contains_key(&image),
        "cuptiPmSamplingSetConfig: an unknown configuration",
    );
    if image[0] != 1 {
        return 27;
    }
    demand(
        block.triggerMode == numbers::TRIGGER_TIME,
        "cuptiPmSamplingSetConfig: another trigger",
    );
    demand(
        block.hardwareBufferSize > 0,
        "cuptiPmSamplingSetConfig: no buffer",
    );
    let object = at_stage!(
        state,
        block.pPmSamplingObject,
        "cuptiPmSamplingSetConfig",
        Stage::Enabled
    );
    object.stage = Stage::Configured;
    object.interval = block.samplingInterval;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingStart(block: *mut SamplingStart) -> i32 {
    begin!("cuptiPmSamplingStart", block);
    let mut state = state();
    let handle = unsafe { (*block).pPmSamplingObject };
    let object = at_stage!(
        state,
        handle,
        "cuptiPmSamplingStart",
        Stage::Configured | Stage::Stopped
    );
    object.stage = Stage::Started;
    object.next = device_now();
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingStop(block: *mut SamplingStop) -> i32 {
    begin!("cuptiPmSamplingStop", block);
    let mut state = state();
    let handle = unsafe { (*block).pPmSamplingObject };
    let object = at_stage!(state, handle, "cuptiPmSamplingStop", Stage::Started);
    object.stage = Stage::Stopped;
    object.stopped = device_now();
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingGetCounterDataSize(block: *mut SamplingImageSize) -> i32 {
    begin!("cuptiPmSamplingGetCounterDataSize", block);
    let block = unsafe { &mut *block };
    let mut state = state();
    let object = at_stage!(
        state,
        block.pPmSamplingObject,
        "cuptiPmSamplingGetCounterDataSize",
        _
    );
    object.most_samples = block.maxSamples as usize;
    let sample = std::env::var("FAKE_GPU_SAMPLE_BYTES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(64);
    block.counterDataSize = sample * block.maxSamples as usize;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingCounterDataImageInitialize(
    block: *mut SamplingImageInitialize,
) -> i32 {
    begin!("cuptiPmSamplingCounterDataImageInitialize", block);
    let block = unsafe { &mut *block };
    let mut state = state();
    at_stage!(
        state,
        block.pPmSamplingObject,
        "cuptiPmSamplingCounterDataImageInitialize",
        _
    );
    state.images.insert(
        block.pCounterData as usize,
        Image {
            size: block.counterDataSize,
            ..Image::default()
        },
    );
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingDecodeData(block: *mut SamplingDecode) -> i32 {
    begin!("cuptiPmSamplingDecodeData", block);
    let block = unsafe { &mut *block };
    let mut state = state();
    let held = lock_works();
    state.refresh_works();
    // What the hardware counted comes a little later.
    let now = device_now() - 2_000_000;
    drop(held);
    let object = at_stage!(
        state,
        block.pPmSamplingObject,
        "cuptiPmSamplingDecodeData",
        Stage::Started | Stage::Stopped
    );
    let until = if object.stage == Stage::Stopped {
        object.stopped
    } else {
        now
    };
    let (device, most, stopped) = (
        object.device,
        object.most_samples,
        object.stage == Stage::Stopped,
    );
    let handle = block.pPmSamplingObject as usize;
    let Some(mut image) = state.images.remove(&(block.pCounterDataImage as usize)) else {
        demand(
            false,
            "cuptiPmSamplingDecodeData: an image that was not initialised",
        );
        return 1;
    };
    let mut works = std::mem::take(&mut state.works);
    let object = state.sampling.get_mut(&handle).expect("found above");
    // An incomplete sample is completed by the next decode into the same image; a cleared image
    // has lost it, which its sums show.
    image.partial = false;
    while image.samples.len() < most && object.next + object.interval <= until {
        let (begin, end) = (object.next, object.next + object.interval);
        let here: Vec<&Work> = works
            .iter()
            .filter(|work| work.device == u64::from(device) && work.begin < end && work.end > begin)
            .collect();
        let value = |metric: &&str| {
            here.iter()
                .map(|work| work.between(metric, begin, end))
                .sum()
        };
        image.samples.push(Sample {
            begin,
            end,
            values: METRICS.iter().map(value).collect(),
        });
        object.next = end;
        works.retain(|work| work.device != u64::from(device) || work.end > end);
    }
    let next = object.next;
    state.works = works;
    let full = image.samples.len() == most;
    if !stopped && !full && !image.samples.is_empty() && next.is_multiple_of(3) {
        image.partial = true;
    }
    state.images.insert(block.pCounterDataImage as usize, image);
    block.decodeStopReason = if full { numbers::STOPPED_IMAGE_FULL } else { 2 };
    block.overflow = 0;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingGetCounterDataInfo(block: *mut SamplingImageInfo) -> i32 {
    begin!("cuptiPmSamplingGetCounterDataInfo", block);
    let block = unsafe { &mut *block };
    let state = state();
    let image = state
        .images
        .get(&(block.pCounterDataImage as usize))
        .cloned()
        .unwrap_or_default();
    block.numPopulatedSamples = image.samples.len();
    block.numCompletedSamples = image.samples.len() - usize::from(image.partial);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiPmSamplingCounterDataGetSampleInfo(
    block: *mut SamplingSampleInfo,
) -> i32 {
    begin!("cuptiPmSamplingCounterDataGetSampleInfo", block);
    let block = unsafe { &mut *block };
    let state = state();
    let image = state.images.get(&(block.pCounterDataImage as usize));
    let Some(sample) = image.and_then(|image| image.samples.get(block.sampleIndex)) else {
        return 1;
    };
    block.startTimestamp = sample.begin;
    block.endTimestamp = sample.end;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerEnable(block: *mut RangeEnable) -> i32 {
    begin!("cuptiRangeProfilerEnable", block);
    let block = unsafe { &mut *block };
    let mut state = state();
    demand(
        state.initialised,
        "cuptiRangeProfilerEnable: before cuptiProfilerInitialize",
    );
    demand(
        state.contexts.contains_key(&(block.ctx as usize)),
        "cuptiRangeProfilerEnable: not a context",
    );
    demand(
        !state.recording,
        "cuptiRangeProfilerEnable: while kernels are traced",
    );
    undisturbed(&state, "cuptiRangeProfilerEnable");
    let handle = state.handle();
    let context = state.contexts.get(&(block.ctx as usize));
    let object = RangeObject {
        context: block.ctx as usize,
        device: context.map_or(0, |one| one.device),
        stage: Stage::Enabled,
        ranges: Vec::new(),
        image: 0,
        hardware: None,
    };
    state.ranges.insert(handle, object);
    block.pRangeProfilerObject = handle as *mut _;
    0
}

macro_rules! range_at_stage {
    ($state:ident, $handle:expr, $function:literal, $stages:pat) => {{
        let context = $state
            .ranges
            .get(&($handle as usize))
            .map_or(0, |one| one.context);
        demand(
            $state
                .captures
                .get(&context)
                .is_none_or(|count| *count == 0),
            concat!($function, ": breaks a capture"),
        );
        undisturbed(&$state, $function);
        let Some(object) = $state.ranges.get_mut(&($handle as usize)) else {
            demand(false, concat!($function, ": not an object"));
            return 1;
        };
        demand(
            matches!(object.stage, $stages),
            &format!("{}: at stage {:?}", $function, object.stage),
        );
        object
    }};
}

/// Profilers that change while anything is launched lose ranges of it on the real device, and were
/// seen to make launches fail.
fn undisturbed(state: &State, function: &str) {
    demand(
        state.launching == 0,
        &format!("{function}: while another thread launches"),
    );
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerDisable(block: *mut RangeDisable) -> i32 {
    begin!("cuptiRangeProfilerDisable", block);
    let handle = unsafe { (*block).pRangeProfilerObject } as usize;
    let mut state = state();
    range_at_stage!(
        state,
        handle,
        "cuptiRangeProfilerDisable",
        Stage::Enabled | Stage::Configured | Stage::Stopped
    );
    state.ranges.remove(&handle);
    state.disabled += 1;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerGetCounterDataSize(block: *mut RangeImageSize) -> i32 {
    begin!("cuptiRangeProfilerGetCounterDataSize", block);
    let block = unsafe { &mut *block };
    demand(
        block.maxNumRangeTreeNodes as usize >= block.maxNumOfRanges,
        "fewer nodes than ranges",
    );
    block.counterDataSize = 64 * block.maxNumOfRanges;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerCounterDataImageInitialize(
    block: *mut RangeImageInitialize,
) -> i32 {
    begin!("cuptiRangeProfilerCounterDataImageInitialize", block);
    let block = unsafe { &mut *block };
    let mut state = state();
    state.images.insert(
        block.pCounterData as usize,
        Image {
            size: block.counterDataSize,
            ..Image::default()
        },
    );
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerSetConfig(block: *mut RangeConfig) -> i32 {
    begin!("cuptiRangeProfilerSetConfig", block);
    let block = unsafe { &mut *block };
    let mut state = state();
    let prepared = state
        .images
        .get(&(block.pCounterDataImage as usize))
        .is_some_and(|image| image.ranges.is_empty());
    demand(
        prepared,
        "cuptiRangeProfilerSetConfig: an image that was not initialised",
    );
    demand(
        block.range == numbers::RANGE_AUTOMATIC && block.replayMode == numbers::REPLAY_KERNEL,
        "another range mode",
    );
    let object = range_at_stage!(
        state,
        block.pRangeProfilerObject,
        "cuptiRangeProfilerSetConfig",
        Stage::Enabled | Stage::Stopped
    );
    object.stage = Stage::Configured;
    object.image = block.pCounterDataImage as usize;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerStart(block: *mut RangeStart) -> i32 {
    begin!("cuptiRangeProfilerStart", block);
    let mut state = state();
    let handle = unsafe { (*block).pRangeProfilerObject };
    // The hardware of a GPU counts in one context at a time, and a profiler that is stopped still
    // holds it.
    let device = state
        .ranges
        .get(&(handle as usize))
        .map_or(0, |one| one.device);
    let others = state
        .ranges
        .iter()
        .filter(|(one, range)| **one != handle as usize && range.device == device);
    let free = others.clone().all(|(_, one)| one.hardware.is_none());
    let object = range_at_stage!(state, handle, "cuptiRangeProfilerStart", Stage::Configured);
    if object.hardware.is_none() && Hardware::is_left() {
        return numbers::HARDWARE_BUSY;
    }
    if free && object.hardware.is_none() {
        object.hardware = Hardware::take(device);
    }
    if !free || object.hardware.is_none() {
        demand(
            false,
            "cuptiRangeProfilerStart: while another context or process is profiled",
        );
        return numbers::HARDWARE_BUSY;
    }
    object.stage = Stage::Started;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerStop(block: *mut RangeStop) -> i32 {
    begin!("cuptiRangeProfilerStop", block);
    let block = unsafe { &mut *block };
    let mut state = state();
    range_at_stage!(
        state,
        block.pRangeProfilerObject,
        "cuptiRangeProfilerStop",
        Stage::Started
    )
    .stage = Stage::Stopped;
    block.isAllPassSubmitted = 1;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerDecodeData(block: *mut RangeDecode) -> i32 {
    begin!("cuptiRangeProfilerDecodeData", block);
    let mut state = state();
    let handle = unsafe { (*block).pRangeProfilerObject };
    let object = range_at_stage!(
        state,
        handle,
        "cuptiRangeProfilerDecodeData",
        Stage::Stopped
    );
    let (ranges, image) = (std::mem::take(&mut object.ranges), object.image);
    demand(ranges.len() <= 256, "more ranges than the image holds");
    if let Some(image) = state.images.get_mut(&image) {
        image.ranges.extend(ranges);
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiRangeProfilerGetCounterDataInfo(block: *mut RangeImageInfo) -> i32 {
    begin!("cuptiRangeProfilerGetCounterDataInfo", block);
    let block = unsafe { &mut *block };
    let state = state();
    block.numTotalRanges = state
        .images
        .get(&(block.pCounterDataImage as usize))
        .map_or(0, |image| image.ranges.len());
    0
}

/// The code with which a call is made to fail; shared with the device's own calls.
pub fn refused(function: &str) -> Option<i32> {
    failure(function)
}
