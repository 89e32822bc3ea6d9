//! Workers: each takes the next point, starts its command and waits for it.
//!
//! Commands have process groups of their own, so that an interrupt of the terminal reaches this
//! process alone, which then ends them in order. Should this process be killed, the system ends the
//! commands.

use crate::{Launcher, Outcome, Point, SweepError, SweepFolder, outcome};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// How often a worker looks after its command.
const PERIOD: Duration = Duration::from_millis(10);

/// So many looks after it was asked to end, a command is ended.
const PATIENCE: u32 = 3000;

/// Listens for signals that end a sweep.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Starts to listen; the first signal stops the sweep in order, a second one ends the process.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn listen() -> Result<Self, std::io::Error> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            let before = signal.clone();
            // SAFETY: the handler reads an atomic and ends the process, as handlers may.
            unsafe {
                signal_hook::low_level::register(number, move || {
                    if before.load(Ordering::SeqCst) != 0 {
                        signal_hook::low_level::exit(128 + number);
                    }
                    before.store(number as usize, Ordering::SeqCst);
                })?;
            }
        }
        Ok(Self(signal))
    }

    /// The signal that came.
    pub fn signal(&self) -> Option<i32> {
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }
}

/// What happened to a point.
#[derive(Debug)]
pub enum Event<'sweep> {
    /// A worker takes it.
    Started(&'sweep Point),
    /// Its run is over.
    Ended(&'sweep Point, Outcome),
}

/// Workers of this machine.
#[derive(Debug)]
pub struct Workers<'sweep> {
    /// How many.
    pub count: usize,
    /// Starts commands.
    pub launcher: &'sweep Launcher,
    /// Where results go.
    pub folder: &'sweep SweepFolder,
    /// What stops them.
    pub interrupt: &'sweep Interrupt,
}

impl Workers<'_> {
    /// Runs points and says what happens; comes back when all are over or a signal came.
    ///
    /// # Errors
    /// A command cannot be started at all.
    pub fn run<'point>(
        &self,
        points: &[&'point Point],
        mut tell: impl FnMut(Event<'point>),
    ) -> Result<(), SweepError> {
        let next = AtomicUsize::new(0);
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            let mut workers = Vec::new();
            for worker in 0..self.count.min(points.len()) {
                let (next, sender) = (&next, sender.clone());
                workers.push(scope.spawn(move || self.work(worker, points, next, &sender)));
            }
            drop(sender);
            for event in receiver {
                tell(event);
            }
            let mut workers = workers.into_iter();
            workers.try_for_each(|worker| worker.join().expect("a worker does not panic"))
        })
    }

    fn work<'point>(
        &self,
        worker: usize,
        points: &[&'point Point],
        next: &AtomicUsize,
        events: &Sender<Event<'point>>,
    ) -> Result<(), SweepError> {
        while self.interrupt.signal().is_none()
            && let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let _ = events.send(Event::Started(point));
            let status = self.simulate(worker, point)?;
            let mut end = outcome(&self.folder.run(point), &self.folder.log(point));
            if self.interrupt.signal().is_none() && end == Outcome::Missing {
                end = Outcome::Failed(format!("it left no results ({status})"));
            }
            let _ = events.send(Event::Ended(point, end));
        }
        Ok(())
    }

    fn simulate(&self, worker: usize, point: &Point) -> Result<ExitStatus, SweepError> {
        let mut command = self.launcher.process(self.folder, point, worker)?;
        command.process_group(0);
        let parent = rustix::process::getpid();
        // SAFETY: between fork and exec only system calls are made.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::TERM))?;
                // The sweep may have ended before the line above.
                if rustix::process::getppid() != Some(parent) {
                    return Err(std::io::Error::other("the sweep ended"));
                }
                Ok(())
            });
        }
        let program = command.get_program().to_os_string();
        let ended = command.spawn().and_then(|child| self.wait(child));
        ended.map_err(SweepError::at(program.as_ref()))
    }

    /// Waits for a command; a signal that stops the sweep is passed on.
    fn wait(&self, mut child: Child) -> std::io::Result<ExitStatus> {
        let group = Pid::from_child(&child);
        let mut asked = 0;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if self.interrupt.signal().is_some() {
                if asked == 0 {
                    let _ = kill_process_group(group, Signal::TERM);
                } else if asked == PATIENCE {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                asked += 1;
            }
            std::thread::sleep(PERIOD);
        }
    }
}
