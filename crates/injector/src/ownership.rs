//! One sampler per GPU: a lock file named after the GPU's UUID.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

/// The right to sample one GPU, given back when this is dropped or the process ends.
#[derive(Debug)]
pub struct Ownership(#[allow(dead_code, reason = "holding it open is the point")] File);

impl Ownership {
    /// Takes the right for GPU `uuid`, unless another process has it.
    pub fn take(folder: &Path, uuid: &str) -> Result<Option<Self>, String> {
        let path = folder.join(format!("{uuid}.lock"));
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file: File = open(&path, flags, Mode::from_raw_mode(0o600))
            .map_err(|error| format!("{}: cannot open the lock of a GPU: {error}", path.display()))?
            .into();
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(format!("{}: cannot lock: {error}", path.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_has_one_owner_at_a_time() {
        let folder =
            std::env::temp_dir().join(format!("lockstep-ownership-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let first = Ownership::take(&folder, "GPU-1").unwrap();
        assert!(first.is_some());
        assert!(Ownership::take(&folder, "GPU-1").unwrap().is_none());
        assert!(Ownership::take(&folder, "GPU-2").unwrap().is_some());
        drop(first);
        assert!(Ownership::take(&folder, "GPU-1").unwrap().is_some());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
