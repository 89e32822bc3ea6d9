//! Reads all segments of a folder and hands rows to a sink.

mod gaps;
mod position;
mod records;
mod rows;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use lockstep_attribution::{Attribution, DeviceSample, ErrorBounds, Key, Rates, Recording};

pub use gaps::{Gaps, SampledUntil};
pub use position::{Membership, Position};

use super::rows::{GaugeRow, Sink};
use lockstep_schema::{Metadata, Timeline};
use lockstep_segment::{IdentityKind, Liveness, SegmentDirectory, SegmentReader};

/// What one key did so far, for the live view and the summary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Launches.
    pub launches: u64,
    /// Counters, in the order of the metadata file.
    pub counters: Vec<Option<u64>>,
    /// Every count so far was exact.
    pub exact: bool,
}

/// One sampled process.
struct Source {
    reader: SegmentReader,
    node: Arc<str>,
    texts: Vec<Arc<str>>,
    /// Place in our order of each of the publisher's counters.
    places: Vec<Option<usize>>,
    /// Samples of its GPUs that wait for launches of others.
    held: Vec<(u64, Arc<str>, DeviceSample)>,
    /// When it published first, nanoseconds since 1970.
    first: u64,
    /// Launches that were read and not stored yet, by index.
    outstanding: VecDeque<u64>,
    /// What exact samples told of launches that still run, by GPU, launch and kernel.
    told: BTreeMap<(u32, u64, u32), Vec<Option<u64>>>,
    /// How far a reader before this one had come.
    resumed: Position,
    ended: bool,
}

impl Source {
    fn new(reader: SegmentReader) -> Self {
        Self {
            reader,
            node: "".into(),
            texts: Vec::new(),
            places: Vec::new(),
            held: Vec::new(),
            first: u64::MAX,
            outstanding: VecDeque::new(),
            told: BTreeMap::new(),
            resumed: Position::default(),
            ended: false,
        }
    }
}

/// Reads every process that publishes in one folder.
pub struct Collector {
    directory: SegmentDirectory,
    counters: Vec<&'static str>,
    sources: BTreeMap<PathBuf, Source>,
    devices: BTreeMap<Arc<str>, Attribution>,
    totals: BTreeMap<Key, Totals>,
    latest_gauges: BTreeMap<Arc<str>, GaugeRow>,
    notices: Vec<String>,
    /// What was lost of the run, each told once.
    losses: BTreeSet<String>,
    records: u64,
    lost: u64,
    processes: BTreeMap<u32, Arc<str>>,
    node: Option<Arc<str>>,
    memberships: BTreeMap<u32, Membership>,
    /// Index of each GPU on its node, and whether a sampler of the node said so.
    indices: BTreeMap<Arc<str>, (u32, bool)>,
    /// How far a reader before this one had come, by the names of segments.
    resumed: BTreeMap<String, Position>,
    /// Whether this reader also wants what others have acknowledged.
    rewinds: bool,
    /// Whether launches are followed; otherwise whatever a GPU counts is one row.
    follows_launches: bool,
    /// When it last read, nanoseconds since 1970.
    polled: u64,
    settle: u64,
    gaps: BTreeMap<Arc<str>, Gaps>,
    /// How far each GPU was sampled, and by whom.
    sampled_until: SampledUntil,
    error_bounds: ErrorBounds,
    rates: Rates,
    recording: Option<Recording>,
}

/// Records of other processes may come this much later than a sample, in nanoseconds.
const SETTLE: u64 = 250_000_000;
/// The same where kernels are timed by activity records, which CUPTI hands over late.
const SETTLE_TIMED: u64 = 5_000_000_000;

impl Collector {
    /// Reads the segments of `directory`, whose programs were given `metadata`.
    pub fn new(directory: SegmentDirectory, metadata: &Metadata) -> Self {
        let timed = metadata.timeline == Timeline::Kernels;
        Self {
            directory,
            counters: metadata
                .resolved_counters()
                .iter()
                .map(|counter| counter.name)
                .collect(),
            sources: BTreeMap::new(),
            devices: BTreeMap::new(),
            totals: BTreeMap::new(),
            latest_gauges: BTreeMap::new(),
            notices: Vec::new(),
            losses: BTreeSet::new(),
            records: 0,
            lost: 0,
            processes: BTreeMap::new(),
            node: None,
            memberships: BTreeMap::new(),
            indices: BTreeMap::new(),
            resumed: BTreeMap::new(),
            rewinds: false,
            follows_launches: metadata.timeline != Timeline::None,
            polled: 0,
            settle: if timed { SETTLE_TIMED } else { SETTLE },
            gaps: BTreeMap::new(),
            sampled_until: SampledUntil::new(),
            error_bounds: ErrorBounds::default(),
            rates: Rates::default(),
            recording: None,
        }
    }

