//! Doorbells: how a simulator knows of calls that are on their way.
//!
//! At the end of the window of one node every process has a counter, found by its process id. A thread adds one
//! to it before it sends a request. A simulator that has received fewer requests than that knows
//! that one is coming, although the thread that sent it already sleeps.

use crate::layout::{WINDOW_BASE, WINDOW_SIZE};
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Process ids are below this on Linux.
const PROCESSES: u64 = 1 << 22;

/// Bytes of all counters.
pub const DOORBELLS_SIZE: u64 = PROCESSES * size_of::<AtomicU64>() as u64;

/// Where they lie in the file of the window.
const OFFSET: u64 = WINDOW_SIZE - DOORBELLS_SIZE;

/// The counter of a process, where the window is mapped at its own address.
///
/// # Safety
/// The window is mapped at [`WINDOW_BASE`] for the rest of the process.
#[must_use]
pub unsafe fn of_mapped_window(process: u32) -> &'static AtomicU64 {
    let slot = u64::from(process) % PROCESSES;
    let address = WINDOW_BASE + OFFSET + slot * size_of::<AtomicU64>() as u64;
    // SAFETY: the address is in the window, aligned, and mapped by the caller's promise.
    unsafe { &*(address as *const AtomicU64) }
}

/// The counters of all processes, as a simulator sees them.
#[derive(Debug)]
pub struct Doorbells {
    start: *mut c_void,
}

// SAFETY: the mapping belongs to the process, and all that is in it is atomic.
unsafe impl Send for Doorbells {}
// SAFETY: as above.
unsafe impl Sync for Doorbells {}

impl Doorbells {
    /// Maps the counters of a window's file.
    ///
    /// # Errors
    /// The system has no room for them.
    pub fn map(file: impl AsFd) -> io::Result<Self> {
        // SAFETY: the kernel chooses free addresses; the mapping is new memory of ours.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                DOORBELLS_SIZE as usize,
                ProtFlags::READ,
                MapFlags::SHARED | MapFlags::NORESERVE,
                file,
                OFFSET,
            )?
        };
        Ok(Self { start })
    }

    /// How many requests a process has begun to send.
    #[must_use]
    pub fn rung(&self, process: u32) -> u64 {
        let slot = (u64::from(process) % PROCESSES) as usize;
        // SAFETY: the slot is within the mapping, which lives as long as `self`.
        let counter = unsafe { &*self.start.cast::<AtomicU64>().add(slot) };
        counter.load(Ordering::SeqCst)
    }
}

impl Drop for Doorbells {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping that this value owns.
        let _ = unsafe { rustix::mm::munmap(self.start, DOORBELLS_SIZE as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window;

    #[test]
    fn a_simulator_sees_what_a_program_rings() {
        let file = window::create().unwrap();
        let doorbells = Doorbells::map(&file).unwrap();
        assert_eq!(doorbells.rung(77), 0);
        let window = window::Window::map_anywhere(&file).unwrap();
        // SAFETY: the place of process 77's counter in this mapping.
        let counter = unsafe {
            &*window
                .start()
                .add(OFFSET as usize + 77 * 8)
                .cast::<AtomicU64>()
        };
        counter.fetch_add(3, Ordering::SeqCst);
        assert_eq!(doorbells.rung(77), 3);
        assert_eq!(doorbells.rung(78), 0);
    }
}
