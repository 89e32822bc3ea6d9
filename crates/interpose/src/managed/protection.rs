//! Faults through protection: closed pages have no access, and SIGSEGV says who touched one.
//!
//! The handler only hands the address to a thread of ours and waits; a system call that is
//! handed a closed page would fail instead, so those that programs use are wrapped
//! (`wrappers.rs`). A fault that is not ours goes to the handler that was there before.

use super::{Access, check, serve_access, spawn};
use crate::process;
use lockstep_protocol::ClientConnection;
use lockstep_protocol::layout::{Region, region_of};
use lockstep_protocol::pages::PAGE;
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where handlers put what they wait for.
static REQUESTS: OnceLock<OwnedFd> = OnceLock::new();
/// The handler that was there before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// An access that waits, on the stack of the handler.
#[repr(C)]
struct Waiting {
    access: Access,
    done: AtomicU32,
}

/// Starts the thread and takes the signal.
pub fn start(connection: ClientConnection) -> io::Result<()> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors is passed.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: descriptors that were just made and that nobody else has.
    let [reading, writing] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    spawn(move || serve(&reading, connection))?;
    // Set once: `start` is called once.
    let _ = REQUESTS.set(writing);
    // SAFETY: a zeroed action is valid, and `handle` suits the flags.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        let mut before: libc::sigaction = std::mem::zeroed();
        check(libc::sigaction(libc::SIGSEGV, &action, &mut before))?;
        let _ = BEFORE.set(before);
    }
    Ok(())
}

/// Closes pages.
pub fn close(address: u64, bytes: u64) -> io::Result<()> {
    // SAFETY: managed memory is a mapping of ours, and `handle` opens it again.
    check(unsafe { libc::mprotect(address as *mut _, bytes as usize, libc::PROT_NONE) })
}

/// Opens pages.
pub fn open(address: u64, bytes: u64) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: as above.
    unsafe { libc::mprotect(address as *mut _, bytes as usize, access) };
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands over both for a handler with SA_SIGINFO.
    let (address, write) = unsafe {
        let machine = &(*context.cast::<libc::ucontext_t>()).uc_mcontext;
        let write = machine.gregs[libc::REG_ERR as usize] & 2 != 0;
        ((*info).si_addr() as u64, write)
    };
    let requests = REQUESTS.get();
    let shared = matches!(region_of(address), Some(Region::Managed | Region::Pinned));
    if !shared || requests.is_none() {
        pass_on(signal, info, context);
        return;
    }
    if process::is_forked() {
        // Nobody serves faults here, and nothing is simulated: the page may be touched.
        open(address - address % PAGE, PAGE);
        return;
    }
    let waiting = Waiting {
        access: Access {
            address,
            write,
            // SAFETY: the call has no preconditions.
            thread: unsafe { libc::gettid() } as u32,
        },
        done: AtomicU32::new(0),
    };
    let place = std::ptr::from_ref(&waiting) as usize;
    if let Some(requests) = requests {
        // SAFETY: the buffer is as long as said; writes of a word to a pipe are whole.
        unsafe {
            libc::write(
                requests.as_raw_fd(),
                std::ptr::from_ref(&place).cast(),
                size_of::<usize>(),
            )
        };
    }
    while waiting.done.load(Ordering::Acquire) == 0 {
        // SAFETY: the word lives until this function returns.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                waiting.done.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                0,
                std::ptr::null::<libc::timespec>(),
            )
        };
    }
}

/// Lets the handler that was there before have a fault that is not ours.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(before) = BEFORE.get() else {
        return;
    };
    if before.sa_sigaction == libc::SIG_DFL || before.sa_sigaction == libc::SIG_IGN {
        // SAFETY: the access happens again, now with the system's own ending.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    // SAFETY: the program installed this handler for exactly this call.
    unsafe {
        if before.sa_flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
                std::mem::transmute(before.sa_sigaction);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(i32) = std::mem::transmute(before.sa_sigaction);
            handler(signal);
        }
    }
}

fn serve(requests: &OwnedFd, mut connection: ClientConnection) {
    loop {
        let mut place = 0usize;
        // SAFETY: the buffer is as long as said.
        let read = unsafe {
            libc::read(
                requests.as_raw_fd(),
                std::ptr::from_mut(&mut place).cast(),
                size_of::<usize>(),
            )
        };
        if read != size_of::<usize>() as isize {
            if read == 0 {
                return;
            }
            continue;
        }
        // SAFETY: the handler that wrote the address waits until `done` is set.
        let waiting = unsafe { &*(place as *const Waiting) };
        for (address, bytes) in serve_access(&mut connection, waiting.access) {
            open(address, bytes);
        }
        let word = waiting.done.as_ptr();
        waiting.done.store(1, Ordering::Release);
        // SAFETY: waking needs the address only; nothing is read there.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word,
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            )
        };
    }
}
