//! What a sleeping thread waits for: another thread of its process, another process of the run, or the world.
//!
//! A thread that waits for another one, or for a process of the run, is woken by what the program does,
//! so when it goes on follows from the program. One that sleeps for a time, or waits for a file or for
//! somebody outside the run, goes on when the host's clock or the world says so.
//!
//! A pipe is the run's own unless the simulator has it too: then it was there before the run, as standard
//! input is. A socket is if its other end is open in a process of the run, or if it waits for connections and nobody
//! else is connected with it; whether somebody came nevertheless is asked when the thread goes on.
//!
//! A wait that ends by itself after a time is for the world, with two exceptions. A `poll` of files of the run with a
//! long time-out waits for these: services wait so, and look now and then whether they are to end. One with a short
//! time-out, and a very short sleep, is a nap: who waits so asks again and again, and is let ask once more before
//! others go on (`looks.rs`).
//!
//! Start reading at [`of`].

use super::looks::Nap;
use super::sockets::{self, OtherEnd};
use super::waits;
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Until another thread of the process wakes it.
    ForThread,
    /// Until it is given a page, which for managed and pinned memory our library in the program does.
    ForPage,
    /// Until another process of the run ends, or the run writes to a pipe or a socket.
    ForProcess,
    /// The same, or until somebody connects, who is taken to be of the run.
    ForComers,
    /// For a very short time.
    Nap,
    /// For a short time, or until the run writes to a pipe or a socket or connects.
    Polls,
    /// Until a time, or until the world outside the run has something for it.
    ForWorld,
    /// The system does not say.
    Unknown,
}

impl Sleep {
    /// How the thread naps, if it asks again after a short time.
    pub fn nap(self) -> Option<Nap> {
        match self {
            Self::Nap => Some(Nap::Sleeps),
            Self::Polls => Some(Nap::Polls),
            _ => None,
        }
    }
}

/// What a system call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// An open file.
    File(u64),
    /// Those of a list of `poll`, so many at an address.
    Polled(u64, u64),
}

/// Where what an open file has to say comes from. Of several files the last of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// A process of the run.
    Run,
    /// Whoever connects.
    Comers,
    /// The world.
    World,
}

/// How the thread that a line is about sees the world.
trait Surroundings {
    /// Where what a system call waits for comes from.
    fn origin(&self, waited: Waited) -> Origin;
    /// The time at an address, in seconds and nanoseconds.
    fn time(&self, address: u64) -> Option<Duration>;
}

/// A `poll` with such a time-out is ended by its files as a rule.
const LONG_TIME_OUT: Duration = Duration::from_millis(100);

/// The longest sleep without files that is taken for one of many, after which a thread asks again.
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// Most files of a `poll` that are looked at.
const MOST_POLLED: u64 = 1024;

/// How a thread of a process sleeps, among the processes of its run; an error if the kernel knows no such
/// thread or does not show it.
pub fn of(process: u32, thread: u32, run: &[u32]) -> std::io::Result<Sleep> {
    Ok(parse(&line_of(process, thread)?, &Seen::of(process, run)))
}

/// How a thread sleeps, and what is to be known of that when it goes on.
#[derive(Clone, Debug)]
pub struct Slept {
    /// How.
    pub sleep: Sleep,
    /// What it waits for, in words, if that is a time or the world.
    pub words: String,
    /// Sockets among that which wait for connections.
    pub listening: Vec<u64>,
}

impl Slept {
    /// Nothing is known.
    pub fn unknown() -> Self {
        Self {
            sleep: Sleep::Unknown,
            words: String::new(),
            listening: Vec::new(),
        }
    }
}

/// The same as [`of`], and what is to be known when the thread goes on.
pub fn explained(process: u32, thread: u32, run: &[u32]) -> std::io::Result<Slept> {
    let line = line_of(process, thread)?;
    let seen = Seen::of(process, run);
    let sleep = parse(&line, &seen);
    let words = match sleep {
        Sleep::ForWorld | Sleep::Nap | Sleep::Polls => waits::in_words(process, &line),
        _ => String::new(),
    };
    Ok(Slept {
        sleep,
        words,
        listening: seen.listening.into_inner(),
    })
}

