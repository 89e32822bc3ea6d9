//! A thread that asks sockets again and again whether something has come: after a while it sleeps until that is so.
//!
//! Libraries of collectives wait for each other in this way while they set up. The simulator waits for threads that
//! compute, because they may be about to make a call, and cannot tell that such a one waits for a thread that is
//! inside a call. Asleep in `poll` it is seen to wait for another process of the run.
//!
//! The sleep has an end, since the program may look at something else between two questions.

use libc::{c_int, pollfd, ssize_t};
use std::cell::RefCell;

/// Questions in a row that are answered at once.
const PATIENCE: u32 = 1000;
/// How long a thread sleeps at most, in milliseconds; the simulator takes shorter waits for waits for the clock.
const LONGEST: c_int = 100;
/// Most sockets that one thread asks in turn.
const MOST_SOCKETS: usize = 16;

/// What a thread has asked since one of its sockets had something. Nothing is allocated: handlers of signals may ask.
struct Asked {
    sockets: [pollfd; MOST_SOCKETS],
    count: usize,
    times: u32,
}

thread_local! {
    static ASKED: RefCell<Asked> = const { RefCell::new(Asked::nothing()) };
}

/// The thread does something else than asking sockets.
pub fn goes_on() {
    // A thread that ends asks nothing any more.
    let _ = ASKED.try_with(|asked| {
        if let Ok(mut asked) = asked.try_borrow_mut() {
            *asked = Asked::nothing();
        }
    });
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
    let came = ASKED.try_with(|asked| {
        let mut asked = asked.try_borrow_mut();
        asked.as_mut().is_ok_and(|asked| asked.asks(socket))
    });
    // SAFETY: as above; who asked sees the answer of the question, not of the sleep.
    unsafe { *error = libc::EAGAIN };
    came.unwrap_or(false)
}

impl Asked {
    const fn nothing() -> Self {
        let none = pollfd {
            fd: -1,
            events: libc::POLLIN,
            revents: 0,
        };
        Self {
            sockets: [none; MOST_SOCKETS],
            count: 0,
            times: 0,
        }
    }

    /// A socket had nothing; sleeps if all had nothing for long. True if this one has something now.
    fn asks(&mut self, socket: c_int) -> bool {
        let known = &self.sockets[..self.count];
        let place = known.iter().position(|known| known.fd == socket);
        let place = place.unwrap_or(self.count);
        if place == MOST_SOCKETS {
            return false;
        }
        self.sockets[place].fd = socket;
        self.count = self.count.max(place + 1);
        self.times = self.times.saturating_add(1);
        if self.times <= PATIENCE {
            return false;
        }
        // SAFETY: so many live entries.
        let came = unsafe {
            let count = self.count as libc::nfds_t;
            libc::poll(self.sockets.as_mut_ptr(), count, LONGEST)
        };
        came > 0 && self.sockets[place].revents != 0
    }
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
    fn who_asks_two_sockets_in_turn_sleeps_until_one_has_something() {
        let (one, _first) = UnixStream::pair().unwrap();
        let (other, mut second) = UnixStream::pair().unwrap();
        second.write_all(b"x").unwrap();
        goes_on();
        for _ in 0..PATIENCE / 2 {
            assert!(!nothing_there(one.as_raw_fd()) && !nothing_there(other.as_raw_fd()));
        }
        assert!(!nothing_there(one.as_raw_fd()), "it came for the other one");
        assert!(nothing_there(other.as_raw_fd()));
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
