//! Connections that are being made: somebody waits for us to let it in, and will call.
//!
//! A thread that connects sleeps until the server has answered, and a process that has no connection yet has no
//! doorbell that could tell of it.

use lockstep_protocol::Listener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Who is at the door.
#[derive(Clone)]
pub struct Arrivals {
    listener: Arc<Listener>,
    coming: Arc<AtomicU32>,
}

/// One that is being let in, until it is dropped.
pub struct Arriving(Arc<AtomicU32>);

impl Drop for Arriving {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Arrivals {
    /// Of a listener.
    pub fn at(listener: Arc<Listener>) -> Self {
        Self {
            listener,
            coming: Arc::default(),
        }
    }

    /// Somebody is about to be accepted. Say it before, so that nobody is missed between the queue and here.
    pub fn begins(&self) -> Arriving {
        self.coming.fetch_add(1, Ordering::SeqCst);
        Arriving(self.coming.clone())
    }

    /// Whether nobody is in the queue or being let in.
    pub fn nobody(&self) -> bool {
        let socket = self.listener.socket();
        let mut files = [PollFd::new(socket, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // The queue first: who has left it was counted before.
        let queued = poll(&mut files, Some(&now)).is_ok_and(|ready| ready > 0);
        !queued && self.coming.load(Ordering::SeqCst) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn who_is_in_the_queue_or_being_let_in_is_coming() {
        let listener = Listener::bind_under(&std::env::temp_dir(), |_| Ok(())).unwrap();
        let arrivals = Arrivals::at(Arc::new(listener));
        assert!(arrivals.nobody());
        let _client = UnixStream::connect(arrivals.listener.path()).unwrap();
        assert!(!arrivals.nobody(), "it is in the queue");
        let arriving = arrivals.begins();
        let _stream = arrivals.listener.accept().unwrap();
        assert!(!arrivals.nobody(), "it is being let in");
        drop(arriving);
        assert!(arrivals.nobody());
    }
}
