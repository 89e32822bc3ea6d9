//! Runs an unmodified CUDA program against a simulated GPU.

use crate::checkpoint::{self, CheckpointError, Checkpoints};
use crate::description::Description;
use crate::guardian::Guardian;
use crate::interrupts::{Interrupts, OUT_OF_MEMORY};
use crate::machine::{self, MachineError, SharedSegment};
use crate::node::Node;
use crate::ranks::{self, RankProcesses, Told};
use crate::regions::Region;
use crate::reporter::{Phase, Reporter};
use crate::results::Results;
use crate::server::{Recording, Server, State, lock};
use crate::supervise::{self, Ended, Program, StartError};
use crate::{memory_limits, surroundings};
use lockstep_protocol::library::{
    CALLS_VARIABLE, Libraries, LibraryError, NCCL_TOPOLOGY_VARIABLE, NVTX_VARIABLE,
};
use lockstep_protocol::placement::NODES_VARIABLE;
use lockstep_protocol::{ListenError, Listener, links_beside, window};
use lockstep_run_folder::{DISK_FULL, Ending, RunFolder, RunFolderError, RunState};
use lockstep_segment::SegmentError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// What is said where the program's memory lies elsewhere in every run.
const RANDOM_ADDRESSES: &str = "the system did not let the program have fixed addresses (personality): if they reach \
     what it computes or copies, in pointers or in bytes that nobody set, another run may have another digest";

/// Why a run could not take place. What goes wrong within one is in its results.
#[derive(Debug, Error)]
pub enum RunError {
    /// The program.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Where it was saved.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The libraries for it.
    #[error(transparent)]
    Libraries(#[from] LibraryError),
    /// The folder for its results.
    #[error(transparent)]
    Folder(#[from] RunFolderError),
    /// The simulated GPU.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The segment in which it is to publish.
    #[error("--publish: {0}")]
    Publish(#[from] SegmentError),
    /// The socket.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The memory that program and simulator share.
    #[error(transparent)]
    Window(#[from] window::WindowError),
    /// Memory, before anything began.
    #[error("{0}")]
    Memory(String),
    /// Somebody ended it.
    #[error("ended by signal {0}")]
    Interrupted(i32),
    /// What `lockstep kernel` was asked.
    #[error("{0}")]
    Request(String),
    /// The system.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        error: std::io::Error,
    },
}

impl RunError {
    /// The exit code of the command.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Start(error) => error.exit_code(),
            Self::Folder(error) => error.exit_code(),
            Self::Memory(_) => OUT_OF_MEMORY,
            Self::Interrupted(signal) => 128 + signal,
            _ => 2,
        }
    }
}

pub(crate) fn system(what: &str) -> impl FnOnce(std::io::Error) -> RunError {
    let what = what.to_string();
    move |error| RunError::System { what, error }
}

/// Refuses to begin with hardly any memory.
pub(crate) fn check_memory() -> Result<(), RunError> {
    let left = memory_limits::left();
    match left.and_then(|left| left.too_little_to_begin()) {
        Some(sentence) => Err(RunError::Memory(sentence)),
        None => Ok(()),
    }
}

/// Runs `command` (program and arguments) as described, and writes the run folder however it
/// ends.
///
/// # Errors
/// The run could not take place at all.
pub fn run_program(description: &Description, command: &[String]) -> Result<Results, RunError> {
    let (name, arguments) = command
        .split_first()
        .ok_or_else(|| RunError::Request("no program is named".into()))?;
    let path = supervise::find_program(name)?;
    let libraries = Libraries::find()?;
    Node::check(description)?;
    checkpoint::check(description)?;
    check_memory()?;
    let ranks = description.execution.ranks as usize;
    if ranks > 1 || description.ranks.is_some() {
        ranks::check(description)?;
    }
    // Before there is a folder: a signal leaves none that says nothing.
    let interrupts = Interrupts::listen(description.progress.stop_flag());
    let interrupts = Arc::new(interrupts.map_err(system("listening for signals"))?);
    let folder = RunFolder::create(description.out.as_deref(), description.existing, name)?;
    let folder = Arc::new(folder);
    // The guardian comes before the socket and the first summary: whenever the simulator is killed, no
    // socket stays, and no summary that says that the run goes on.
    let mut guardian = None;
    let listener = Arc::new(listen(|socket| {
        guardian = Some(Guardian::start(
            Some(socket),
            &folder,
            description.checkpoints.is_some(),
        )?);
        Ok(())
    })?);
    let reporter = Reporter::start(description, command, &folder, &interrupts)?;
    let mut processes = None;
    let mut description = description.clone();
    if ranks > 1 && description.ranks.is_none() {
        let threads = machine::worker_threads(&description) as usize;
        let others = processes.insert(RankProcesses::start(ranks, threads)?);
        description.ranks = Some(others.ranks().clone());
    }
    let run = Run {
        description: &description,
        name,
        path,
        arguments,
        libraries,
        folder,
        interrupts,
    };
    let outcome = match run.simulate(command, listener, &reporter) {
        Ok(mut results) => {
            reporter.finish();
            let others = description.ranks.as_ref();
            if others.is_some_and(|ranks| ranks.lost().is_none()) {
                ranks::ended_well();
            }
            for sentence in processes.map(RankProcesses::finish).unwrap_or_default() {
                results.fail(sentence);
            }
            results.write(&run.folder)?;
            run.tidy(&results);
            Ok(results)
        }
        Err(error) => {
            reporter.failed(&error.to_string(), error.exit_code());
            Err(error)
        }
    };
    drop(guardian);
    outcome
}

/// What one run needs.
struct Run<'run> {
    description: &'run Description,
    name: &'run str,
    path: PathBuf,
    arguments: &'run [String],
    libraries: Libraries,
    folder: Arc<RunFolder>,
    interrupts: Arc<Interrupts>,
}

