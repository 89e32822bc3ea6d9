//! Bytes of the host that hold simulated memory.
//!
//! GPUs of one run see one file. They share one mapping of it: a window is so long that the addresses of a process
//! do not hold one for each of many GPUs.

use std::io;
use std::os::fd::AsFd;

use rustix::mm::{MapFlags, ProtFlags};

/// Memory that stays mapped until nobody uses it any more.
#[derive(Debug)]
pub struct Mapping {
    start: *mut u8,
    size: u64,
    /// Whether it is ours to remove.
    owned: bool,
    /// Whether it is a file that others map too.
    shared: bool,
}

// SAFETY: the mapping belongs to the process, not to a thread; whoever reads or writes through it answers for that
// access.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory of its own, that nobody else sees.
    ///
    /// # Errors
    /// The system refuses.
    pub fn anonymous(size: u64) -> io::Result<Self> {
        // SAFETY: without a fixed address the kernel chooses free addresses.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                size as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        Ok(Self {
            start: start.cast(),
            size,
            owned: true,
            shared: false,
        })
    }

    /// The first `size` bytes of a file that others map too.
    ///
    /// # Errors
    /// The system refuses.
    pub fn of_file(file: impl AsFd, size: u64) -> io::Result<Self> {
        // SAFETY: without a fixed address the kernel chooses free addresses.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                size as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                file,
                0,
            )
        }?;
        Ok(Self {
            start: start.cast(),
            size,
            owned: true,
            shared: true,
        })
    }

    /// Memory that somebody else has mapped.
    ///
    /// # Safety
    /// `start` must be the start of `size` readable and writable bytes that stay mapped as long as the value lives.
    #[must_use]
    pub unsafe fn borrowed(start: *mut u8, size: u64) -> Self {
        Self {
            start,
            size,
            owned: false,
            shared: true,
        }
    }

    /// Where it starts.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Its bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether it is a file that others map too.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.shared
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: the mapping was made by this value and nobody uses it any more.
            let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.size as usize) };
        }
    }
}
