//! The file with the contents of memory, as the GPUs of a run see it.

use super::{MANAGED_PAGE, MachineError, context_page};
use lockstep_gpu::Contents;
use lockstep_gpu::memory::Mapping;
use lockstep_protocol::layout;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Memory of the context below the first allocation that kernels can read (`validation/checks/mapped.txt`).
const CONTEXT_MEMORY: u64 = 488 << 20;

/// The file and one mapping of it, for one GPU or for all of a run.
#[derive(Clone)]
pub struct Backing {
    /// The file.
    pub file: Arc<OwnedFd>,
    mapping: Arc<Mapping>,
}

impl Backing {
    /// Maps a file, which stays open for as long as the mapping is used.
    ///
    /// # Errors
    /// The system refuses.
    pub fn of(file: &OwnedFd) -> Result<Self, MachineError> {
        let refused = |error: std::io::Error| {
            MachineError::Memory(format!("cannot map the memory of the GPUs: {error}"))
        };
        let file = file.try_clone().map_err(refused)?;
        let status = rustix::fs::fstat(&file).map_err(|error| refused(error.into()))?;
        let mapping = Mapping::of_file(&file, status.st_size as u64).map_err(refused)?;
        Ok(Self {
            file: Arc::new(file),
            mapping: Arc::new(mapping),
        })
    }

    /// What the GPU with a number sees.
    ///
    /// # Errors
    /// The file is not made of whole pages.
    pub fn contents(&self, ordinal: u32) -> Result<Contents, MachineError> {
        let contents = Contents::over(self.mapping.clone(), layout::WINDOW_BASE);
        let mut contents = contents.map_err(|error| MachineError::Memory(error.to_string()))?;
        contents.set_page_size(layout::Region::Managed.range(), MANAGED_PAGE);
        let device = layout::Region::Device(ordinal).range();
        let below = device.start - CONTEXT_MEMORY..device.start;
        contents.set_context_memory(below, context_page(ordinal));
        Ok(contents)
    }
}
