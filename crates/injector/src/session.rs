//! The injector's state in one process.
//!
//! Locks are taken in the order devices, contexts, publisher, and none is held while CUPTI may call
//! back.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use lockstep_schema::{Metric, Mode, Timeline};
use lockstep_segment::{
    IdentityKind, KEPT, NO_IDENTITY, Publisher, Record, RecordKind, RowKey, SegmentDirectory,
};

use crate::cupti::{Cupti, CuptiError};
use crate::driver::Driver;
use crate::exact_gate::{Gates, Outcome};
use crate::graphs::Graphs;
use crate::ownership::Ownership;
use crate::progress::{Made, Progress};
use crate::sampler::{Interval, Sampler};
use crate::settings::Settings;
use crate::{clock, host_object, report, worker};

/// Contexts after which CUPTI has certainly loaded all of its parts.
const MOST_ARRANGEMENTS: u32 = 4;

static SESSION: OnceLock<Session> = OnceLock::new();

/// The session of this process; nothing in a forked child, which inherits the memory but not the
/// threads.
pub fn current() -> Option<&'static Session> {
    SESSION
        .get()
        .filter(|session| session.process == std::process::id())
}

/// One kernel launch.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Index of the GPU in the process.
    pub device: u32,
    /// CUPTI's number of the context.
    pub context: u32,
    /// CUPTI's number of the stream.
    pub stream: u32,
    /// CUPTI's number of the launch.
    pub number: u64,
    /// Nanoseconds since 1970.
    pub begin: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads.
    pub block: [u32; 3],
    /// Name as the driver gives it.
    pub name: String,
    /// Exact counts, with the counter's place in the metadata file.
    pub counts: Vec<(usize, u64)>,
}

/// One GPU that the process uses.
pub struct Device {
    /// Number in the segment.
    pub identity: u32,
    /// UUID in the system's spelling.
    pub uuid: String,
    /// Chip as CUPTI spells it.
    pub chip: String,
    /// Present while this process samples the GPU.
    pub sampler: Option<(Sampler, Ownership)>,
    /// CUPTI refused to sample: asking again would not help.
    pub refused: bool,
}

/// All of it.
pub struct Session {
    process: u32,
    /// From the environment.
    pub settings: Settings,
    /// Resolved names of the metadata file.
    pub counters: Vec<&'static Metric>,
    /// Opened at the start.
    pub cupti: Cupti,
    driver: Option<Driver>,
    publisher: Mutex<Publisher>,
    devices: Mutex<BTreeMap<u32, Device>>,
    contexts: Mutex<BTreeMap<u32, (u32, u32)>>,
    /// Exact counting.
    pub gates: Gates,
    /// Kernels of graphs.
    pub graphs: Graphs,
    /// How far streams have come, while they share a GPU.
    pub progress: Progress,
    stopping: Mutex<bool>,
    wake: Condvar,
}