impl Run<'_> {
    /// Runs the program to its end.
    #[allow(
        clippy::disallowed_methods,
        reason = "figures about the host are outside the digest"
    )]
    fn simulate(
        &self,
        command: &[String],
        listener: Arc<Listener>,
        reporter: &Reporter,
    ) -> Result<Results, RunError> {
        let description = self.description;
        let memory = window::create_for(description.all_gpus())?;
        let mut runtime = machine::runtime(description, &memory)?;
        runtime
            .device_mut()
            .write_down(&self.folder, description.series)?;
        if let Some(segment) = SharedSegment::open(description, &command.join(" "))? {
            runtime.device_mut().publish(&segment, description);
        }
        let checkpoints = Checkpoints::start(description, &self.folder, &memory, &self.interrupts)?;
        if let Some(checkpoints) = &checkpoints {
            runtime.device_mut().keep_checkpoints(checkpoints);
        }
        let record = match description.recording {
            Recording::None => None,
            _ => Some(self.folder.record()?),
        };
        let began = Instant::now();
        let server = Server::start(
            listener.clone(),
            memory,
            runtime,
            record,
            description.recording,
            description.patience,
            checkpoints.clone(),
            description.ranks.clone(),
        )
        .map_err(system("serving the program"))?;
        reporter.phase(Phase::Running);
        let mut random_addresses = false;
        let ended = self.run_to_end(listener.path(), &server, &mut random_addresses);
        if !matches!(ended, Ok(Ended::Code(_))) {
            // Nobody waits for what is still running.
            description.progress.stop();
        }
        let (mut state, mut problems) = server.finish();
        drop(listener);
        reporter.phase(Phase::Collecting);
        let mut wall = began.elapsed();
        let checkpoints = checkpoints.as_deref().map(lock);
        let resumed = checkpoints.as_ref().and_then(|known| known.resumed());
        if let Some((_, spent)) = resumed {
            // Speed is that of the whole run.
            wall += spent;
            state.figures.simulating += spent;
            state.figures.processor = None;
        }
        let ended = ended?;
        if let Some(problem) = checkpoints.as_ref().and_then(|known| known.problem())
            && matches!(ended, Ended::Code(_) | Ended::Signal(_))
        {
            problems.push(problem);
        }
        let mut results = self.collect(command, &ended, state, problems, wall);
        if random_addresses {
            results.summary.remarks.push(RANDOM_ADDRESSES.into());
        }
        results
            .summary
            .remarks
            .extend(checkpoints.as_ref().and_then(|known| known.remark()));
        if let Some(notice) = checkpoints.as_ref().and_then(|known| known.notice()) {
            results.summary.warnings.push(notice.to_owned());
        }
        Ok(results)
    }

    fn run_to_end(
        &self,
        socket: &Path,
        server: &Server<Node>,
        random_addresses: &mut bool,
    ) -> Result<Ended, RunError> {
        let libraries = &self.libraries;
        let mut variables = libraries
            .environment(socket, |name| std::env::var_os(name))
            .to_vec();
        if tracing::enabled!(tracing::Level::DEBUG) {
            variables.push((CALLS_VARIABLE, "1".into()));
        }
        if self.description.nodes > 1 {
            let nodes = self.description.nodes.to_string();
            variables.push((NODES_VARIABLE, nodes.into()));
        }
        let mut regions = self.description.selection.regions.iter();
        if regions.any(Region::is_nvtx) {
            variables.push((NVTX_VARIABLE, libraries.core.clone().into()));
        }
        if self.description.all_gpus() > 1 && std::env::var_os(NCCL_TOPOLOGY_VARIABLE).is_none() {
            let path = links_beside(socket);
            let text = self
                .description
                .nccl_topology()
                .map_err(MachineError::from)?;
            std::fs::write(&path, text).map_err(system("describing the links for NCCL"))?;
            variables.push((NCCL_TOPOLOGY_VARIABLE, path.into()));
        }
        let mut program = Program::start(&self.path, self.arguments, &variables, &self.interrupts)?;
        *random_addresses = program.has_random_addresses();
        server.program(program.process());
        program.wait().map_err(system("waiting for the program"))
    }

    /// Removes the checkpoint of a run that has ended well: nobody needs it any more.
    fn tidy(&self, results: &Results) {
        let over = results.summary.state == RunState::Finished && !results.summary.partial;
        let checkpoints = self.description.checkpoints.as_ref();
        // One before a launch is what the run was for.
        if over && checkpoints.is_some_and(|options| options.before.is_none()) {
            // What stays is removed with the folder.
            let _ = self.folder.remove_checkpoint();
        }
    }

    fn collect(
        &self,
        command: &[String],
        ended: &Ended,
        mut state: State<Node>,
        problems: Vec<String>,
        wall: Duration,
    ) -> Results {
        state.keep_dependences();
        let mut ending = ending(self.name, ended, problems, state.runtime.stopped());
        if state.record_is_full {
            ending.exit_code = DISK_FULL;
        }
        let made_calls = state.figures.attached > 0;
        let (description, figures) = (self.description, state.figures);
        if let Some(ranks) = &description.ranks {
            Told::End.tell(ranks);
        }
        let runtime = &mut state.runtime;
        let mut results = Results::collect(description, command, runtime, figures, wall, ending);
        if ended.is_stopped() {
            results.summary.state = RunState::Stopped;
            results.summary.partial = true;
        }
        results
            .notices
            .extend(notice(self.name, &self.path, made_calls, &results));
        results
    }
}

