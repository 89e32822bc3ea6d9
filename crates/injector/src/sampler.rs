//! Periodic sampling of one GPU: the series.
//!
//! The hardware writes the growth of each counter over each interval into a buffer; this reads the
//! buffer now and then. The program's kernels are not touched.
//!
//! While the GPU is busy, the newest sample of a decode is usually incomplete: the rest of it comes
//! with the next decode, but only into the same counter image. Clearing the image each time, as
//! examples do, loses most of one sample per decode (2 to 7 % on an H200). So the image is filled
//! on and on, and left when no sample is incomplete, or when it is nearly full: then a part of one
//! sample is lost in a thousand. Clearing takes tens of milliseconds, so there are two images: one is
//! cleared while the other is filled. (Stopping the hardware instead, to have no incomplete sample,
//! takes it eleven milliseconds.) Readers see gaps between samples, and tell.

use std::ffi::c_void;

use lockstep_schema::Metric;

use crate::clock::{self, MatchedClock};
use crate::cupti::layouts::{
    Block, SamplingAvailability, SamplingConfig, SamplingDecode, SamplingDisable, SamplingEnable,
    SamplingImageInfo, SamplingImageInitialize, SamplingImageSize, SamplingSampleInfo,
    SamplingStart, SamplingStop,
};
use crate::cupti::{Cupti, CuptiError, Sampling, numbers};
use crate::host_object::{HostObject, MetricNames, too_old};
use crate::report;

/// Raw samples wait here until they are decoded; seconds of them at one per millisecond.
const HARDWARE_BUFFER: usize = 64 << 20;
/// Bytes that the counter image should have. One sample of five counters takes 35 to 50 kB on GH100.
const IMAGE_BYTES: usize = 48 << 20;
/// Samples of the image, whatever their size.
const FEWEST_SAMPLES: usize = 64;
const MOST_SAMPLES: usize = 2048;

/// One interval of one GPU, in host time.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Nanoseconds since 1970.
    pub begin: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    /// Growth of each sampled counter, with the counter's place in the metadata file.
    pub growth: Vec<(usize, u64)>,
}

/// Samples one GPU until it is dropped.
pub struct Sampler {
    cupti: &'static Cupti,
    functions: Sampling,
    object: *mut c_void,
    host: HostObject<'static>,
    names: MetricNames,
    places: Vec<usize>,
    image: Vec<u8>,
    /// A cleared image that takes over when the other is full.
    spare: Vec<u8>,
    /// Samples that an image holds.
    capacity: usize,
    /// Samples of the image that were handed over.
    evaluated: usize,
    interval: u64,
    clock: MatchedClock,
    running: bool,
    _configuration: Vec<u8>,
    _availability: Vec<u8>,
}

// SAFETY: CUPTI's sampling functions may be called from any thread; a sampler is used by one at a
// time, behind a lock.
unsafe impl Send for Sampler {}

/// Metrics that can be sampled together, with what had to be left out and why.
struct Choice {
    host: HostObject<'static>,
    names: MetricNames,
    places: Vec<usize>,
    configuration: Vec<u8>,
}

