//! Whether the threads of a process are at rest: inside a call, asleep in the kernel, or gone.
//!
//! Threads that never made a call are looked at once, when they are new: one of them may be about
//! to make its first. Threads that made one are looked at whenever another thread's call is to be
//! answered. A thread is asleep if the kernel says so twice and it was not scheduled in between:
//! then nobody in the process can have woken anybody. Where processes can wake each other, all are looked
//! at ([`Tasks::look`]) before any is looked at again ([`Tasks::rests_since`]).
//!
//! Start reading at [`Tasks::look`].

use super::looks::{Nap, Resting};
use super::naps::{Naps, Sleeper};
use super::outside::FAULTS;
use super::patience::{Awaited, Computing, Patience};
use super::sleep::{self, Sleep, Slept};
use super::sockets;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Threads without a call that are looked at again for having been woken: pools have many more.
const MOST_BYSTANDERS: usize = 32;
/// Threads whose files stay open; those of others are opened whenever they are looked at.
const MOST_OPEN: usize = 64;

/// The threads of a process.
pub struct Tasks {
    process: u32,
    path: PathBuf,
    directory: File,
    /// How many links the directory had when it was read: it changes with the number of threads.
    links: u64,
    tasks: BTreeMap<u32, Task>,
    /// Whether some thread has made a call.
    called: bool,
    /// What threads wait for that make calls, while others of their process look now and then.
    naps: Naps,
    /// Whether that matters: there are other processes, and nobody of this one is inside a call.
    may_nap: bool,
    /// The thread of our library that gives pages, once it was seen.
    giver: Option<u32>,
    /// Those that slept when they were last looked at.
    resting: Vec<Resting>,
}

/// What a first look at the threads of a process saw: those that may make a call soon.
pub struct Look(Vec<(u32, Option<Sample>)>);

/// A thread.
struct Task {
    folder: PathBuf,
    /// What the kernel shows of it, open as long as few threads are.
    files: Option<Files>,
    standing: Standing,
    /// How long calls of others wait for it.
    waited_for: Option<Awaited>,
    /// How it slept when time last passed.
    slept: Option<Slept>,
    /// How it naps, if it does, since it was given a processor so often.
    nap: Option<(u64, Option<Nap>)>,
    /// Whether it waits for a page, since then.
    waits_for_page: bool,
}

/// Whether the thread that gives pages waits for another one, which is about to let it go on.
fn giver_waits(process: u32, giver: Option<u32>) -> bool {
    giver.is_some_and(|giver| matches!(sleep::of(process, giver, &[]), Ok(Sleep::ForThread)))
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
    /// A thread of the program's library, which changes nothing by itself.
    Own,
}

