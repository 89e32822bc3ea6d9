//! Samples of counters over simulated time, taken between two slices of it.
//!
//! Samples fall on the first boundary of the engine at or after every multiple of the interval, and on the end of
//! every launch: both follow from the simulation alone, so neither threads nor the host's speed can show. An idle GPU
//! is not sampled.

use super::Machine;
use crate::description::Interval;
use lockstep_gpu::{Gpu, KernelRecord, LaunchId, SampledPart, Sampler};
use lockstep_run_folder::RunFolder;
use lockstep_run_folder::series::{Part, Recorder, SERIES, Sample, SampledLaunch};
use lockstep_units::{Duration, Hertz, Time};
use std::io;

/// Samples of one GPU.
pub struct SeriesRecording {
    recorder: Recorder,
    sampler: Sampler,
    interval: Duration,
    /// The end of the last sample.
    last: Time,
    /// When the next one is due.
    due: Time,
    /// The launch that the last sample belonged to.
    launch: Option<SampledLaunch>,
    /// Nothing can be written any more.
    broken: bool,
}

impl SeriesRecording {
    /// Begins to sample into a folder.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn begin(folder: &RunFolder, interval: Interval, clock: Hertz) -> io::Result<Self> {
        Ok(Self {
            recorder: Recorder::begin(folder.directory().new_file(SERIES)?)?,
            sampler: Sampler::default(),
            interval: interval.duration(clock),
            last: Time::ZERO,
            due: Time::ZERO,
            launch: None,
            broken: false,
        })
    }

    /// When the GPU is to stop for the next sample.
    pub fn due(&mut self, now: Time) -> Time {
        if self.due <= now {
            // It was idle meanwhile.
            self.restart(now);
        }
        self.due
    }

    fn restart(&mut self, now: Time) {
        let interval = self.interval.0.max(1);
        self.last = now;
        self.due = Time((now.0 / interval + 1).saturating_mul(interval));
    }

    /// Counts anew, after a fault has taken what blocks had counted.
    pub fn reset(&mut self, gpu: &Gpu) {
        gpu.begin_sample(&mut self.sampler);
        self.restart(gpu.now());
    }

    fn take(&mut self, gpu: &Gpu, launch: Option<SampledLaunch>) {
        let now = gpu.now();
        let nanoseconds = |femtoseconds: u64| femtoseconds as f64 / 1e6;
        let sample = Sample {
            time_ns: nanoseconds(now.0),
            interval_ns: nanoseconds(now.since(self.last).0),
            gpu: 0,
            launch,
        };
        let sampler = &mut self.sampler;
        self.broken |= !self.recorder.add(&sample, |rows| {
            gpu.sample(sampler, |part, counters| {
                let (part, number) = match part {
                    SampledPart::Gpu => (Part::Gpu, 0),
                    SampledPart::Sm(number) => (Part::Sm, number),
                    SampledPart::Slice(number) => (Part::Slice, number),
                };
                rows.add(part, number, &counters.values());
            });
        });
        self.restart(now);
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn finish(self) -> io::Result<()> {
        self.recorder.finish()
    }
}

impl Machine {
    /// Takes a sample if one is due, or if launches have ended.
    pub(super) fn sample(&mut self, ended: &[KernelRecord]) {
        let Some(journal) = &mut self.journal else {
            return;
        };
        let Some(series) = &mut journal.series else {
            return;
        };
        if self.gpu.mode() != lockstep_gpu::Mode::Timing
            || (self.gpu.now() < series.due && ended.is_empty())
        {
            return;
        }
        let mut ran: Vec<LaunchId> = self.gpu.running();
        ran.extend(ended.iter().map(|record| record.launch));
        ran.sort_unstable();
        ran.dedup();
        let number = match ran.as_slice() {
            [only] => self.launches.get(only).map(|(number, _)| *number),
            _ => None,
        };
        if series.launch.as_ref().map(|launch| launch.launch) != number {
            let announced = number.and_then(|number| journal.announced.get(&number));
            series.launch = announced.map(|launch| SampledLaunch {
                launch: launch.id,
                stream: launch.stream,
                kernel: launch.kernel.as_str().into(),
            });
        }
        let launch = series.launch.clone();
        series.take(&self.gpu, launch);
    }

    /// Ends the series.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish_series(&mut self) -> io::Result<()> {
        let journal = self.journal.as_mut();
        match journal.and_then(|journal| journal.series.take()) {
            Some(series) => series.finish(),
            None => Ok(()),
        }
    }
}
