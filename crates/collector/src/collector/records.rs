//! Records of a sampled process, by their kind.

use std::io;
use std::sync::Arc;

use lockstep_attribution::{DeviceSample, Key, LaunchRow, Mark};

use super::rows::accumulate;
use super::{Collector, Source};
use crate::rows::{GaugeRow, Sink};
use lockstep_schema::{DEVICE_GAUGES, HOST_GAUGES};
use lockstep_segment::{Record, RecordKind};

/// Launches of a process that run at once, far more than any GPU takes; a process that tells of more is not one of ours.
const MOST_RUNNING: usize = 1 << 12;

impl Collector {
    /// Takes one record of a process.
    pub(super) fn take(
        &mut self,
        source: &mut Source,
        index: u64,
        record: &Record,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let gpu = source
            .texts
            .get(record.device as usize)
            .cloned()
            .unwrap_or_else(|| "".into());
        let known = index < source.resumed.read;
        match record.kind {
            // What a reader before this one stored is not stored again; launches that it knew still
            // explain samples that it did not see.
            RecordKind::Launch if known && record.exact => {
                source.told.remove(&launch_of(record));
                Ok(())
            }
            RecordKind::Gauges | RecordKind::Host if known => Ok(()),
            RecordKind::DeviceSample if record.exact => {
                let growth = self.ordered(source, record);
                let told = source.told.entry(launch_of(record));
                accumulate(told.or_insert_with(|| vec![None; growth.len()]), &growth);
                if source.told.len() > MOST_RUNNING {
                    source.told.pop_first();
                }
                match known {
                    true => Ok(()),
                    false => self.take_exact_sample(source, record, gpu, sink),
                }
            }
            RecordKind::DeviceSample if index < source.resumed.samples => {
                self.sampled_before(&gpu, source.reader.process(), record.end);
                Ok(())
            }
            RecordKind::Launch => self.take_launch(source, index, record, gpu, sink),
            RecordKind::DeviceSample => {
                let sample = DeviceSample {
                    begin: record.begin,
                    end: record.end,
                    growth: self.ordered(source, record),
                    // Known when those of all samplers are in order.
                    after_gap: false,
                };
                source.held.push((index, gpu, sample));
                Ok(())
            }
            RecordKind::Progress => self.take_mark(source, record, &gpu),
            RecordKind::Gauges | RecordKind::Host => self.take_gauges(source, record, gpu, sink),
        }
    }

    /// The counters of a record, in our order.
    fn ordered(&self, source: &Source, record: &Record) -> Vec<Option<u64>> {
        let mut values = vec![None; self.counters.len()];
        for (theirs, ours) in source.places.iter().enumerate() {
            if let Some(ours) = ours {
                values[*ours] = record.value(theirs);
            }
        }
        values
    }

    fn take_launch(
        &mut self,
        source: &mut Source,
        index: u64,
        record: &Record,
        gpu: Arc<str>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let row = self.launch_row(source, record, gpu, self.ordered(source, record));
        if index >= source.resumed.read {
            sink.begun(&row)?;
        }
        if record.exact {
            let told = source.told.remove(&launch_of(record));
            return self.store_exact(source, row, told, sink);
        }
        let mut done = Vec::new();
        source.outstanding.push_back(index);
        if let Some(recording) = &mut self.recording {
            recording.launched(&row)?;
        }
        self.device(&row.key.gpu.clone())
            .launched(row, record.timed, &mut done);
        self.store_launches(&done, sink)
    }

    /// What a simulated GPU knows of the kernel that runs: nothing has to be divided.
    fn take_exact_sample(
        &mut self,
        source: &Source,
        record: &Record,
        gpu: Arc<str>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let row = self.launch_row(source, record, gpu, self.ordered(source, record));
        self.store_growth(source, row, sink)
    }

    fn take_mark(&mut self, source: &Source, record: &Record, gpu: &Arc<str>) -> io::Result<()> {
        let process = source.reader.process();
        let context = context_number(source, record);
        let mark = Mark {
            launch: record.launch,
            begin: record.begin,
            end: record.end,
        };
        if let Some(recording) = &mut self.recording {
            recording.progressed(process, context, record.stream, &mark)?;
        }
        self.device(gpu)
            .progressed(process, context, record.stream, mark);
        Ok(())
    }

    fn take_gauges(
        &mut self,
        source: &Source,
        record: &Record,
        gpu: Arc<str>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let of_host = record.kind == RecordKind::Host;
        let count = if of_host {
            HOST_GAUGES.len()
        } else {
            DEVICE_GAUGES.len()
        };
        let row = GaugeRow {
            time: record.end,
            node: Arc::clone(&source.node),
            gpu: if of_host { "".into() } else { gpu },
            process: source.reader.process(),
            gauges: (0..count).map(|i| record.value(i)).collect(),
        };
        sink.gauges(&row)?;
        if !of_host {
            self.latest_gauges.insert(Arc::clone(&row.gpu), row);
        }
        Ok(())
    }

    fn launch_row(
        &self,
        source: &Source,
        record: &Record,
        gpu: Arc<str>,
        counters: Vec<Option<u64>>,
    ) -> LaunchRow {
        LaunchRow {
            launch: record.launch,
            key: Key {
                gpu,
                process: source.reader.process(),
                context: context_number(source, record),
                stream: record.stream,
                kernel: source
                    .texts
                    .get(record.kernel as usize)
                    .cloned()
                    .unwrap_or_else(|| "(unnamed)".into()),
            },
            grid: record.grid,
            block: record.block,
            begin: record.begin,
            end: record.end,
            exact: record.exact,
            counters,
        }
    }
}

/// The launch that a record tells of. What a kernel launches by itself goes by the number of the host's launch.
fn launch_of(record: &Record) -> (u32, u64, u32) {
    (record.device, record.launch, record.kernel)
}

/// The driver's number of the context that a record names.
fn context_number(source: &Source, record: &Record) -> u32 {
    let identities = source.reader.identities();
    let context = identities.get(record.context as usize);
    context.map_or(0, |one| one.number)
}
