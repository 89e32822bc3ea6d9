//! What a run tells readers of shared memory while it goes on: the segment that a sampled process of a
//! real GPU has, so that whatever reads those sees a simulated GPU, too.
//!
//! A launch is a record with its exact counters when it has ended. While a kernel runs alone, what it
//! counted so far is told ten times a second; its last record has the rest. Of kernels that run at the
//! same time nothing is told before each of them ends. So sums are always those of `kernels.csv`.
//!
//! Nothing here flows back into the simulation.

use super::Machine;
use crate::description::{Description, Mode};
use lockstep_counters::{COUNTERS, Counters, LaunchCounters};
use lockstep_gpu::{KernelRecord, LaunchId, SampledPart, Sampler};
use lockstep_protocol::uuid_text;
use lockstep_runtime::LaunchSummary;
use lockstep_segment::now;
use lockstep_segment::{
    IdentityKind, KEPT, NO_IDENTITY, Publisher, Record, RecordKind, SegmentDirectory, SegmentError,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The segment of a run, which its GPUs share.
#[derive(Clone)]
pub struct SharedSegment {
    publisher: Arc<Mutex<Publisher>>,
    /// Where the counters of a record stand in the table of counters.
    counters: Arc<[usize]>,
}

impl SharedSegment {
    /// Makes the segment of a run that is to publish; nothing for others.
    ///
    /// # Errors
    /// Shared memory cannot be written.
    pub fn open(description: &Description, command: &str) -> Result<Option<Self>, SegmentError> {
        let Some(metadata) = &description.publish else {
            return Ok(None);
        };
        let names: Vec<&str> = metadata
            .resolved_counters()
            .iter()
            .map(|counter| counter.name)
            .collect();
        let places = names.iter().map(|name| {
            let mut table = COUNTERS.iter();
            table.position(|counter| counter.name == *name)
        });
        let settings = &metadata.segment;
        SegmentDirectory::open(&SegmentDirectory::of_user(), &settings.group)?;
        let programs = SegmentDirectory::of_programs();
        let directory = SegmentDirectory::open(&programs, &settings.group)?;
        // What cannot be removed now is left for the next one that looks.
        let _ = directory.reap(now(), KEPT);
        let mut publisher = Publisher::create(&directory, names.len(), settings.maximum.0)?;
        publisher.beat(now());
        publisher.introduce(command, &names);
        Ok(Some(Self {
            publisher: Arc::new(Mutex::new(publisher)),
            counters: places.flatten().collect(),
        }))
    }

    /// A thread that panicked has ended the run, and records are whole at every step.
    fn lock(&self) -> MutexGuard<'_, Publisher> {
        self.publisher
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one GPU tells.
pub struct Publication {
    segment: SharedSegment,
    device: u32,
    contexts: BTreeMap<u64, u32>,
    /// Launches that have not ended.
    announced: BTreeMap<u64, LaunchSummary>,
    /// What was told of launches that have not ended.
    told: BTreeMap<LaunchId, [u64; COUNTERS.len()]>,
    sampler: Sampler,
    /// The launch that ran alone since the sampler last looked.
    alone: Option<LaunchId>,
}

impl Publication {
    fn new(segment: SharedSegment, ordinal: u32, description: &Description) -> Self {
        let node = description.neighbours(ordinal);
        let described = lockstep_runtime::describe(description.config_of(ordinal), ordinal, node);
        let uuid = format!("GPU-{}", uuid_text(&described.uuid));
        let mut publisher = segment.lock();
        let device = publisher.name(IdentityKind::Device, NO_IDENTITY, ordinal, &uuid);
        publisher.name(IdentityKind::Simulated, device, 0, &description.gpu);
        drop(publisher);
        Self {
            segment,
            device,
            contexts: BTreeMap::new(),
            announced: BTreeMap::new(),
            told: BTreeMap::new(),
            sampler: Sampler::default(),
            alone: None,
        }
    }

    /// A record of a kernel that the host launched, or that goes back to one that it did.
    fn record(&mut self, kind: RecordKind, launch: &LaunchSummary, kernel: &str) -> Record {
        let mut publisher = self.segment.lock();
        let device = self.device;
        let context = self.contexts.entry(launch.context).or_insert_with(|| {
            let number = launch.context as u32;
            publisher.name(IdentityKind::Context, device, number, "")
        });
        let mut record = Record::new(kind);
        record.exact = true;
        record.device = device;
        record.context = *context;
        record.stream = launch.stream as u32;
        record.kernel = publisher.name_once(IdentityKind::Kernel, NO_IDENTITY, kernel);
        record.launch = launch.id;
        record.end = now();
        record.begin = record.end;
        record
    }

    fn publish(&self, record: &Record) {
        let mut publisher = self.segment.lock();
        publisher.publish(record);
        publisher.beat(record.end);
    }

    /// Tells what a kernel that runs alone counted since the last look.
    fn progressed(&mut self, id: LaunchId, number: u64, counted: &Counters) {
        let Some(launch) = self.announced.get(&number).cloned() else {
            return;
        };
        let mut record = self.record(RecordKind::DeviceSample, &launch, &launch.kernel);
        let told = self.told.entry(id).or_insert([0; COUNTERS.len()]);
        let counted = counted.values();
        for (place, counter) in self.segment.counters.iter().enumerate() {
            if counted[*counter] > 0 {
                told[*counter] += counted[*counter];
                record.set(place, counted[*counter]);
            }
        }
        if record.present != 0 {
            self.publish(&record);
        }
    }

    /// Tells that a launch has ended, with what was not told of it.
    fn ended(&mut self, ended: &KernelRecord, number: u64, timed: bool) {
        let launch = match ended.launched_by {
            None => self.announced.remove(&number),
            Some(_) => self.announced.get(&number).cloned(),
        };
        // Others ran as well since the last look, or it was the last that did.
        self.alone = None;
        let told = self.told.remove(&ended.launch);
        let Some(launch) = launch else {
            return;
        };
        let mut record = self.record(RecordKind::Launch, &launch, &ended.kernel);
        // It ends when the simulator is there; how long it took is simulated, if time is at all.
        if timed {
            let duration = ended.end.since(ended.start).0 / 1_000_000;
            record.begin = record.end.saturating_sub(duration);
        }
        record.timed = timed;
        (record.grid, record.block) = (ended.grid, ended.block);
        let counters = LaunchCounters {
            values: ended.counters,
            timed,
        };
        let counted: Vec<Option<u64>> = counters.all().map(|(_, value)| value).collect();
        for (place, counter) in self.segment.counters.iter().enumerate() {
            if let Some(count) = counted[*counter] {
                let before = told.map_or(0, |told| told[*counter]);
                record.set(place, count.saturating_sub(before));
            }
        }
        self.publish(&record);
    }
}

impl Machine {
    /// Tells from now on what happens.
    pub fn publish(&mut self, segment: &SharedSegment, description: &Description) {
        let publication = Publication::new(segment.clone(), self.ordinal, description);
        self.publication = Some(Box::new(publication));
    }

    pub(super) fn publish_announced(&mut self, launch: &LaunchSummary) {
        if let Some(publication) = &mut self.publication {
            publication.announced.insert(launch.id, launch.clone());
        }
    }

    /// Tells how far a kernel has come that runs alone.
    pub(super) fn publish_progress(&mut self) {
        let Some(publication) = &mut self.publication else {
            return;
        };
        let alone = match self.gpu.running()[..] {
            [only] if self.gpu.mode() == lockstep_gpu::Mode::Timing => Some(only),
            _ => None,
        };
        let before = std::mem::replace(&mut publication.alone, alone);
        let Some(launch) = alone else {
            return;
        };
        let number = self.launches.get(&launch).map(|(number, _)| *number);
        match number.filter(|_| before == alone) {
            Some(number) => {
                let mut counted = Counters::default();
                self.gpu.sample(&mut publication.sampler, |part, counters| {
                    if part == SampledPart::Gpu {
                        counted = *counters;
                    }
                });
                publication.progressed(launch, number, &counted);
            }
            None => self.gpu.begin_sample(&mut publication.sampler),
        }
    }

    pub(super) fn publish_ended(&mut self, record: &KernelRecord, number: u64, mode: Mode) {
        if let Some(publication) = &mut self.publication {
            publication.ended(record, number, mode == Mode::Timing);
        }
    }

    /// A fault has ended all launches: what was told of them stays true.
    pub(super) fn publish_abort(&mut self) {
        if let Some(publication) = &mut self.publication {
            publication.announced.clear();
            publication.told.clear();
            publication.alone = None;
        }
    }
}
