//! Exact counts, kernel by kernel, through the range profiler.
//!
//! CUPTI makes each kernel a range of its own and waits for it, so launches cost milliseconds and
//! never overlap; that is the price of exact counts. Ranges come back in the order of launches,
//! which [`crate::exact_gate`] keeps when threads and contexts share a GPU. Each kernel of a graph is a
//! range too.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;

use lockstep_schema::Metric;

use crate::cupti::layouts::{
    Block, RangeConfig, RangeDecode, RangeDisable, RangeEnable, RangeImageInfo,
    RangeImageInitialize, RangeImageSize, RangeStart, RangeStop,
};
use crate::cupti::{Cupti, CuptiError, Range, numbers};
use crate::host_object::{HostObject, MetricNames, too_old};
use crate::session::Launch;
use crate::{clock, report};

/// Ranges between two times that counters are read.
const MOST_RANGES: usize = 256;

/// What is counted on one chip. Making it takes long, so contexts share one.
pub struct Plan {
    host: HostObject<'static>,
    names: MetricNames,
    places: Vec<usize>,
    configuration: Vec<u8>,
}

// SAFETY: a plan is used by whoever has the turn on its GPU, one thread at a time.
unsafe impl Sync for Plan {}

impl Plan {
    /// Chooses the metrics of `counters` on `chip`.
    pub fn new(
        cupti: &'static Cupti,
        chip: &str,
        counters: &[&'static Metric],
        tell: &mut dyn FnMut(String),
    ) -> Result<Self, CuptiError> {
        let host = HostObject::new(cupti, numbers::PROFILER_RANGE, chip, None)?;
        let mut chosen = Vec::new();
        for (place, counter) in counters.iter().enumerate() {
            let Some(definition) = counter.definition(chip) else {
                continue;
            };
            match host.add(&MetricNames::new([definition.exact].into_iter())) {
                Ok(()) => chosen.push((place, definition.exact)),
                Err(error) => {
                    tell(format!(
                        "`{}` is left out: {chip} has no metric {} ({error})",
                        counter.name, definition.exact
                    ));
                }
            }
        }
        if chosen.is_empty() {
            return Err(CuptiError {
                doing: "choosing metrics",
                number: numbers::INVALID_METRIC_NAME,
                word: format!("none of the counters exists on {chip}"),
            });
        }
        let (configuration, _) = host.configuration()?;
        Ok(Self {
            host,
            names: MetricNames::new(chosen.iter().map(|(_, name)| *name)),
            places: chosen.iter().map(|(place, _)| *place).collect(),
            configuration,
        })
    }
}

/// The range profiler of one context.
pub struct ExactContext {
    cupti: &'static Cupti,
    functions: Range,
    object: *mut c_void,
    plan: Arc<Plan>,
    image: Vec<u8>,
    running: bool,
    pending: VecDeque<Launch>,
}

// SAFETY: a context's profiler is used by one thread at a time, behind a lock.
unsafe impl Send for ExactContext {}

impl ExactContext {
    /// Prepares to count every kernel of `context`.
    pub fn enable(
        cupti: &'static Cupti,
        context: *mut c_void,
        plan: Arc<Plan>,
    ) -> Result<Self, CuptiError> {
        let Some(functions) = cupti.range else {
            return Err(too_old());
        };
        let mut enable = RangeEnable::new();
        enable.ctx = context;
        let begun = clock::now();
        // SAFETY: blocks of the sizes that they state, here and below; a live context.
        cupti.check("enabling the range profiler", unsafe {
            (functions.enable)(&mut enable)
        })?;
        let mut exact = Self {
            cupti,
            functions,
            object: enable.pRangeProfilerObject,
            plan,
            image: Vec::new(),
            running: false,
            pending: VecDeque::new(),
        };
        let mut size = RangeImageSize::new();
        size.pRangeProfilerObject = exact.object;
        size.pMetricNames = exact.plan.names.pointers();
        size.numMetrics = exact.plan.names.count();
        size.maxNumOfRanges = MOST_RANGES;
        size.maxNumRangeTreeNodes = MOST_RANGES as u32;
        // SAFETY: live names.
        cupti.check("sizing the counter image", unsafe {
            (functions.image_size)(&mut size)
        })?;
        exact.image = vec![0; size.counterDataSize];
        took("enabling", context, begun);
        Ok(exact)
    }

