//! Who is at the other end of a socket: a process of the run, or the world.
//!
//! The kernel lists connections of TCP with both addresses, so the other end is the row with the two
//! exchanged; of Unix sockets it tells the other end when asked. Whose an end is follows from who has it open.
//!
//! Start reading at [`other_end_of`].

use super::owners::are_open;
use super::tcp_table;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// Who is at the other end of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherEnd {
    /// One of the processes that were named.
    Run,
    /// Whoever connects: it waits for connections, and nobody but these processes has one with it.
    Comers,
    /// Somebody else, or the kernel does not say.
    World,
}

/// Who of these processes is at the other end of a socket. The number is what the kernel writes between brackets
/// where it names an open file.
pub fn other_end_of(number: u64, processes: &[u32]) -> OtherEnd {
    let of = |other: u64| match are_open(other, processes) {
        true => OtherEnd::Run,
        false => OtherEnd::World,
    };
    let known = match unix_socket(number) {
        Some(UnixSocket { peer: None }) => return OtherEnd::World,
        Some(UnixSocket { peer }) => peer,
        None => known_peer(number),
    };
    if let Some(other) = known {
        return of(other);
    }
    let in_table = |table: &str| match peer_in(table, number) {
        Some(Peer::Other(other)) => {
            keep_peer(number, other);
            of(other)
        }
        Some(Peer::Accepts(other)) => of(other),
        None if serves_run(table, number, processes) => OtherEnd::Comers,
        None => OtherEnd::World,
    };
    match in_table(&tcp_table::lately()) {
        OtherEnd::World => in_table(&tcp_table::now()),
        known => known,
    }
}

/// The first of these sockets that wait for connections with which somebody outside these processes is connected, in
/// words.
pub fn visited(listening: &[u64], processes: &[u32]) -> Option<String> {
    let table = tcp_table::now_at_first();
    let mut visited = listening.iter().filter(|number| {
        let still = rows(&table).any(|row| row.number == **number && row.state == LISTENS);
        still && !serves_run(&table, **number, processes)
    });
    visited.next().and_then(|number| in_words(*number))
}

/// Whether a socket of TCP waits for connections, and nobody outside these processes has one with it. Those who come
/// later are taken to be of the run too, until they are seen.
fn serves_run(table: &str, number: u64, processes: &[u32]) -> bool {
    let mut listening = rows(table).filter(|row| row.state == LISTENS);
    let Some(own) = listening.find(|row| row.number == number) else {
        return false;
    };
    let connected = |row: &Row<'_>| {
        row.state != LISTENS && row.state != CLOSED && port(row.own) == port(own.own)
    };
    let of_run = |row: Row<'_>| {
        other_end(table, &row)
            .is_some_and(|other| other.number == 0 || are_open(other.number, processes))
    };
    rows(table).filter(connected).all(of_run)
}

/// The state of a socket that waits for connections, as the kernel writes it.
const LISTENS: &str = "0A";
/// The state of one that was closed, which the kernel keeps for a while.
const CLOSED: &str = "06";

/// A row of the kernel's tables of TCP.
struct Row<'a> {
    own: &'a str,
    other: &'a str,
    state: &'a str,
    number: u64,
}

/// Rows have the two addresses in their second and third column, the state in their fourth and the number in
/// their tenth.
fn rows(table: &str) -> impl Iterator<Item = Row<'_>> {
    table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        Some(Row {
            number: fields.get(9)?.parse().ok()?,
            own: plain(fields[1]),
            other: plain(fields[2]),
            state: fields[3],
        })
    })
}

/// The row of the other end of a connection, if it is on this machine.
fn other_end<'a>(table: &'a str, one: &Row<'_>) -> Option<Row<'a>> {
    rows(table).find(|row| row.own == one.other && row.other == one.own)
}

fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or_default()
}

/// The socket that a connection leads to.
#[derive(Debug, PartialEq, Eq)]
enum Peer {
    /// Its other end.
    Other(u64),
    /// The one that it will be accepted from: a connection is there before that, and nobody has its other end open
    /// then.
    Accepts(u64),
}

/// Where a connection leads to.
fn peer_in(table: &str, number: u64) -> Option<Peer> {
    let found = rows(table).find(|row| row.number == number)?;
    let other = other_end(table, &found)?;
    if other.number != 0 {
        return Some(Peer::Other(other.number));
    }
    let mut listening = rows(table).filter(|row| row.state == LISTENS);
    let accepts = |row: &Row<'_>| row.own == other.own || row.own == anywhere(other.own);
    listening.find(accepts).map(|row| Peer::Accepts(row.number))
}

/// Most connections that are kept.
const MOST_KEPT: usize = 4096;

/// Other ends of connections, by the numbers of sockets. A connection has the same ends as long as it is there, and
/// numbers are not given twice.
static PEERS: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// The other end of a connection that was found before.
fn known_peer(number: u64) -> Option<u64> {
    let peers = PEERS.lock().unwrap_or_else(PoisonError::into_inner);
    peers.get(&number).copied()
}