/// What the kernel says of the system call of a thread.
fn line_of(process: u32, thread: u32) -> std::io::Result<String> {
    std::fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall"))
}

/// A process as the kernel shows it, among those of its run.
struct Seen<'a> {
    process: u32,
    run: &'a [u32],
    /// Sockets that wait for connections, of those that were asked for.
    listening: RefCell<Vec<u64>>,
}

impl<'a> Seen<'a> {
    fn of(process: u32, run: &'a [u32]) -> Self {
        Self {
            process,
            run,
            listening: RefCell::default(),
        }
    }

    /// Where what an open file has to say comes from.
    fn origin_of_file(&self, file: u64) -> Origin {
        let target = |path: &Path| std::fs::read_link(path).ok();
        let Some(name) = name_of(self.process, file) else {
            return Origin::World;
        };
        if let Some(number) = socket_number(&name) {
            return match sockets::other_end_of(number, self.run) {
                OtherEnd::Run => Origin::Run,
                OtherEnd::World => Origin::World,
                OtherEnd::Comers => {
                    self.listening.borrow_mut().push(number);
                    Origin::Comers
                }
            };
        }
        let text = name.to_string_lossy();
        let own = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
        let mut own = own.filter_map(|entry| target(&entry.ok()?.path()));
        match text.starts_with("pipe:") && !own.any(|other| other == name) {
            true => Origin::Run,
            false => Origin::World,
        }
    }
}

impl Surroundings for Seen<'_> {
    fn origin(&self, waited: Waited) -> Origin {
        let files = match waited {
            Waited::File(file) => vec![file],
            Waited::Polled(address, count) => {
                polled(self.process, address, count).unwrap_or_default()
            }
        };
        let origins = files.iter().map(|file| self.origin_of_file(*file));
        origins.max().unwrap_or(Origin::World)
    }

    fn time(&self, address: u64) -> Option<Duration> {
        let mut words = [0; 16];
        let memory = File::open(format!("/proc/{}/mem", self.process)).ok()?;
        memory.read_exact_at(&mut words, address).ok()?;
        let word = |at: usize| {
            words[at..]
                .first_chunk()
                .map(|word| u64::from_le_bytes(*word))
        };
        let nanoseconds = u32::try_from(word(8)?).ok()?;
        Duration::from_secs(word(0)?).checked_add(Duration::from_nanos(nanoseconds.into()))
    }
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
    let line = line_of(process, thread).unwrap_or_default();
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
pub(super) fn polled(process: u32, address: u64, count: u64) -> Option<Vec<u64>> {
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
pub(super) fn name_of(process: u32, file: u64) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/fd/{file}")).ok()
}

/// The number of a socket, if this is the name of one.
pub(super) fn socket_number(name: &Path) -> Option<u64> {
    let number = name.to_str()?.strip_prefix("socket:[")?;
    number.trim_end_matches(']').parse().ok()
}

/// Reads the line that the kernel writes of a task's system call: its number and arguments in
/// hexadecimal, or `-1` for a page that is waited for; none for `running`.
pub(super) fn system_call(line: &str) -> Option<(i64, Vec<u64>)> {
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let argument =
        |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(u64::MAX);
    Some((number, words.map(argument).collect()))
}