    /// Writes down everything that is learned, from now on.
    pub fn record(&mut self, recording: Recording) {
        self.recording = Some(recording);
    }

    /// What kernels do was counted before. To be told before anything is read.
    pub fn know(&mut self, rates: Rates) {
        self.rates = rates;
    }

    /// Counter names, in the order of every row.
    pub fn counters(&self) -> &[&'static str] {
        &self.counters
    }

    /// What every key did so far.
    pub fn totals(&self) -> &BTreeMap<Key, Totals> {
        &self.totals
    }

    /// The last reading of each GPU's gauges.
    pub fn latest_gauges(&self) -> &BTreeMap<Arc<str>, GaugeRow> {
        &self.latest_gauges
    }

    /// Sentences of the injectors, in the order in which they came, and our own on missing samples.
    pub fn notices(&self) -> Vec<String> {
        let told = self.notices.iter().cloned();
        let missing = self.gaps.iter().filter(|(_, gaps)| gaps.count > 0);
        let missing = missing.map(|(gpu, gaps)| {
            let whole = gaps.nanoseconds + gaps.sampled_nanoseconds;
            format!(
                "{gpu}: {:.1} ms of samples are missing in {} places, {:.2} % of the time; counts are too low by what was done then",
                gaps.nanoseconds as f64 / 1e6,
                gaps.count,
                100.0 * gaps.nanoseconds as f64 / whole as f64
            )
        });
        told.chain(missing).collect()
    }

    /// What was asked for and is lost, in sentences; nothing if everything was read and counted.
    pub fn losses(&self) -> Vec<String> {
        let mut losses: Vec<String> = self.losses.iter().cloned().collect();
        if self.lost > 0 {
            losses.push(format!(
                "{} records were lost before they could be read; take a longer interval, or a larger segment.maximum",
                self.lost
            ));
        }
        let launched = self.totals.values().any(|total| total.launches > 0);
        let counted = self
            .totals
            .values()
            .any(|total| total.counters.iter().any(Option::is_some));
        if launched && !counted && !self.counters.is_empty() {
            losses.push(
                "kernels ran and none of their counters could be read; the sentences above say why"
                    .to_owned(),
            );
        }
        losses
    }

    /// Sentences on counters and segments that could not be read, each once.
    pub fn loss_sentences(&self) -> &BTreeSet<String> {
        &self.losses
    }

    /// What each stream did that shared a GPU, and how far that may be off.
    pub fn error_bounds(&self) -> &ErrorBounds {
        &self.error_bounds
    }

    /// Programs seen, with their commands; a process that only samples is none.
    pub fn processes(&self) -> &BTreeMap<u32, Arc<str>> {
        &self.processes
    }

    /// Records read, and records that were overwritten before they could be.
    pub fn records(&self) -> (u64, u64) {
        (self.records, self.lost)
    }

    /// Processes that still publish.
    pub fn running(&self) -> usize {
        self.sources.values().filter(|source| !source.ended).count()
    }

    /// Processes that still publish and run kernels of their own.
    pub fn running_programs(&self) -> usize {
        let running = self.sources.values().filter(|source| !source.ended);
        running.filter(|source| !source.reader.is_sampler()).count()
    }

    /// Reads what is new, stores it, and only then lets publishers reuse the room.
    ///
    /// `now` is nanoseconds since 1970. Segments whose process is gone are removed once everything
    /// in them is stored.
    pub fn poll(&mut self, now: u64, sink: &mut dyn Sink) -> io::Result<()> {
        self.read_new(now, sink)?;
        self.release(true);
        Ok(())
    }

    /// Reads what is new and stores it; [`Self::release`] is to follow.
    pub fn read_new(&mut self, now: u64, sink: &mut dyn Sink) -> io::Result<()> {
        self.polled = now;
        self.discover()?;
        let paths: Vec<PathBuf> = self.sources.keys().cloned().collect();
        for path in paths {
            self.read(&path, sink)?;
        }
        let everybody_ended = self.running() == 0;
        let until = if everybody_ended {
            u64::MAX
        } else {
            now.saturating_sub(self.settle)
        };
        self.divide(until, sink)?;
        if everybody_ended {
            self.finish_launches(sink)?;
        }
        if let Some(recording) = &mut self.recording {
            recording.flush()?;
        }
        sink.flush()
    }

