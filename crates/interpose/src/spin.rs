//! A thread that asks a socket again and again whether something has come: after a while it sleeps until that is so.
//!
//! Libraries of collectives wait for each other in this way while they set up. The simulator waits for threads that
//! compute, because they may be about to make a call, and cannot tell that such a one waits for a thread that is
//! inside a call. Asleep in `poll` it is seen to wait for another process of the run.
//!
//! The sleep has an end, since the program may look at something else between two questions.

use libc::{c_int, pollfd, ssize_t};
use std::cell::Cell;

/// Questions in a row that are answered at once.
const PATIENCE: u32 = 1000;
/// How long a thread sleeps at most, in milliseconds; the simulator takes shorter waits for waits for the clock.
const LONGEST: c_int = 100;

thread_local! {
    /// The socket that was asked last, and how often it had nothing since it had something.
    static ASKED: Cell<(c_int, u32)> = const { Cell::new((-1, 0)) };
}

/// The thread does something else than asking a socket.
pub fn goes_on() {
    ASKED.set((-1, 0));
}

/// A thread has asked a socket. True if it is to ask again: it has slept until something came.
pub fn waited(socket: c_int, answer: ssize_t) -> bool {
    // SAFETY: the place of this thread's error number is always there.
    let error = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let nothing = answer < 0 && unsafe { *error } == libc::EAGAIN;
    if !nothing {
        goes_on();
        return false;
    }
    let (before, times) = ASKED.get();
    let times = if before == socket { times } else { 0 };
    ASKED.set((socket, times.saturating_add(1)));
    if times < PATIENCE {
        return false;
    }
    let mut asked = pollfd {
        fd: socket,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one live entry.
    let came = unsafe { libc::poll(&raw mut asked, 1, LONGEST) } > 0;
    // SAFETY: as above; who asked sees the answer of the question, not of the sleep.
    unsafe { *error = libc::EAGAIN };
    came
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    fn nothing_there(socket: c_int) -> bool {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = libc::EAGAIN };
        waited(socket, -1)
    }

    #[test]
    fn only_who_asks_one_socket_often_sleeps_until_it_has_something() {
        let (one, mut other) = UnixStream::pair().unwrap();
        let socket = one.as_raw_fd();
        other.write_all(b"x").unwrap();
        goes_on();
        for _ in 0..PATIENCE {
            assert!(!nothing_there(socket), "it is not patient enough");
        }
        assert!(nothing_there(socket), "something is there");
        assert!(!waited(socket, 1), "it was taken");
        assert!(!nothing_there(socket), "it begins anew");
    }

    #[test]
    fn a_sleep_in_vain_leaves_the_answer_as_it_was() {
        let (one, _other) = UnixStream::pair().unwrap();
        goes_on();
        for _ in 0..=PATIENCE {
            assert!(!nothing_there(one.as_raw_fd()));
        }
        // SAFETY: as above.
        assert_eq!(unsafe { *libc::__errno_location() }, libc::EAGAIN);
    }
}
