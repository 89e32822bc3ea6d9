//! The checkpoint of another machine, between two kernels, from which a run of other settings goes on. It is only
//! read, so any number of runs may use it at once.

use super::log::{self, LogReader};
use super::pages::{self, SavedPage, read_page};
use super::state::{self, Head, Identity};
use super::{CheckpointError, Checkpoints, Playing};
use crate::description::Description;
use crate::interrupts::Interrupts;
use lockstep_config::GpuConfig;
use lockstep_config::occupancy::SmLimits;
use lockstep_run_folder::RunFolder;
use lockstep_run_folder::checkpoint::{LOG, STATE};
use lockstep_units::Time;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a run goes on from.
pub struct Source {
    /// The folder of the run that was saved.
    folder: PathBuf,
    /// The file of its pages.
    path: PathBuf,
    pages: File,
    /// Simulated time.
    at: Time,
}

impl Source {
    fn open(folder: &Path, head: &Head) -> Result<Self, CheckpointError> {
        let path = folder.join(head.pages.name());
        Ok(Self {
            folder: folder.to_path_buf(),
            pages: File::open(&path).map_err(CheckpointError::system(&path))?,
            path,
            at: head.at,
        })
    }

    /// What a page holds.
    pub fn page(&self, page: &SavedPage, bytes: &mut [u8]) -> Result<(), CheckpointError> {
        read_page(&self.path, &self.pages, page, bytes)
    }
}

/// Looks through all files of a checkpoint, and whether a program can go on with these settings: what it saw of the
/// GPU must hold.
///
/// # Errors
/// It cannot.
pub fn check(description: &Description, from: &Path) -> Result<(), CheckpointError> {
    let (head, state) = state::read(from)?;
    let ours = Identity {
        machine: head.identity.machine,
        ..Identity::of_build()?
    };
    state::check(from, &head.identity, &ours)?;
    let path = from.join(LOG);
    let mut file = File::open(&path).map_err(CheckpointError::system(&path))?;
    log::verify(&path, &mut file, head.log)?;
    pages::verify(from, head.pages, &state.pages)?;
    match difference(description.seen(), &description.config) {
        Some(what) => Err(CheckpointError::refused(
            &from.join(STATE),
            "its GPU",
            format!(
                "{what} another one than that of this run, and the program has seen it; change clocks, caches, \
                 latencies and widths only, or run the program from its beginning"
            ),
        )),
        None => Ok(()),
    }
}

/// What of a GPU a program relies on that differs, in words.
fn difference(seen: &GpuConfig, config: &GpuConfig) -> Option<&'static str> {
    let all = [
        (
            seen.device.compute_capability != config.device.compute_capability,
            "compute capability is",
        ),
        (seen.device.sms != config.device.sms, "the number of SMs is"),
        (
            SmLimits::new(&seen.sm) != SmLimits::new(&config.sm),
            "what fits an SM is",
        ),
    ];
    let found = all.iter().find(|(differs, _)| *differs);
    found.map(|(_, what)| *what)
}

impl Checkpoints {
    /// Repeats what the checkpoint of another machine has, and writes none.
    pub(super) fn start_elsewhere(
        description: &Description,
        folder: &Arc<RunFolder>,
        memory: &OwnedFd,
        interrupts: &Arc<Interrupts>,
        from: &Path,
    ) -> Result<Self, CheckpointError> {
        let (head, state) = state::read(from)?;
        let path = from.join(LOG);
        let file = File::open(&path).map_err(CheckpointError::system(&path))?;
        let reader = LogReader::new(file, head.log).map_err(CheckpointError::system(&path))?;
        let mut checkpoints = Self::new(description, folder, memory, interrupts)?;
        checkpoints.source = Some(Source::open(from, &head)?);
        checkpoints.playing = Some(Playing {
            reader,
            needed: state.machine.launches_needed(),
            state: Box::new(state),
            now: Time::ZERO,
            launches: BTreeMap::new(),
        });
        Ok(checkpoints)
    }

    /// When the machine was saved whose checkpoint another one goes on from, if one does.
    pub fn began_elsewhere(&self) -> Option<Time> {
        self.source.as_ref().map(|source| source.at)
    }

    /// Whether the program registered memory of its own before the checkpoint.
    pub fn has_aliases(&self) -> bool {
        self.aliases
    }

    /// What the summary says of where the run began.
    pub fn remark(&self) -> Option<String> {
        if let Some(source) = &self.source {
            return Some(format!(
                "memory and calls up to {} of simulated time are those of {}; caches began cold, but for pages in L2 \
                 that functional launches wrote",
                source.at,
                source.folder.display()
            ));
        }
        let at = self.resumed?;
        Some(format!(
            "the run was resumed from a checkpoint at {at} of simulated time"
        ))
    }

    /// Why there is no checkpoint before a launch, if one was wanted.
    pub(super) fn missed_launch(&self) -> Option<String> {
        let wanted = self
            .options
            .before
            .filter(|_| !self.saved && self.resumed.is_none())?;
        Some(format!(
            "no checkpoint was written: the program never came to launch {wanted} (numbers are from 0)"
        ))
    }
}
