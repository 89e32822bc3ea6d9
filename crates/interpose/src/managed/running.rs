//! Whether a thread that was let go on has run since.
//!
//! On a busy machine a thread that is woken may not run for milliseconds. A page that is closed
//! again before it ran was opened in vain: the thread stops once more and has seen nothing.

use std::time::Duration;

/// Processor time within which a woken thread performs the access that it stopped at, with room.
const MOMENT: Duration = Duration::from_micros(50);

/// Ticks after which a thread that has not run is asked whether it sleeps.
const ASK: u32 = 20;

/// A thread that was let go on.
pub struct Looker {
    /// As the kernel numbers it.
    pub thread: u32,
    /// Its processor time when it has surely looked.
    due: Duration,
    ticks: u32,
}

impl Looker {
    /// A thread that waits to be let go on; none if the kernel does not know it.
    pub fn new(thread: u32) -> Option<Looker> {
        Some(Looker {
            thread,
            due: processor_time(thread)? + MOMENT,
            ticks: 0,
        })
    }

    /// Whether it has run, ended, or sleeps somewhere else.
    pub fn has_run(&mut self) -> bool {
        self.ticks += 1;
        let run = processor_time(self.thread).is_none_or(|time| time >= self.due);
        run || self.ticks.is_multiple_of(ASK) && !is_runnable(self.thread)
    }
}

/// The processor time of a thread of this process.
fn processor_time(thread: u32) -> Option<Duration> {
    if thread == 0 {
        return None;
    }
    // How the kernel names the clock of a thread: its number inverted, and "a thread" (4) and
    // "scheduled time" (2).
    let clock = (!(thread as i32) << 3) | 4 | 2;
    // SAFETY: a time is plain data, and room for one is passed.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        (libc::clock_gettime(clock, &mut time) == 0)
            .then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

/// Whether a thread runs or could; an ended one could not.
fn is_runnable(thread: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    // The state follows the name, which is in brackets and may hold any character.
    stat.is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('R'))
    })
}

#[cfg(test)]
mod tests {
    use super::{Looker, is_runnable, processor_time};
    use std::sync::mpsc;

    #[test]
    fn a_thread_has_run_when_its_time_passed_and_not_before() {
        // SAFETY: the call has no preconditions.
        let this = unsafe { libc::gettid() } as u32;
        let mut looker = Looker::new(this).unwrap();
        while processor_time(this).unwrap() < looker.due {
            std::hint::black_box(0);
        }
        assert!(looker.has_run());
    }

    #[test]
    fn a_thread_that_sleeps_is_let_be_after_a_while() {
        let (send, receive) = mpsc::channel();
        let (end, wait) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: the call has no preconditions.
            send.send(unsafe { libc::gettid() } as u32).unwrap();
            let _ = wait.recv();
        });
        let number = receive.recv().unwrap();
        while is_runnable(number) {
            std::thread::yield_now();
        }
        let mut looker = Looker::new(number).unwrap();
        assert!(!looker.has_run());
        assert!((0..super::ASK).any(|_| looker.has_run()));
        drop(end);
        thread.join().unwrap();
        // The kernel may keep what it knows of an ended thread for a moment.
        while !looker.has_run() {
            std::thread::yield_now();
        }
        assert!(Looker::new(0).is_none());
    }
}
