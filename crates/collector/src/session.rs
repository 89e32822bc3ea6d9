//! One run of `lockstep sample`: start a program, read it to its end, store what it did.

use lockstep_segment::now;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use lockstep_attribution::{Rates, Recording};
use thiserror::Error;

use super::collector::Collector;
use super::folder::{FolderError, SampleFolder, Summary};
use super::launcher::{LaunchError, Launcher, SamplerProcess};
use lockstep_schema::{Metadata, Timeline};
use lockstep_segment::SegmentDirectory;

/// Time between two polls of shared memory.
const POLL: Duration = Duration::from_millis(50);
/// Processes that the program left behind get this long to end before the reader leaves them.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a run could not be sampled.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The program could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The run folder could not be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The program could not be waited for.
    #[error("cannot wait for the program: {0}")]
    Wait(std::io::Error),
}

#[allow(
    clippy::disallowed_methods,
    reason = "samples of a real GPU are in real time"
)]
fn instant() -> Instant {
    Instant::now()
}

/// What is running while the reader reads.
enum Source {
    /// One program, and what it starts.
    Program(Child),
    /// Whatever publishes in a folder.
    Folder {
        /// When to stop; otherwise when the user says so.
        until: Option<Instant>,
        /// Stop as soon as nobody publishes.
        drain: bool,
    },
}

/// A reader with its run folder.
pub struct Session {
    collector: Collector,
    folder: SampleFolder,
    metadata: Metadata,
    segments: PathBuf,
    launcher: Option<Launcher>,
    sampler: Option<SamplerProcess>,
    command: Vec<String>,
    source: Source,
    /// Tells readers that only look on to leave acknowledging to this one.
    _stores: Option<File>,
}

/// How a run ended.
pub struct Outcome {
    /// The summary that was stored.
    pub summary: Summary,
    /// Exit code of the program; 128 and the signal's number if one ended it. 1 if the program
    /// ended well but something that was asked for is lost.
    pub code: i32,
}

impl Session {
    /// Starts `command` under `launcher`, to be stored in `folder`; `sampler` samples for it.
    pub fn of_program(
        launcher: Launcher,
        sampler: Option<SamplerProcess>,
        command: &[String],
        metadata: &Metadata,
        folder: &Path,
    ) -> Result<Self, SessionError> {
        let collector = Collector::new(SegmentDirectory::observe(&launcher.segments), metadata);
        let folder = SampleFolder::create(folder, collector.counters())?;
        // Where nothing is asked of kernels and another process samples, the program runs untouched.
        let untouched = metadata.timeline == Timeline::None && sampler.is_some();
        let child = launcher.start(command, !untouched)?;
        Ok(Self {
            collector,
            folder,
            metadata: metadata.clone(),
            segments: launcher.segments.clone(),
            launcher: Some(launcher),
            sampler,
            command: command.to_vec(),
            source: Source::Program(child),
            _stores: None,
        })
    }

    /// Reads whatever publishes in `segments`, for so long, or (with `drain`) until nobody does.
    pub fn of_folder(
        segments: &Path,
        metadata: &Metadata,
        folder: &Path,
        time: Option<Duration>,
        drain: bool,
    ) -> Result<Self, SessionError> {
        let directory = SegmentDirectory::observe(segments);
        let stores = directory.store();
        let collector = Collector::new(directory, metadata);
        Ok(Self {
            folder: SampleFolder::create(folder, collector.counters())?,
            collector,
            metadata: metadata.clone(),
            segments: segments.to_owned(),
            launcher: None,
            sampler: None,
            command: Vec::new(),
            source: Source::Folder {
                until: time.map(|time| instant() + time),
                drain,
            },
            _stores: stores,
        })
    }

    /// Writes down everything that is learned, so that it can be divided again without a GPU.
    pub fn record(&mut self, path: &Path) -> Result<(), SessionError> {
        let recording = Recording::create(path).map_err(|source| FolderError::Unwritable {
            path: path.to_owned(),
            source,
        })?;
        self.collector.record(recording);
        Ok(())
    }

    /// What kernels do was counted before.
    pub fn know(&mut self, rates: Rates) {
        self.collector.know(rates);
    }

    /// Reads until the end. `show` is called after every poll with the seconds so far, and says
    /// whether to go on.
    pub fn run(
        mut self,
        show: &mut dyn FnMut(&Collector, f64) -> bool,
    ) -> Result<Outcome, SessionError> {
        let begun = instant();
        let mut ended: Option<(Instant, Option<i32>)> = None;
        loop {
            if let Err(error) = self.collector.poll(now(), &mut self.folder) {
                return Err(self.folder.explain(error, &self.segments).into());
            }
            let goes_on = show(&self.collector, begun.elapsed().as_secs_f64());
            let over = match (&mut self.source, &ended) {
                (Source::Program(child), None) => {
                    if let Some(status) = child.try_wait().map_err(SessionError::Wait)? {
                        ended = Some((instant(), exit_code(status)));
                        // What it published at the very end is read at once.
                        continue;
                    }
                    false
                }
                (Source::Program(_), Some((when, _))) => {
                    let patience = when.elapsed() <= PATIENCE;
                    if let Some(sampler) = &mut self.sampler
                        && (self.collector.running_programs() == 0 || !patience)
                    {
                        sampler.end();
                    }
                    self.collector.running() == 0 || when.elapsed() > PATIENCE * 2
                }
                (Source::Folder { until, drain }, _) => {
                    !goes_on
                        || until.is_some_and(|until| instant() >= until)
                        || (*drain && self.collector.running() == 0)
                }
            };
            if over {
                break;
            }
            std::thread::sleep(POLL);
        }
        let code = ended.and_then(|(_, code)| code);
        let summarised =
            self.folder
                .summarise(&self.collector, &self.metadata, &self.command, code);
        let summary = summarised.map_err(|error| self.folder.explain(error, &self.segments))?;
        if let Some(sampler) = &mut self.sampler {
            sampler.wait();
        }
        if let Some(launcher) = &self.launcher {
            launcher.clean();
        }
        let code = code.unwrap_or(0);
        let code = if summary.losses.is_empty() {
            code
        } else {
            code.max(1)
        };
        Ok(Outcome { summary, code })
    }
}

fn exit_code(status: std::process::ExitStatus) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
}
