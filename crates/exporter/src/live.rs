//! Figures of what publishes now: reads segments as `lockstep sample` does, and adds up.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use lockstep_attribution::{Key, LaunchRow};
use lockstep_collector::{Collector, GaugeRow, SeriesRow, Sink};
use lockstep_counters::DEVICE_GAUGES;
use lockstep_schema::Metadata;
use lockstep_segment::now;
use lockstep_segment::{SegmentDirectory, node_name};

use crate::error::ExporterError;
use crate::figures::{DetailKey, Figures, SeriesKey};
use crate::kernels::KernelLabels;
use crate::names::Source;
use crate::state::{State, StateFile};

/// Reads the segments of a folder.
pub struct Live {
    directory: SegmentDirectory,
    /// Whether publishers may reuse the room of what was read here: not those of another user.
    owns: bool,
    collector: Collector,
    sink: Growth,
    state: State,
    file: StateFile,
    /// What the collector had counted when it was last asked.
    counted: Counted,
    /// Sentences that nobody has taken yet.
    news: Vec<String>,
    /// Kernels of contexts that are kept apart, of each GPU.
    details: usize,
}

/// Sums that a collector keeps from its own start.
#[derive(Default)]
struct Counted {
    lost: u64,
    sentences: BTreeSet<String>,
    /// Gaps, their time and the sampled time of each GPU.
    gaps: BTreeMap<Arc<str>, [u64; 3]>,
}

/// What grew since it was last asked for.
#[derive(Default)]
struct Growth {
    /// What each key had, for rows carry sums.
    sums: BTreeMap<Key, Vec<Option<u64>>>,
    grown: BTreeMap<Key, (u64, Vec<Option<u64>>)>,
    gauges: BTreeMap<Arc<str>, GaugeRow>,
    /// GPUs that turned out to be simulated.
    simulated: BTreeSet<Arc<str>>,
}

impl Sink for Growth {
    fn simulated(&mut self, gpu: &Arc<str>) {
        self.simulated.insert(Arc::clone(gpu));
    }

    fn series(&mut self, row: &SeriesRow) -> io::Result<()> {
        let sums = self.sums.entry(row.key.clone()).or_default();
        sums.resize(row.counters.len(), None);
        let (_, grown) = self.grown.entry(row.key.clone()).or_default();
        grown.resize(row.counters.len(), None);
        for ((sum, now), grown) in sums.iter_mut().zip(&row.counters).zip(grown) {
            // What could not be counted stays absent: it is not 0.
            let Some(count) = *now else { continue };
            let more = count.saturating_sub(sum.unwrap_or(0));
            *grown = Some(grown.unwrap_or(0).saturating_add(more));
            *sum = *now;
        }
        Ok(())
    }

    fn begun(&mut self, row: &LaunchRow) -> io::Result<()> {
        self.grown.entry(row.key.clone()).or_default().0 += 1;
        Ok(())
    }

    fn launch(&mut self, _row: &LaunchRow) -> io::Result<()> {
        Ok(())
    }

