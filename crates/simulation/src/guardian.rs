//! A small process that outlives a simulator killed without warning and removes its socket.
//!
//! It waits on a pipe whose other end only the simulator has. However the simulator ends, the
//! pipe closes; whatever is then left of the socket and its directory is removed.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The guardian of one socket, until it is dropped.
#[derive(Debug)]
pub struct Guardian {
    pipe: Option<OwnedFd>,
    process: libc::pid_t,
}

impl Guardian {
    /// Starts a guardian of the socket at `path`, in a directory of its own.
    ///
    /// # Errors
    /// No process could be made.
    pub fn start(path: &Path) -> io::Result<Self> {
        let socket = CString::new(path.as_os_str().as_bytes())?;
        let directory = CString::new(
            path.parent()
                .unwrap_or(Path::new("/"))
                .as_os_str()
                .as_bytes(),
        )?;
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // SAFETY: the child calls only functions that are safe after `fork` in a process with
        // threads, and ends with `_exit`.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: this is that child.
            0 => unsafe { guard(reader.as_raw_fd(), &socket, &directory) },
            process => Ok(Self {
                pipe: Some(writer),
                process,
            }),
        }
    }
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
unsafe fn guard(pipe: libc::c_int, socket: &CString, directory: &CString) -> ! {
    // SAFETY: plain system calls on numbers and on strings made before the fork. Every
    // descriptor but the pipe is closed, so that nobody waits for an end of file because of us;
    // signals meant for the simulator's group are not for us.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, c"lockstep-guard".as_ptr());
        libc::dup2(pipe, 0);
        libc::syscall(libc::SYS_close_range, 1u32, u32::MAX, 0u32);
        let mut byte = 0u8;
        loop {
            let count = libc::read(0, (&raw mut byte).cast(), 1);
            let interrupted = count < 0 && *libc::__errno_location() == libc::EINTR;
            if count <= 0 && !interrupted {
                break;
            }
        }
        libc::unlink(socket.as_ptr());
        libc::rmdir(directory.as_ptr());
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guardian_removes_what_is_left() {
        let directory =
            std::env::temp_dir().join(format!("lockstep-guardian-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let socket = directory.join("socket");
        std::fs::write(&socket, "").unwrap();
        let guardian = Guardian::start(&socket).unwrap();
        assert!(socket.exists());
        drop(guardian);
        assert!(!directory.exists());
    }
}