    /// Lets publishers reuse the room of what is stored, and removes segments whose process is gone.
    /// Without `owns`, another reader does both, and here only what has gone is forgotten. Returns
    /// the processes that have gone.
    pub fn release(&mut self, owns: bool) -> Vec<u32> {
        if owns {
            for source in self.sources.values() {
                source.reader.acknowledge(source.needed());
            }
        }
        let patience = self.rewinds.then_some(self.polled);
        let over: Vec<PathBuf> = self
            .sources
            .iter()
            .filter(|(path, source)| source.is_over(patience) && (owns || !path.exists()))
            .map(|(path, _)| path.clone())
            .collect();
        let mut gone = Vec::new();
        for path in over {
            let Some(source) = self.sources.remove(&path) else {
                continue;
            };
            gone.push(source.reader.process());
            if owns
                && let Err(error) = source.reader.remove()
                && !error.is_missing()
            {
                self.losses.insert(format!(
                    "{error}; its samples are stored, and would be stored again: remove it by hand"
                ));
            }
        }
        gone
    }

    /// Opens segments that are new. They have their names only once they are whole, so one that
    /// cannot be opened is a process whose samples are lost.
    fn discover(&mut self) -> io::Result<()> {
        for path in self.directory.segments().map_err(io::Error::other)? {
            if self.sources.contains_key(&path) {
                continue;
            }
            match SegmentReader::open(&path) {
                Ok(reader) => {
                    let source = self.begin(reader);
                    self.sources.insert(path, source);
                }
                // Its process discarded it, or another reader was done with it.
                Err(error) if error.is_missing() => {}
                Err(error) => {
                    self.losses.insert(format!(
                        "{error}; samples of its process are lost: use the injector of this version, or remove the file"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Reads one process to its end, as far as it has one.
    fn read(&mut self, path: &PathBuf, sink: &mut dyn Sink) -> io::Result<()> {
        let Some(mut source) = self.sources.remove(path) else {
            return Ok(());
        };
        // Asked before reading: what is published after that is read next time.
        let liveness = source.reader.liveness();
        let mut outcome = Ok(());
        loop {
            let batch = source.reader.read();
            self.learn(&mut source, sink);
            self.lost += batch.lost;
            self.records += batch.records.len() as u64;
            if batch.records.is_empty() && batch.lost == 0 {
                break;
            }
            for (index, record) in &batch.records {
                source.first = source.first.min(record.begin);
                outcome = self.take(&mut source, *index, record, sink);
                if outcome.is_err() {
                    break;
                }
            }
            if outcome.is_err() {
                break;
            }
        }
        source.ended = liveness != Liveness::Running;
        self.sources.insert(path.clone(), source);
        outcome
    }

    /// Learns the names that a process published.
    fn learn(&mut self, source: &mut Source, sink: &mut dyn Sink) {
        let process = source.reader.process();
        for identity in &source.reader.identities()[source.texts.len()..] {
            let text: Arc<str> = identity.text.as_str().into();
            match identity.kind {
                IdentityKind::Node => {
                    source.node = Arc::clone(&text);
                    self.node = Some(Arc::clone(&text));
                }
                IdentityKind::Process if !source.reader.is_sampler() => {
                    self.processes.insert(process, Arc::clone(&text));
                }
                IdentityKind::Job | IdentityKind::Rank => self.join(process, identity),
                IdentityKind::Device => {
                    let ours = (identity.number, source.reader.is_sampler());
                    let known = self.indices.entry(Arc::clone(&text)).or_insert(ours);
                    // A program may see its GPUs under other numbers than the node does.
                    if ours.1 && !known.1 {
                        *known = ours;
                    }
                }
                IdentityKind::Counter => {
                    source
                        .places
                        .push(self.counters.iter().position(|name| *name == identity.text));
                }
                IdentityKind::Simulated => {
                    if let Some(gpu) = source.texts.get(identity.parent as usize) {
                        sink.simulated(gpu);
                    }
                }
                IdentityKind::Loss => {
                    self.losses.insert(text.to_string());
                }
                // Several processes may have the same to say.
                IdentityKind::Notice
                    if !self.notices.iter().any(|known| known.ends_with(&*text)) =>
                {
                    self.notices.push(format!("process {process}: {text}"));
                }
                _ => {}
            }
            source.texts.push(text);
        }
    }

    fn device(&mut self, gpu: &Arc<str>) -> &mut Attribution {
        let warps = self
            .counters
            .iter()
            .position(|name| *name == "warps_launched");
        let count = self.counters.len();
        self.devices.entry(Arc::clone(gpu)).or_insert_with(|| {
            let mut attribution = Attribution::new(Arc::clone(gpu), count, warps);
            attribution.know(self.rates.clone());
            if !self.follows_launches {
                attribution.take_as_one();
            }
            attribution
        })
    }

    fn total(&mut self, key: &Key) -> &mut Totals {
        let count = self.counters.len();
        self.totals.entry(key.clone()).or_insert_with(|| Totals {
            launches: 0,
            counters: vec![None; count],
            exact: true,
        })
    }
}
