//! Runs an unmodified CUDA program against a simulated GPU.

use crate::description::Description;
use crate::guardian::Guardian;
use crate::machine::{self, MachineError};
use crate::results::Results;
use crate::server::{Recording, Server};
use crate::supervise::{self, Ended, Program, StartError};
use lockstep_protocol::library::{Libraries, LibraryError};
use lockstep_protocol::program::inspect;
use lockstep_protocol::{ListenError, Listener, window};
use lockstep_telemetry::run_folder::{Ending, RunFolder, RunFolderError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;

/// Why a run could not take place. What goes wrong within one is in its results.
#[derive(Debug, Error)]
pub enum RunError {
    /// The program.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The libraries for it.
    #[error(transparent)]
    Libraries(#[from] LibraryError),
    /// The folder for its results.
    #[error(transparent)]
    Folder(#[from] RunFolderError),
    /// The simulated GPU.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The socket.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The memory that program and simulator share.
    #[error(transparent)]
    Window(#[from] window::WindowError),
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
            _ => 2,
        }
    }
}

pub(crate) fn system(what: &str) -> impl FnOnce(std::io::Error) -> RunError {
    let what = what.to_string();
    move |error| RunError::System { what, error }
}

/// Runs `command` (program and arguments) as described, and writes the run folder however it
/// ends.
///
/// # Errors
/// The run could not take place at all.
#[allow(
    clippy::disallowed_methods,
    reason = "figures about the host are outside the digest"
)]
pub fn run_program(description: &Description, command: &[String]) -> Result<Results, RunError> {
    let (name, arguments) = command
        .split_first()
        .ok_or_else(|| RunError::Request("no program is named".into()))?;
    let path = supervise::find_program(name)?;
    let libraries = Libraries::find()?;
    let memory = window::create()?;
    let runtime = machine::runtime(description, &memory)?;
    let folder = RunFolder::create(description.out.as_deref(), name)?;
    let record = match description.recording {
        Recording::None => None,
        _ => Some(
            std::fs::File::create(folder.file("calls.record")).map_err(system("calls.record"))?,
        ),
    };
    let listener = Arc::new(listen()?);
    let guardian = Guardian::start(listener.path()).map_err(system("a guardian for the socket"))?;
    let variables = libraries.environment(listener.path(), |name| std::env::var_os(name));

    let began = Instant::now();
    let server = Server::start(
        listener.clone(),
        memory,
        runtime,
        record,
        description.recording,
    )
    .map_err(system("serving the program"))?;
    // Alive until the end: it holds the handlers of signals.
    let mut program = Program::start(
        &path,
        arguments,
        &variables,
        description.progress.stop_flag(),
    );
    let ended = match &mut program {
        Ok(program) => Some(program.wait().map_err(system("waiting for the program"))?),
        Err(_) => None,
    };
    if !matches!(ended, Some(Ended::Code(_))) {
        // Nobody waits for what is still running.
        description.progress.stop();
    }
    let (mut state, problems) = server.finish();
    drop(listener);
    drop(guardian);
    let ended = match (program, ended) {
        (Err(error), _) => return Err(error.into()),
        (Ok(_), ended) => ended.unwrap_or(Ended::Code(1)),
    };

    state.keep_dependences();
    let ending = ending(name, &ended, problems, state.runtime.stopped());
    let made_calls = state.figures.attached > 0;
    let mut results = Results::collect(
        description,
        command,
        &mut state.runtime,
        state.figures,
        began.elapsed(),
        ending,
    );
    results
        .notices
        .extend(notice(name, &path, made_calls, &results));
    results.write(&folder)?;
    Ok(results)
}

/// How a program ended, with what was wrong.
fn ending(name: &str, ended: &Ended, problems: Vec<String>, stopped: bool) -> Ending {
    let mut ending = Ending {
        exit_code: ended.exit_code(),
        signal: match ended {
            Ended::Signal(signal) | Ended::Interrupted(signal) => Some(*signal),
            Ended::Code(_) => None,
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
    // A file that cannot be read for this has run, so it is no reason to fail.
    let obstacle = inspect(path).ok().and_then(|kind| kind.obstacle());
    match obstacle {
        Some(obstacle) if results.kernels.is_empty() => Some(format!("{name}: {obstacle}")),
        None if !made_calls => Some(format!("{name} made no CUDA call; nothing was simulated")),
        _ => None,
    }
}

/// A socket in a private directory, where the system keeps such things.
fn listen() -> Result<Listener, ListenError> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    if let Some(parent) = runtime.filter(|parent| parent.is_dir())
        && let Ok(listener) = Listener::bind_under(&parent)
    {
        return Ok(listener);
    }
    match Listener::bind_under(&std::env::temp_dir()) {
        Err(ListenError::PathTooLong { .. }) => Listener::bind_under(Path::new("/tmp")),
        other => other,
    }
}
