//! A small process that outlives a simulator killed without warning, removes its socket and makes
//! the summary of its run say so.
//!
//! It waits on a pipe whose other end only the simulator has. However the simulator ends, the
//! pipe closes; whatever is then left of the socket and its directory is removed. A run that was
//! not over has left a summary for this case, which is given the name of the other.

use lockstep_protocol::links_beside;
use lockstep_run_folder::RunFolder;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where the guardian has its descriptors: all others are closed, so that nobody waits for an end
/// of file because of it.
const PIPE: libc::c_int = 0;
const FOLDER: libc::c_int = 1;
const TERMINAL: libc::c_int = 2;

/// What it is called.
const NAME: &str = "lockstep-guard";
const NAME_BYTES: &std::ffi::CStr = c"lockstep-guard";

/// What a guardian does when its simulator is gone, prepared before it begins.
struct Orders {
    /// The socket, what lies beside it, and their directory.
    socket: Option<[CString; 3]>,
    /// The summary for this case, and the name that it gets.
    testament: (CString, CString),
    /// What is said then.
    sentence: String,
}

/// The guardian of one run, until it is dropped.
#[derive(Debug)]
pub struct Guardian {
    pipe: Option<OwnedFd>,
    process: libc::pid_t,
}

impl Guardian {
    /// Starts a guardian of a run folder, and of the socket at `path`, in a directory of its own. `is_saved` tells
    /// whether the run has checkpoints.
    ///
    /// # Errors
    /// No process could be made.
    pub fn start(path: Option<&Path>, folder: &RunFolder, is_saved: bool) -> io::Result<Self> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
        let socket = match path {
            Some(path) => {
                let directory = path.parent().unwrap_or(Path::new("/"));
                Some([text(path)?, text(&links_beside(path))?, text(directory)?])
            }
            None => None,
        };
        let (killed, summary) = RunFolder::testament();
        let orders = Orders {
            socket,
            testament: (CString::new(killed)?, CString::new(summary)?),
            sentence: format!(
                "lockstep: the simulator ended without warning (killed, or out of memory); what was \
                 known is in {}{}\n",
                folder.path().display(),
                if is_saved {
                    format!(
                        "; `lockstep resume {}` goes on from the last checkpoint",
                        folder.path().display()
                    )
                } else {
                    String::new()
                }
            ),
        };
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // Above the three places, so that none is overwritten by another.
        let above = |file: &dyn AsFd| rustix::io::fcntl_dupfd_cloexec(file.as_fd(), 3);
        let (pipe, folder) = (above(&reader)?, above(folder.directory())?);
        // SAFETY: the child calls only functions that are safe after `fork` in a process with
        // threads, and ends with `_exit`.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: this is that child.
            0 => unsafe { guard(pipe.as_raw_fd(), folder.as_raw_fd(), &orders) },
            process => Ok(Self {
                pipe: Some(writer),
                process,
            }),
        }
    }
}

/// Whether a process is a guardian of this one.
pub fn is_one(process: libc::pid_t) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
    name.is_ok_and(|name| name.trim_end() == NAME)
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // SAFETY: the process is a child of ours that nobody else waits for.
        unsafe {
            while libc::waitpid(self.process, std::ptr::null_mut(), 0) == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

/// The life of the guardian.
///
/// # Safety
/// To be called in a child just forked; only async-signal-safe functions are used.
unsafe fn guard(pipe: libc::c_int, folder: libc::c_int, orders: &Orders) -> ! {
    // SAFETY: plain system calls on numbers and on strings made before the fork. Signals meant for
    // the simulator's group are not for us.
    unsafe {
        libc::setsid();
        for signal in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGQUIT,
            libc::SIGPIPE,
        ] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, NAME_BYTES.as_ptr());
        libc::dup2(pipe, PIPE);
        libc::dup2(folder, FOLDER);
        close_from(TERMINAL + 1);
        let mut byte = 0u8;
        loop {
            let count = libc::read(PIPE, (&raw mut byte).cast(), 1);
            let interrupted = count < 0 && *libc::__errno_location() == libc::EINTR;
            if count <= 0 && !interrupted {
                break;
            }
        }
        if let Some([socket, links, directory]) = &orders.socket {
            libc::unlink(socket.as_ptr());
            libc::unlink(links.as_ptr());
            libc::rmdir(directory.as_ptr());
        }
        let (killed, summary) = &orders.testament;
        if libc::renameat(FOLDER, killed.as_ptr(), FOLDER, summary.as_ptr()) == 0 {
            let sentence = &orders.sentence;
            libc::write(TERMINAL, sentence.as_ptr().cast(), sentence.len());
        }
        libc::_exit(0)
    }
}

/// Closes every descriptor from one on, also where a sandbox knows no `close_range`.
///
/// # Safety
/// Nobody in this process uses them any more.
unsafe fn close_from(first: libc::c_int) {
    // SAFETY: as the caller says.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, u32::MAX, 0u32) == 0 {
            return;
        }
        for file in first..MOST_FILES {
            libc::close(file);
        }
    }
}

/// As many descriptors as a process has by default, and far more than a simulator has when its
/// guardian starts.
const MOST_FILES: libc::c_int = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_run_folder::{Existing, Running};

    #[test]
    fn a_guardian_removes_what_is_left_and_says_that_the_run_was_killed() {
        let directory =
            std::env::temp_dir().join(format!("lockstep-guardian-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let socket = directory.join("socket");
        std::fs::write(&socket, "").unwrap();
        std::fs::write(links_beside(&socket), "").unwrap();
        let path = directory.with_extension("run");
        let folder = RunFolder::create(Some(&path), Existing::MustBeEmpty, "x").unwrap();
        let running = Running::default();
        let killed = Running {
            phase: "killed".into(),
            ..Running::default()
        };
        folder.write_running(&running, &killed).unwrap();
        let guardian = Guardian::start(Some(&socket), &folder, false).unwrap();
        assert!(socket.exists());
        drop(guardian);
        assert!(!directory.exists());
        let summary = || std::fs::read_to_string(path.join("summary.json")).unwrap();
        assert!(summary().contains("\"phase\": \"killed\""));
        // A run that is over was not killed.
        folder.write_ended(&running).unwrap();
        drop(Guardian::start(None, &folder, false).unwrap());
        assert!(!summary().contains("\"phase\": \"killed\""));
        std::fs::remove_dir_all(path).unwrap();
    }
}
