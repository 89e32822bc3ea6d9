//! The CUDA program as a child process: started, watched, and ended with the simulator.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use thiserror::Error;

/// How long a program may take to end by itself after a signal.
const GRACE: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};
/// Signals that end a run.
const SIGNALS: &[i32] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Why a program could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// Nothing of that name.
    #[error("{program}: no such program{}", if .program.contains('/') { "" } else { " in PATH; for one in this directory write ./ before its name" })]
    Missing {
        /// What was asked for.
        program: String,
    },
    /// There, but not a program.
    #[error("{program}: {reason}")]
    NotExecutable {
        /// What was asked for.
        program: String,
        /// Why not.
        reason: String,
    },
    /// The system refused.
    #[error("{program}: cannot be started: {error}")]
    System {
        /// What was asked for.
        program: String,
        /// What the system says.
        error: io::Error,
    },
}

impl StartError {
    /// The exit code that shells use for it.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Missing { .. } => 127,
            Self::NotExecutable { .. } | Self::System { .. } => 126,
        }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// By us, because this signal came to the simulator.
    Interrupted(i32),
}

impl Ended {
    /// The exit code to pass on.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) | Self::Interrupted(signal) => 128 + signal,
        }
    }

    /// A sentence, unless the program ended by itself.
    pub fn problem(self, program: &str) -> Option<String> {
        match self {
            Self::Code(_) => None,
            Self::Signal(signal) => Some(format!(
                "{program} was ended by signal {signal} ({})",
                signal_name(signal)
            )),
            Self::Interrupted(signal) => Some(format!(
                "the run was ended by signal {signal} ({})",
                signal_name(signal)
            )),
        }
    }
}

