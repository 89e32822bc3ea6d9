//! Checkpoints: a run that is killed goes on where it was saved last.
//!
//! The program cannot be saved, so it is started again, and up to the checkpoint the device does not work for it
//! but repeats what it answered: the runtime makes the same of the same calls and answers, and nothing of it has
//! to be saved. What is saved is the device in the middle of an advance: hardware, memory, and what stands
//! between the two and the runtime.
//!
//! | file | what is in it |
//! |---|---|
//! | `checkpoint.log` | calls, answers of the device, and what the program read, in their order |
//! | `checkpoint.pages` | memory; each checkpoint adds the pages that changed |
//! | `checkpoint.state` | the machine, and how far the others count; replaced whole |
//!
//! When a checkpoint is due is a matter of the host's time, which the simulation cannot see: saving changes
//! nothing, and where a run is resumed cannot be told from its answer.
//!
//! Left out: several GPUs, and programs of several processes, for which no checkpoints are written any more
//! (`docs/decisions/0077-checkpoints.md`).
//!
//! Start reading at [`Checkpoints::start`].

mod answers;
mod calls;
mod check;
mod elsewhere;
mod error;
mod log;
mod pages;
#[cfg(test)]
mod place;
mod state;

pub use check::{Started, check, detached, started};
pub use error::CheckpointError;
pub use log::Kind;
pub use pages::SavedPage;
pub use state::State;

use crate::description::Description;
use crate::interrupts::Interrupts;
use elsewhere::Source;
use lockstep_gpu::memory::PAGE;
use lockstep_gpu::{Contents, Launch};
use lockstep_protocol::layout;
use lockstep_run_folder::RunFolder;
use lockstep_run_folder::checkpoint::LOG;
use lockstep_units::Time;
use log::{LogReader, LogWriter};
use pages::PageStore;
use state::{Head, Identity};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a run is asked to save.
#[derive(Clone, Debug, Default)]
pub struct CheckpointOptions {
    /// How much time of the host passes between two checkpoints.
    pub every: Duration,
    /// The launch before which it is saved once, when all others have ended.
    pub before: Option<u64>,
    /// The folder of the checkpoint that a machine of other settings goes on from, which is left as it is.
    pub from: Option<PathBuf>,
    /// The command line, for those who resume it.
    pub arguments: Vec<String>,
    /// Whether to go on from the checkpoint in the folder.
    pub resume: bool,
}

/// The checkpoints of a run, as device and server share them.
pub type SharedCheckpoints = Arc<Mutex<Checkpoints>>;

/// The answers before the checkpoint that a run is resumed from.
struct Playing {
    reader: LogReader,
    state: Box<State>,
    /// Where the device stands.
    now: Time,
    /// Launches whose code or whole self the state names.
    needed: BTreeSet<u64>,
    launches: BTreeMap<u64, Launch>,
}

/// Where the program stands, seen from a checkpoint.
pub enum Played<T> {
    /// Before it: this was the answer.
    Answer(T),
    /// At it: the device goes on from this state, with these launches.
    Reached(Box<State>, BTreeMap<u64, Launch>),
    /// Behind it, or nothing was resumed.
    Live,
}

/// Files of checkpoints that are written.
struct Files {
    log: LogWriter,
    store: PageStore,
}

/// The checkpoints of a run.
pub struct Checkpoints {
    folder: Arc<RunFolder>,
    identity: Identity,
    options: CheckpointOptions,
    /// What is written; nothing where a machine goes on from the checkpoint of another.
    files: Option<Files>,
    /// That checkpoint.
    source: Option<Source>,
    /// Whether the program registered memory of its own before the checkpoint.
    aliases: bool,
    playing: Option<Playing>,
    /// What was last read at a place: constants are read again for every launch.
    reads: BTreeMap<(u64, usize), Vec<u8>>,
    /// Memory, past the device.
    window: Contents,
    /// Whether the program has memory that the device writes and it can look at.
    shows_memory: bool,
    /// Pages of it that were written and not logged yet.
    written: BTreeSet<u64>,
    /// Why there are no checkpoints any more.
    over: Option<String>,
    /// Why the program cannot be resumed.
    differs: Option<String>,
    /// Whether a checkpoint was written.
    saved: bool,
    interrupts: Arc<Interrupts>,
    calls: u64,
    began: Instant,
    /// Time that the run took before it was resumed.
    spent: Duration,
    resumed: Option<Time>,
    last: Instant,
}

/// Addresses that the program can look at without a call.
pub fn looked_at() -> Range<u64> {
    layout::Region::Pinned.range().start..layout::Region::Managed.range().end
}

#[allow(
    clippy::disallowed_methods,
    reason = "when a checkpoint is written changes no answer"
)]
impl Checkpoints {
    /// Those of a run that writes into `folder`, with its memory; none if none are asked for.
    ///
    /// # Errors
    /// The files cannot be made, or the checkpoint to go on from is refused.
    pub fn start(
        description: &Description,
        folder: &Arc<RunFolder>,
        memory: &OwnedFd,
        interrupts: &Arc<Interrupts>,
    ) -> Result<Option<SharedCheckpoints>, CheckpointError> {
        let Some(options) = description.checkpoints.clone() else {
            return Ok(None);
        };
        if let Some(from) = options.from.clone() {
            let checkpoints =
                Self::start_elsewhere(description, folder, memory, interrupts, &from)?;
            return Ok(Some(Arc::new(Mutex::new(checkpoints))));
        }
        let path = folder.file(LOG);
        let opened = match options.resume {
            true => folder.checkpoint_file(LOG),
            false => folder.new_checkpoint_file(LOG),
        };
        let file = opened.map_err(CheckpointError::system(&path))?;
        check::lock(&path, &file)?;
        let system = || CheckpointError::system(&path);
        let mut found = None;
        let (log, store) = match options.resume {
            true => {
                let (head, state) = state::read(folder.path())?;
                let log = LogWriter::go_on(&path, file, head.log)?;
                let store = PageStore::go_on(folder, head.pages, &state.pages)?;
                found = Some((head, state));
                (log, store)
            }
            false => {
                let store = PageStore::new(folder).map_err(system())?;
                (LogWriter::new(file), store)
            }
        };
        let mut checkpoints = Self::new(description, folder, memory, interrupts)?;
        checkpoints.files = Some(Files { log, store });
        if let Some((head, state)) = found {
            checkpoints.spent = head.spent;
            checkpoints.resumed = Some(head.at);
            let file = folder.checkpoint_file(LOG).map_err(system())?;
            checkpoints.playing = Some(Playing {
                reader: LogReader::new(file, head.log).map_err(system())?,
                needed: state.machine.launches_needed(),
                state: Box::new(state),
                now: Time::ZERO,
                launches: BTreeMap::new(),
            });
        }
        Ok(Some(Arc::new(Mutex::new(checkpoints))))
    }

