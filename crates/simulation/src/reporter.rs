//! What a run says of itself while it goes on, and what it watches meanwhile: a thread that
//! rewrites `summary.json`, keeps room on the disk, looks at the memory that is left, and ends a
//! simulator that does not stop when it is told to.

use crate::description::Description;
use crate::interrupts::{Halt, Interrupts, OUT_OF_MEMORY, signal_name};
use crate::memory_limits;
use crate::progress::Progress;
use lockstep_run_folder::room::Room;
use lockstep_run_folder::{
    DISK_FULL, Ending, RunFolder, RunFolderError, RunState, Running, RunningHost, RunningTotals,
};
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it looks around.
const PERIOD: Duration = Duration::from_millis(200);
/// How often the summary is rewritten while something changes.
const REWRITE: Duration = Duration::from_secs(2);
/// How long a simulator may take to stop, and to write what it has.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a slice of some microseconds may take to simulate: on any machine it takes seconds at
/// most, unless a part of the simulator goes round for ever.
const STUCK: Duration = Duration::from_secs(120);
/// Exit code of a command that has a fault of its own (BSD's "internal software error").
const FAULT_OF_OURS: i32 = 70;
/// How fast memory can fill, in bytes a second: the less is left, the sooner it is looked at again.
const FILLING: u64 = 8 << 30;

/// Steps of a run, in the words of `summary.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The GPU is made and the program started.
    Starting,
    /// The program runs.
    Running,
    /// The program has ended.
    Collecting,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running the program",
            Self::Collecting => "collecting results",
        }
    }
}

/// Tells of a run until it is finished.
pub struct Reporter {
    told: Option<Sender<Phase>>,
    thread: Option<JoinHandle<()>>,
    running: Running,
    folder: Arc<RunFolder>,
}

impl Reporter {
    /// Writes the first summary, takes room, and starts to watch.
    ///
    /// # Errors
    /// There is no room on the disk.
    #[allow(
        clippy::disallowed_methods,
        reason = "figures about the host are outside the digest"
    )]
    pub fn start(
        description: &Description,
        command: &[String],
        folder: &Arc<RunFolder>,
        interrupts: &Arc<Interrupts>,
    ) -> Result<Self, RunFolderError> {
        let running = Running {
            lockstep: env!("CARGO_PKG_VERSION").into(),
            partial: true,
            phase: Phase::Starting.name().into(),
            command: command.to_vec(),
            gpu: description.gpu.clone(),
            mode: description.mode.name().into(),
            frontend: crate::machine::frontend_name(description.frontend).into(),
            host: RunningHost {
                threads: crate::machine::worker_threads(description),
                ..RunningHost::default()
            },
            // What cannot be written down here is missing in the last summary as well, with a
            // sentence.
            configuration: serde_json::to_value(&description.config).unwrap_or_default(),
            ..Running::default()
        };
        let begun = folder.write_running(&running, &killed(&running));
        let room = begun
            .and_then(|()| folder.take_room())
            .inspect_err(|error| {
                let code = error.exit_code();
                // Whether or not this can be written, the sentence reaches the terminal.
                let _ = folder.write_ended(&ended(
                    &running,
                    RunState::Failed,
                    &error.to_string(),
                    code,
                ));
            })?;
        let (told, heard) = channel();
        let mut watch = Watch {
            running: running.clone(),
            phase: Phase::Starting,
            folder: folder.clone(),
            interrupts: interrupts.clone(),
            progress: description.progress.clone(),
            room,
            began: Instant::now(),
            asked: None,
            slice: None,
        };
        let thread = std::thread::Builder::new()
            .name("report".into())
            .spawn(move || watch.run(&heard));
        let path = folder.path();
        let thread = thread.map_err(|error| RunFolderError::of(path, error))?;
        Ok(Self {
            told: Some(told),
            thread: Some(thread),
            running,
            folder: folder.clone(),
        })
    }

    /// Another part of the run begins.
    pub fn phase(&self, phase: Phase) {
        if let Some(told) = &self.told {
            // The thread lives as long as this.
            let _ = told.send(phase);
        }
    }

    /// Ends the watch and gives the room up, for the tables.
    pub fn finish(mut self) {
        self.close();
    }

    /// Writes the summary of a run that could not take place.
    pub fn failed(mut self, problem: &str, exit_code: i32) {
        self.close();
        let summary = ended(&self.running, RunState::Failed, problem, exit_code);
        // There is a sentence on the terminal as well.
        let _ = self.folder.write_ended(&summary);
    }

    fn close(&mut self) {
        drop(self.told.take());
        if let Some(thread) = self.thread.take() {
            // A panic has ended the process.
            let _ = thread.join();
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.close();
    }
}

/// The summary of a run that ended without the figures of one.
fn ended(running: &Running, state: RunState, problem: &str, exit_code: i32) -> Running {
    Running {
        state,
        ending: Some(Ending {
            exit_code,
            signal: None,
            problems: vec![problem.into()],
            complete: false,
        }),
        ..running.clone()
    }
}

