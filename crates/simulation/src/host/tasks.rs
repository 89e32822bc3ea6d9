//! Whether the threads of a process are at rest: inside a call, asleep in the kernel, or gone.
//!
//! Threads that never made a call are looked at once, when they are new: one of them may be about
//! to make its first. Threads that made one are looked at whenever another thread's call is to be
//! answered. A thread is asleep if the kernel says so twice and it was not scheduled in between:
//! then nobody in the process can have woken anybody.
//!
//! Start reading at [`Tasks::at_rest`].

use super::sleep::{Sleep, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a thread may compute while calls of others wait for it, in its processor time.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same for a new thread that may never make a call.
const PATIENCE_WITH_NEW: Duration = Duration::from_millis(100);
/// Threads without a call that are looked at again for having been woken: pools have many more.
const MOST_BYSTANDERS: usize = 32;
/// Threads whose files stay open; those of others are opened whenever they are looked at.
const MOST_OPEN: usize = 64;
/// How many times that it may take on a machine that has other things to do.
const BUSY_MACHINE: u32 = 20;

/// The threads of a process.
pub struct Tasks {
    path: PathBuf,
    directory: File,
    /// How many links the directory had when it was read: it changes with the number of threads.
    links: u64,
    tasks: BTreeMap<u32, Task>,
}

/// A thread.
struct Task {
    folder: PathBuf,
    /// What the kernel shows of it, open as long as few threads are.
    files: Option<Files>,
    standing: Standing,
    /// Since when calls of others wait for it, and its processor time then.
    waited_for: Option<(Instant, Duration)>,
    /// How it slept when time last passed.
    slept: Option<Sleep>,
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
enum Standing {
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
}

/// What the kernel says of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sample {
    asleep: bool,
    /// Its processor time.
    worked: Duration,
    /// How often it was given a processor.
    scheduled: u64,
}

impl Tasks {
    /// The threads of a process; none if the kernel does not show them.
    pub fn of(process: u32) -> io::Result<Self> {
        let path = PathBuf::from(format!("/proc/{process}/task"));
        Ok(Self {
            directory: File::open(&path)?,
            path,
            links: 0,
            tasks: BTreeMap::new(),
        })
    }

    /// A thread makes a call. A sentence if simulated time has passed while the thread did what the
    /// simulation does not follow.
    pub fn calls(&mut self, thread: u32) -> Option<&'static str> {
        let Some(task) = self.tasks.get_mut(&thread) else {
            // Another thread may have ended meanwhile, so that their number says nothing.
            self.links = 0;
            return None;
        };
        let standing = std::mem::replace(&mut task.standing, Standing::Caller);
        task.waited_for = None;
        match task.slept.take() {
            _ if standing == Standing::Unseen => {
                Some("the system had no descriptor left to look at it with")
            }
            _ if standing == Standing::GivenUp => {
                Some("it was computing for longer than other threads waited for it")
            }
            Some(Sleep::ForWorld) => {
                Some("it was asleep for a time, or waited for the world outside the program")
            }
            Some(Sleep::ForThread | Sleep::Unknown) | None => None,
        }
    }

    /// Whether every thread that may make a call soon is in one (`inside`), asleep or gone.
    pub fn at_rest(&mut self, inside: &BTreeSet<u32>, now: Instant) -> bool {
        if self.refresh(inside).is_err() {
            // The process is gone.
            return true;
        }
        self.notice_woken();
        let watched: Vec<u32> = self
            .tasks
            .iter()
            .filter(|(thread, task)| !inside.contains(thread) && task.is_watched())
            .map(|(thread, _)| *thread)
            .collect();
        if watched.is_empty() {
            return true;
        }
        let mut rest = true;
        let first: Vec<Option<Sample>> = watched.iter().map(|one| self.sample(*one)).collect();
        for (thread, before) in watched.iter().zip(first) {
            let after = self.sample(*thread);
            let asleep = before == after && after.is_some_and(|sample| sample.asleep);
            let Some(task) = self.tasks.get_mut(thread) else {
                continue;
            };
            match after {
                None if task.standing == Standing::Unseen => {}
                None => drop(self.tasks.remove(thread)),
                Some(_) if asleep => task.waited_for = None,
                Some(sample) => rest &= task.is_late(now, sample.worked),
            }
        }
        rest
    }

    /// All threads were at rest, and none had sent a call: those that are new are not waited for again
    /// until they are woken.
    pub fn confirm_rest(&mut self) {
        let new = self
            .tasks
            .values_mut()
            .filter(|task| task.standing == Standing::New);
        for task in new {
            if let Some(sample) = task.sample() {
                task.standing = Standing::Bystander(sample.scheduled);
            }
        }
    }

    /// Bystanders that were given a processor since may be about to make a call.
    fn notice_woken(&mut self) {
        for task in self.tasks.values_mut().take(MOST_BYSTANDERS) {
            if let Standing::Bystander(before) = task.standing
                && task.sample().map(|sample| sample.scheduled) != Some(before)
            {
                task.standing = Standing::New;
                task.waited_for = None;
            }
        }
    }

    /// Simulated time is about to pass: notes how threads outside of calls sleep.
    pub fn time_passes(&mut self, inside: &BTreeSet<u32>) {
        for (thread, task) in &mut self.tasks {
            if inside.contains(thread) || task.standing != Standing::Caller {
                continue;
            }
            let call = std::fs::read_to_string(self.path.join(format!("{thread}/syscall")));
            let sleep = call.map_or(Sleep::Unknown, |line| parse(&line));
            if task.slept != Some(Sleep::ForWorld) {
                task.slept = Some(sleep);
            }
        }
    }

    /// Finds threads that have come and gone, if there are more or fewer than before.
    fn refresh(&mut self, inside: &BTreeSet<u32>) -> io::Result<()> {
        let links = self.directory.metadata()?.nlink();
        if links != self.links {
            let mut present = BTreeSet::new();
            for entry in std::fs::read_dir(&self.path)? {
                let name = entry?.file_name();
                if let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) {
                    present.insert(thread);
                }
            }
            self.tasks.retain(|thread, _| present.contains(thread));
            for thread in present {
                self.add(thread, inside);
            }
            self.links = links;
        }
        Ok(())
    }

    fn add(&mut self, thread: u32, inside: &BTreeSet<u32>) {
        if self.tasks.contains_key(&thread) {
            return;
        }
        let folder = self.path.join(thread.to_string());
        let files = Files::open(&folder);
        let standing = match &files {
            Err(error) if is_gone(error) => return,
            Err(_) => Standing::Unseen,
            Ok(_) if inside.contains(&thread) => Standing::Caller,
            Ok(_) => Standing::New,
        };
        let few = self.tasks.len() < MOST_OPEN;
        let task = Task {
            folder,
            files: files.ok().filter(|_| few),
            standing,
            waited_for: None,
            slept: None,
        };
        self.tasks.insert(thread, task);
    }

    fn sample(&mut self, thread: u32) -> Option<Sample> {
        self.tasks.get_mut(&thread)?.sample()
    }
}

