//! Other sampled processes on the same GPU.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lockstep_segment::{IdentityKind, Liveness, SegmentDirectory, SegmentReader};

/// Looks at the segments beside our own.
pub struct Neighbours {
    directory: SegmentDirectory,
    own: PathBuf,
    readers: BTreeMap<PathBuf, SegmentReader>,
}

impl Neighbours {
    /// Of the process whose segment is `own`.
    pub fn new(own: PathBuf) -> Self {
        let folder = own.parent().unwrap_or(&own).to_owned();
        Self {
            directory: SegmentDirectory::observe(&folder),
            own,
            readers: BTreeMap::new(),
        }
    }

    /// Whether another living process runs kernels on one of `gpus`.
    pub fn share(&mut self, gpus: &[String]) -> bool {
        // A folder that cannot be listed shows no neighbours: marks are fewer, counts the same.
        let paths = self.directory.segments().unwrap_or_default();
        self.readers.retain(|path, _| paths.contains(path));
        for path in paths {
            let known = path == self.own || self.readers.contains_key(&path);
            if !known && let Ok(reader) = SegmentReader::open(&path) {
                self.readers.insert(path, reader);
            }
        }
        self.readers.values_mut().any(|reader| {
            !reader.is_sampler()
                && reader.liveness() == Liveness::Running
                && reader
                    .learn_identities()
                    .iter()
                    .any(|one| one.kind == IdentityKind::Device && gpus.contains(&one.text))
        })
    }
}