/// How a program ended, with what was wrong.
fn ending(name: &str, ended: &Ended, problems: Vec<String>, stopped: bool) -> Ending {
    let mut ending = Ending {
        exit_code: ended.exit_code(),
        signal: match ended {
            Ended::Signal(signal) | Ended::Interrupted(signal) => Some(*signal),
            Ended::Code(_) | Ended::Halted(_) => None,
        },
        problems,
        complete: true,
    };
    ending.problems.extend(ended.problem(name));
    if stopped && matches!(ended, Ended::Code(_)) {
        ending
            .problems
            .push("the run was stopped while kernels were still running".into());
    }
    ending
}

/// What a user should know whose program had nothing simulated.
fn notice(name: &str, path: &Path, made_calls: bool, results: &Results) -> Option<String> {
    match surroundings::obstacle(path) {
        Some(obstacle) if results.kernels.is_empty() => Some(format!("{name}: {obstacle}")),
        None if !made_calls && results.summary.ending.exit_code == 0 => {
            Some(format!("{name} made no CUDA call; nothing was simulated"))
        }
        None if !made_calls => Some(format!(
            "{name} made no CUDA call; nothing was simulated. If it does call CUDA, something between \
             hides the simulator from it: a cleared environment (LD_PRELOAD, LD_LIBRARY_PATH, \
             LOCKSTEP_SOCKET), a container or sandbox without these files, or a static or setuid \
             program that it starts"
        )),
        _ => None,
    }
}

/// A socket in a private directory, where the system keeps such things.
fn listen(mut prepare: impl FnMut(&Path) -> std::io::Result<()>) -> Result<Listener, ListenError> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    if let Some(parent) = runtime.filter(|parent| parent.is_dir())
        && let Ok(listener) = Listener::bind_under(&parent, &mut prepare)
    {
        return Ok(listener);
    }
    match Listener::bind_under(&std::env::temp_dir(), &mut prepare) {
        Err(ListenError::PathTooLong { .. }) => {
            Listener::bind_under(Path::new("/tmp"), &mut prepare)
        }
        other => other,
    }
}
