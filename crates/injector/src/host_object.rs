//! Metric names to a configuration of the hardware, and its images to values.

use std::ffi::{CStr, CString, c_char, c_void};

use crate::cupti::layouts::{
    Block, ChipName, HostAddMetrics, HostConfig, HostConfigSize, HostDeinitialize, HostEvaluate,
    HostInitialize, HostPasses, ProfilerInitialize,
};
use crate::cupti::{Cupti, CuptiError, numbers};

/// Names kept alive beside the pointers that CUPTI is given.
pub struct MetricNames {
    names: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers point into `names`, which is never changed.
unsafe impl Send for MetricNames {}
// SAFETY: as above.
unsafe impl Sync for MetricNames {}

impl MetricNames {
    /// Of `names`; one with a zero byte would be no metric.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let names: Vec<CString> = names.filter_map(|name| CString::new(name).ok()).collect();
        let pointers = names.iter().map(|name| name.as_ptr()).collect();
        Self { names, pointers }
    }

    /// For CUPTI.
    pub fn pointers(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }

    /// Number of names.
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

/// Makes the profiler ready in this process. Calling it again does no harm.
pub fn initialize_profiler(cupti: &Cupti) -> Result<(), CuptiError> {
    let Some(host) = cupti.host else {
        return Err(too_old());
    };
    let mut block = ProfilerInitialize::new();
    // SAFETY: a block of the size that it states.
    cupti.check("starting the profiler", unsafe {
        (host.profiler_initialize)(&mut block)
    })
}

/// The name of the chip of GPU `index`, as CUPTI spells it.
pub fn chip_name(cupti: &Cupti, index: u32) -> Result<String, CuptiError> {
    let Some(host) = cupti.host else {
        return Err(too_old());
    };
    let mut block = ChipName::new();
    block.deviceIndex = index as usize;
    // SAFETY: a block of the size that it states.
    cupti.check("asking for the chip's name", unsafe {
        (host.chip_name)(&mut block)
    })?;
    if block.pChipName.is_null() {
        return Err(too_old());
    }
    // SAFETY: not null, and terminated by CUPTI.
    Ok(unsafe { CStr::from_ptr(block.pChipName) }
        .to_string_lossy()
        .into_owned())
}

/// The error of a CUPTI before 12.6.
pub fn too_old() -> CuptiError {
    CuptiError {
        doing: "looking for counters",
        number: 0,
        word:
            "this CUPTI is older than 12.6 and has neither periodic sampling nor the range profiler"
                .to_owned(),
    }
}

/// A host object: knows the chip's metrics.
pub struct HostObject<'cupti> {
    cupti: &'cupti Cupti,
    object: *mut c_void,
}

impl<'cupti> HostObject<'cupti> {
    /// For `chip`; `availability` tells what this device lets us count.
    pub fn new(
        cupti: &'cupti Cupti,
        kind: u32,
        chip: &str,
        availability: Option<&[u8]>,
    ) -> Result<Self, CuptiError> {
        let Some(host) = cupti.host else {
            return Err(too_old());
        };
        let chip = CString::new(chip).unwrap_or_default();
        // Older libraries refuse the longer block, newer ones may refuse the shorter.
        let mut result = numbers::SUCCESS;
        for size in [HostInitialize::SHORTER, HostInitialize::SIZE] {
            let mut block = HostInitialize::new();
            block.structSize = size;
            block.profilerType = kind;
            block.pChipName = chip.as_ptr();
            block.pCounterAvailabilityImage = availability.map_or(std::ptr::null(), <[u8]>::as_ptr);
            // SAFETY: a block of at least the size that it states; the images outlive the call.
            result = unsafe { (host.initialize)(&mut block) };
            if result == numbers::SUCCESS {
                return Ok(Self {
                    cupti,
                    object: block.pHostObject,
                });
            }
            if result != numbers::INVALID_PARAMETER {
                break;
            }
        }
        cupti.check("asking for the chip's metrics", result)?;
        Err(too_old())
    }

    fn host(&self) -> crate::cupti::Host {
        self.cupti.host.expect("made with these functions")
    }

    /// Adds metrics to the configuration.
    pub fn add(&self, names: &MetricNames) -> Result<(), CuptiError> {
        let mut block = HostAddMetrics::new();
        block.pHostObject = self.object;
        block.ppMetricNames = names.pointers();
        block.numMetrics = names.count();
        // SAFETY: a block of the size that it states, and live strings.
        self.cupti.check("choosing metrics", unsafe {
            (self.host().add_metrics)(&mut block)
        })
    }

    /// The configuration image, and the passes over a kernel that it needs.
    pub fn configuration(&self) -> Result<(Vec<u8>, usize), CuptiError> {
        let host = self.host();
        let mut size = HostConfigSize::new();
        size.pHostObject = self.object;
        // SAFETY: blocks of the sizes that they state, here and below.
        self.cupti.check("sizing the configuration", unsafe {
            (host.config_size)(&mut size)
        })?;
        let mut image = vec![0; size.configImageSize];
        let mut block = HostConfig::new();
        block.pHostObject = self.object;
        block.configImageSize = image.len();
        block.pConfigImage = image.as_mut_ptr();
        // SAFETY: the image has the size that CUPTI asked for.
        self.cupti.check("making the configuration", unsafe {
            (host.config)(&mut block)
        })?;
        let mut passes = HostPasses::new();
        passes.configImageSize = image.len();
        passes.pConfigImage = image.as_mut_ptr();
        // SAFETY: as above.
        let counted = unsafe { (host.passes)(&mut passes) };
        self.cupti.check("counting passes", counted)?;
        Ok((image, passes.numOfPasses))
    }

    /// The values of sample or range `index` of a counter image, in the order of `names`.
    pub fn evaluate(
        &self,
        image: &[u8],
        index: usize,
        names: &MetricNames,
        values: &mut [f64],
    ) -> Result<(), CuptiError> {
        assert_eq!(values.len(), names.count(), "one place per metric");
        let mut block = HostEvaluate::new();
        block.pHostObject = self.object;
        block.pCounterDataImage = image.as_ptr();
        block.counterDataImageSize = image.len();
        block.rangeIndex = index;
        block.ppMetricNames = names.pointers();
        block.numMetrics = names.count();
        block.pMetricValues = values.as_mut_ptr();
        // SAFETY: a block of the size that it states; places for every value (asserted).
        self.cupti.check("evaluating counters", unsafe {
            (self.host().evaluate)(&mut block)
        })
    }
}

impl Drop for HostObject<'_> {
    fn drop(&mut self) {
        let mut block = HostDeinitialize::new();
        block.pHostObject = self.object;
        // SAFETY: the object of this value, not used again.
        unsafe { (self.host().deinitialize)(&mut block) };
    }
}

// SAFETY: CUPTI's host functions may be called from any thread; this object is used by one at a time.
unsafe impl Send for HostObject<'_> {}
