//! The CUDA program as a child process: started, watched, and ended with the simulator.

use crate::descendants;
use crate::interrupts::{Halt, Interrupts, is_ignored, signal_name};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use thiserror::Error;

/// How long a program may take to end by itself after a signal.
const GRACE: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// By us, because this signal came to the simulator.
    Interrupted(i32),
    /// By us, because the run cannot go on.
    Halted(Halt),
}

impl Ended {
    /// The exit code to pass on.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Code(code) => *code,
            Self::Signal(signal) | Self::Interrupted(signal) => 128 + signal,
            Self::Halted(halt) => halt.code,
        }
    }

    /// Whether we ended it.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Interrupted(_) | Self::Halted(_))
    }

    /// A sentence, unless the program ended by itself.
    pub fn problem(&self, program: &str) -> Option<String> {
        match self {
            Self::Code(_) => None,
            Self::Signal(signal) => Some(format!(
                "{program} was ended by signal {signal} ({})",
                signal_name(*signal)
            )),
            Self::Interrupted(signal) => Some(format!(
                "the run was ended by signal {signal} ({})",
                signal_name(*signal)
            )),
            Self::Halted(halt) => Some(halt.reason.clone()),
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
    /// Becomes readable when it ends.
    end: OwnedFd,
    interrupts: Arc<Interrupts>,
}

impl Program {
    /// Starts a program with these variables beside its own. It is killed when the thread that
    /// starts it ends. Interrupts must be heard already: a signal between the two would leave the
    /// child alone. Its memory lies where it lies in every run of it, if the system allows that.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        path: &Path,
        arguments: &[String],
        variables: &[(&'static str, OsString)],
        interrupts: &Arc<Interrupts>,
    ) -> Result<Self, StartError> {
        let simulator = rustix::process::getpid();
        let file_size = !is_ignored(libc::SIGXFSZ);
        if file_size {
            // A file that may not grow is an error to us, with a sentence, and not the end.
            // SAFETY: no handler is installed.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        }
        // What its own children leave alone can then be found, if the run is interrupted.
        let _ = rustix::process::set_child_subreaper(Some(simulator));
        let mut command = Command::new(path);
        command
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value)));
        // SAFETY: between fork and exec only system calls are made.
        unsafe {
            command.pre_exec(move || {
                if file_size {
                    libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
                }
                rustix::process::set_parent_process_death_signal(Some(
                    rustix::process::Signal::KILL,
                ))?;
                // The simulator may have ended before the line above.
                if rustix::process::getppid() != Some(simulator) {
                    return Err(io::Error::other("the simulator ended"));
                }
                // Calls and what they copy carry addresses of the program, on purpose or in bytes that nobody set. They
                // reach the digest, and are compared when a run is resumed. Where the system refuses, they may differ.
                let old = libc::personality(0xffff_ffff);
                let random = libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
                libc::personality(old as libc::c_ulong | random);
                Ok(())
            });
        }
        let started = command.spawn().and_then(|mut child| {
            let end = watch_end(&child).inspect_err(|_| {
                // Nobody would see its end.
                let _ = child.kill().and_then(|()| child.wait());
            })?;
            Ok(Self {
                child,
                end,
                interrupts: interrupts.clone(),
            })
        });
        started.map_err(|error| refused(path, error))
    }

    /// Its number.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Whether the system gives it other addresses in every run, because it did not allow fixed ones. A system that does
    /// not say so is believed to have allowed them.
    pub fn has_random_addresses(&self) -> bool {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let flags = read(&format!("/proc/{}/personality", self.process()));
        let flags = u32::from_str_radix(flags.trim_end(), 16);
        let fixed = flags.map_or(true, |flags| flags & libc::ADDR_NO_RANDOMIZE as u32 != 0);
        !fixed && read("/proc/sys/kernel/randomize_va_space").trim_end() != "0"
    }

    /// Waits for the program to end; what ends the run is passed on and ends both.
    ///
    /// # Errors
    /// The system refuses to wait.
    pub fn wait(&mut self) -> io::Result<Ended> {
        if self.wait_for_end_or_interrupt(None)? {
            return Ok(ended(self.child.wait()?));
        }
        self.interrupts.taken();
        let signal = self.interrupts.signal();
        self.send(signal.unwrap_or(libc::SIGTERM));
        if !self.wait_for_end_or_interrupt(Some(&GRACE))? {
            // It may have ended just now; then there is nothing to kill.
            let _ = self.child.kill();
        }
        self.child.wait()?;
        descendants::end();
        let halted = self.interrupts.halted();
        Ok(match (signal, halted) {
            (None, Some(halt)) => Ended::Halted(halt),
            (signal, _) => Ended::Interrupted(signal.unwrap_or(libc::SIGTERM)),
        })
    }

    /// True when the program ended; false when the run is to end or time ran out.
    fn wait_for_end_or_interrupt(
        &self,
        limit: Option<&rustix::time::Timespec>,
    ) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, poll};
        loop {
            let mut files = vec![PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN)];
            if limit.is_none() {
                let interrupts = self.interrupts.as_fd();
                files.push(PollFd::from_borrowed_fd(interrupts, PollFlags::IN));
            }
            match poll(&mut files, limit) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            return Ok(!files[0].revents().is_empty());
        }
    }

    fn send(&self, signal: i32) {
        if let Some(signal) = rustix::process::Signal::from_named_raw(signal) {
            // A program that has ended just now takes no signal, and nobody else has its number
            // before we have waited for it.
            let process = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process(process, signal);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // Nobody is left to hear of an end that fails.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A descriptor that becomes readable when a child ends. Sandboxes that know no `pidfd_open` get a
/// thread that waits.
fn watch_end(child: &Child) -> io::Result<OwnedFd> {
    let process = rustix::process::Pid::from_child(child);
    match rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()) {
        Ok(handle) => Ok(handle),
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => wait_in_thread(process),
        Err(error) => Err(error.into()),
    }
}

fn wait_in_thread(process: rustix::process::Pid) -> io::Result<OwnedFd> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    std::thread::Builder::new()
        .name("wait".into())
        .spawn(move || {
            // Only looks: its owner waits for it.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let ended = || waitid(WaitId::Pid(process), options);
            while matches!(ended(), Err(rustix::io::Errno::INTR)) {}
            drop(writer);
        })?;
    Ok(reader)
}

/// Why a program did not start.
fn refused(path: &Path, error: io::Error) -> StartError {
    let program = path.display().to_string();
    let not_executable = |reason: &str| StartError::NotExecutable {
        program: program.clone(),
        reason: reason.into(),
    };
    match error.raw_os_error() {
        Some(libc::ENOEXEC) => not_executable(
            "it is neither a program for this machine nor a script that begins with #!",
        ),
        Some(libc::ENOENT) => {
            not_executable("its interpreter (after #!, or the loader in the file) does not exist")
        }
        _ => StartError::System { program, error },
    }
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Code(code),
        (None, Some(signal)) => Ended::Signal(signal),
        (None, None) => Ended::Code(1),
    }
}
