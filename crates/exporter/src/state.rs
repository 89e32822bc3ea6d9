//! What an exporter leaves for the next one, so that no counter falls when it is restarted.
//!
//! The figures and how far each segment was read are one file, replaced as a whole: a killed
//! exporter is followed by one that goes on exactly where the file says. It lives beside the
//! segments in shared memory, private to its user.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lockstep_collector::{Position, SampledUntil};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::ExporterError;
use crate::figures::Figures;
use crate::kernels::KernelLabels;

/// Version of the file; another one is not read, and counters begin anew.
const VERSION: u32 = 1;
/// A larger file is not ours.
const LARGEST: u64 = 256 << 20;

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct State {
    version: u32,
    /// What is served.
    pub figures: Figures,
    /// Kernels with labels.
    pub kernels: KernelLabels,
    /// How far each segment was read.
    pub positions: BTreeMap<String, Position>,
    /// Who sampled each GPU last.
    #[serde(default)]
    pub sampled_until: SampledUntil,
}

/// The file, held by one exporter at a time.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    _lock: File,
}

impl StateFile {
    /// Takes the file in `folder`; an error if another exporter has it.
    pub fn open(folder: &Path) -> Result<Self, ExporterError> {
        let lock_path = folder.join("exporter.lock");
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(|source| ExporterError::state(&lock_path, source))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            ExporterError::Taken {
                path: folder.to_owned(),
            }
        })?;
        Ok(Self {
            path: folder.join("exporter.json"),
            _lock: lock,
        })
    }

    /// What the exporter before this one left; nothing if there was none, or it was of another
    /// version.
    pub fn read(&self) -> Option<State> {
        let length = fs::metadata(&self.path).ok()?.len();
        if length > LARGEST {
            return None;
        }
        let state: State = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        (state.version == VERSION).then_some(state)
    }

    /// Replaces the file.
    pub fn write(&self, state: &State) -> Result<(), ExporterError> {
        let state = State {
            version: VERSION,
            ..state.clone()
        };
        let fresh = self.path.with_extension("new");
        let written = || -> io::Result<()> {
            let mut file = File::options()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&fresh)?;
            file.write_all(&serde_json::to_vec(&state)?)?;
            fs::rename(&fresh, &self.path)
        };
        written().map_err(|source| ExporterError::state(&self.path, source))
    }
}
