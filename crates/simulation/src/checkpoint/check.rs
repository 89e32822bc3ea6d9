//! Whether a run can be saved, and whether it can go on from a checkpoint.

use super::state::{self, Head, Identity, State};
use super::{CheckpointError, elsewhere, log, pages};
use crate::description::Description;
use crate::machine::embedded;
use crate::server::Recording;
use lockstep_run_folder::checkpoint::{LOG, STATE, lock as lock_file};
use lockstep_stats::Digest;
use lockstep_units::Time;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a run that left a checkpoint was started.
#[derive(Clone, Debug)]
pub struct Started {
    /// Its command line, without the name of the command.
    pub arguments: Vec<String>,
    /// The directory it was started in.
    pub directory: PathBuf,
}

/// How the run was started whose checkpoint is in a folder.
///
/// # Errors
/// There is none, or it is damaged, or of another build of Lockstep.
pub fn started(folder: &Path) -> Result<Started, CheckpointError> {
    let (head, _) = state::read(folder)?;
    let ours = Identity {
        machine: head.identity.machine,
        ..Identity::of_build()?
    };
    state::check(folder, &head.identity, &ours)?;
    Ok(Started::of(head))
}

impl Started {
    fn of(head: Head) -> Self {
        Self {
            arguments: head.arguments,
            directory: head.directory.into(),
        }
    }

    /// Of the bytes of a `checkpoint.state`, whoever wrote them; all of it is read. With `sealed` they are taken as if
    /// the digest at their end were theirs, which is how fuzzing comes past it.
    ///
    /// # Errors
    /// They are no checkpoint.
    pub fn parse(bytes: &[u8], sealed: bool) -> Result<Self, CheckpointError> {
        let mut bytes = bytes.to_vec();
        if sealed {
            state::seal(&mut bytes);
        }
        let (head, _) = state::parse(Path::new(STATE), &bytes)?;
        Ok(Self::of(head))
    }
}

/// The bytes of a `checkpoint.state` with this machine in it, which belongs to no log.
///
/// # Errors
/// This executable cannot be read.
pub fn detached(description: &Description, state: &State) -> Result<Vec<u8>, CheckpointError> {
    let head = Head {
        identity: Identity::of(description)?,
        arguments: vec!["run".into()],
        directory: "/".into(),
        log: log::Position::default(),
        pages: pages::Extent::default(),
        at: Time::ZERO,
        spent: Duration::ZERO,
    };
    state::write(&head, state).map_err(CheckpointError::system(Path::new(STATE)))
}

impl Identity {
    /// What this build shares with its checkpoints, whatever it simulates.
    pub(super) fn of_build() -> Result<Self, CheckpointError> {
        let path = Path::new("/proc/self/exe");
        let executable = std::fs::read(path).map_err(CheckpointError::system(path))?;
        Ok(Self {
            lockstep: env!("CARGO_PKG_VERSION").into(),
            build: Digest::of_page(&executable),
            machine: Digest::of_page(&[]),
        })
    }

    /// What a run shares with its checkpoints.
    pub(super) fn of(description: &Description) -> Result<Self, CheckpointError> {
        Ok(Self {
            machine: Digest::of_page(machine(description).as_bytes()),
            ..Self::of_build()?
        })
    }
}

/// What a run simulates, and how it samples launches.
fn machine(description: &Description) -> String {
    let machine = embedded::machine(description);
    match &description.sampling {
        Some(sampling) => format!("{machine} {}", sampling.identity()),
        None => machine,
    }
}

/// Refuses what cannot be saved, and a checkpoint that this run cannot go on from. Nothing is changed.
///
/// # Errors
/// It is asked for, or the checkpoint is damaged, of something else, or in use.
pub fn check(description: &Description) -> Result<(), CheckpointError> {
    let Some(options) = &description.checkpoints else {
        return Ok(());
    };
    let unsaved = [
        (description.all_gpus() > 1, "several GPUs (--gpus)"),
        (description.series.is_some(), "samples over time (--series)"),
        (description.lines, "counts by instruction (--lines)"),
        (!description.watches.is_empty(), "what is watched (--debug)"),
        (
            description.checks != Default::default(),
            "what checks know (--check)",
        ),
        (
            description.recording == Recording::Full,
            "a full record (--record full)",
        ),
    ];
    if let Some((_, what)) = unsaved.iter().find(|(asked, _)| *asked) {
        return Err(CheckpointError::Unsaved {
            reason: format!("{what} cannot be saved; leave one of the two out"),
        });
    }
    if let Some(from) = &options.from {
        return elsewhere::check(description, from);
    }
    match (&description.out, options.resume) {
        (Some(folder), true) => check_files(folder, &Identity::of(description)?),
        _ => Ok(()),
    }
}

/// Looks through all files of a checkpoint.
fn check_files(folder: &Path, ours: &Identity) -> Result<(), CheckpointError> {
    let path = folder.join(LOG);
    let mut file = File::open(&path).map_err(CheckpointError::system(&path))?;
    lock(&path, &file)?;
    let (head, state) = state::read(folder)?;
    state::check(folder, &head.identity, ours)?;
    log::verify(&path, &mut file, head.log)?;
    pages::verify(folder, head.pages, &state.pages)
}

/// Keeps others from using a log.
pub(super) fn lock(path: &Path, file: &File) -> Result<(), CheckpointError> {
    match lock_file(file).map_err(CheckpointError::system(path))? {
        true => Ok(()),
        false => Err(CheckpointError::Busy {
            file: path.display().to_string(),
        }),
    }
}