    /// With nothing in it that is written or repeated.
    fn new(
        description: &Description,
        folder: &Arc<RunFolder>,
        memory: &OwnedFd,
        interrupts: &Arc<Interrupts>,
    ) -> Result<Self, CheckpointError> {
        let window = Contents::shared(memory.as_fd(), layout::WINDOW_BASE, layout::WINDOW_SIZE);
        let window = window
            .map_err(|error| CheckpointError::system(&folder.file(LOG))(io::Error::other(error)))?;
        Ok(Self {
            folder: folder.clone(),
            identity: Identity::of(description)?,
            options: description.checkpoints.clone().unwrap_or_default(),
            files: None,
            source: None,
            aliases: false,
            playing: None,
            reads: BTreeMap::new(),
            window,
            shows_memory: false,
            written: BTreeSet::new(),
            over: None,
            differs: None,
            saved: false,
            interrupts: interrupts.clone(),
            calls: 0,
            began: Instant::now(),
            spent: Duration::ZERO,
            resumed: None,
            last: Instant::now(),
        })
    }

    /// Whether it is time for a checkpoint.
    pub fn is_due(&self) -> bool {
        self.over.is_none()
            && self.files.is_some()
            && self.playing.is_none()
            && self.differs.is_none()
            && self.last.elapsed() >= self.options.every
    }

    /// Writes a checkpoint of a device that stands at `at`. If it cannot be written, the run goes on without.
    pub fn write(&mut self, at: Time, contents: &Contents, state: State) {
        if let Err(error) = self.try_to_write(at, contents, state) {
            self.end(format!("no checkpoints are written any more: {error}"));
        }
        self.last = Instant::now();
    }

    fn try_to_write(&mut self, at: Time, contents: &Contents, mut state: State) -> io::Result<()> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        files.store.keep(contents, &mut state.pages)?;
        state.written = self.written.iter().copied().collect();
        let head = Head {
            identity: self.identity.clone(),
            arguments: self.options.arguments.clone(),
            directory: std::env::current_dir()?.display().to_string(),
            log: files.log.settle()?,
            pages: files.store.extent(),
            at,
            spent: self.spent + self.began.elapsed(),
        };
        self.folder
            .write_checkpoint(&state::write(&head, &state)?)?;
        tracing::info!("checkpoint at {at}: {} pages", state.pages.len());
        self.saved = true;
        files.store.settled()
    }
}

impl Checkpoints {
    /// No checkpoint is written any more, for a reason that the user is told.
    fn end(&mut self, reason: String) {
        tracing::warn!("{reason}");
        self.over.get_or_insert(reason);
    }

    /// What the user should know of checkpoints, beside why the run failed.
    pub fn notice(&self) -> Option<&str> {
        self.over.as_deref()
    }

    /// Why the run is not the one that the checkpoint is of.
    pub fn problem(&self) -> Option<String> {
        let early = || {
            self.playing.as_ref().map(|_| {
                format!(
                    "the program ended after {} calls, before the checkpoint: it did not do what it did before",
                    self.calls
                )
            })
        };
        let differs = self.differs.clone().or_else(early);
        differs.or_else(|| self.missed_launch())
    }

    /// Where the run was resumed, and the time that it had taken to come there.
    pub fn resumed(&self) -> Option<(Time, Duration)> {
        self.resumed.map(|at| (at, self.spent))
    }

    /// Memory was allocated.
    pub fn allocated(&mut self, address: u64) {
        self.shows_memory |= looked_at().contains(&address);
    }

    /// Whether the program has memory that the device writes and it can look at.
    pub fn shows_memory(&self) -> bool {
        self.shows_memory && self.playing.is_none() && self.files.is_some()
    }

    /// Somebody beside the program wrote memory.
    pub fn wrote(&mut self, range: Range<u64>) {
        if self.shows_memory() && looked_at().contains(&range.start) {
            let pages = range.start / PAGE..range.end.div_ceil(PAGE);
            self.written.extend(pages.map(|page| page * PAGE));
        }
    }

    /// The device wrote pages that the program can look at.
    pub fn wrote_pages(&mut self, pages: Vec<u64>) {
        self.written.extend(pages);
    }

    /// What a page of the checkpoint holds.
    ///
    /// # Errors
    /// It is not what was written.
    pub fn page(&self, page: &SavedPage, bytes: &mut [u8]) -> Result<(), CheckpointError> {
        match (&self.files, &self.source) {
            (_, Some(source)) => source.page(page, bytes),
            (Some(files), None) => files.store.read(page, bytes),
            (None, None) => unreachable!("a checkpoint is read where there is one"),
        }
    }
}
