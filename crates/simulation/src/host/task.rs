//! A thread of the program, as the kernel shows it.
//!
//! Start reading at [`Task::sample`].

use super::looks::Nap;
use super::patience::Awaited;
use super::sleep::{self, Sleep, Slept};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A thread.
pub(super) struct Task {
    folder: PathBuf,
    /// What the kernel shows of it, open as long as few threads are.
    files: Option<Files>,
    pub standing: Standing,
    /// How it was when it was last found asleep: as long as that has not changed it has slept all the time.
    pub rested: Option<Sample>,
    /// How long calls of others wait for it.
    pub waited_for: Option<Awaited>,
    /// How it slept when time last passed.
    pub slept: Option<Slept>,
    /// Whether that was for another process, since it was given a processor so often.
    pub explained: Option<(u64, bool)>,
    /// How it naps, if it does, since it was given a processor so often.
    pub nap: Option<(u64, Option<Nap>)>,
    /// Whether it waits for a page, since then.
    pub waits_for_page: bool,
}

/// What the kernel shows of a thread.
struct Files {
    stat: File,
    schedule: File,
}

impl Files {
    fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            stat: File::open(folder.join("stat"))?,
            schedule: File::open(folder.join("schedstat"))?,
        })
    }
}

/// What is known of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// New: it may be about to make its first call.
    New,
    /// It makes calls.
    Caller,
    /// It was at rest before its first call, after so many times on a processor.
    Bystander(u64),
    /// It computed for too long to be waited for.
    GivenUp,
    /// The system has no descriptor left to look at it with.
    Unseen,
    /// A thread of the program's library, which changes nothing by itself.
    Own,
}

/// Which look at a thread it is, of the two that together say whether it slept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    First,
    Second,
}

/// What the kernel says of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub asleep: bool,
    /// Its processor time.
    pub worked: Duration,
    /// How often it was given a processor.
    pub scheduled: u64,
}

impl Task {
    /// A thread that the kernel shows in a folder, and that is `inside` a call or not; none if it is gone. What is
    /// shown of it is kept open if it is one of `few`.
    pub fn new(folder: PathBuf, inside: bool, few: bool) -> Option<Self> {
        let files = Files::open(&folder);
        let standing = match &files {
            Err(error) if is_gone(error) => return None,
            Err(_) => Standing::Unseen,
            Ok(_) if inside => Standing::Caller,
            Ok(_) => Standing::New,
        };
        Some(Self {
            folder,
            files: files.ok().filter(|_| few),
            standing,
            rested: None,
            waited_for: None,
            slept: None,
            explained: None,
            nap: None,
            waits_for_page: false,
        })
    }

    /// Whether it may make a call soon, or with `all` wake somebody who may.
    pub fn is_watched(&self, all: bool) -> bool {
        match self.standing {
            Standing::New | Standing::Caller => true,
            Standing::Bystander(_) => all,
            Standing::GivenUp | Standing::Unseen | Standing::Own => false,
        }
    }

    /// How it naps, if it does. It is the same wait while it is not given a processor.
    pub fn nap(&mut self, process: u32, thread: u32, scheduled: u64, run: &[u32]) -> Option<Nap> {
        let before = match self.nap {
            Some((before, nap)) if before == scheduled => return nap,
            before => before.and_then(|(_, nap)| nap),
        };
        let sleep = sleep::of(process, thread, run);
        self.waits_for_page = matches!(sleep, Ok(Sleep::ForPage));
        let nap = match sleep {
            // It has just woken, from a nap that is too short to be looked at.
            Ok(Sleep::Unknown) => before,
            sleep => sleep.ok().and_then(Sleep::nap),
        };
        self.nap = Some((scheduled, nap));
        nap
    }

    /// Whether calls of others have waited for it for too long; it is not waited for again until it
    /// makes a call.
    pub fn is_late(&mut self, now: Instant, worked: Duration, patience: Duration) -> bool {
        let awaited = *self
            .waited_for
            .get_or_insert_with(|| Awaited::from(now, worked));
        let late = awaited.is_over(now, worked, patience);
        if late {
            self.standing = Standing::GivenUp;
        }
        late
    }

    /// What the kernel says of it now; none if it is gone or cannot be seen.
    pub fn sample(&mut self, pass: Pass) -> Option<Sample> {
        let opened = match self.files {
            Some(_) => None,
            None => Files::open(&self.folder)
                .inspect_err(|error| {
                    if !is_gone(error) {
                        self.standing = Standing::Unseen;
                    }
                })
                .ok(),
        };
        let files = self.files.as_ref().or(opened.as_ref())?;
        // A thread that was given a processor between the two readings of one look must not pass for one that
        // slept all the time: the count is the outermost of what two looks read.
        let early = match pass {
            Pass::First => Some(schedule(&files.schedule)?),
            Pass::Second => None,
        };
        let asleep = is_asleep(&files.stat)?;
        let (worked, scheduled) = match early {
            Some(early) => early,
            None => schedule(&files.schedule)?,
        };
        Some(Sample {
            asleep,
            worked,
            scheduled,
        })
    }
}

/// Whether a thread has no files because it has ended.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// The state that the kernel gives, after the name in parentheses.
fn is_asleep(stat: &File) -> Option<bool> {
    let mut bytes = [0; 256];
    let read = stat.read_at(&mut bytes, 0).ok()?;
    let text = bytes.get(..read)?;
    let name = text.iter().rposition(|byte| *byte == b')')?;
    match text.get(name + 2)? {
        b'Z' | b'X' => None,
        // `D` is a thread that waits for a page or a lock of the kernel's: it goes on by itself.
        state => Some(matches!(state, b'S' | b'T' | b't')),
    }
}

/// Processor time, and how often a thread was scheduled; time in the queue is between them.
fn schedule(file: &File) -> Option<(Duration, u64)> {
    let mut bytes = [0; 96];
    let read = file.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(bytes.get(..read)?).ok()?;
    let mut words = text.split_ascii_whitespace();
    let worked = Duration::from_nanos(words.next()?.parse().ok()?);
    Some((worked, words.nth(1)?.parse().ok()?))
}