    /// Starts counting, with an empty image.
    pub fn run(&mut self) -> Result<(), CuptiError> {
        let begun = clock::now();
        let mut clear = RangeImageInitialize::new();
        clear.pRangeProfilerObject = self.object;
        clear.counterDataSize = self.image.len();
        clear.pCounterData = self.image.as_mut_ptr();
        // SAFETY: the image has the size that CUPTI asked for.
        let result = unsafe { (self.functions.image_initialize)(&mut clear) };
        self.cupti.check("clearing the counter image", result)?;
        let mut block = RangeConfig::new();
        block.pRangeProfilerObject = self.object;
        block.configSize = self.plan.configuration.len();
        block.pConfig = self.plan.configuration.as_ptr();
        block.counterDataImageSize = self.image.len();
        block.pCounterDataImage = self.image.as_mut_ptr();
        block.range = numbers::RANGE_AUTOMATIC;
        block.replayMode = numbers::REPLAY_KERNEL;
        block.maxRangesPerPass = MOST_RANGES;
        block.numNestingLevels = 1;
        block.minNestingLevel = 1;
        // SAFETY: the images live, unmoved, as long as `self` profiles.
        let result = unsafe { (self.functions.set_config)(&mut block) };
        self.cupti.check("configuring the range profiler", result)?;
        let mut start = RangeStart::new();
        start.pRangeProfilerObject = self.object;
        // SAFETY: an enabled and configured object.
        let result = unsafe { (self.functions.start)(&mut start) };
        self.cupti.check("starting the range profiler", result)?;
        self.running = true;
        took("starting", self.object, begun);
        Ok(())
    }

    /// Whether the counters must be read before another launch.
    pub fn is_full(&self) -> bool {
        self.pending.len() + 1 >= MOST_RANGES
    }

    /// Whether launches are being counted.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// A kernel was launched; its range comes after those before it.
    pub fn launched(&mut self, launch: Launch) {
        self.pending.push_back(launch);
    }

    /// Reads what was counted and matches it with the launches before, then with those of `graph`.
    ///
    /// With `again`, counting goes on afterwards.
    pub fn collect(&mut self, again: bool, graph: Vec<Launch>) -> Result<Vec<Launch>, CuptiError> {
        // Ranges beyond the listed kernels of a graph are still the graph's.
        let unlisted = graph.last().map(|last| Launch {
            name: "(graph)".to_owned(),
            ..last.clone()
        });
        self.pending.extend(graph);
        if !std::mem::take(&mut self.running) {
            return Ok(self.pending.drain(..).collect());
        }
        let begun = clock::now();
        let mut stop = RangeStop::new();
        stop.pRangeProfilerObject = self.object;
        // SAFETY: a started object.
        self.cupti.check("stopping the range profiler", unsafe {
            (self.functions.stop)(&mut stop)
        })?;
        let mut decode = RangeDecode::new();
        decode.pRangeProfilerObject = self.object;
        // SAFETY: a stopped object.
        let result = unsafe { (self.functions.decode)(&mut decode) };
        self.cupti.check("decoding ranges", result)?;
        let mut info = RangeImageInfo::new();
        info.pCounterDataImage = self.image.as_ptr();
        info.counterDataImageSize = self.image.len();
        // SAFETY: an initialised image of the stated size.
        let result = unsafe { (self.functions.image_info)(&mut info) };
        self.cupti.check("counting ranges", result)?;
        took("stopping and decoding", self.object, begun);
        if info.numTotalRanges != self.pending.len() || decode.numOfRangeDropped != 0 {
            report::detail(&format!(
                "{} ranges of {} launches, {} dropped",
                info.numTotalRanges,
                self.pending.len(),
                decode.numOfRangeDropped
            ));
        }
        let mut done = Vec::new();
        let mut values = vec![0.0; self.plan.names.count()];
        for index in 0..info.numTotalRanges {
            self.plan
                .host
                .evaluate(&self.image, index, &self.plan.names, &mut values)?;
            let Some(mut launch) = self.pending.pop_front().or_else(|| unlisted.clone()) else {
                break;
            };
            let whole = |value: f64| {
                if value.is_finite() && value > 0.0 {
                    value.round() as u64
                } else {
                    0
                }
            };
            launch.counts = self
                .plan
                .places
                .iter()
                .copied()
                .zip(values.iter().copied().map(whole))
                .collect();
            done.push(launch);
        }
        // A launch without a range failed in the driver; it is still part of the time line.
        done.extend(self.pending.drain(..));
        if again {
            self.run()?;
        }
        Ok(done)
    }
}

impl Drop for ExactContext {
    fn drop(&mut self) {
        if self.running {
            let mut stop = RangeStop::new();
            stop.pRangeProfilerObject = self.object;
            // SAFETY: a started object.
            unsafe { (self.functions.stop)(&mut stop) };
        }
        let begun = clock::now();
        let mut block = RangeDisable::new();
        block.pRangeProfilerObject = self.object;
        // SAFETY: an enabled object, stopped, not used again.
        let result = unsafe { (self.functions.disable)(&mut block) };
        took("disabling", self.object, begun);
        if let Err(error) = self.cupti.check("disabling the range profiler", result) {
            report::detail(&error.to_string());
        }
    }
}

/// A line in the log.
fn took(what: &str, whose: *mut c_void, begun: u64) {
    report::detail(&format!(
        "{what} the range profiler {whose:?} took {} ns",
        clock::now() - begun
    ));
}
