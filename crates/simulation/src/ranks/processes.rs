//! The processes that are the other ranks of a run: started with the command line of this one, joined to it and to
//! each other by sockets.
//!
//! A rank has its socket to rank 0 where its standard input would be, and gets those to the others over it. However
//! rank 0 ends, its sockets close, and the others end.
//!
//! Start reading at [`RankProcesses::start`].

use super::follow::LOST_ANOTHER;
use super::sockets::{Sockets, pairs};
use crate::interrupts::signal_name;
use crate::program::{RunError, system};
use lockstep_gpu::Ranks;
use lockstep_protocol::passed_files;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Says to a process which rank of how many it is.
const VARIABLE: &str = "LOCKSTEP_RANK";

/// The most ranks of one machine.
pub const MOST_RANKS: usize = 64;

/// How long a rank may take to end once its sockets are closed.
const GRACE: Duration = Duration::from_secs(60);

/// The other ranks of a run, until they have ended.
pub struct RankProcesses {
    ranks: Ranks,
    children: Vec<Child>,
}

impl RankProcesses {
    /// Starts all ranks but the first, which this process is, each with `threads` threads.
    ///
    /// # Errors
    /// A process cannot be started.
    pub fn start(count: usize, threads: usize) -> Result<Self, RunError> {
        let mut streams = pairs(count).map_err(system("sockets between ranks"))?;
        let mut own = streams.remove(0);
        let program = std::env::current_exe().map_err(system("the program of other ranks"))?;
        let mut children = Vec::new();
        let mut names = vec!["rank 0".to_owned()];
        for (rank, mut others) in (1..).zip(streams) {
            let to_first = others[0].take().map(OwnedFd::from);
            let child = Command::new(&program)
                .args(std::env::args_os().skip(1))
                .env(VARIABLE, format!("{rank} of {count}"))
                .stdin(to_first.map_or_else(Stdio::null, Stdio::from))
                .stdout(Stdio::null())
                // What is meant for the group of this process ends it first, and the others then.
                .process_group(0)
                .spawn()
                .map_err(system(&format!("starting rank {rank}")))?;
            names.push(format!("rank {rank} (process {})", child.id()));
            children.push(child);
            let files: Vec<BorrowedFd<'_>> = others.iter().flatten().map(AsFd::as_fd).collect();
            if let Some(link) = &own[rank] {
                passed_files::send(link, &[1], &files)
                    .map_err(system(&format!("sockets of rank {rank}")))?;
            }
        }
        own[0] = None;
        let sockets = Sockets::new(0, own, names, threads).map_err(system("sockets of rank 0"))?;
        Ok(Self {
            ranks: Ranks::new(Box::new(sockets)),
            children,
        })
    }

    /// All ranks, as the first sees them.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Waits for the others to end, with sentences about those that failed.
    pub fn finish(mut self) -> Vec<String> {
        self.end()
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "how long a rank takes to end changes no answer"
    )]
    fn end(&mut self) -> Vec<String> {
        self.ranks.leave();
        let until = Instant::now() + GRACE;
        let mut sentences = Vec::new();
        for (rank, mut child) in (1..).zip(std::mem::take(&mut self.children)) {
            let process = child.id();
            let ended = loop {
                match child.try_wait() {
                    Ok(None) if Instant::now() < until => {
                        std::thread::sleep(Duration::from_millis(1))
                    }
                    Ok(None) => {
                        // Nobody waits for what it does.
                        let _ = child.kill();
                        break child.wait();
                    }
                    Ok(Some(status)) => break Ok(status),
                    Err(error) => break Err(error),
                }
            };
            let how = match ended {
                Ok(status) => ending(status),
                Err(error) => Some(format!("cannot be waited for: {error}")),
            };
            sentences.extend(how.map(|how| format!("rank {rank} (process {process}) {how}")));
        }
        sentences
    }
}

impl Drop for RankProcesses {
    fn drop(&mut self) {
        self.end();
    }
}

/// How a rank ended that is to blame.
fn ending(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0 | LOST_ANOTHER), _) => None,
        (Some(code), _) => Some(format!("ended with code {code}")),
        (None, Some(signal)) => Some(format!(
            "was ended by signal {signal} ({})",
            signal_name(signal)
        )),
        (None, None) => Some("ended in an unknown way".into()),
    }
}

/// The ranks as this process sees them, if another started it as one of them.
///
/// # Errors
/// What says so is no rank, or its sockets did not come.
pub fn started_as_rank(threads: usize) -> Result<Option<Ranks>, RunError> {
    let Some(text) = std::env::var_os(VARIABLE) else {
        return Ok(None);
    };
    let refused = || {
        RunError::Request(format!(
            "{VARIABLE} is set, but no other rank started this process: it is for the simulator itself, unset it"
        ))
    };
    let text = text.to_string_lossy().into_owned();
    let numbers = text.split_once(" of ").ok_or_else(refused)?;
    let (Ok(rank), Ok(count)) = (numbers.0.parse::<usize>(), numbers.1.parse::<usize>()) else {
        return Err(refused());
    };
    if rank == 0 || rank >= count || count > MOST_RANKS {
        return Err(refused());
    }
    let input = io::stdin().as_fd().try_clone_to_owned();
    let first = UnixStream::from(input.map_err(|_| refused())?);
    let received = passed_files::receive(&first, &mut [0], MOST_RANKS);
    let (bytes, files) = received.map_err(|_| refused())?;
    if bytes == 0 {
        return Err(refused());
    }
    let mut files = files.into_iter();
    let mut streams = vec![Some(first)];
    for other in 1..count {
        streams.push(match other == rank {
            true => None,
            false => Some(UnixStream::from(files.next().ok_or_else(refused)?)),
        });
    }
    let names = (0..count).map(|rank| format!("rank {rank}")).collect();
    let sockets =
        Sockets::new(rank, streams, names, threads).map_err(system("sockets of a rank"))?;
    Ok(Some(Ranks::new(Box::new(sockets))))
}

/// Whether a process is a rank of this one.
pub fn is_rank(process: i32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
    name.is_ok_and(|name| Ok(name.trim_end()) == super::follow::NAME.to_str())
}