/// The summary that stays if the simulator is killed.
fn killed(running: &Running) -> Running {
    let problem = "the simulator ended without warning: it was killed, by somebody or by the \
                   kernel for want of memory, or failed by a fault of its own; what is here is what \
                   was known shortly before";
    ended(running, RunState::Failed, problem, 128 + libc::SIGKILL)
}

/// What the thread has.
struct Watch {
    running: Running,
    phase: Phase,
    folder: Arc<RunFolder>,
    interrupts: Arc<Interrupts>,
    progress: Arc<Progress>,
    room: Room,
    began: Instant,
    /// Since when the run should have stopped.
    asked: Option<Instant>,
    /// The slice of simulated time that is being simulated, and since when.
    slice: Option<(u64, Instant)>,
}

#[allow(
    clippy::disallowed_methods,
    reason = "figures about the host are outside the digest"
)]
impl Watch {
    fn run(&mut self, heard: &Receiver<Phase>) {
        let mut written = Instant::now();
        let mut period = PERIOD;
        loop {
            let news = match heard.recv_timeout(period) {
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => false,
                Ok(phase) => {
                    self.enter(phase);
                    true
                }
            };
            let changed = self.update();
            if news || (changed && written.elapsed() >= REWRITE) {
                written = Instant::now();
                self.write();
            }
            self.look_at_disk();
            period = self.look_at_memory();
            self.look_at_time();
            self.insist();
        }
    }

    /// Ends a run whose simulated time stands still while the simulator works.
    fn look_at_time(&mut self) {
        let slice = self.progress.slice();
        let since = match (slice, self.slice) {
            (Some(now), Some((before, since))) if now == before => since,
            _ => Instant::now(),
        };
        self.slice = slice.map(|slice| (slice, since));
        if slice.is_some() && since.elapsed() >= STUCK {
            let totals = &self.running.totals;
            self.interrupts.halt(Halt {
                reason: format!(
                    "simulated time stands still at {} us in kernel `{}`: the simulator has worked \
                     for {} s without getting on, which is a fault of its own; please report it \
                     with the program, or with the record of a run with --record full",
                    totals.simulated_ns / 1000.0,
                    totals.kernel,
                    STUCK.as_secs()
                ),
                code: FAULT_OF_OURS,
            });
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.running.phase = phase.name().into();
        // Writing has its own time.
        self.asked = self.asked.map(|_| Instant::now());
    }

    /// Whether the run has gone on.
    fn update(&mut self) -> bool {
        let (kernels, kernels_ended) = self.progress.kernels();
        let totals = RunningTotals {
            kernels,
            kernels_ended,
            kernel: self.progress.kernel(),
            simulated_ns: self.progress.simulated_ns() as f64,
        };
        let changed = totals != self.running.totals;
        self.running.totals = totals;
        changed
    }

    fn write(&mut self) {
        self.running.host.seconds = self.began.elapsed().as_secs_f64();
        self.running.host.peak_memory = crate::results::peak_memory();
        // It has its room; without a folder there is nobody to tell.
        let _ = self
            .folder
            .write_running(&self.running, &killed(&self.running));
    }

    fn look_at_disk(&mut self) {
        if let Err(error) = self.room.grow(self.running.totals.kernels)
            && lockstep_run_folder::is_full(&error)
        {
            let path = self.folder.path().display();
            self.interrupts.halt(Halt {
                reason: format!(
                    "the run was stopped because the disk of {path} is full: what it had is kept; \
                     make room and run again"
                ),
                code: DISK_FULL,
            });
        }
    }

    /// When to look again.
    fn look_at_memory(&self) -> Duration {
        let Some(left) = memory_limits::left() else {
            return PERIOD;
        };
        if self.phase == Phase::Running
            && let Some(reason) = left.too_little_to_go_on()
        {
            self.interrupts.halt(Halt {
                reason,
                code: OUT_OF_MEMORY,
            });
        }
        let milliseconds = left.bytes.saturating_mul(1000) / FILLING;
        PERIOD.min(Duration::from_millis(milliseconds.max(10)))
    }

    /// Ends a simulator that was told to stop and is still there.
    fn insist(&mut self) {
        let Some(code) = self.interrupts.exit_code() else {
            return;
        };
        let asked = *self.asked.get_or_insert_with(Instant::now);
        if asked.elapsed() < PATIENCE {
            return;
        }
        let why = match (self.interrupts.signal(), self.interrupts.halted()) {
            (Some(signal), _) => format!(
                "the run was ended by signal {signal} ({})",
                signal_name(signal)
            ),
            (None, Some(halt)) => halt.reason,
            (None, None) => "the run was ended".into(),
        };
        let problem = format!(
            "{why}; the simulator did not stop within {} s, so only this summary is left",
            PATIENCE.as_secs()
        );
        // Whoever read this may be gone; the summary is written all the same.
        let _ = writeln!(std::io::stderr(), "lockstep: {problem}");
        let summary = ended(&self.running, RunState::Stopped, &problem, code);
        // The sentence above is all that is left otherwise.
        let _ = self.folder.write_ended(&summary);
        let _ = std::io::stderr().flush();
        // SAFETY: `_exit` has no preconditions: handlers would wait for threads that do not stop.
        // The guardian removes the socket, and the kernel ends the program.
        unsafe { libc::_exit(code) }
    }
}
