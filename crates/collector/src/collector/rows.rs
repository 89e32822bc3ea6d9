//! Divides samples among kernels and hands the rows to a sink.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use lockstep_attribution::{DeviceSample, LaunchRow};

use super::{Collector, Source};
use crate::rows::{SeriesRow, Sink};

/// Samples of a shared GPU are divided this many nanoseconds at a time.
const TOGETHER: u64 = 500_000_000;

impl Collector {
    /// A launch that was counted on its own is a sample too, of what was not `told` while it ran.
    pub(super) fn store_exact(
        &mut self,
        source: &Source,
        row: LaunchRow,
        told: Option<Vec<Option<u64>>>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let mut whole = row.clone();
        accumulate(&mut whole.counters, &told.unwrap_or_default());
        sink.launch(&whole)?;
        self.total(&row.key).launches += 1;
        self.store_growth(source, row, sink)
    }

    /// What a key alone did more.
    pub(super) fn store_growth(
        &mut self,
        source: &Source,
        row: LaunchRow,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let total = self.total(&row.key);
        accumulate(&mut total.counters, &row.counters);
        let counters = total.counters.clone();
        sink.series(&SeriesRow {
            time: row.end,
            node: Arc::clone(&source.node),
            key: row.key,
            exact: true,
            counters,
        })
    }

    pub(super) fn store_launches(
        &mut self,
        done: &[LaunchRow],
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        for row in done {
            let total = self.total(&row.key);
            total.launches += 1;
            // A launch that nothing is known of: the sum of the others is not the whole.
            total.exact &= row.counters.iter().any(Option::is_some);
            sink.launch(row)?;
            // Launches of a process are stored in about the order in which they were read.
            let theirs = self
                .sources
                .values_mut()
                .find(|source| source.reader.process() == row.key.process);
            if let Some(source) = theirs {
                source.outstanding.pop_front();
            }
        }
        Ok(())
    }

    /// Divides the samples that ended before `until` among kernels.
    pub(super) fn divide(&mut self, until: u64, sink: &mut dyn Sink) -> io::Result<()> {
        let mut ready = Vec::new();
        for source in self.sources.values_mut() {
            let count = source
                .held
                .partition_point(|(_, _, sample)| sample.end < until);
            // Samples of a shared GPU are divided many at a time: one alone tells little.
            let oldest = source
                .held
                .first()
                .map_or(u64::MAX, |(.., sample)| sample.end);
            let patient = until != u64::MAX && oldest.saturating_add(TOGETHER) > until;
            let devices = &self.devices;
            let waits =
                |gpu: &Arc<str>| patient && devices.get(gpu).is_some_and(|one| one.shares());
            if source.held[..count].iter().any(|(_, gpu, _)| waits(gpu)) {
                continue;
            }
            let (node, process) = (Arc::clone(&source.node), source.reader.process());
            ready.extend(
                source
                    .held
                    .drain(..count)
                    .map(|(_, gpu, sample)| (sample, process, gpu, Arc::clone(&node))),
            );
        }
        ready.sort_by_key(|(sample, ..)| sample.end);
        let mut by_gpu: BTreeMap<Arc<str>, Vec<(DeviceSample, Arc<str>)>> = BTreeMap::new();
        for (mut sample, process, gpu, node) in ready {
            sample.after_gap = self.follows_gap(&gpu, process, sample.begin, sample.end);
            by_gpu.entry(gpu).or_default().push((sample, node));
        }
        for (gpu, ready) in by_gpu {
            let (samples, nodes): (Vec<_>, Vec<_>) = ready.into_iter().unzip();
            let mut done = Vec::new();
            if let Some(recording) = &mut self.recording {
                recording.divided(&samples)?;
            }
            let parts = self.device(&gpu).samples(&samples, &mut done);
            for ((sample, node), parts) in samples.iter().zip(&nodes).zip(parts) {
                self.error_bounds.add(sample, &parts);
                for part in parts {
                    let exact = part.exact && !sample.after_gap;
                    let total = self.total(&part.key);
                    accumulate(&mut total.counters, &part.growth);
                    total.exact &= exact;
                    let counters = total.counters.clone();
                    let row = SeriesRow {
                        time: sample.end,
                        node: Arc::clone(node),
                        key: part.key,
                        exact,
                        counters,
                    };
                    sink.series(&row)?;
                }
            }
            self.store_launches(&done, sink)?;
        }
        Ok(())
    }

    pub(super) fn finish_launches(&mut self, sink: &mut dyn Sink) -> io::Result<()> {
        let mut done = Vec::new();
        for device in self.devices.values_mut() {
            device.finish(&mut done);
        }
        self.store_launches(&done, sink)
    }
}

pub(super) fn accumulate(sums: &mut [Option<u64>], parts: &[Option<u64>]) {
    for (sum, part) in sums.iter_mut().zip(parts) {
        if let Some(part) = part {
            *sum = Some(sum.unwrap_or(0).saturating_add(*part));
        }
    }
}
