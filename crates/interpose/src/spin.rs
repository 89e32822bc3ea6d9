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
const PATIENCE: u64 = 1000;
/// A socket that was not asked for so many questions is one that the thread does not wait for any more: it may be
/// closed, or have something that nobody takes, and would end every sleep at once.
const RECENT: u64 = 256;
/// How long a thread sleeps at most, in milliseconds; the simulator takes shorter waits for waits for the clock.
const LONGEST: c_int = 100;
/// Most sockets that one thread asks in turn.
const MOST_SOCKETS: usize = 16;

/// A socket, and which of a thread's questions was the last one to it.
#[derive(Clone, Copy)]
struct Socket {
    number: c_int,
    asked: u64,
}

/// What a thread has asked since one of its sockets had something. Nothing is allocated: handlers of signals may ask.
struct Asked {
    sockets: [Socket; MOST_SOCKETS],
    count: usize,
    times: u64,
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
        let none = Socket {
            number: -1,
            asked: 0,
        };
        Self {
            sockets: [none; MOST_SOCKETS],
            count: 0,
            times: 0,
        }
    }

    /// A socket had nothing; sleeps if all had nothing for long. True if this one has something now.
    fn asks(&mut self, socket: c_int) -> bool {
        self.times += 1;
        self.note(socket);
        if self.times <= PATIENCE {
            return false;
        }
        let mut files = [pollfd {
            fd: -1,
            events: libc::POLLIN,
            revents: 0,
        }; MOST_SOCKETS];
        let recent = self.sockets[..self.count]
            .iter()
            .filter(|known| known.asked + RECENT > self.times);
        let mut count = 0;
        for (file, known) in files.iter_mut().zip(recent) {
            file.fd = known.number;
            count += 1;
        }
        // SAFETY: so many live entries.
        let came = unsafe { libc::poll(files.as_mut_ptr(), count, LONGEST) };
        let has_something = |file: &pollfd| file.fd == socket && file.revents != 0;
        came > 0 && files.iter().any(has_something)
    }

    /// Keeps that a socket is asked now, in the place of the one that was not asked for longest if there are many.
    fn note(&mut self, socket: c_int) {
        let known = &self.sockets[..self.count];
        let place = known.iter().position(|known| known.number == socket);
        let place = place.unwrap_or_else(|| {
            let oldest = (0..self.count).min_by_key(|index| self.sockets[*index].asked);
            match self.count {
                MOST_SOCKETS => oldest.unwrap_or(0),
                free => free,
            }
        });
        self.count = self.count.max(place + 1);
        self.sockets[place] = Socket {
            number: socket,
            asked: self.times,
        };
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

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "the host's clock is what is tested"
    )]
    fn a_socket_that_is_not_asked_any_more_ends_no_sleep() {
        let (one, _other) = UnixStream::pair().unwrap();
        let (old, mut writes) = UnixStream::pair().unwrap();
        writes.write_all(b"x").unwrap();
        goes_on();
        assert!(!nothing_there(old.as_raw_fd()));
        let began = std::time::Instant::now();
        for _ in 0..PATIENCE {
            assert!(!nothing_there(one.as_raw_fd()));
        }
        // It has slept at least once for as long as it may.
        assert!(began.elapsed().as_millis() >= LONGEST as u128);
    }

    #[test]
    fn of_many_sockets_those_asked_last_are_kept() {
        let pairs: Vec<_> = (0..=MOST_SOCKETS)
            .map(|_| UnixStream::pair().unwrap())
            .collect();
        let mut asked = Asked::nothing();
        for (one, _) in &pairs {
            assert!(!asked.asks(one.as_raw_fd()));
        }
        let known = |socket: c_int| asked.sockets.iter().any(|known| known.number == socket);
        assert!(!known(pairs[0].0.as_raw_fd()));
        assert!(pairs[1..].iter().all(|(one, _)| known(one.as_raw_fd())));
    }
}
