//! The file behind the window of addresses, and mappings of it.

use crate::layout::{self, LONGEST_WINDOW, WINDOW_BASE, WINDOW_SIZE};
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
    #[error(
        "the shared memory handed over has {found} bytes where {WINDOW_SIZE} or {LONGEST_WINDOW} are \
         expected"
    )]
    Size {
        /// Its size.
        found: u64,
    },
    /// The addresses are taken or forbidden.
    #[error(
        "cannot map {size} bytes at {WINDOW_BASE:#x}: {error}; is the address space of the process \
         limited (ulimit -v) or used by a sanitizer?"
    )]
    Map {
        /// Bytes of the window.
        size: u64,
        /// What the operating system says.
        error: io::Error,
    },
}

/// Creates the sparse file of the window of a single node. It can neither grow nor shrink.
pub fn create() -> Result<OwnedFd, WindowError> {
    create_for(1)
}

/// The same, for so many devices.
pub fn create_for(devices: u32) -> Result<OwnedFd, WindowError> {
    let create = || -> rustix::io::Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(c"lockstep-memory", flags)?;
        rustix::fs::ftruncate(&file, layout::window_size(devices))?;
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
    size: u64,
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
        let refused = |size: u64| move |error: io::Error| WindowError::Map { size, error };
        let status = rustix::fs::fstat(&file).map_err(|error| refused(0)(error.into()))?;
        let size = status.st_size as u64;
        if ![WINDOW_SIZE, LONGEST_WINDOW].contains(&size) {
            return Err(WindowError::Size { found: size });
        }
        // SAFETY: FIXED_NOREPLACE never replaces a mapping, and without it the kernel
        // chooses free addresses; the mapping is new memory of ours.
        let start = unsafe {
            rustix::mm::mmap(
                wanted,
                size as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE | flags,
                file,
                0,
            )
        }
        .map_err(|error| refused(size)(error.into()))?;
        let window = Self { start, size };
        if flags.contains(MapFlags::FIXED_NOREPLACE) && start != wanted {
            // A kernel before 4.17 takes the flag for a hint.
            return Err(refused(size)(io::ErrorKind::AddrInUse.into()));
        }
        // SAFETY: the range is the mapping just made. A core dump must not hold the holes
        // of a sparse file; if the advice fails, only core files are larger.
        let _ = unsafe { rustix::mm::madvise(start, size as usize, Advice::LinuxDontDump) };
        Ok(window)
    }

    /// Where the window starts in this process.
    pub fn start(&self) -> *mut u8 {
        self.start.cast()
    }

    /// Its length in bytes.
    pub fn size(&self) -> u64 {
        self.size
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
        let _ = unsafe { rustix::mm::munmap(self.start, self.size as usize) };
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
        assert!(matches!(
            Window::map_fixed(&file),
            Err(WindowError::Map { .. })
        ));
    }

    #[test]
    fn a_window_of_many_devices_reaches_the_last_of_them() {
        let file = create_for(layout::MAXIMUM_DEVICES).unwrap();
        let window = Window::map_anywhere(&file).unwrap();
        assert_eq!(window.size(), LONGEST_WINDOW);
        let last = layout::Region::Device(layout::MAXIMUM_DEVICES - 1)
            .range()
            .end
            - 1;
        // SAFETY: the address is in the mapping, which nobody else uses.
        unsafe {
            let place = window.start().add((last - WINDOW_BASE) as usize);
            place.write_volatile(7);
            assert_eq!(place.read_volatile(), 7);
        }
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