impl Sampler {
    /// Starts sampling GPU `index`, whose chip is `chip`, every `interval` nanoseconds.
    ///
    /// Counters that this chip cannot sample beside the others are left out, each with a sentence.
    pub fn start(
        cupti: &'static Cupti,
        index: u32,
        chip: &str,
        counters: &[&'static Metric],
        interval: u64,
        tell: &mut dyn FnMut(String),
    ) -> Result<Self, CuptiError> {
        let Some(functions) = cupti.sampling else {
            return Err(too_old());
        };
        let availability = availability(cupti, &functions, index)?;
        let choice = choose(cupti, chip, &availability, counters, tell)?;

        let mut enable = SamplingEnable::new();
        enable.deviceIndex = index as usize;
        // SAFETY: blocks of the sizes that they state, here and below.
        cupti.check("enabling periodic sampling", unsafe {
            (functions.enable)(&mut enable)
        })?;
        let mut sampler = Self {
            cupti,
            functions,
            object: enable.pPmSamplingObject,
            host: choice.host,
            names: choice.names,
            places: choice.places,
            image: Vec::new(),
            spare: Vec::new(),
            capacity: 0,
            evaluated: 0,
            interval,
            clock: MatchedClock::default(),
            running: false,
            _configuration: choice.configuration,
            _availability: availability,
        };
        sampler.configure(interval)?;
        sampler.run()?;
        Ok(sampler)
    }

    fn configure(&mut self, interval: u64) -> Result<(), CuptiError> {
        let mut block = SamplingConfig::new();
        block.pPmSamplingObject = self.object;
        block.configSize = self._configuration.len();
        block.pConfig = self._configuration.as_ptr();
        block.hardwareBufferSize = HARDWARE_BUFFER;
        block.samplingInterval = interval;
        block.triggerMode = numbers::TRIGGER_TIME;
        block.hwBufferAppendMode = numbers::KEEP_OLDEST;
        // SAFETY: the images live as long as `self`.
        let result = unsafe { (self.functions.set_config)(&mut block) };
        self.cupti.check("configuring periodic sampling", result)?;

        let one = self.image_bytes(1)?.max(1);
        self.capacity = (IMAGE_BYTES / one).clamp(FEWEST_SAMPLES, MOST_SAMPLES);
        self.image = vec![0; self.image_bytes(self.capacity)?];
        self.spare = vec![0; self.image.len()];
        self.clear_spare()?;
        self.take_spare();
        self.clear_spare()
    }

    /// Bytes of an image for so many samples.
    fn image_bytes(&self, samples: usize) -> Result<usize, CuptiError> {
        let mut size = SamplingImageSize::new();
        size.pPmSamplingObject = self.object;
        size.pMetricNames = self.names.pointers();
        size.numMetrics = self.names.count();
        size.maxSamples = samples as u32;
        // SAFETY: live names.
        let result = unsafe { (self.functions.image_size)(&mut size) };
        self.cupti.check("sizing the counter image", result)?;
        Ok(size.counterDataSize)
    }

    fn clear_spare(&mut self) -> Result<(), CuptiError> {
        let mut block = SamplingImageInitialize::new();
        block.pPmSamplingObject = self.object;
        block.counterDataSize = self.spare.len();
        block.pCounterData = self.spare.as_mut_ptr();
        // SAFETY: the image has the size that CUPTI asked for.
        let result = unsafe { (self.functions.image_initialize)(&mut block) };
        self.cupti.check("clearing the counter image", result)
    }

    /// The cleared image takes over; the other must be cleared before its next turn.
    fn take_spare(&mut self) {
        std::mem::swap(&mut self.image, &mut self.spare);
        self.evaluated = 0;
    }

    fn run(&mut self) -> Result<(), CuptiError> {
        let mut block = SamplingStart::new();
        block.pPmSamplingObject = self.object;
        // SAFETY: an enabled and configured object.
        let result = unsafe { (self.functions.start)(&mut block) };
        self.cupti.check("starting periodic sampling", result)?;
        self.running = true;
        Ok(())
    }

    /// Stops the hardware; what it wrote can still be drained.
    pub fn stop(&mut self) {
        if std::mem::take(&mut self.running) {
            let mut block = SamplingStop::new();
            block.pPmSamplingObject = self.object;
            // SAFETY: a started object.
            unsafe { (self.functions.stop)(&mut block) };
        }
    }

    /// Hands over every interval that is complete, oldest first; says whether the hardware's buffer
    /// overflowed, so that samples were lost.
    pub fn drain(&mut self, take: &mut dyn FnMut(Interval)) -> Result<bool, CuptiError> {
        let progress = self.decode(take)?;
        let overflowed = progress.overflowed;
        let whole = progress.populated == self.evaluated;
        let nearly_full = self.evaluated > self.capacity * 7 / 8 || progress.full;
        if self.running && overflowed {
            // Whatever the hardware does after that, a fresh start is sound.
            self.stop();
            // Stopped, the hardware has nothing more to say after a few decodes.
            for _ in 0..8 {
                let before = self.evaluated;
                if self.decode(take)?.full {
                    self.take_spare();
                    self.clear_spare()?;
                } else if self.evaluated == before {
                    break;
                }
            }
            self.take_spare();
            self.run()?;
            self.clear_spare()?;
        } else if nearly_full || (self.evaluated > self.capacity / 2 && whole) {
            self.take_spare();
            self.clear_spare()?;
        }
        Ok(overflowed)
    }

    fn decode(&mut self, take: &mut dyn FnMut(Interval)) -> Result<Progress, CuptiError> {
        let mut decode = SamplingDecode::new();
        decode.pPmSamplingObject = self.object;
        decode.pCounterDataImage = self.image.as_mut_ptr();
        decode.counterDataImageSize = self.image.len();
        // SAFETY: an initialised image of the stated size.
        let result = unsafe { (self.functions.decode)(&mut decode) };
        let now = clock::now();
        let overflowed = decode.overflow != 0 || result == numbers::OUT_OF_MEMORY;
        if !overflowed {
            self.cupti.check("decoding samples", result)?;
        }
        let populated = self.evaluate(now, take)?;
        Ok(Progress {
            overflowed,
            populated,
            full: decode.decodeStopReason == numbers::STOPPED_IMAGE_FULL,
        })
    }

    /// Hands over samples that became complete, and says how many the image holds.
    fn evaluate(&mut self, now: u64, take: &mut dyn FnMut(Interval)) -> Result<usize, CuptiError> {
        let mut info = SamplingImageInfo::new();
        info.pCounterDataImage = self.image.as_ptr();
        info.counterDataImageSize = self.image.len();
        // SAFETY: an initialised image of the stated size, here and below.
        let result = unsafe { (self.functions.image_info)(&mut info) };
        self.cupti.check("counting samples", result)?;
        let mut values = vec![0.0; self.names.count()];
        for index in self.evaluated..info.numCompletedSamples {
            let mut sample = SamplingSampleInfo::new();
            sample.pPmSamplingObject = self.object;
            sample.pCounterDataImage = self.image.as_ptr();
            sample.counterDataImageSize = self.image.len();
            sample.sampleIndex = index;
            // SAFETY: as above.
            let result = unsafe { (self.functions.sample_info)(&mut sample) };
            self.cupti.check("reading a sample's time", result)?;
            self.host
                .evaluate(&self.image, index, &self.names, &mut values)?;
            self.evaluated = index + 1;
            self.clock.observe(sample.endTimestamp, now);
            let end = self.clock.host_time(sample.endTimestamp);
            // The first sample after a start claims to begin when the hardware was set up.
            let begin = self
                .clock
                .host_time(sample.startTimestamp)
                .max(end.saturating_sub(self.interval));
            let whole = |value: f64| {
                if value.is_finite() && value > 0.0 {
                    value.round() as u64
                } else {
                    0
                }
            };
            take(Interval {
                begin,
                end,
                growth: self
                    .places
                    .iter()
                    .copied()
                    .zip(values.iter().copied().map(whole))
                    .collect(),
            });
        }
        report::detail(&format!(
            "decoded in {} ns: {} complete of {}",
            clock::now() - now,
            info.numCompletedSamples,
            info.numPopulatedSamples
        ));
        Ok(info.numPopulatedSamples)
    }
}

/// What one decode did.
struct Progress {
    overflowed: bool,
    full: bool,
    populated: usize,
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop();
        let mut block = SamplingDisable::new();
        block.pPmSamplingObject = self.object;
        // SAFETY: an enabled object, stopped, not used again.
        unsafe { (self.functions.disable)(&mut block) };
    }
}