/// A lock whose holder panicked still guards plain data that is valid at every step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Session {
    /// Makes the session of this process; a sentence if that is impossible.
    pub fn begin(settings: Settings) -> Result<&'static Self, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let group = &settings.metadata.segment.group;
        let directory =
            SegmentDirectory::open(&settings.segments, group).map_err(|error| text(&error))?;
        SegmentDirectory::open(&settings.locks, group).map_err(|error| text(&error))?;
        // What cannot be removed now is left for the next process that looks.
        let _ = directory.reap(clock::now(), KEPT);
        let counters = settings.metadata.resolved_counters();
        let values = counters
            .len()
            .max(lockstep_schema::DEVICE_GAUGES.len())
            .max(lockstep_schema::HOST_GAUGES.len());
        let mut publisher =
            Publisher::create(&directory, values, settings.metadata.segment.maximum.0)
                .map_err(|error| text(&error))?;
        publisher.beat(clock::now());
        let names: Vec<&str> = counters.iter().map(|counter| counter.name).collect();
        publisher.introduce(&command(), &names);
        let cupti = match Cupti::open() {
            Ok(cupti) => cupti,
            Err(sentence) => {
                // The reader shows it; the segment is finished when the publisher goes.
                publisher.name(IdentityKind::Loss, NO_IDENTITY, 0, &sentence);
                return Err(sentence);
            }
        };
        let session = Self {
            process: std::process::id(),
            settings,
            counters,
            cupti,
            driver: Driver::open().ok(),
            publisher: Mutex::new(publisher),
            devices: Mutex::default(),
            contexts: Mutex::default(),
            gates: Gates::default(),
            graphs: Graphs::open(),
            progress: Progress::open(),
            stopping: Mutex::new(false),
            wake: Condvar::new(),
        };
        if SESSION.set(session).is_err() {
            return Err("the injector was started twice in one process".to_owned());
        }
        SESSION
            .get()
            .ok_or_else(|| "the injector did not start".to_owned())
    }

    /// Tells the user one sentence, once, here and in the segment.
    pub fn tell(&self, sentence: &str) {
        if report::tell(sentence) {
            lock(&self.publisher).name(IdentityKind::Notice, NO_IDENTITY, 0, sentence);
        }
    }

    /// Tells a sentence about something that was asked for and is lost: the reader ends with it.
    pub fn lose(&self, sentence: &str) {
        if report::tell(sentence) {
            lock(&self.publisher).name(IdentityKind::Loss, NO_IDENTITY, 0, sentence);
        }
    }

    /// Appends records.
    pub fn publish(&self, record: &Record) {
        lock(&self.publisher).publish(record);
    }

    /// A sign of life.
    pub fn beat(&self) {
        lock(&self.publisher).beat(clock::now());
    }

    /// Waits for `time` or until the session stops; true when it stops.
    pub fn wait(&self, time: Duration) -> bool {
        let stopping = lock(&self.stopping);
        if *stopping {
            return true;
        }
        *self
            .wake
            .wait_timeout(stopping, time)
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .0
    }

    /// Asks the worker to stop.
    pub fn stop(&self) {
        *lock(&self.stopping) = true;
        self.wake.notify_all();
    }

    /// Says that no record follows.
    pub fn finish(&self) {
        let publisher = lock(&self.publisher);
        publisher.beat(clock::now());
        publisher.finish();
    }

    /// Runs `use_them` with the GPUs that the process uses.
    pub fn with_devices<T>(&self, use_them: impl FnOnce(&mut BTreeMap<u32, Device>) -> T) -> T {
        use_them(&mut lock(&self.devices))
    }

    /// Learns GPU `index` before any context exists.
    pub fn learn_gpu(&self, index: u32) {
        self.learn_device(index);
    }

    /// Stops sampling every GPU, publishing what was sampled; true if any was.
    pub fn release_all(&self) -> bool {
        worker::stop_samplers(self);
        self.with_devices(|devices| {
            let released: Vec<_> = devices
                .values_mut()
                .filter_map(|one| one.sampler.take())
                .collect();
            !released.is_empty()
        })
    }

    /// Learns GPU `index` if it is new, and returns its number in the segment.
    fn learn_device(&self, index: u32) -> u32 {
        let mut devices = lock(&self.devices);
        if let Some(device) = devices.get(&index) {
            return device.identity;
        }
        let uuid = self
            .driver
            .and_then(|driver| driver.uuid(index))
            .unwrap_or_else(|| format!("GPU-unknown-{index}"));
        let chip = host_object::initialize_profiler(&self.cupti)
            .and_then(|()| host_object::chip_name(&self.cupti, index))
            .unwrap_or_default();
        let mut publisher = lock(&self.publisher);
        let identity = publisher.name(IdentityKind::Device, NO_IDENTITY, index, &uuid);
        publisher.name(IdentityKind::Chip, identity, index, &chip);
        drop(publisher);
        report::detail(&format!("GPU {index} is {uuid}, chip {chip}"));
        devices.insert(
            index,
            Device {
                identity,
                uuid,
                chip,
                sampler: None,
                refused: false,
            },
        );
        identity
    }

    /// Learns a context if it is new, and returns the numbers of its device and itself.
    fn learn_context(&self, device: u32, context: u32) -> (u32, u32) {
        if let Some(known) = lock(&self.contexts).get(&context) {
            return *known;
        }
        let device = self.learn_device(device);
        let mut contexts = lock(&self.contexts);
        *contexts.entry(context).or_insert_with(|| {
            (
                device,
                lock(&self.publisher).name(IdentityKind::Context, device, context, ""),
            )
        })
    }

    /// The program made a context: name it, and start counting on its GPU.
    pub fn context_created(&self, context: *mut c_void) {
        let tracing = self.cupti.tracing;
        let (mut number, mut device) = (0, 0);
        // SAFETY: the context that CUPTI named, and valid places, in both calls.
        let known = unsafe {
            (tracing.context_number)(context, &mut number) == 0
                && (tracing.device_number)(context, &mut device) == 0
        };
        if !known {
            return;
        }
        self.learn_context(device, number);
        if self.settings.metadata.mode == Mode::Sampled {
            self.claim(device);
        }
        self.arrange_end();
    }

    /// Whether kernels are timed by activity records; otherwise launches are followed.
    pub fn traces_kernels(&self) -> bool {
        let metadata = &self.settings.metadata;
        match metadata.mode {
            Mode::Timeline => true,
            Mode::Sampled => metadata.timeline == Timeline::Kernels,
            Mode::Exact => false,
        }
    }

    /// Whether each launch is noted as the host makes it.
    pub fn follows_launches(&self) -> bool {
        let metadata = &self.settings.metadata;
        match metadata.mode {
            Mode::Exact => true,
            Mode::Sampled => metadata.timeline == Timeline::Launches,
            Mode::Timeline => false,
        }
    }

    /// UUID and chip of GPU `index`.
    pub fn gpu(&self, index: u32) -> (String, String) {
        lock(&self.devices)
            .get(&index)
            .map(|device| (device.uuid.clone(), device.chip.clone()))
            .unwrap_or_default()
    }

    /// Arranges, once more, that the end of the process finds us first: libraries that CUPTI loads
    /// on the way are taken down before what was arranged earlier.
    pub fn arrange_end(&self) {
        static ARRANGED: AtomicU32 = AtomicU32::new(0);
        if ARRANGED.fetch_add(1, Ordering::Relaxed) < MOST_ARRANGEMENTS {
            worker::arrange_end();
        }
    }

    /// Starts sampling GPU `index` unless somebody does, or it was refused.
    pub fn claim(&self, index: u32) {
        let (mut sentences, mut losses) = (Vec::new(), Vec::new());
        {
            let mut devices = lock(&self.devices);
            let Some(device) = devices.get_mut(&index) else {
                return;
            };
            if device.sampler.is_some() || device.refused {
                return;
            }
            match Ownership::take(&self.settings.locks, &device.uuid) {
                Ok(Some(ownership)) => {
                    match self.start_sampler(index, &device.chip, &mut sentences) {
                        Ok(sampler) => device.sampler = Some((sampler, ownership)),
                        Err(error) => {
                            device.refused = true;
                            losses.push(format!("no counters of {}: {error}", device.uuid));
                        }
                    }
                }
                Ok(None) => {}
                Err(sentence) => {
                    device.refused = true;
                    sentences.push(sentence);
                }
            }
        }
        for sentence in sentences {
            self.tell(&sentence);
        }
        for sentence in losses {
            self.lose(&sentence);
        }
    }

    fn start_sampler(
        &self,
        index: u32,
        chip: &str,
        sentences: &mut Vec<String>,
    ) -> Result<Sampler, CuptiError> {
        let begun = clock::now();
        // Sessions are never dropped, so what they hold lives as long as the process.
        let cupti: &'static Cupti = &current().ok_or_else(host_object::too_old)?.cupti;
        host_object::initialize_profiler(cupti)?;
        let interval = self.settings.metadata.interval_nanoseconds();
        let sampler = Sampler::start(
            cupti,
            index,
            chip,
            &self.counters,
            interval,
            &mut |sentence| sentences.push(sentence),
        );
        report::detail(&format!(
            "starting to sample took {} ns",
            clock::now() - begun
        ));
        sampler
    }

    /// Publishes one interval of GPU `device`.
    pub fn publish_interval(&self, device: u32, interval: &Interval) {
        let mut record = Record::new(RecordKind::DeviceSample);
        record.device = device;
        record.begin = interval.begin;
        record.end = interval.end;
        let mut values = vec![0; self.counters.len()];
        for (place, growth) in &interval.growth {
            record.set(*place, *growth);
            values[*place] = *growth;
        }
        let key = RowKey {
            device,
            context: NO_IDENTITY,
            stream: 0,
            kernel: NO_IDENTITY,
        };
        let mut publisher = lock(&self.publisher);
        publisher.publish(&record);
        publisher.accumulate(key, 0, 0, interval.end, &values);
    }

    /// Publishes launches in order.
    pub fn publish_launches(&self, launches: &[Launch]) {
        let timed = self.traces_kernels();
        for launch in launches {
            let (device, context) = self.learn_context(launch.device, launch.context);
            let mut record = Record::new(RecordKind::Launch);
            record.device = device;
            record.context = context;
            record.stream = launch.stream;
            record.launch = launch.number;
            record.begin = launch.begin;
            record.end = launch.end;
            record.grid = launch.grid;
            record.block = launch.block;
            record.exact = !launch.counts.is_empty();
            record.timed = timed;
            let mut values = vec![0; self.counters.len()];
            for (place, count) in &launch.counts {
                record.set(*place, *count);
                values[*place] = *count;
            }
            let mut publisher = lock(&self.publisher);
            record.kernel = publisher.name_once(IdentityKind::Kernel, NO_IDENTITY, &launch.name);
            publisher.publish(&record);
            let key = RowKey {
                device,
                context,
                stream: launch.stream,
                kernel: record.kernel,
            };
            publisher.accumulate(
                key,
                1,
                launch.end.saturating_sub(launch.begin),
                launch.end,
                &values,
            );
        }
    }

    /// Publishes what became known at a gate.
    pub fn publish_outcome(&self, outcome: &Outcome) {
        self.publish_launches(&outcome.launches);
        for sentence in &outcome.sentences {
            self.tell(sentence);
        }
    }

    /// A launch was made into `stream`: have the device tell when it is over, if that matters.
    pub fn mark(&self, context: *mut c_void, stream: *mut c_void, last: &Launch) {
        let begins_to_wait = self.progress.launched(&Made {
            context,
            stream,
            device: last.device,
            context_number: last.context,
            stream_number: last.stream,
            launch: last.number,
            time: last.end,
        });
        if begins_to_wait {
            self.wake.notify_all();
        }
    }

    /// Publishes how far streams have come.
    pub fn publish_progress(&self) {
        for reached in self.progress.look(clock::now()) {
            let (device, context) = self.learn_context(reached.device, reached.context);
            let mut record = Record::new(RecordKind::Progress);
            record.device = device;
            record.context = context;
            record.stream = reached.stream;
            record.launch = reached.launch;
            record.begin = reached.after;
            record.end = reached.before;
            self.publish(&record);
        }
    }

    /// Says that this process only samples, and runs no kernels of its own.
    pub fn mark_as_sampler(&self) {
        lock(&self.publisher).mark_as_sampler();
    }

    /// The segment's own file.
    pub fn segment(&self) -> std::path::PathBuf {
        lock(&self.publisher).path().to_owned()
    }

    /// UUIDs of the GPUs that the process uses.
    pub fn gpus(&self) -> Vec<String> {
        self.with_devices(|devices| devices.values().map(|one| one.uuid.clone()).collect())
    }

    /// The context goes: read what its profiler counted.
    pub fn context_destroyed(&self, context: *mut c_void) {
        self.publish_progress();
        self.progress.forget(context);
        self.publish_outcome(&self.gates.close(context));
    }
}

fn command() -> String {
    let bytes = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let parts: Vec<_> = bytes
        .split(|byte| *byte == 0)
        .filter(|part| !part.is_empty())
        .collect();
    let parts: Vec<_> = parts.into_iter().map(String::from_utf8_lossy).collect();
    parts.join(" ")
}
