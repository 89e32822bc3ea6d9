//! What the environment tells the injector. Every variable may be missing.

use std::path::{Path, PathBuf};

use lockstep_schema::Metadata;
use lockstep_segment::SegmentDirectory;

/// The metadata file.
pub const METADATA: &str = "LOCKSTEP_SAMPLE_METADATA";
/// The folder of segments.
pub const SEGMENTS: &str = "LOCKSTEP_SAMPLE_SEGMENTS";
/// The folder of the locks that make one process the sampler of a GPU.
pub const LOCKS: &str = "LOCKSTEP_SAMPLE_LOCKS";
/// Set when a reader shows the injector's sentences, so that the program's own output stays clean.
pub const QUIET: &str = "LOCKSTEP_SAMPLE_QUIET";
/// A file for details of what the injector does.
pub const LOG: &str = "LOCKSTEP_SAMPLE_LOG";

/// The settings of one process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Counters, interval and mode.
    pub metadata: Metadata,
    /// Folder of the segments.
    pub segments: PathBuf,
    /// Folder of the locks of GPUs.
    pub locks: PathBuf,
}

impl Settings {
    /// Reads the environment; a sentence if the metadata file cannot be used.
    pub fn from_environment() -> Result<Self, String> {
        let metadata = match std::env::var_os(METADATA) {
            Some(path) => Metadata::read(Path::new(&path)).map_err(|error| error.to_string())?,
            None => Metadata::default(),
        };
        let base = SegmentDirectory::of_user();
        let folder = |variable, otherwise: PathBuf| {
            std::env::var_os(variable).map_or(otherwise, PathBuf::from)
        };
        Ok(Self {
            metadata,
            segments: folder(SEGMENTS, base.join("programs")),
            locks: folder(LOCKS, base),
        })
    }
}