/// What this device lets us count.
fn availability(cupti: &Cupti, functions: &Sampling, index: u32) -> Result<Vec<u8>, CuptiError> {
    let mut block = SamplingAvailability::new();
    block.deviceIndex = index as usize;
    // SAFETY: blocks of the sizes that they state; the second call has the room that the first asked for.
    cupti.check("asking what can be counted", unsafe {
        (functions.availability)(&mut block)
    })?;
    let mut image = vec![0; block.counterAvailabilityImageSize];
    block.pCounterAvailabilityImage = image.as_mut_ptr();
    // SAFETY: as above.
    cupti.check("asking what can be counted", unsafe {
        (functions.availability)(&mut block)
    })?;
    Ok(image)
}

/// The largest leading part of `counters` that fits one pass.
fn choose(
    cupti: &'static Cupti,
    chip: &str,
    availability: &[u8],
    counters: &[&'static Metric],
    tell: &mut dyn FnMut(String),
) -> Result<Choice, CuptiError> {
    let mut wanted: Vec<(usize, &'static str)> = Vec::new();
    for (place, counter) in counters.iter().enumerate() {
        match counter
            .definition(chip)
            .and_then(|definition| definition.sampled)
        {
            Some(metric) => wanted.push((place, metric)),
            None => tell(format!(
                "`{}` is left out: it needs several passes over a kernel on {chip}, so it cannot be sampled; use mode = \"exact\"",
                counter.name
            )),
        }
    }
    if let Some(choice) = attempt(cupti, chip, availability, &wanted)?.ok_or_single() {
        return Ok(choice);
    }
    // Too many together, or one that this chip lacks: add them one by one and keep what fits.
    let mut kept: Vec<(usize, &'static str)> = Vec::new();
    for candidate in wanted {
        let mut longer = kept.clone();
        longer.push(candidate);
        let name = counters[candidate.0].name;
        match attempt(cupti, chip, availability, &longer)? {
            Attempt::OnePass(_) => kept = longer,
            Attempt::Passes(passes) => tell(format!(
                "`{name}` is left out: with the others it needs {passes} passes over a kernel on {chip}, and sampling has one; use mode = \"exact\", or fewer counters"
            )),
            Attempt::Refused(error) => tell(format!(
                "`{name}` is left out: {chip} has no metric {} ({error})",
                candidate.1
            )),
        }
    }
    if kept.is_empty() {
        return Err(CuptiError {
            doing: "choosing metrics",
            number: numbers::INVALID_METRIC_NAME,
            word: format!("none of the counters can be sampled on {chip}"),
        });
    }
    attempt(cupti, chip, availability, &kept)?
        .ok_or_single()
        .ok_or_else(too_old)
}

enum Attempt {
    OnePass(Choice),
    Passes(usize),
    Refused(CuptiError),
}

impl Attempt {
    fn ok_or_single(self) -> Option<Choice> {
        match self {
            Self::OnePass(choice) => Some(choice),
            _ => None,
        }
    }
}

fn attempt(
    cupti: &'static Cupti,
    chip: &str,
    availability: &[u8],
    metrics: &[(usize, &'static str)],
) -> Result<Attempt, CuptiError> {
    let host = HostObject::new(cupti, numbers::PROFILER_SAMPLING, chip, Some(availability))?;
    let names = MetricNames::new(metrics.iter().map(|(_, name)| *name));
    if let Err(error) = host.add(&names) {
        return Ok(Attempt::Refused(error));
    }
    let (configuration, passes) = host.configuration()?;
    if passes != 1 {
        return Ok(Attempt::Passes(passes));
    }
    Ok(Attempt::OnePass(Choice {
        host,
        names,
        places: metrics.iter().map(|(place, _)| *place).collect(),
        configuration,
    }))
}