fn keep_peer(number: u64, other: u64) {
    let mut peers = PEERS.lock().unwrap_or_else(PoisonError::into_inner);
    if peers.len() >= MOST_KEPT {
        peers.clear();
    }
    peers.insert(number, other);
}

/// An address of version 4 that is written as one of version 6, as version 4.
fn plain(address: &str) -> &str {
    address
        .strip_prefix("0000000000000000FFFF0000")
        .unwrap_or(address)
}

/// The address without a machine: who listens there takes what comes for any address of this one.
fn anywhere(address: &str) -> String {
    let machine = address.split(':').next().unwrap_or_default();
    format!("{}:{}", "0".repeat(machine.len()), port(address))
}

/// A socket in words: its addresses, if it is one of TCP.
pub fn in_words(number: u64) -> Option<String> {
    if let Some(UnixSocket { peer }) = unix_socket(number) {
        return Some(match peer {
            Some(peer) => format!("a Unix socket to that with number {peer}"),
            None => "a Unix socket that anybody may write to".into(),
        });
    }
    let found = tcp_in_words(&tcp_table::lately(), number);
    found.or_else(|| tcp_in_words(&tcp_table::now(), number))
}

fn tcp_in_words(table: &str, number: u64) -> Option<String> {
    let row = rows(table).find(|row| row.number == number)?;
    let own = address_in_words(row.own)?;
    Some(match row.state {
        LISTENS => format!("a TCP socket that listens at {own}"),
        _ => format!(
            "a TCP socket from {own} to {}",
            address_in_words(row.other)?
        ),
    })
}

/// An address as the kernel writes it in its tables: words of the machine in hexadecimal, and the port.
fn address_in_words(address: &str) -> Option<String> {
    let (machine, port) = address.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(machine.get(at * 8..at * 8 + 8)?, 16).ok();
    let machine: IpAddr = match machine.len() {
        8 => word(0)?.to_ne_bytes().into(),
        _ => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?.to_ne_bytes());
            }
            bytes.into()
        }
    };
    Some(SocketAddr::new(machine, port).to_string())
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

/// What the kernel says of a Unix socket.
struct UnixSocket {
    /// Its other end, if it is connected.
    peer: Option<u64>,
}

/// A Unix socket; none if it is no such socket, or the kernel does not say.
fn unix_socket(number: u64) -> Option<UnixSocket> {
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
    let attributes = answer
        .get(BEFORE_ATTRIBUTES..)
        .filter(|_| kind == BY_FAMILY)?;
    Some(UnixSocket {
        peer: peer_of(attributes),
    })
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
        assert_eq!(peer_in(table, 77), Some(Peer::Other(78)));
        assert_eq!(peer_in(table, 78), Some(Peer::Other(77)));
        assert_eq!(peer_in(table, 79), None);
        assert_eq!(peer_in("", 77), None);
        // Nobody has accepted it yet.
        let table = "0: 0200007F:1F90 00000000:0000 0A 0 0 0 0 0 69 1\n\
                     0: 00000000:1F90 00000000:0000 0A 0 0 0 0 0 70 1\n\
                     0: 0100007F:C350 0100007F:1F90 01 0 0 0 0 0 71 1\n\
                     0: 0100007F:1F90 0100007F:C350 01 0 0 0 0 0 0 1\n";
        assert_eq!(peer_in(table, 71), Some(Peer::Accepts(70)));
    }

    #[test]
    fn both_ends_in_this_process_are_of_the_run_of_this_process() {
        let own = [std::process::id()];
        let is_of_run = |number: u64, run: &[u32]| other_end_of(number, run) == OtherEnd::Run;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(is_of_run(number(&client), &own), "it will be accepted here");
        let (server, _) = listener.accept().unwrap();
        assert!(is_of_run(number(&client), &own) && is_of_run(number(&server), &own));
        assert!(!is_of_run(number(&client), &[]), "nobody has it open");
        let listens = number(&listener);
        assert_eq!(other_end_of(listens, &own), OtherEnd::Comers);
        assert_eq!(other_end_of(listens, &[u32::MAX]), OtherEnd::World);
        assert_eq!(visited(&[listens], &own), None, "its own came");
        let said = visited(&[listens], &[u32::MAX]).expect("a stranger came");
        let address = listener.local_addr().unwrap();
        assert_eq!(said, format!("a TCP socket that listens at {address}"));
        assert_eq!(visited(&[number(&server)], &[]), None, "it does not listen");
        let said = in_words(number(&client)).unwrap();
        assert!(said.ends_with(&format!("to {address}")), "{said}");
        let (one, other) = UnixStream::pair().unwrap();
        // Kernels without this question say nothing, and then it is the world.
        if let Some(UnixSocket { peer }) = unix_socket(number(&one)) {
            assert_eq!(peer, Some(number(&other)));
            assert!(is_of_run(number(&one), &own));
        }
        drop(other);
        assert!(!is_of_run(number(&one), &own), "nobody is there");
    }
}
