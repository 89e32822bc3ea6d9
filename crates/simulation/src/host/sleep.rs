//! What a sleeping thread waits for: another thread of its process, another process of the run, or the world.
//!
//! A thread that waits for another one, or for a process of the run, is woken by what the program does,
//! so when it goes on follows from the program. One that sleeps for a time, or waits for a file or for
//! somebody outside the run, goes on when the host's clock or the world says so.
//!
//! A pipe is the run's own unless the simulator has it too: then it was there before the run, as standard
//! input is. A socket is if its other end is open in a process of the run, or if it waits for connections in a run
//! of several processes and nobody else is connected with it.
//!
//! Every wait that ends by itself after a time is for the world, but for a `poll` of files of the run with a long
//! time-out: services wait so, and look now and then whether they are to end.
//!
//! Start reading at [`of`].

use super::sockets;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// How a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Until another thread of the process wakes it.
    ForThread,
    /// Until another process of the run ends, or writes to a pipe or a socket.
    ForProcess,
    /// Until a time, or until the world outside the run has something for it.
    ForWorld,
    /// The system does not say.
    Unknown,
}

/// What a system call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// An open file.
    File(u64),
    /// Those of a list of `poll`, so many at an address.
    Polled(u64, u64),
}

/// A `poll` with a time-out of so many milliseconds is ended by its files as a rule.
const LONG_TIME_OUT: i32 = 100;

/// Most files of a `poll` that are looked at.
const MOST_POLLED: u64 = 1024;

/// How a thread of a process sleeps, among the processes of its run; an error if the kernel knows no such
/// thread or does not show it.
pub fn of(process: u32, thread: u32, run: &[u32]) -> std::io::Result<Sleep> {
    let line = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall"))?;
    Ok(parse(&line, &|waited| match waited {
        Waited::File(file) => is_of_run(process, file, run),
        Waited::Polled(address, count) => {
            let files = polled(process, address, count).unwrap_or_default();
            !files.is_empty() && files.iter().all(|file| is_of_run(process, *file, run))
        }
    }))
}

/// Who ends the sleep of a thread, as far as it matters to others of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// Another thread.
    Thread,
    /// A file, or the clock after a second at most.
    FileOrClock,
    /// Something else, or the kernel does not say.
    Other,
}

/// The longest time-out that counts as one after which a thread looks, in milliseconds.
const LONGEST_LOOK: i32 = 1000;

/// Who ends the sleep of a thread of a process.
pub fn waker(process: u32, thread: u32) -> Waker {
    let line = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall"));
    let line = line.unwrap_or_default();
    let Some((number, arguments)) = system_call(&line) else {
        return Waker::Other;
    };
    let looks = |milliseconds: u64| (1..=LONGEST_LOOK).contains(&(milliseconds as i32));
    match (number, &arguments[..]) {
        (libc::SYS_futex, [_, _, _, 0, ..]) => Waker::Thread,
        (libc::SYS_poll, [_, _, time, ..]) if looks(*time) => Waker::FileOrClock,
        (libc::SYS_epoll_wait | libc::SYS_epoll_pwait, [_, _, _, time, ..]) if looks(*time) => {
            Waker::FileOrClock
        }
        _ => Waker::Other,
    }
}

/// The files of a list of `poll`, in the memory of a process; those below 0 are left out, as there.
fn polled(process: u32, address: u64, count: u64) -> Option<Vec<u64>> {
    let mut bytes = vec![0; count.min(MOST_POLLED) as usize * size_of::<libc::pollfd>()];
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    memory.read_exact_at(&mut bytes, address).ok()?;
    let entries = bytes.chunks_exact(size_of::<libc::pollfd>());
    let files =
        entries.filter_map(|entry| entry.first_chunk().map(|file| i32::from_le_bytes(*file)));
    let files = files.filter_map(|file| u64::try_from(file).ok()).collect();
    (count <= MOST_POLLED).then_some(files)
}

/// What the kernel calls an open file of a process.
fn name_of(process: u32, file: u64) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/fd/{file}")).ok()
}

/// The number of a socket, if this is the name of one.
fn socket_number(name: &Path) -> Option<u64> {
    let number = name.to_str()?.strip_prefix("socket:[")?;
    number.trim_end_matches(']').parse().ok()
}