/// Which look at a thread it is, of the two that together say whether it slept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    First,
    Second,
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
            process,
            directory: File::open(&path)?,
            path,
            links: 0,
            tasks: BTreeMap::new(),
            called: false,
            naps: Naps::default(),
            may_nap: false,
            giver: None,
            resting: Vec::new(),
        })
    }

    /// A thread makes a call, in a run of these processes. A sentence if simulated time has passed while the thread
    /// did what the simulation does not follow.
    pub fn calls(&mut self, thread: u32, run: &[u32]) -> Option<String> {
        self.called = true;
        let Some(task) = self.tasks.get_mut(&thread) else {
            // Another thread may have ended meanwhile, so that their number says nothing.
            self.links = 0;
            return None;
        };
        let standing = std::mem::replace(&mut task.standing, Standing::Caller);
        task.waited_for = None;
        task.nap = None;
        let slept = task.slept.take();
        match standing {
            Standing::Unseen => {
                return Some("the system had no descriptor left to look at it with".into());
            }
            Standing::GivenUp => {
                let said =
                    "it was computing for longer than other threads waited for it (--patience)";
                return Some(said.into());
            }
            _ => {}
        }
        let slept = slept?;
        if slept.sleep == Sleep::ForWorld {
            return Some(format!(
                "it was asleep for a time, or waited for the world outside the program ({})",
                slept.words
            ));
        }
        if slept.listening.is_empty() {
            return None;
        }
        let visited = sockets::visited(&slept.listening, run)?;
        Some(format!(
            "it waited for connections, and somebody outside the run has one ({visited})"
        ))
    }

    /// A thread of the program's library asks something aside: it is not waited for.
    pub fn asks_aside(&mut self, thread: u32) {
        if let Some(task) = self.tasks.get_mut(&thread) {
            task.standing = Standing::Own;
        }
    }

    /// Looks at every thread that may make a call soon and is not in one (`inside`), and with `all` at those
    /// that never made one; none if the process is gone.
    pub fn look(&mut self, inside: &BTreeSet<u32>, all: bool) -> Option<Look> {
        self.resting.clear();
        if self.refresh(inside).is_err() {
            self.tasks.clear();
            return None;
        }
        self.notice_woken();
        self.may_nap = all && inside.is_empty();
        let watched: Vec<u32> = self
            .tasks
            .iter()
            .filter(|(thread, task)| !inside.contains(thread) && task.is_watched(all))
            .map(|(thread, _)| *thread)
            .collect();
        let samples = watched
            .iter()
            .map(|one| (*one, self.sample(*one, Pass::First)));
        Some(Look(samples.collect()))
    }

    /// Whether all threads that were looked at slept since, or are gone. Those that computed for too long
    /// are not waited for.
    pub fn rests_since(
        &mut self,
        look: Look,
        now: Instant,
        patience: Patience,
        run: &[u32],
    ) -> bool {
        let (mut rest, mut looked) = (true, false);
        let mut sleepers = Vec::new();
        for (thread, before) in look.0 {
            let after = self.sample(thread, Pass::Second);
            let called = self.called;
            let Some(task) = self.tasks.get_mut(&thread) else {
                continue;
            };
            let calls = task.standing == Standing::Caller;
            let both = [before, after].map(|sample| sample.filter(|sample| sample.asleep));
            let (asleep, nap) = match both {
                [Some(before), Some(after)] => {
                    let nap = calls.then(|| task.nap(self.process, thread, after.scheduled, run));
                    let nap = nap.flatten();
                    // Who naps may have looked between the two.
                    looked |= nap.is_some() && before != after;
                    // Who gives it its page waits for another thread of our library, which nobody looks at.
                    let goes_on =
                        calls && task.waits_for_page && giver_waits(self.process, self.giver);
                    (!goes_on && (nap.is_some() || before == after), nap)
                }
                _ => (false, None),
            };
            let computing = match task.standing {
                _ if !called => Computing::BeforeFirstCall,
                Standing::New => Computing::New,
                _ => Computing::Caller,
            };
            match after {
                None if task.standing == Standing::Unseen => {}
                None => drop(self.tasks.remove(&thread)),
                Some(sample) if asleep => {
                    task.waited_for = None;
                    self.resting.push(Resting {
                        thread: (self.process, thread),
                        scheduled: sample.scheduled,
                        calls,
                        nap,
                    });
                    sleepers.push(Sleeper {
                        thread,
                        scheduled: sample.scheduled,
                        calls,
                    });
                }
                Some(_) if matches!(task.standing, Standing::Bystander(_)) => {
                    task.standing = Standing::New;
                    rest = false;
                }
                Some(sample) => rest &= task.is_late(now, sample.worked, patience.with(computing)),
            }
        }
        // It may have woken another one.
        rest &= !looked || !self.notice_woken();
        let napping = rest && self.may_nap && !patience.in_vain;
        rest && (!napping || self.naps.all_looked(self.process, &sleepers, now))
    }

    /// Whether a thread napped when it was last asleep.
    pub fn naps(&self, thread: u32) -> bool {
        let nap = self.tasks.get(&thread).and_then(|task| task.nap);
        nap.is_some_and(|(_, nap)| nap.is_some())
    }

    /// Those that slept when they were last looked at.
    pub fn resting(&self) -> &[Resting] {
        &self.resting
    }

    /// Whether no thread is left, once they were looked at.
    pub fn are_gone(&self) -> bool {
        self.tasks.is_empty()
    }

    /// All threads were at rest, and none had sent a call: those that are new are not waited for again
    /// until they are woken.
    pub fn confirm_rest(&mut self) {
        let new = self
            .tasks
            .iter_mut()
            .filter(|(_, task)| task.standing == Standing::New);
        for (thread, task) in new {
            if task.gives_pages() {
                // Others sleep until it has given theirs, without a call: it is waited for as they are.
                task.standing = Standing::Caller;
                self.giver = Some(*thread);
            } else if let Some(sample) = task.sample(Pass::First) {
                task.standing = Standing::Bystander(sample.scheduled);
            }
        }
    }

    /// Bystanders that were woken since may be about to make a call, whether or not they were given a
    /// processor yet. True if some were.
    fn notice_woken(&mut self) -> bool {
        let mut woken = false;
        for task in self.tasks.values_mut().take(MOST_BYSTANDERS) {
            let Standing::Bystander(before) = task.standing else {
                continue;
            };
            let sleeps = |sample: Sample| sample.asleep && sample.scheduled == before;
            if !task.sample(Pass::First).is_some_and(sleeps) {
                task.standing = Standing::New;
                task.waited_for = None;
                woken = true;
            }
        }
        woken
    }

    /// Simulated time is about to pass: notes how threads that make calls sleep outside of them. True if
    /// one of them waits for another process. Short sleeps are for the clock if nobody waited for looks (`unlooked`).
    pub fn time_passes(&mut self, inside: &BTreeSet<u32>, run: &[u32], unlooked: bool) -> bool {
        let mut for_process = false;
        for (thread, task) in &mut self.tasks {
            if inside.contains(thread) || task.standing != Standing::Caller {
                continue;
            }
            let slept = sleep::explained(self.process, *thread, run);
            let mut slept = slept.unwrap_or_else(|_| Slept::unknown());
            for_process |= matches!(slept.sleep, Sleep::ForProcess | Sleep::ForComers);
            if slept.sleep.nap().is_some() && unlooked {
                slept.sleep = Sleep::ForWorld;
            }
            // Until its next call one wait for the world is enough.
            match &mut task.slept {
                Some(before) if before.sleep == Sleep::ForWorld => {}
                Some(before) => {
                    slept.listening.append(&mut before.listening);
                    slept.listening.sort_unstable();
                    slept.listening.dedup();
                    *before = slept;
                }
                none => *none = Some(slept),
            }
        }
        for_process
    }

    /// Whether a thread sleeps for a time or for the world, in a process without calls.
    pub fn waits_for_world(&self, run: &[u32]) -> bool {
        let mut threads = self.tasks.keys().take(MOST_BYSTANDERS);
        threads.any(|thread| {
            let sleep = sleep::of(self.process, *thread, run);
            matches!(sleep, Ok(Sleep::ForWorld | Sleep::Nap | Sleep::Polls))
        })
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
            nap: None,
            waits_for_page: false,
        };
        self.tasks.insert(thread, task);
    }

    fn sample(&mut self, thread: u32, pass: Pass) -> Option<Sample> {
        self.tasks.get_mut(&thread)?.sample(pass)
    }
}

