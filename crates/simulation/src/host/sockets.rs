//! Who is at the other end of a socket: a process of the run, or the world.
//!
//! The kernel lists connections of TCP with both addresses, so the other end is the row with the two
//! exchanged; of Unix sockets it tells the other end when asked. Whose an end is follows from who has it open.
//!
//! Start reading at [`is_of_run`].

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// Whether the other end of a socket is open in one of these processes. The number is what the kernel writes
/// between brackets where it names an open file.
pub fn is_of_run(number: u64, processes: &[u32]) -> bool {
    let other = unix_peer(number).or_else(|| tcp_peer(number));
    other.is_some_and(|other| {
        let name = format!("socket:[{other}]");
        processes.iter().any(|process| has_open(*process, &name))
    })
}

/// Whether a process has a file open that the kernel names so.
fn has_open(process: u32, name: &str) -> bool {
    let files = std::fs::read_dir(format!("/proc/{process}/fd"));
    let mut targets = files
        .into_iter()
        .flatten()
        .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    targets.any(|target| target == Path::new(name))
}

/// The other end of a connection of TCP on this machine.
fn tcp_peer(number: u64) -> Option<u64> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let text = tables.map(|path| std::fs::read_to_string(path).unwrap_or_default());
    peer_in(&text.concat(), number)
}

/// Rows have the two addresses in their second and third column, and the number in their tenth.
fn peer_in(table: &str, number: u64) -> Option<u64> {
    let rows = || {
        table.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let number: u64 = fields.get(9)?.parse().ok()?;
            Some((plain(fields[1]), plain(fields[2]), number))
        })
    };
    let (own, other, _) = rows().find(|row| row.2 == number)?;
    let exchanged = rows().find(|row| row.0 == other && row.1 == own);
    exchanged.map(|row| row.2)
}

/// An address of version 4 that is written as one of version 6, as version 4.
fn plain(address: &str) -> &str {
    address
        .strip_prefix("0000000000000000FFFF0000")
        .unwrap_or(address)
}

/// What is asked of the kernel about a Unix socket (`unix_diag_req` behind a header of netlink).
#[repr(C)]
struct Question {
    length: u32,
    kind: u16,
    flags: u16,
    sequence: u32,
    port: u32,
    family: u8,
    protocol: u8,
    padding: u16,
    states: u32,
    number: u32,
    show: u32,
    cookie: [u32; 2],
}

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `UDIAG_SHOW_PEER`, and the attribute that answers it, `UNIX_DIAG_PEER`.
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;
/// Bytes before the attributes of an answer: the header, and `unix_diag_msg`.
const BEFORE_ATTRIBUTES: usize = 32;

/// The other end of a Unix socket; none if it is no such socket, or the kernel does not say.
fn unix_peer(number: u64) -> Option<u64> {
    let question = Question {
        length: size_of::<Question>() as u32,
        kind: BY_FAMILY,
        flags: libc::NLM_F_REQUEST as u16,
        sequence: 1,
        port: 0,
        family: libc::AF_UNIX as u8,
        protocol: 0,
        padding: 0,
        states: u32::MAX,
        number: u32::try_from(number).ok()?,
        show: SHOW_PEER,
        cookie: [u32::MAX; 2],
    };
    let mut answer = [0u8; 512];
    // SAFETY: the socket is new and owned here; both buffers are live and passed with their sizes.
    let count = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let socket = libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG);
        if socket < 0 {
            return None;
        }
        let socket = OwnedFd::from_raw_fd(socket);
        let sent = libc::send(
            socket.as_raw_fd(),
            (&raw const question).cast(),
            size_of::<Question>(),
            0,
        );
        if sent < 0 {
            return None;
        }
        // The kernel answers within the call above.
        libc::recv(
            socket.as_raw_fd(),
            answer.as_mut_ptr().cast(),
            answer.len(),
            libc::MSG_DONTWAIT,
        )
    };
    let answer = answer.get(..usize::try_from(count).ok()?)?;
    let kind = u16::from_le_bytes(*answer.get(4..)?.first_chunk()?);
    peer_of(
        answer
            .get(BEFORE_ATTRIBUTES..)
            .filter(|_| kind == BY_FAMILY)?,
    )
}

/// The number of the other end among attributes: length, kind, value, filled up to words.
fn peer_of(mut attributes: &[u8]) -> Option<u64> {
    loop {
        let length = usize::from(u16::from_le_bytes(*attributes.first_chunk()?));
        let kind = u16::from_le_bytes(*attributes.get(2..)?.first_chunk()?);
        if kind == PEER {
            let number = u32::from_le_bytes(*attributes.get(4..)?.first_chunk()?);
            return Some(u64::from(number));
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    fn number(socket: &impl AsRawFd) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let link = link.to_string_lossy().into_owned();
        let number = link.strip_prefix("socket:[").unwrap();
        number.trim_end_matches(']').parse().unwrap()
    }

    #[test]
    fn the_other_end_of_a_connection_is_found() {
        let table = "sl local rem st a b c d e inode\n\
                     0: 0100007F:1F90 0100007F:C350 01 0 0 0 0 0 77 1\n\
                     0: 0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:1F90 01 0 0 0 0 0 78 1\n\
                     0: 0100007F:1F90 00000000:0000 0A 0 0 0 0 0 79 1\n";
        assert_eq!(peer_in(table, 77), Some(78));
        assert_eq!(peer_in(table, 78), Some(77));
        assert_eq!(peer_in(table, 79), None);
        assert_eq!(peer_in("", 77), None);
    }

    #[test]
    fn both_ends_in_this_process_are_of_the_run_of_this_process() {
        let own = [std::process::id()];
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        assert!(is_of_run(number(&client), &own) && is_of_run(number(&server), &own));
        assert!(!is_of_run(number(&client), &[]), "nobody has it open");
        assert!(!is_of_run(number(&listener), &own), "anybody may come");
        let (one, other) = UnixStream::pair().unwrap();
        // Kernels without this question say nothing, and then it is the world.
        if let Some(peer) = unix_peer(number(&one)) {
            assert_eq!(peer, number(&other));
            assert!(is_of_run(number(&one), &own));
        }
        drop(other);
        assert!(!is_of_run(number(&one), &own), "nobody is there");
    }
}