/// The file that a command name means, as a shell would find it.
///
/// # Errors
/// There is none, or it cannot be executed.
pub fn find_program(program: &str) -> Result<PathBuf, StartError> {
    let missing = || StartError::Missing {
        program: program.into(),
    };
    if program.is_empty() {
        return Err(missing());
    }
    if program.contains('/') {
        return check(program, PathBuf::from(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&path).map(|folder| folder.join(program));
    let mut refused = None;
    for candidate in candidates {
        match check(program, candidate) {
            Ok(found) => return Ok(found),
            Err(StartError::Missing { .. }) => {}
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.unwrap_or_else(missing))
}

fn check(program: &str, path: PathBuf) -> Result<PathBuf, StartError> {
    let refused = |reason: &str| StartError::NotExecutable {
        program: program.into(),
        reason: reason.into(),
    };
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(refused("permission denied on the way to it"))
        }
        Err(_) => Err(StartError::Missing {
            program: program.into(),
        }),
        Ok(metadata) if metadata.is_dir() => Err(refused("it is a directory")),
        Ok(_) => match rustix::fs::access(&path, rustix::fs::Access::EXEC_OK) {
            Ok(()) => Ok(path),
            Err(_) => Err(refused(
                "it is not executable; `chmod +x` makes a program so",
            )),
        },
    }
}

/// A running program.
pub struct Program {
    child: Child,
    handle: OwnedFd,
    signals: UnixStream,
    /// The signal that came last; set before `signals` becomes readable.
    signal: Arc<AtomicUsize>,
    registrations: Vec<signal_hook::SigId>,
}

impl Program {
    /// Starts a program with these variables beside its own. It is killed when the thread that
    /// starts it ends; `stop` is set by any signal that ends a run.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        path: &Path,
        arguments: &[String],
        variables: &[(&'static str, OsString)],
        stop: Arc<AtomicBool>,
    ) -> Result<Self, StartError> {
        let name = path.display().to_string();
        let failed = |error: io::Error| {
            let program = name.clone();
            match error.raw_os_error() {
                Some(libc::ENOEXEC) => StartError::NotExecutable {
                    program,
                    reason:
                        "it is neither a program for this machine nor a script that begins with #!"
                            .into(),
                },
                Some(libc::ENOENT) => StartError::NotExecutable {
                    program,
                    reason: "its interpreter (after #!, or the loader in the file) does not exist"
                        .into(),
                },
                _ => StartError::System { program, error },
            }
        };
        // Handlers first: a signal between the two would leave the child alone.
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let mut registrations = Vec::new();
        let last = Arc::new(AtomicUsize::new(0));
        for signal in SIGNALS.iter().filter(|signal| !is_ignored(**signal)) {
            let number = usize::try_from(*signal).unwrap_or(0);
            registrations.push(
                signal_hook::flag::register_usize(*signal, last.clone(), number).map_err(failed)?,
            );
            // Heard by the simulation at once, also while the program is already gone.
            registrations.push(signal_hook::flag::register(*signal, stop.clone()).map_err(failed)?);
            let end = theirs.try_clone().map_err(failed)?;
            registrations
                .push(signal_hook::low_level::pipe::register(*signal, end).map_err(failed)?);
        }
        let simulator = rustix::process::getpid();
        let mut command = Command::new(path);
        command
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value)));
        // SAFETY: between fork and exec only two system calls are made.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(
                    rustix::process::Signal::KILL,
                ))?;
                // The simulator may have ended before the line above.
                if rustix::process::getppid() != Some(simulator) {
                    return Err(io::Error::other("the simulator ended"));
                }
                Ok(())
            });
        }
        let child = command.spawn().map_err(failed)?;
        let pid = rustix::process::Pid::from_child(&child);
        let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
            .map_err(|error| failed(error.into()))?;
        Ok(Self {
            child,
            handle,
            signals: ours,
            signal: last,
            registrations,
        })
    }

    /// Waits for the program to end; a signal to the simulator is passed on and ends both.
    ///
    /// # Errors
    /// The system refuses to wait.
    pub fn wait(&mut self) -> io::Result<Ended> {
        if !self.wait_for_end_or_signal(None)? {
            let signal = self.take_signal();
            self.send(signal);
            if !self.wait_for_end_or_signal(Some(&GRACE))? {
                // It may have ended just now; then there is nothing to kill.
                let _ = self.child.kill();
            }
            self.child.wait()?;
            return Ok(Ended::Interrupted(signal));
        }
        Ok(ended(self.child.wait()?))
    }

    /// True when the program ended; false when a signal came or time ran out.
    fn wait_for_end_or_signal(&self, limit: Option<&rustix::time::Timespec>) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, poll};
        loop {
            let watch_signals = limit.is_none();
            let mut files = vec![PollFd::from_borrowed_fd(self.handle.as_fd(), PollFlags::IN)];
            if watch_signals {
                files.push(PollFd::from_borrowed_fd(
                    self.signals.as_fd(),
                    PollFlags::IN,
                ));
            }
            match poll(&mut files, limit) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            return Ok(!files[0].revents().is_empty());
        }
    }

    fn take_signal(&mut self) -> i32 {
        let mut bytes = [0; 16];
        // Which signal it was is stored apart; the byte only woke us.
        let _ = self.signals.read(&mut bytes);
        i32::try_from(self.signal.load(Ordering::SeqCst)).unwrap_or(libc::SIGTERM)
    }

    fn send(&self, signal: i32) {
        if let Some(signal) = rustix::process::Signal::from_named_raw(signal) {
            // A program that has ended just now takes no signal.
            let _ = rustix::process::pidfd_send_signal(&self.handle, signal);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        for registration in self.registrations.drain(..) {
            signal_hook::low_level::unregister(registration);
        }
        if let Ok(None) = self.child.try_wait() {
            // Nobody is left to hear of an end that fails.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether whoever started us wants a signal ignored, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: a zeroed `sigaction` is valid, and the call only fills it in.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Code(code),
        (None, Some(signal)) => Ended::Signal(signal),
        (None, None) => Ended::Code(1),
    }
}

/// What people call a signal.
fn signal_name(signal: i32) -> &'static str {
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
