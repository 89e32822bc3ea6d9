//! The file behind the window of addresses, and mappings of it.

use crate::layout::{WINDOW_BASE, WINDOW_SIZE};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use thiserror::Error;

/// Why the window could not be mapped.
#[derive(Debug, Error)]
pub enum WindowError {
    /// The file could not be made.
    #[error(
        "cannot create the shared memory of the simulated GPUs (memfd_create): {0}; is it forbidden \
         by a sandbox, or the size of files limited (ulimit -f)?"
    )]
    Create(io::Error),
    /// The file handed over is not of the expected size.
    #[error("the shared memory handed over has {found} bytes where {WINDOW_SIZE} are expected")]
    Size {
        /// Its size.
        found: u64,
    },
    /// The addresses are taken or forbidden.
    #[error(
        "cannot map {WINDOW_SIZE} bytes at {WINDOW_BASE:#x}: {0}; is the address space of the \
         process limited (ulimit -v) or used by a sanitizer?"
    )]
    Map(io::Error),
}

/// Creates the sparse file of the whole window. It can neither grow nor shrink.
pub fn create() -> Result<OwnedFd, WindowError> {
    let create = || -> rustix::io::Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(c"lockstep-memory", flags)?;
        rustix::fs::ftruncate(&file, WINDOW_SIZE)?;
        let seals = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)?;
        Ok(file)
    };
    create().map_err(|error| WindowError::Create(error.into()))
}

/// A mapping of the window, until it is dropped.
#[derive(Debug)]
pub struct Window {
    start: *mut c_void,
}

// SAFETY: the mapping belongs to the process, not to a thread; whoever reads or writes
// through it answers for that access.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    /// Maps the window at [`WINDOW_BASE`], as a CUDA program must.
    pub fn map_fixed(file: impl AsFd) -> Result<Self, WindowError> {
        Self::map(file, WINDOW_BASE as *mut c_void, MapFlags::FIXED_NOREPLACE)
    }

    /// Maps the window wherever there is room, as a simulator may: several of them can
    /// then live in one process. Add `address - WINDOW_BASE` to [`Window::start`].
    pub fn map_anywhere(file: impl AsFd) -> Result<Self, WindowError> {
        Self::map(file, std::ptr::null_mut(), MapFlags::empty())
    }

    fn map(file: impl AsFd, wanted: *mut c_void, flags: MapFlags) -> Result<Self, WindowError> {
        let status = rustix::fs::fstat(&file).map_err(|error| WindowError::Map(error.into()))?;
        if status.st_size as u64 != WINDOW_SIZE {
            return Err(WindowError::Size {
                found: status.st_size as u64,
            });
        }
        // SAFETY: FIXED_NOREPLACE never replaces a mapping, and without it the kernel
        // chooses free addresses; the mapping is new memory of ours.
        let start = unsafe {
            rustix::mm::mmap(
                wanted,
                WINDOW_SIZE as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE | flags,
                file,
                0,
            )
        }
        .map_err(|error| WindowError::Map(error.into()))?;
        let window = Self { start };
        if flags.contains(MapFlags::FIXED_NOREPLACE) && start != wanted {
            // A kernel before 4.17 takes the flag for a hint.
            return Err(WindowError::Map(io::ErrorKind::AddrInUse.into()));
        }
        // SAFETY: the range is the mapping just made. A core dump must not hold the holes
        // of a sparse file; if the advice fails, only core files are larger.
        let _ = unsafe { rustix::mm::madvise(start, WINDOW_SIZE as usize, Advice::LinuxDontDump) };
        Ok(window)
    }

    /// Where the window starts in this process.
    pub fn start(&self) -> *mut u8 {
        self.start.cast()
    }

    /// Keeps the mapping for the rest of the process.
    pub fn leak(self) {
        std::mem::forget(self);
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping that this value owns; that nobody uses it any
        // more is what dropping it says.
        let _ = unsafe { rustix::mm::munmap(self.start, WINDOW_SIZE as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_of_the_file_show_the_same_bytes() {
        let file = create().unwrap();
        let fixed = Window::map_fixed(&file).unwrap();
        let elsewhere = Window::map_anywhere(&file).unwrap();
        assert_eq!(fixed.start() as u64, WINDOW_BASE);
        let offset = WINDOW_SIZE as usize - 4096;
        // SAFETY: both offsets lie in the mappings, which nobody else uses.
        unsafe {
            fixed.start().add(offset).write_volatile(42);
            assert_eq!(elsewhere.start().add(offset).read_volatile(), 42);
            assert_eq!(elsewhere.start().read_volatile(), 0);
        }
        // The addresses are taken now, and taking them twice is refused.
        assert!(matches!(Window::map_fixed(&file), Err(WindowError::Map(_))));
    }

    #[test]
    fn a_file_of_another_size_is_refused() {
        let file = rustix::fs::memfd_create(c"small", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        assert!(matches!(
            Window::map_anywhere(&file),
            Err(WindowError::Size { found: 4096 })
        ));
    }
}
