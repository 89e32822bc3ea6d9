//! Ends the program when its simulator is gone, even while it makes no CUDA call.
//!
//! A thread with a connection of its own waits for the other side to hang up. It takes no signal.
//! It also looks now and then whether the program polls memory.

use crate::managed::polling;
use crate::{process, report};
use lockstep_protocol::ClientConnection;
use std::os::fd::AsFd;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Stack of the thread: it calls little.
const STACK: usize = 128 << 10;

/// Starts the thread. Without it, only calls notice that the simulator is gone.
pub fn start(path: &Path) {
    let Ok((connection, _, _)) = ClientConnection::connect(path, &process::hello(true)) else {
        return;
    };
    let Ok(socket) = connection.as_fd().try_clone_to_owned() else {
        return;
    };
    // SAFETY: a signal set is plain data, and these calls only fill and exchange it: the new
    // thread inherits a mask with every signal blocked.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        // Without the thread, calls still notice.
        let _ = std::thread::Builder::new()
            .name("lockstep-watch".into())
            .stack_size(STACK)
            .spawn(move || wait(&socket));
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
    }
}

fn wait(socket: &OwnedFd) {
    let mut poll = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLIN | libc::POLLRDHUP,
        revents: 0,
    };
    let mut connection = None;
    loop {
        let interval = polling::interval();
        let timeout = libc::timespec {
            tv_sec: interval.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(interval.subsec_nanos() as i32),
        };
        // SAFETY: one valid element and a valid time are passed, and no signal mask.
        let count = unsafe { libc::ppoll(&mut poll, 1, &timeout, std::ptr::null()) };
        if count == 0 {
            polling::tick(&mut connection);
        }
        if count > 0 && poll.revents & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) != 0 {
            report::simulator_gone("its process ended");
        }
        if count > 0 {
            // Nothing is ever sent here; whatever came is not ours to wait for again.
            return;
        }
    }
}