impl Task {
    fn is_watched(&self, all: bool) -> bool {
        match self.standing {
            Standing::New | Standing::Caller => true,
            Standing::Bystander(_) => all,
            Standing::GivenUp | Standing::Unseen | Standing::Own => false,
        }
    }

    /// Whether it is the thread of our library that gives pages.
    fn gives_pages(&self) -> bool {
        let name = std::fs::read_to_string(self.folder.join("comm"));
        name.is_ok_and(|name| name.trim_end() == FAULTS)
    }

    /// How it naps, if it does. It is the same wait while it is not given a processor.
    fn nap(&mut self, process: u32, thread: u32, scheduled: u64, run: &[u32]) -> Option<Nap> {
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
    fn is_late(&mut self, now: Instant, worked: Duration, patience: Duration) -> bool {
        let awaited = *self
            .waited_for
            .get_or_insert_with(|| Awaited::from(now, worked));
        let late = awaited.is_over(now, worked, patience);
        if late {
            self.standing = Standing::GivenUp;
        }
        late
    }

    fn sample(&mut self, pass: Pass) -> Option<Sample> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    fn thread_id() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    }

    fn at_rest(tasks: &mut Tasks, inside: &BTreeSet<u32>, now: Instant) -> bool {
        let look = tasks.look(inside, false);
        look.is_none_or(|look| tasks.rests_since(look, now, Patience::default(), &[]))
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
            assert_eq!(tasks.calls(thread, &[]), None);
            let begin = Instant::now();
            assert!(!at_rest(&mut tasks, &inside, begin), "it computes");
            spins.store(false, Ordering::Relaxed);
            while !at_rest(&mut tasks, &inside, begin) {
                std::thread::yield_now();
            }
            tasks.time_passes(&inside, &[], false);
            // Where the kernel says nothing of system calls, nothing is known.
            assert!(
                tasks.calls(thread, &[]).is_none(),
                "it waited for this thread"
            );
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
            tasks.calls(thread, &[]);
            let begin = Instant::now();
            assert!(!at_rest(&mut tasks, &inside, begin));
            assert!(at_rest(
                &mut tasks,
                &inside,
                begin + Duration::from_secs(3600)
            ));
            assert!(
                at_rest(&mut tasks, &inside, begin),
                "it is not waited for again"
            );
            let said = tasks.calls(thread, &[]).unwrap();
            assert!(said.contains("computing"), "{said}");
            assert!(!at_rest(&mut tasks, &inside, begin), "it is again");
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
        assert_eq!(tasks.calls(own, &[]), None);
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
        assert!(at_rest(&mut tasks, &BTreeSet::new(), Instant::now()));
    }
}
