//! How long a thread that computes is waited for, while calls of others wait for their turn.
//!
//! A thread that computes may be about to make a call, and where its call stands among the others must not depend on
//! how fast it computes: so it is waited for. A thread that spins until another one goes on looks the same, and that
//! one may be inside a call which waits for it. So every wait has an end; whoever was given up and then makes a call
//! makes the run depend on the host, and the run says so.
//!
//! Where several processes make calls the end is far away, since ranks compute for seconds between their calls. It
//! comes once a run: after it nothing is won by waiting.

use std::time::{Duration, Instant};

/// The threads of one process, in which they spin for each other more often than they compute for long.
const WITHIN_PROCESS: Duration = Duration::from_secs(1);
/// A new thread that may never make a call.
const WITH_NEW: Duration = Duration::from_millis(100);
/// The same where several processes make calls.
const WITH_NEW_OF_SEVERAL: Duration = Duration::from_secs(10);
/// Threads of several processes, and of one that has not made a call: an interpreter may load for seconds before
/// its first.
const AMONG_PROCESSES: Duration = Duration::from_secs(60);
/// Where the run depends on the host already.
const IN_VAIN: Duration = Duration::from_millis(2);
/// How many times its processor time a thread may take on a machine that has other things to do.
const BUSY_MACHINE: u32 = 20;

/// How long threads that compute are waited for, in their processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// What the user asks for, with threads that have made a call.
    pub asked: Option<Duration>,
    /// Whether several processes have made calls.
    pub several: bool,
    /// Whether nothing is won by waiting for long.
    pub in_vain: bool,
}

/// A thread, as far as it matters to those who wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computing {
    /// Its process has not made a call.
    BeforeFirstCall,
    /// It is new in a process that has.
    New,
    /// It makes calls.
    Caller,
}

impl Patience {
    /// How long a thread may compute.
    pub fn with(self, computing: Computing) -> Duration {
        match (computing, self.several) {
            _ if self.in_vain => IN_VAIN,
            (Computing::New, false) => WITH_NEW,
            (Computing::New, true) => WITH_NEW_OF_SEVERAL,
            (Computing::Caller, false) => self.asked.unwrap_or(WITHIN_PROCESS),
            _ => self.asked.unwrap_or(AMONG_PROCESSES),
        }
    }
}

/// A wait of others for a thread that computes.
#[derive(Clone, Copy, Debug)]
pub struct Awaited {
    since: Instant,
    /// The thread's processor time then.
    worked: Duration,
}

impl Awaited {
    /// Others begin to wait for a thread that has worked for so long.
    pub fn from(since: Instant, worked: Duration) -> Self {
        Self { since, worked }
    }

    /// Whether the thread has computed for too long, or for far longer than a processor takes for that.
    pub fn is_over(&self, now: Instant, worked: Duration, patience: Duration) -> bool {
        worked.saturating_sub(self.worked) >= patience
            || now.saturating_duration_since(self.since) >= patience.saturating_mul(BUSY_MACHINE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_may_compute_for_long_and_threads_of_one_process_may_not() {
        let alone = Patience::default();
        let several = Patience {
            several: true,
            ..alone
        };
        let vain = Patience {
            in_vain: true,
            ..several
        };
        assert_eq!(alone.with(Computing::Caller), WITHIN_PROCESS);
        assert_eq!(alone.with(Computing::New), WITH_NEW);
        assert_eq!(several.with(Computing::Caller), AMONG_PROCESSES);
        assert_eq!(several.with(Computing::New), WITH_NEW_OF_SEVERAL);
        for patience in [alone, several] {
            assert_eq!(patience.with(Computing::BeforeFirstCall), AMONG_PROCESSES);
            let asked = Patience {
                asked: Some(Duration::from_secs(3)),
                ..patience
            };
            assert_eq!(asked.with(Computing::Caller), Duration::from_secs(3));
        }
        assert_eq!(vain.with(Computing::Caller), IN_VAIN);
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "no result depends on it")]
    fn a_wait_ends_by_the_time_of_the_thread_or_by_far_more_of_the_clock() {
        let (begin, patience) = (Instant::now(), Duration::from_secs(2));
        let worked = Duration::from_secs(7);
        let awaited = Awaited::from(begin, worked);
        let little = worked + Duration::from_secs(1);
        assert!(!awaited.is_over(begin + patience * 2, little, patience));
        assert!(awaited.is_over(begin, worked + patience, patience));
        assert!(awaited.is_over(begin + patience * BUSY_MACHINE, little, patience));
    }
}