    fn gauges(&mut self, row: &GaugeRow) -> io::Result<()> {
        if !row.gpu.is_empty() {
            self.gauges.insert(Arc::clone(&row.gpu), row.clone());
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Live {
    /// Reads `segments`, whose programs were given `metadata`; what it leaves for the next exporter
    /// is in `folder`. `top` kernels get labels.
    pub fn open(
        segments: &Path,
        folder: &Path,
        metadata: &Metadata,
        top: usize,
    ) -> Result<Self, ExporterError> {
        let group = &metadata.segment.group;
        let unreadable = |error| ExporterError::Segments(io::Error::other(error));
        SegmentDirectory::open(folder, group).map_err(unreadable)?;
        let owns = !SegmentDirectory::is_of_another_user(segments);
        let directory = match owns {
            true => SegmentDirectory::open(segments, group).map_err(unreadable)?,
            false => SegmentDirectory::observe(segments),
        };
        let file = StateFile::open(folder)?;
        let mut state = file.read().unwrap_or_default();
        let mut kernels = KernelLabels::new(top);
        kernels.resume(std::mem::take(&mut state.kernels));
        state.kernels = kernels;
        if state.figures.began == 0 {
            state.figures.began = now();
            state.figures.node = node_name();
        }
        let mut collector = Collector::new(directory.clone(), metadata);
        let sampled = std::mem::take(&mut state.sampled_until);
        collector.resume(std::mem::take(&mut state.positions), sampled);
        Ok(Self {
            directory,
            owns,
            collector,
            sink: Growth::default(),
            state,
            file,
            counted: Counted::default(),
            news: Vec::new(),
            details: 0,
        })
    }

    /// Also keeps counts by process, context and kernel: so many of each GPU.
    pub fn keep_details(&mut self, most: usize) {
        self.details = most;
    }

    /// Reads what is new at `now` (nanoseconds since 1970), and keeps it for the next exporter.
    ///
    /// Only then may publishers reuse the room, and only if no other reader stores these records.
    pub fn poll(&mut self, now: u64) -> Result<(), ExporterError> {
        self.collector
            .read_new(now, &mut self.sink)
            .map_err(ExporterError::Segments)?;
        self.fold(now);
        self.count_losses();
        self.state.figures.expire(now);
        self.state.positions = self.collector.positions();
        self.state
            .sampled_until
            .clone_from(self.collector.sampled_until());
        self.file.write(&self.state)?;
        let alone = self.owns.then(|| self.directory.store_alone()).flatten();
        for process in self.collector.release(alone.is_some()) {
            self.collector.forget(process);
            self.sink.sums.retain(|key, _| key.process != process);
        }
        Ok(())
    }

    /// What is served now.
    pub fn figures(&self) -> &Figures {
        &self.state.figures
    }

    /// Sentences on what was lost since they were last taken.
    pub fn take_news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// Adds what grew to the figures.
    fn fold(&mut self, now: u64) {
        let State {
            figures, kernels, ..
        } = &mut self.state;
        let grown = std::mem::take(&mut self.sink.grown);
        if let Some(node) = self.collector.node() {
            figures.node = node.to_owned();
        }
        let weights = grown.iter().map(|(key, (launches, counts))| {
            let weight = counts.first().copied().flatten().unwrap_or(*launches);
            (&*key.kernel, weight)
        });
        kernels.weigh(weights);
        let names = self.collector.counters();
        for (key, (launches, counts)) in &grown {
            let membership = self.collector.memberships().get(&key.process);
            let series = SeriesKey {
                gpu: key.gpu.to_string(),
                job: membership.and_then(|one| one.job.clone()),
                rank: membership.and_then(|one| one.rank.clone()),
                kernel: kernels.label(&key.kernel),
            };
            let counts = names.iter().zip(counts);
            let counts = counts.filter_map(|(name, count)| Some((*name, (*count)?)));
            if self.details > 0 {
                let detail = DetailKey {
                    gpu: key.gpu.to_string(),
                    process: key.process,
                    context: key.context,
                    kernel: key.kernel.to_string(),
                };
                figures.grow_detail(detail, *launches, counts.clone(), now);
            }
            figures.grow(series, *launches, counts, now);
        }
        figures.keep_details(self.details);
        for (gpu, row) in std::mem::take(&mut self.sink.gauges) {
            let read = DEVICE_GAUGES.iter().zip(&row.gauges);
            let gauges = read.filter_map(|(gauge, value)| Some((gauge.name, (*value)?)));
            figures.read_gauges(&gpu, gauges, row.time);
        }
        for gpu in std::mem::take(&mut self.sink.simulated) {
            figures.gpus.entry(gpu.to_string()).or_default().source = Source::Simulated;
        }
        for (gpu, index) in self.collector.gpu_indices() {
            figures.gpus.entry(gpu.to_string()).or_default().index = index;
        }
        figures.processes = self.collector.running() as u64;
    }

    /// Adds what the collector lost since it was last asked.
    fn count_losses(&mut self) {
        let figures = &mut self.state.figures;
        let (_, lost) = self.collector.records();
        figures.losses.records += lost - self.counted.lost;
        self.counted.lost = lost;
        for sentence in self.collector.loss_sentences() {
            if self.counted.sentences.insert(sentence.clone()) {
                figures.losses.sentences += 1;
                self.news.push(sentence.clone());
            }
        }
        for (gpu, gaps) in self.collector.gaps() {
            let sums = [gaps.count, gaps.nanoseconds, gaps.sampled_nanoseconds];
            let before = self.counted.gaps.insert(Arc::clone(gpu), sums);
            let more = |i: usize| sums[i] - before.unwrap_or_default()[i];
            let served = figures.gpus.entry(gpu.to_string()).or_default();
            served.gaps += more(0);
            served.gap_nanoseconds += more(1);
            served.sampled_nanoseconds += more(2);
        }
    }
}
