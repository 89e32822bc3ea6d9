//! Large copies to and from memory that nobody has touched.
//!
//! The first touch of every page of a mapping costs a fault, and the system fills the page with
//! zeros that are then written over; even reading takes up memory. The file behind the window
//! can be written and read past the mapping, which avoids all of that.

use crate::{managed, views};
use lockstep_protocol::layout::{LONGEST_WINDOW, WINDOW_BASE};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

/// The file behind the window.
static FILE: OnceLock<OwnedFd> = OnceLock::new();

/// Shorter copies are not worth the question.
const LEAST: usize = 1 << 20;

/// Keeps the file behind the window.
pub fn keep(file: OwnedFd) {
    let _ = FILE.set(file);
}

/// The file behind the window, once there is one.
pub fn file() -> Option<BorrowedFd<'static>> {
    FILE.get().map(AsFd::as_fd)
}

/// Writes to the window past the mapping; false if the bytes are to be moved as usual.
///
/// # Safety
/// `from` must hold so many bytes, as for any copy.
pub unsafe fn write(to: usize, from: *const u8, bytes: usize) -> bool {
    let Some((file, offset)) = untouched(to, bytes) else {
        return false;
    };
    // SAFETY: the system checks the addresses, and answers with an error where they are wrong.
    whole(bytes, |done| unsafe {
        libc::pwrite(
            file,
            from.add(done).cast(),
            bytes - done,
            offset + done as i64,
        )
    })
}

/// Reads from the window past the mapping; false if the bytes are to be moved as usual.
///
/// # Safety
/// `to` must have room for so many bytes, as for any copy.
pub unsafe fn read(to: *mut u8, from: usize, bytes: usize) -> bool {
    let Some((file, offset)) = untouched(from, bytes) else {
        return false;
    };
    // SAFETY: as above.
    whole(bytes, |done| unsafe {
        libc::pread(
            file,
            to.add(done).cast(),
            bytes - done,
            offset + done as i64,
        )
    })
}

/// The file and the offset of a range that is large and holds pages that nobody has touched, or
/// whose pages must not be touched through the mapping.
fn untouched(address: usize, bytes: usize) -> Option<(i32, i64)> {
    if views::overlap(address, bytes) {
        return None;
    }
    let watched = managed::is_watched(address);
    let offset = (address as u64)
        .checked_sub(WINDOW_BASE)
        .filter(|_| bytes >= LEAST || watched)?;
    if offset.checked_add(bytes as u64)? > LONGEST_WINDOW {
        return None;
    }
    let file = FILE.get()?.as_raw_fd();
    if watched {
        return Some((file, offset as i64));
    }
    // SAFETY: the call has no preconditions; nobody uses the position that it leaves.
    let hole = unsafe { libc::lseek(file, offset as i64, libc::SEEK_HOLE) };
    let end = (offset + bytes as u64) as i64;
    (hole >= 0 && hole < end).then_some((file, offset as i64))
}

/// Repeats a system call until all bytes are through.
fn whole(bytes: usize, step: impl Fn(usize) -> isize) -> bool {
    let mut done = 0;
    while done < bytes {
        match usize::try_from(step(done)) {
            Ok(0) => return false,
            Ok(more) => done += more,
            Err(_) if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {
            }
            Err(_) => return false,
        }
    }
    true
}
