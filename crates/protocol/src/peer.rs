//! Who is at the other end of a socket, as the kernel knows it.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The process that connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Process id; 0 for one that this process cannot see.
    pub process: i32,
    /// Its user.
    pub user: u32,
}

impl Peer {
    /// Whether it may use a simulator of the user `own`: the window holds all that the program
    /// holds, so nobody else may have it. Root can read it anyway.
    pub fn may_attach(self, own: u32) -> bool {
        self.user == own || self.user == 0
    }
}

/// The user of this process.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Who connected a socket.
///
/// # Errors
/// It is not a connected Unix socket.
pub fn of(stream: &UnixStream) -> io::Result<Peer> {
    let mut found = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the option fills in at most the bytes of a `ucred`, which is plain numbers.
    let outcome = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &mut bytes,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer {
        process: found.pid,
        user: found.uid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_knows_who_made_it() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = of(&one).unwrap();
        assert_eq!(peer.process as u32, std::process::id());
        assert_eq!(peer.user, own_user());
    }

    #[test]
    fn only_the_same_user_and_root_may_attach() {
        let peer = |user| Peer { process: 1, user };
        assert!(peer(1000).may_attach(1000));
        assert!(peer(0).may_attach(1000));
        assert!(!peer(1001).may_attach(1000));
        assert!(!peer(1001).may_attach(0));
    }
}