impl Task {
    fn is_watched(&self) -> bool {
        matches!(self.standing, Standing::New | Standing::Caller)
    }

    /// Whether calls of others have waited for it for too long; it is not waited for again until it
    /// makes a call.
    fn is_late(&mut self, now: Instant, worked: Duration) -> bool {
        let (since, before) = *self.waited_for.get_or_insert((now, worked));
        let patience = match self.standing {
            Standing::New => PATIENCE_WITH_NEW,
            _ => PATIENCE,
        };
        let late = worked.saturating_sub(before) >= patience
            || now.saturating_duration_since(since) >= patience * BUSY_MACHINE;
        if late {
            self.standing = Standing::GivenUp;
        }
        late
    }

    fn sample(&mut self) -> Option<Sample> {
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
        let asleep = is_asleep(&files.stat)?;
        let (worked, scheduled) = schedule(&files.schedule)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    fn thread_id() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    }

    /// Other tests run in this process at the same time: only the thread of this one is looked at.
    fn only(tasks: &mut Tasks, thread: u32) {
        for (other, task) in &mut tasks.tasks {
            if *other != thread {
                task.standing = Standing::GivenUp;
            }
        }
    }

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "the host's clock is what is tested"
    )]
    fn a_thread_rests_when_it_sleeps_and_not_while_it_computes() {
        let (tell, told) = mpsc::channel();
        let (wake, woken) = mpsc::channel::<()>();
        let spins = AtomicBool::new(true);
        let spinning = &spins;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                tell.send(thread_id()).unwrap();
                while spinning.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                let _ = woken.recv();
            });
            let thread = told.recv().unwrap();
            let inside = BTreeSet::from([thread_id()]);
            let mut tasks = Tasks::of(std::process::id()).unwrap();
            tasks.refresh(&inside).unwrap();
            only(&mut tasks, thread);
            assert_eq!(tasks.calls(thread), None);
            let begin = Instant::now();
            assert!(!tasks.at_rest(&inside, begin), "it computes");
            spins.store(false, Ordering::Relaxed);
            while !tasks.at_rest(&inside, begin) {
                std::thread::yield_now();
            }
            tasks.time_passes(&inside);
            // Where the kernel says nothing of system calls, nothing is known.
            assert!(tasks.calls(thread).is_none(), "it waited for this thread");
            let _ = wake.send(());
        });
    }

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "the host's clock is what is tested"
    )]
    fn a_thread_that_computes_for_long_is_given_up_and_said_so() {
        let (tell, told) = mpsc::channel();
        let spins = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                tell.send(thread_id()).unwrap();
                while spins.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let thread = told.recv().unwrap();
            let inside = BTreeSet::from([thread_id()]);
            let mut tasks = Tasks::of(std::process::id()).unwrap();
            tasks.refresh(&inside).unwrap();
            only(&mut tasks, thread);
            tasks.calls(thread);
            let begin = Instant::now();
            assert!(!tasks.at_rest(&inside, begin));
            assert!(tasks.at_rest(&inside, begin + PATIENCE * BUSY_MACHINE));
            assert!(tasks.at_rest(&inside, begin), "it is not waited for again");
            let said = tasks.calls(thread).unwrap();
            assert!(said.contains("computing"), "{said}");
            assert!(!tasks.at_rest(&inside, begin), "it is again");
            spins.store(false, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_thread_that_is_not_known_is_looked_for() {
        let mut tasks = Tasks::of(std::process::id()).unwrap();
        let own = thread_id();
        tasks.refresh(&BTreeSet::new()).unwrap();
        // As if it had begun when another one ended.
        tasks.tasks.remove(&own);
        assert_eq!(tasks.calls(own), None);
        tasks.refresh(&BTreeSet::from([own])).unwrap();
        assert!(tasks.tasks.contains_key(&own));
    }

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "the host's clock is what is tested"
    )]
    fn a_process_that_is_gone_is_at_rest() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let mut tasks = Tasks::of(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(tasks.at_rest(&BTreeSet::new(), Instant::now()));
    }
}
