//! Pages of the program that live in the window and appear at their old addresses.

use crate::call::{ask, done};
use crate::types::Address;
use lockstep_protocol::{ContextHandle, CuResult, Request};
use std::ops::Range;

/// Granularity of mappings.
pub const PAGE: usize = 4096;

/// Pages that were moved.
#[derive(Debug)]
pub struct Run {
    address: Address,
    /// How many bytes.
    pub bytes: usize,
    /// Where they lie in the window.
    place: Address,
    /// The pinned memory that holds them, as it was allocated.
    allocated: Address,
}

/// Stack below a function that calls us may take while pages move.
const STACK: usize = 1 << 20;

/// Whether all pages of a range are the program's alone, may be read and written, and are not the
/// stack that moving them would need.
pub fn can_move(range: &Range<Address>) -> bool {
    let local = 0u8;
    let here = &raw const local as Address;
    if range.start < here + PAGE && range.end > here - STACK {
        return false;
    }
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return false;
    };
    let mut covered = range.start;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let Some((start, end)) = words.next().and_then(|word| word.split_once('-')) else {
            continue;
        };
        let number = |text| Address::from_str_radix(text, 16).unwrap_or(0);
        let (start, end) = (number(start), number(end));
        if end <= covered || start >= range.end {
            continue;
        }
        if start > covered
            || !words
                .next()
                .is_some_and(|kind| kind.starts_with("rw") && kind.ends_with('p'))
        {
            return false;
        }
        covered = end;
    }
    covered >= range.end
}

impl Run {
    /// Moves pages of the program into the window. What other threads write to them meanwhile may
    /// be lost, as it may while a driver pins them.
    pub fn move_to_window(
        context: ContextHandle,
        range: &Range<Address>,
    ) -> Result<Self, CuResult> {
        let bytes = range.end - range.start;
        let request = Request::AllocateHost {
            context,
            // A page more, so that a whole one begins inside.
            bytes: (bytes + PAGE) as u64,
            flags: 0,
        };
        let allocated = ask!(Address, &request) as Address;
        let run = Self {
            address: range.start,
            bytes,
            place: allocated.next_multiple_of(PAGE),
            allocated,
        };
        let known = done(&Request::RegisterHost {
            context,
            address: run.address as u64,
            bytes: bytes as u64,
            place: run.place as u64,
        });
        if let Err(error) = known.and_then(|()| run.appear()) {
            run.free(context);
            return Err(error);
        }
        Ok(run)
    }

    /// Copies the pages to the window and maps them where they were.
    fn appear(&self) -> Result<(), CuResult> {
        // SAFETY: `can_move` found the pages readable; the window has as many at `place`, which
        // nobody else was given.
        unsafe {
            let (from, to) = (self.address as *const u8, self.place as *mut u8);
            std::ptr::copy_nonoverlapping(from, to, self.bytes);
        }
        // A length of 0 makes a second mapping of shared pages and leaves the first.
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the pages at `address` are replaced by pages with the same contents.
        let mapped = unsafe {
            libc::mremap(
                self.place as *mut libc::c_void,
                0,
                self.bytes,
                flags,
                self.address as *mut libc::c_void,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(CuResult::OUT_OF_MEMORY);
        }
        // SAFETY: the mapping was just made. Pages of the window may be closed to the host.
        unsafe { libc::mprotect(mapped, self.bytes, libc::PROT_READ | libc::PROT_WRITE) };
        Ok(())
    }

    /// Gives the pages back to the program, with what they hold.
    pub fn move_back(self, context: ContextHandle) {
        // SAFETY: fresh memory of our own is filled and then takes the place of pages with the
        // same contents.
        let moved = unsafe {
            let own = libc::mmap(
                std::ptr::null_mut(),
                self.bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if own == libc::MAP_FAILED {
                own
            } else {
                std::ptr::copy_nonoverlapping(self.address as *const u8, own.cast(), self.bytes);
                let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                let to = self.address as *mut libc::c_void;
                libc::mremap(own, self.bytes, self.bytes, flags, to)
            }
        };
        // Without memory the pages stay in the window, which then must not be given to others.
        if moved != libc::MAP_FAILED {
            self.free(context);
        }
    }

    fn free(&self, context: ContextHandle) {
        let address = self.allocated as u64;
        // Nothing can be done about a context that is gone: its memory is, too.
        let _ = done(&Request::Free { context, address });
    }

    #[cfg(test)]
    pub fn of(address: Address, bytes: usize) -> Self {
        Self {
            address,
            bytes,
            place: 0,
            allocated: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_pages_that_can_be_written_move() {
        let own = vec![0u8; 16 * PAGE];
        let start = (own.as_ptr() as Address).next_multiple_of(PAGE);
        assert!(can_move(&(start..start + 8 * PAGE)));
        let code = can_move as *const () as Address / PAGE * PAGE;
        assert!(!can_move(&(code..code + PAGE)));
        assert!(!can_move(&(PAGE..2 * PAGE)));
    }
}
