//! Whether the threads of a process are at rest: inside a call, asleep in the kernel, or gone.
//!
//! Threads that never made a call are looked at once, when they are new: one of them may be about
//! to make its first. Threads that made one are looked at whenever another thread's call is to be
//! answered. A thread is asleep if the kernel says so twice and it was not scheduled in between:
//! then nobody in the process can have woken anybody. Where processes can wake each other, all are looked
//! at ([`Tasks::look`]) before any is looked at again ([`Tasks::rests_since`]). The first of the two looks may be
//! long ago: most threads of a library sleep through many calls, and are looked at once for each.
//!
//! Start reading at [`Tasks::look`].

use super::looks::Resting;
use super::naps::{Naps, Sleeper};
use super::patience::{Computing, Patience};
use super::sleep::{self, Sleep, Slept};
use super::sockets;
use super::task::{Pass, Sample, Standing, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

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
    /// Those that slept when they were last looked at.
    resting: Vec<Resting>,
}

/// What a first look at the threads of a process saw.
pub struct Look {
    /// Those that may make a call soon.
    samples: Vec<(u32, Option<Sample>)>,
    /// Whether our library in the program asks for a page.
    page_asked: bool,
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
        task.explained = None;
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
    /// that never made one; none if the process is gone. `page_asked`: our library in it asks for a page.
    pub fn look(&mut self, inside: &BTreeSet<u32>, all: bool, page_asked: bool) -> Option<Look> {
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
        let samples = watched.iter().map(|one| (*one, self.first_sample(*one)));
        Some(Look {
            samples: samples.collect(),
            page_asked,
        })
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
        for (thread, before) in look.samples {
            let called = self.called;
            let Some(task) = self.tasks.get_mut(&thread) else {
                continue;
            };
            let after = task.sample(Pass::Second);
            let calls = task.standing == Standing::Caller;
            let both = [before, after].map(|sample| sample.filter(|sample| sample.asleep));
            let (asleep, nap) = match both {
                [Some(before), Some(after)] => {
                    let nap = calls.then(|| task.nap(self.process, thread, after.scheduled, run));
                    let nap = nap.flatten();
                    // Who naps may have looked between the two.
                    looked |= nap.is_some() && before != after;
                    // It is given its page, and goes on, unless that is being asked for.
                    let goes_on = calls && task.waits_for_page && !look.page_asked;
                    (!goes_on && (nap.is_some() || before == after), nap)
                }
                _ => (false, None),
            };
            // Who naps is compared with what it was a moment ago.
            task.rested = after.filter(|_| asleep && nap.is_none());
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
            .values_mut()
            .filter(|task| task.standing == Standing::New);
        for task in new {
            if let Some(sample) = task.sample(Pass::First) {
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
            let scheduled = task.rested.map(|sample| sample.scheduled);
            if let Some((_, waits)) = task.explained.filter(|one| Some(one.0) == scheduled) {
                for_process |= waits;
                continue;
            }
            let slept = sleep::explained(self.process, *thread, run);
            let mut slept = slept.unwrap_or_else(|_| Slept::unknown());
            let waits = matches!(slept.sleep, Sleep::ForProcess | Sleep::ForComers);
            for_process |= waits;
            task.explained = scheduled.map(|scheduled| (scheduled, waits));
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
        let few = self.tasks.len() < MOST_OPEN;
        let Some(task) = Task::new(folder, inside.contains(&thread), few) else {
            return;
        };
        self.tasks.insert(thread, task);
    }

    /// What a thread is compared with when it is looked at again.
    fn first_sample(&mut self, thread: u32) -> Option<Sample> {
        let task = self.tasks.get_mut(&thread)?;
        task.rested.or_else(|| task.sample(Pass::First))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    fn thread_id() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    }

    fn at_rest(tasks: &mut Tasks, inside: &BTreeSet<u32>, now: Instant) -> bool {
        let look = tasks.look(inside, false, false);
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