/// Whether what an open file of a process has to say comes from a process of the run.
fn is_of_run(process: u32, file: u64, run: &[u32]) -> bool {
    let target = |path: &Path| std::fs::read_link(path).ok();
    let Some(name) = name_of(process, file) else {
        return false;
    };
    if let Some(number) = socket_number(&name) {
        return sockets::is_of_run(number, run);
    }
    let text = name.to_string_lossy();
    let own = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let mut own = own.filter_map(|entry| target(&entry.ok()?.path()));
    text.starts_with("pipe:") && !own.any(|other| other == name)
}

/// Reads the line that the kernel writes of a task's system call: its number and arguments in
/// hexadecimal, or `-1` for a page that is waited for; none for `running`.
fn system_call(line: &str) -> Option<(i64, Vec<u64>)> {
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let argument =
        |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(u64::MAX);
    Some((number, words.map(argument).collect()))
}

/// How a thread sleeps whose system call the kernel describes so.
fn parse(line: &str, is_of_run: &dyn Fn(Waited) -> bool) -> Sleep {
    let Some((number, arguments)) = system_call(line) else {
        return Sleep::Unknown;
    };
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(u64::MAX);
    let waited = match number {
        // A page: those of managed and pinned memory are ours to give.
        -1 => return Sleep::ForThread,
        // The fourth argument of a futex is its time-out.
        libc::SYS_futex if argument(3) == 0 => return Sleep::ForThread,
        // Its own children are of the run as it is.
        libc::SYS_wait4 | libc::SYS_waitid => return Sleep::ForProcess,
        libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg => Waited::File(argument(0)),
        // Without a time-out, or with a long one.
        libc::SYS_poll if !(0..LONG_TIME_OUT).contains(&(argument(2) as i32)) => {
            Waited::Polled(argument(0), argument(1))
        }
        libc::SYS_ppoll if argument(2) == 0 => Waited::Polled(argument(0), argument(1)),
        _ => return Sleep::ForWorld,
    };
    match is_of_run(waited) {
        true => Sleep::ForProcess,
        false => Sleep::ForWorld,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_mutex_waits_for_a_thread_and_a_timed_wait_for_the_clock() {
        let of_run = |waited| [Waited::File(5), Waited::Polled(0x70, 2)].contains(&waited);
        let parse = |line: &str| parse(line, &of_run);
        let futex = |timeout: &str| format!("202 0x7f 0x189 0x0 {timeout} 0x0 0xffffffff 0x1 0x2");
        assert_eq!(parse(&futex("0x0")), Sleep::ForThread);
        assert_eq!(parse(&futex("0x7ffd0")), Sleep::ForWorld);
        // nanosleep, poll, read.
        for number in [35, 7, 0] {
            let line = format!("{number} 0x1 0x2 0x3 0x0 0x5 0x6 0x7 0x8");
            assert_eq!(parse(&line), Sleep::ForWorld);
        }
        // A pipe of the run, a child, and `poll` without a time-out.
        for line in [
            "0 0x5 0x2 0x3 0x0 0x5 0x6",
            "61 0xffff 0x0 0x0 0x0 0x0 0x0",
            "7 0x70 0x2 0xffffffff 0x0 0x0 0x0",
            "7 0x70 0x2 0x1f4 0x0 0x0 0x0",
            "271 0x70 0x2 0x0 0x0 0x0 0x0",
        ] {
            assert_eq!(parse(line), Sleep::ForProcess);
        }
        // With a short one.
        for line in [
            "7 0x70 0x2 0x63 0x0 0x0 0x0",
            "271 0x70 0x2 0x7ffe 0x0 0x0 0x0",
        ] {
            assert_eq!(parse(line), Sleep::ForWorld);
        }
        assert_eq!(parse("-1 0x7ffe 0x7f00"), Sleep::ForThread);
        assert_eq!(parse("running"), Sleep::Unknown);
        assert_eq!(parse(""), Sleep::Unknown);
    }

    #[test]
    fn a_pipe_of_ours_is_the_world() {
        let mut shell = Command::new("sh")
            .args(["-c", "read line"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let sleep = || of(shell.id(), shell.id(), &[]).unwrap();
        // Where the kernel does not show system calls, nothing is known.
        while of(shell.id(), shell.id(), &[]).is_ok() && sleep() == Sleep::Unknown {
            std::thread::yield_now();
        }
        if of(shell.id(), shell.id(), &[]).is_ok() {
            assert_eq!(sleep(), Sleep::ForWorld);
        }
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
