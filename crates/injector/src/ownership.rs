//! One sampler per GPU: a lock file named after the GPU's UUID. Other locks have files of their own.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

/// The right to sample one GPU, given back when this is dropped or the process ends.
#[derive(Debug)]
pub struct Ownership(File);

impl Ownership {
    /// Takes the right for GPU `uuid`, unless another process has it.
    pub fn take(folder: &Path, uuid: &str) -> Result<Option<Self>, String> {
        Self::lock(folder, uuid, FlockOperation::NonBlockingLockExclusive)
    }

    /// Takes a part in a right that several processes may have at once; waits for one that has it
    /// alone.
    pub fn share(folder: &Path, name: &str) -> Result<Option<Self>, String> {
        Self::lock(folder, name, FlockOperation::LockShared)
    }

    fn lock(folder: &Path, name: &str, how: FlockOperation) -> Result<Option<Self>, String> {
        let path = folder.join(format!("{name}.lock"));
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file: File = open(&path, flags, Mode::from_raw_mode(0o600))
            .map_err(|error| format!("{}: cannot open the lock of a GPU: {error}", path.display()))?
            .into();
        match flock(&file, how) {
            Ok(()) => Ok(Some(Self(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(format!("{}: cannot lock: {error}", path.display())),
        }
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        // A child of the process may still hold the file open.
        let _ = flock(&self.0, FlockOperation::Unlock);
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
