//! Connections while they last: one descriptor and one thread each, both gone when it ends.

use lockstep_protocol::{Listener, refuse};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long to wait before a program that could not attach is let in again.
const ACCEPT_AGAIN: Duration = Duration::from_millis(10);
/// How often that is tried before it is refused: descriptors come back when host threads end.
const ATTEMPTS: u32 = 200;

/// Connections that are open, and the threads that serve them.
#[derive(Default)]
pub struct Streams {
    opened: u64,
    open: BTreeMap<u64, Arc<UnixStream>>,
    threads: Vec<JoinHandle<()>>,
}

impl Streams {
    /// A connection is there; its number.
    pub fn opened(&mut self, stream: &Arc<UnixStream>) -> u64 {
        self.opened += 1;
        self.open.insert(self.opened, stream.clone());
        self.opened
    }

    /// A connection has ended: nothing of it stays.
    pub fn ended(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// A thread serves a connection. Threads that have ended meanwhile are forgotten.
    pub fn serves(&mut self, thread: JoinHandle<()>) {
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(thread);
    }

    /// Shuts every connection down, and hands out the threads to wait for.
    pub fn close(&mut self) -> Vec<JoinHandle<()>> {
        for stream in std::mem::take(&mut self.open).into_values() {
            // A socket that is gone needs no closing.
            let _ = stream.shutdown(Shutdown::Both);
        }
        std::mem::take(&mut self.threads)
    }
}

/// Whether the other side has closed a connection, though there may still be something to read.
pub fn has_hung_up(stream: &UnixStream) -> bool {
    let mut files = [PollFd::new(stream, PollFlags::RDHUP)];
    let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    // If the system cannot say, whoever reads the connection finds out.
    poll(&mut files, Some(&Timespec::default())).is_ok() && files[0].revents().intersects(gone)
}

/// Lets connections in. A descriptor is kept for the time when none is left, so that even then
/// a program can be told so.
pub struct Door {
    spare: Option<File>,
    failures: u32,
}

fn spare() -> std::io::Result<File> {
    File::open("/dev/null")
}

impl Door {
    /// A door for a server that is about to start.
    ///
    /// # Errors
    /// No descriptor is left to keep.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            spare: Some(spare()?),
            failures: 0,
        })
    }

    /// The next connection; `None` if it should be tried again.
    ///
    /// # Errors
    /// Somebody could not attach, and has been told why.
    pub fn accept(&mut self, listener: &Listener) -> Result<Option<UnixStream>, String> {
        if self.spare.is_none() {
            // Somebody else had it in the moment when it was used.
            self.spare = spare().ok();
        }
        let error = match listener.accept() {
            Ok(stream) => {
                self.failures = 0;
                return Ok(Some(stream));
            }
            Err(error) => error,
        };
        self.failures += 1;
        if self.failures < ATTEMPTS {
            // It waits in the queue; what was lacking may be there again in a moment.
            std::thread::sleep(ACCEPT_AGAIN);
            return Ok(None);
        }
        self.failures = 0;
        let problem = format!(
            "a program could not attach: {error}; it has more host threads than the simulator has \
             descriptors: raise the limit (`ulimit -n`)"
        );
        drop(self.spare.take());
        if let Ok(stream) = listener.accept() {
            refuse(&stream, &problem);
        }
        self.spare = spare().ok();
        Err(problem)
    }
}
