//! A wait of a thread in words: its system call, the files of it, and its time-out.
//!
//! People who are told that a run depends on the host want to know who waited for what.
//!
//! Start reading at [`in_words`].

use super::sleep::{name_of, polled, socket_number, system_call};
use super::sockets;

/// Most files of one wait that are named.
const MOST_NAMED: usize = 4;

/// Where a system call keeps what it waits for.
#[derive(Clone, Copy)]
enum Files {
    /// Nothing is open for it.
    None,
    /// Its first argument is an open file.
    One,
    /// Its first two arguments are a list of `poll`.
    Polled,
}

/// How a system call says for how long it waits.
#[derive(Clone, Copy)]
enum TimeOut {
    /// Without one.
    Never,
    /// In milliseconds, in this argument; none below 0.
    Milliseconds(usize),
    /// At an address in this argument; none at 0.
    Address(usize),
}

/// System calls in which threads wait.
const WAITS: &[(i64, &str, Files, TimeOut)] = &[
    (libc::SYS_accept, "accept", Files::One, TimeOut::Never),
    (libc::SYS_accept4, "accept4", Files::One, TimeOut::Never),
    (
        libc::SYS_clock_nanosleep,
        "clock_nanosleep",
        Files::None,
        TimeOut::Address(2),
    ),
    (libc::SYS_connect, "connect", Files::One, TimeOut::Never),
    (
        libc::SYS_epoll_pwait,
        "epoll_pwait",
        Files::One,
        TimeOut::Milliseconds(3),
    ),
    (
        libc::SYS_epoll_wait,
        "epoll_wait",
        Files::One,
        TimeOut::Milliseconds(3),
    ),
    (libc::SYS_futex, "futex", Files::None, TimeOut::Address(3)),
    (
        libc::SYS_nanosleep,
        "nanosleep",
        Files::None,
        TimeOut::Address(0),
    ),
    (
        libc::SYS_poll,
        "poll",
        Files::Polled,
        TimeOut::Milliseconds(2),
    ),
    (libc::SYS_ppoll, "ppoll", Files::Polled, TimeOut::Address(2)),
    (libc::SYS_read, "read", Files::One, TimeOut::Never),
    (libc::SYS_readv, "readv", Files::One, TimeOut::Never),
    (libc::SYS_recvfrom, "recvfrom", Files::One, TimeOut::Never),
    (libc::SYS_recvmsg, "recvmsg", Files::One, TimeOut::Never),
    (libc::SYS_select, "select", Files::None, TimeOut::Address(4)),
    (
        libc::SYS_pselect6,
        "pselect6",
        Files::None,
        TimeOut::Address(4),
    ),
    (libc::SYS_sendmsg, "sendmsg", Files::One, TimeOut::Never),
    (libc::SYS_sendto, "sendto", Files::One, TimeOut::Never),
    (libc::SYS_write, "write", Files::One, TimeOut::Never),
    (libc::SYS_writev, "writev", Files::One, TimeOut::Never),
];

/// The wait of a thread of a process whose system call the kernel describes so.
pub fn in_words(process: u32, line: &str) -> String {
    let Some((number, arguments)) = system_call(line) else {
        return "a wait that the kernel does not show".into();
    };
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(u64::MAX);
    let known = WAITS.iter().find(|wait| wait.0 == number);
    let Some((_, name, files, time_out)) = known else {
        return format!("system call {number}");
    };
    let open = match files {
        Files::None => Vec::new(),
        Files::One => vec![argument(0)],
        Files::Polled => polled(process, argument(0), argument(1)).unwrap_or_default(),
    };
    let mut words = (*name).to_owned();
    if !open.is_empty() {
        let named = open.iter().take(MOST_NAMED);
        let named: Vec<String> = named.map(|file| file_in_words(process, *file)).collect();
        words += &format!(" of {}", named.join(", "));
        if open.len() > MOST_NAMED {
            words += &format!(" and {} more", open.len() - MOST_NAMED);
        }
    }
    match time_out {
        TimeOut::Milliseconds(index) if argument(*index) as i32 >= 0 => {
            words += &format!(", for {} ms at most", argument(*index) as i32);
        }
        TimeOut::Address(index) if argument(*index) != 0 => words += ", for a time at most",
        _ => {}
    }
    words
}

/// An open file of a process: its number, what the kernel calls it, and its addresses if it is a socket.
fn file_in_words(process: u32, file: u64) -> String {
    let Some(name) = name_of(process, file) else {
        return format!("file {file}");
    };
    let ends = socket_number(&name).and_then(sockets::in_words);
    match ends {
        Some(ends) => format!("file {file} ({ends})"),
        None => format!("file {file} ({})", name.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_wait_is_told_with_its_files_and_its_time_out() {
        let own = std::process::id();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (socket, address) = (listener.as_raw_fd(), listener.local_addr().unwrap());
        let socket_in_words = format!("file {socket} (a TCP socket that listens at {address})");
        let polled = [-1, socket].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        for (line, words) in [
            (
                format!("7 {:#x} 0x2 0x1f4 0x0 0x0 0x0", polled.as_ptr() as usize),
                format!("poll of {socket_in_words}, for 500 ms at most"),
            ),
            (
                format!("288 {socket:#x} 0x0 0x0 0x0 0x0 0x0"),
                format!("accept4 of {socket_in_words}"),
            ),
            (
                "230 0x0 0x0 0x7ffe 0x0 0x0 0x0".into(),
                "clock_nanosleep, for a time at most".into(),
            ),
            (
                "0 0xffff 0x0 0x0 0x0 0x0 0x0".into(),
                "read of file 65535".into(),
            ),
            ("9999 0x0".into(), "system call 9999".into()),
            (
                "running".into(),
                "a wait that the kernel does not show".into(),
            ),
        ] {
            assert_eq!(in_words(own, &line), words);
        }
    }
}
