//! Threads that look now and then whether they are to end, and those that wait for that.
//!
//! Services of libraries wait for files with a time-out, and look between two waits whether they are to end. A thread
//! that has told one to end waits for it, and goes on when the host's clock says so. So where a thread that makes
//! calls waits for another thread of its process, and none of them is inside a call, others wait until every such
//! service has looked once. If it still waits then, it waits for something else.
//!
//! Start reading at [`Naps::all_looked`].

use super::sleep::{self, Waker};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long is waited for a look; the longest time-out that counts is a second.
const LONGEST: Duration = Duration::from_secs(20);

/// A thread of a process that sleeps.
#[derive(Clone, Copy)]
pub struct Sleeper {
    /// Its number.
    pub thread: u32,
    /// How often it was given a processor.
    pub scheduled: u64,
    /// Whether it makes calls.
    pub calls: bool,
}

/// What threads of a process wait for that make calls.
#[derive(Default)]
pub struct Naps {
    waits: BTreeMap<u32, Wait>,
}

/// A wait of a thread.
struct Wait {
    /// How often the thread was given a processor before it.
    scheduled: u64,
    since: Instant,
    /// Services that have not looked since, and how often each was given a processor before.
    services: BTreeMap<u32, u64>,
}

impl Naps {
    /// Whether all services of a process have looked since threads began to wait for others.
    pub fn all_looked(&mut self, process: u32, sleepers: &[Sleeper], now: Instant) -> bool {
        let known = |thread: u32| {
            let mut sleepers = sleepers.iter();
            sleepers.find(|one| one.thread == thread)
        };
        self.waits.retain(|thread, wait| {
            known(*thread).is_some_and(|one| one.scheduled == wait.scheduled)
        });
        for one in sleepers.iter().filter(|one| one.calls) {
            self.waits.entry(one.thread).or_insert_with(|| Wait {
                scheduled: one.scheduled,
                since: now,
                services: services(process, one.thread, sleepers),
            });
        }
        for wait in self.waits.values_mut() {
            wait.services.retain(|thread, before| {
                known(*thread).is_some_and(|one| one.scheduled == *before)
            });
        }
        let mut waits = self.waits.values();
        waits.all(|wait| {
            wait.services.is_empty() || now.saturating_duration_since(wait.since) >= LONGEST
        })
    }
}

/// Those that look now and then, if a thread waits for another one.
fn services(process: u32, thread: u32, sleepers: &[Sleeper]) -> BTreeMap<u32, u64> {
    if sleep::waker(process, thread) != Waker::Thread {
        return BTreeMap::new();
    }
    let services = sleepers
        .iter()
        .filter(|one| sleep::waker(process, one.thread) == Waker::FileOrClock);
    services.map(|one| (one.thread, one.scheduled)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::sync::mpsc;

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "the host's clock is what is tested"
    )]
    fn a_service_is_waited_for_until_it_has_looked() {
        let process = std::process::id();
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let (own, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let number = || rustix::thread::gettid().as_raw_nonzero().get() as u32;
        std::thread::scope(|scope| {
            let waits = tell.clone();
            scope.spawn(move || {
                waits.send((true, number())).unwrap();
                let _ = stopped.recv();
            });
            scope.spawn(move || {
                tell.send((false, number())).unwrap();
                let mut file = libc::pollfd {
                    fd: own.as_raw_fd(),
                    events: libc::POLLIN,
                    revents: 0,
                };
                // Longer than this test needs.
                // SAFETY: one live entry.
                while unsafe { libc::poll(&raw mut file, 1, 1000) } == 0 {}
            });
            let mut threads = [told.recv().unwrap(), told.recv().unwrap()];
            threads.sort_unstable();
            let [service, waiter] = threads.map(|(_, thread)| thread);
            let kinds = || [waiter, service].map(|thread| sleep::waker(process, thread));
            // Where the kernel does not show system calls, nothing is known.
            if std::fs::read_to_string("/proc/thread-self/syscall").is_ok() {
                while kinds() != [Waker::Thread, Waker::FileOrClock] {
                    std::thread::yield_now();
                }
                let sleeper = |thread, scheduled, calls| Sleeper {
                    thread,
                    scheduled,
                    calls,
                };
                let both = [sleeper(waiter, 5, true), sleeper(service, 7, false)];
                let looked = [sleeper(waiter, 5, true), sleeper(service, 8, false)];
                let now = Instant::now();
                let mut naps = Naps::default();
                assert!(!naps.all_looked(process, &both, now));
                assert!(naps.all_looked(process, &looked, now));
                assert!(
                    naps.all_looked(process, &looked, now),
                    "it is the same wait"
                );
                let mut naps = Naps::default();
                assert!(!naps.all_looked(process, &both, now));
                assert!(naps.all_looked(process, &both, now + LONGEST));
                assert!(naps.all_looked(process, &both[..1], now), "it is gone");
            }
            drop((stop, other));
        });
    }
}
