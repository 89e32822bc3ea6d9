//! What ends a run before its program ends: a signal to the simulator, or want of disk or memory.
//!
//! The first signal asks everything to stop in order; a second one ends the process where it
//! stands, and its guardian clears up.

use signal_hook::SigId;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Signals that end a run.
const SIGNALS: &[i32] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Exit code of a command that has used up its memory (BSD's "system error").
pub const OUT_OF_MEMORY: i32 = 71;

/// Why a run cannot go on, although nobody asked it to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    /// A sentence.
    pub reason: String,
    /// The exit code.
    pub code: i32,
}

/// Listens for what ends a run, until it is dropped.
pub struct Interrupts {
    stop: Arc<AtomicBool>,
    /// The signal that came last; set before `ours` becomes readable.
    signal: Arc<AtomicUsize>,
    halt: Mutex<Option<Halt>>,
    ours: UnixStream,
    theirs: UnixStream,
    registrations: Vec<SigId>,
}

impl Interrupts {
    /// Starts to listen; `stop` is set by whatever ends the run.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn listen(stop: Arc<AtomicBool>) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut interrupts = Self {
            stop,
            signal: Arc::default(),
            halt: Mutex::default(),
            ours,
            theirs,
            registrations: Vec::new(),
        };
        let before = Arc::new(AtomicBool::new(false));
        for signal in SIGNALS.iter().filter(|signal| !is_ignored(**signal)) {
            interrupts.hear(*signal, &before)?;
        }
        Ok(interrupts)
    }

    fn hear(&mut self, signal: i32, before: &Arc<AtomicBool>) -> io::Result<()> {
        use signal_hook::flag;
        let number = usize::try_from(signal).unwrap_or(0);
        let end = self.theirs.try_clone()?;
        let mut keep = |registered: io::Result<SigId>| -> io::Result<()> {
            self.registrations.push(registered?);
            Ok(())
        };
        // In this order: the first signal sets what makes the second one deadly.
        keep(flag::register_conditional_shutdown(
            signal,
            128 + signal,
            before.clone(),
        ))?;
        keep(flag::register(signal, before.clone()))?;
        keep(flag::register_usize(signal, self.signal.clone(), number))?;
        // Heard by the simulation at once, also while the program is already gone.
        keep(flag::register(signal, self.stop.clone()))?;
        keep(signal_hook::low_level::pipe::register(signal, end))
    }

    /// Ends the run for a reason of its own. The first one counts.
    pub fn halt(&self, halt: Halt) {
        let mut place = self.halt.lock().unwrap_or_else(PoisonError::into_inner);
        if place.is_none() {
            *place = Some(halt);
            self.stop.store(true, Ordering::Relaxed);
            // Whoever waits is woken; if the pipe is full, it is awake.
            let _ = (&self.theirs).write(&[0]);
        }
    }

    /// Why the run was ended, if not by a signal.
    pub fn halted(&self) -> Option<Halt> {
        let place = self.halt.lock().unwrap_or_else(PoisonError::into_inner);
        place.clone()
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }

    /// The exit code of a run that was ended, if it was.
    pub fn exit_code(&self) -> Option<i32> {
        let signal = self.signal().map(|signal| 128 + signal);
        signal.or_else(|| self.halted().map(|halt| halt.code))
    }

    /// Takes what woke whoever waits.
    pub fn taken(&self) {
        let mut bytes = [0; 16];
        // Why it was woken is stored apart.
        let _ = (&self.ours).read(&mut bytes);
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        for registration in self.registrations.drain(..) {
            signal_hook::low_level::unregister(registration);
        }
    }
}

/// Whether whoever started us wants a signal ignored, as `nohup` does.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: a zeroed `sigaction` is valid, and the call only fills it in.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// What people call a signal.
pub fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGHUP => "hang-up",
        libc::SIGINT => "interrupt",
        libc::SIGQUIT => "quit",
        libc::SIGILL => "illegal instruction",
        libc::SIGABRT => "abort",
        libc::SIGBUS => "bus error",
        libc::SIGFPE => "arithmetic error",
        libc::SIGKILL => "kill",
        libc::SIGSEGV => "segmentation fault",
        libc::SIGPIPE => "broken pipe",
        libc::SIGTERM => "terminate",
        _ => "see signal(7)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_something_stops_a_run_and_wakes_whoever_waits() {
        let stop = Arc::new(AtomicBool::new(false));
        let interrupts = Interrupts::listen(stop.clone()).unwrap();
        assert_eq!(interrupts.exit_code(), None);
        for code in [74, 71] {
            interrupts.halt(Halt {
                reason: "no room".into(),
                code,
            });
        }
        assert!(stop.load(Ordering::Relaxed));
        assert_eq!(interrupts.exit_code(), Some(74));
        let mut byte = [0; 8];
        assert_eq!((&interrupts.ours).read(&mut byte).unwrap(), 1);
    }
}
