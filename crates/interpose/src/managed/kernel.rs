//! Faults through userfaultfd: the kernel stops whoever touches a closed page, also inside a
//! system call, and a thread of ours opens it.
//!
//! A page is closed by dropping its entry in the page table; its contents stay in the file. The
//! next access is a minor fault (the file has the page) or a missing one (it has not).

use super::{Access, check, serve_access, spawn};
use lockstep_protocol::ClientConnection;
use lockstep_protocol::pages::PAGE;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// Ranges are handed to the kernel in pieces of this size, so that the number of mappings stays
/// small however pages come and go.
const PIECE: u64 = 2 << 20;

const API: u64 = 0xaa;
const FEATURE_MISSING_SHMEM: u64 = 1 << 5;
const FEATURE_THREAD: u64 = 1 << 8;
const FEATURE_MINOR_SHMEM: u64 = 1 << 10;
const MODE_MISSING: u64 = 1 << 0;
const MODE_MINOR: u64 = 1 << 2;
const EVENT_PAGE_FAULT: u8 = 0x12;
const FLAG_WRITE: u64 = 1 << 0;

/// `_IOWR(0xaa, number, bytes)`.
const fn code(number: u64, bytes: u64) -> u64 {
    3 << 30 | bytes << 16 | 0xaa << 8 | number
}

const IOCTL_API: u64 = code(0x3f, 24);
const IOCTL_REGISTER: u64 = code(0x00, 32);
const IOCTL_ZEROPAGE: u64 = code(0x04, 32);
const IOCTL_CONTINUE: u64 = code(0x07, 32);
/// `_IOR(0xaa, 1, 16)`.
const IOCTL_UNREGISTER: u64 = 2 << 30 | 16 << 16 | 0xaa << 8 | 0x01;
/// `_IOR(0xaa, 2, 16)`.
const IOCTL_WAKE: u64 = 2 << 30 | 16 << 16 | 0xaa << 8 | 0x02;

/// The kernel's end of faults.
pub struct Faults(Arc<OwnedFd>);

/// Opens userfaultfd for the kernel's own accesses too, and starts the thread that serves it.
pub fn start(connection: ClientConnection) -> io::Result<Faults> {
    // SAFETY: the call has no preconditions.
    let file = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just made and that nobody else has.
    let file = Arc::new(unsafe { OwnedFd::from_raw_fd(file as i32) });
    let features = FEATURE_MISSING_SHMEM | FEATURE_THREAD | FEATURE_MINOR_SHMEM;
    let mut words = [API, features, 0];
    request(&file, IOCTL_API, &mut words)?;
    let served = file.clone();
    spawn(move || serve(&served, connection))?;
    Ok(Faults(file))
}

impl Faults {
    /// Closes pages.
    pub fn close(&self, address: u64, bytes: u64) -> io::Result<()> {
        let start = address - address % PIECE;
        let end = (address + bytes).next_multiple_of(PIECE);
        let mut words = [start, end - start, MODE_MISSING | MODE_MINOR, 0];
        request(&self.0, IOCTL_REGISTER, &mut words)?;
        // SAFETY: managed memory is a shared mapping of ours: dropping its entries loses nothing.
        check(unsafe { libc::madvise(address as *mut _, bytes as usize, libc::MADV_DONTNEED) })
    }
}

impl Faults {
    /// Lets accesses to a range be what they were. Neighbours in the same pieces are forgotten too:
    /// whoever closes them again says so again.
    pub fn forget(&self, address: u64, bytes: u64) {
        let start = address - address % PIECE;
        let end = (address + bytes).next_multiple_of(PIECE);
        let mut words = [start, end - start];
        // A range that is not watched has nothing to forget.
        let _ = request(&self.0, IOCTL_UNREGISTER, &mut words);
    }
}

/// Performs an ioctl on words that the kernel reads and fills in.
fn request<const N: usize>(file: &OwnedFd, code: u64, words: &mut [u64; N]) -> io::Result<()> {
    // SAFETY: every code above is of the size of its words.
    check(unsafe { libc::ioctl(file.as_raw_fd(), code as _, words.as_mut_ptr()) })
}

fn serve(file: &OwnedFd, mut connection: ClientConnection) {
    loop {
        // `struct uffd_msg`: the event in the first byte, then flags, address and thread.
        let mut message = [0u64; 4];
        // SAFETY: the buffer is as long as said.
        let read = unsafe { libc::read(file.as_raw_fd(), message.as_mut_ptr().cast(), 32) };
        if read != 32 || message[0] as u8 != EVENT_PAGE_FAULT {
            if read == 0 {
                return;
            }
            continue;
        }
        let access = Access {
            address: message[2],
            write: message[1] & FLAG_WRITE != 0,
            thread: message[3] as u32,
        };
        for (address, bytes) in serve_access(&mut connection, access) {
            open(file, address, bytes);
        }
    }
}

/// Lets accesses to pages go on.
fn open(file: &OwnedFd, address: u64, bytes: u64) {
    // All at once where the file has them all, else one by one: holes are filled with zeros.
    let mut words = [address, bytes, 0, 0];
    if request(file, IOCTL_CONTINUE, &mut words).is_err() {
        for page in (address..address + bytes).step_by(PAGE as usize) {
            let mut words = [page, PAGE, 0, 0];
            if request(file, IOCTL_CONTINUE, &mut words).is_err() {
                let mut words = [page, PAGE, 0, 0];
                // A page that is there already needs nothing: whoever waits for it is woken below.
                let _ = request(file, IOCTL_ZEROPAGE, &mut words);
            }
        }
    }
    // Those who wait for a page that was open already. Memory that is gone has nobody.
    let mut words = [address, bytes];
    let _ = request(file, IOCTL_WAKE, &mut words);
}