/// How a thread sleeps whose system call the kernel describes so.
fn parse(line: &str, surroundings: &dyn Surroundings) -> Sleep {
    let Some((number, arguments)) = system_call(line) else {
        return Sleep::Unknown;
    };
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(u64::MAX);
    let nap = |address: u64| match surroundings.time(address) {
        Some(time) if time <= LONGEST_NAP => Sleep::Nap,
        _ => Sleep::ForWorld,
    };
    // What it waits for, and for how long at most.
    let (waited, time_out) = match number {
        -1 => return Sleep::ForPage,
        // The fourth argument of a futex is its time-out.
        libc::SYS_futex if argument(3) == 0 => return Sleep::ForThread,
        // Its own children are of the run as it is.
        libc::SYS_wait4 | libc::SYS_waitid => return Sleep::ForProcess,
        libc::SYS_nanosleep => return nap(argument(0)),
        // Its second argument says whether the time is one of a clock.
        libc::SYS_clock_nanosleep if argument(1) == 0 => return nap(argument(2)),
        libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg => (Waited::File(argument(0)), None),
        libc::SYS_poll => {
            let milliseconds = u64::try_from(argument(2) as i32).ok();
            let polled = Waited::Polled(argument(0), argument(1));
            (polled, milliseconds.map(Duration::from_millis))
        }
        libc::SYS_ppoll => {
            let time_out = match argument(2) {
                0 => None,
                address => Some(surroundings.time(address).unwrap_or_default()),
            };
            (Waited::Polled(argument(0), argument(1)), time_out)
        }
        _ => return Sleep::ForWorld,
    };
    let short = time_out.is_some_and(|time| time < LONG_TIME_OUT);
    match surroundings.origin(waited) {
        Origin::World => Sleep::ForWorld,
        _ if short => Sleep::Polls,
        Origin::Run => Sleep::ForProcess,
        Origin::Comers => Sleep::ForComers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// A process with a pipe of the run, a socket that listens, a list of `poll`, and times of so many milliseconds
    /// at their addresses.
    struct Pretended;

    impl Surroundings for Pretended {
        fn origin(&self, waited: Waited) -> Origin {
            match waited {
                Waited::File(5) | Waited::Polled(0x70, 2) => Origin::Run,
                Waited::File(6) => Origin::Comers,
                _ => Origin::World,
            }
        }

        fn time(&self, address: u64) -> Option<Duration> {
            (address != 0).then(|| Duration::from_millis(address))
        }
    }

    #[test]
    fn a_mutex_waits_for_a_thread_and_a_timed_wait_for_the_clock() {
        let parse = |line: &str| parse(line, &Pretended);
        let futex = |timeout: &str| format!("202 0x7f 0x189 0x0 {timeout} 0x0 0xffffffff 0x1 0x2");
        assert_eq!(parse(&futex("0x0")), Sleep::ForThread);
        assert_eq!(parse(&futex("0x7ffd0")), Sleep::ForWorld);
        // nanosleep, poll, read.
        for number in [35, 7, 0] {
            let line = format!("{number} 0x9 0x2 0x3 0x0 0x5 0x6 0x7 0x8");
            assert_eq!(parse(&line), Sleep::ForWorld);
        }
        // A pipe of the run, a child, and `poll` without a time-out.
        for line in [
            "0 0x5 0x2 0x3 0x0 0x5 0x6",
            "61 0xffff 0x0 0x0 0x0 0x0 0x0",
            "7 0x70 0x2 0xffffffff 0x0 0x0 0x0",
            "7 0x70 0x2 0x1f4 0x0 0x0 0x0",
            "271 0x70 0x2 0x0 0x0 0x0 0x0",
            "271 0x70 0x2 0x500 0x0 0x0 0x0",
        ] {
            assert_eq!(parse(line), Sleep::ForProcess, "{line}");
        }
        // With a short one.
        for line in [
            "7 0x70 0x2 0x63 0x0 0x0 0x0",
            "271 0x70 0x2 0x50 0x0 0x0 0x0",
        ] {
            assert_eq!(parse(line), Sleep::Polls, "{line}");
        }
        // Sleeps that are very short.
        for line in ["35 0x1 0x0 0x0 0x0 0x0 0x0", "230 0x0 0x0 0x1 0x0 0x0 0x0"] {
            assert_eq!(parse(line), Sleep::Nap, "{line}");
        }
        // Sleeps that are long, until a time of a clock, and of which nothing is known.
        for line in [
            "35 0x2 0x0 0x0 0x0 0x0 0x0",
            "230 0x0 0x1 0x1 0x0 0x0 0x0",
            "230 0x0 0x0 0x0 0x0 0x0 0x0",
            "7 0x71 0x2 0x63 0x0 0x0 0x0",
        ] {
            assert_eq!(parse(line), Sleep::ForWorld, "{line}");
        }
        // Who listens waits for those who come.
        assert_eq!(parse("288 0x6 0x0 0x0 0x0 0x0 0x0"), Sleep::ForComers);
        assert_eq!(parse("-1 0x7ffe 0x7f00"), Sleep::ForPage);
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
