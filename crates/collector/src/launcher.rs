//! Starts a program with the injector in it.

use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use thiserror::Error;

use lockstep_schema::Metadata;
use lockstep_segment::{SegmentDirectory, SegmentError};

/// File name of the injector.
const INJECTOR: &str = "liblockstep_injector.so";

/// The variable that names the injector to the CUDA driver.
const INJECTION: &str = "CUDA_INJECTION64_PATH";

/// A program that could not be started with the injector.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The injector's library is nowhere.
    #[error("{INJECTOR} was not found beside this program ({}); set LOCKSTEP_INJECTOR to its path", searched.display())]
    NoInjector {
        /// Where it was looked for.
        searched: PathBuf,
    },
    /// The folder of segments cannot be used.
    #[error(transparent)]
    Segments(#[from] SegmentError),
    /// The metadata could not be handed over.
    #[error("{}: cannot write the metadata for the program: {source}", path.display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The program could not be started.
    #[error("cannot run `{program}`: {source}")]
    Program {
        /// Its name.
        program: String,
        /// What the system said.
        source: io::Error,
    },
}

/// The injector beside this program, in the library folder next to it, or where `LOCKSTEP_INJECTOR`
/// says.
pub fn find_injector() -> Result<PathBuf, LaunchError> {
    if let Some(path) = std::env::var_os("LOCKSTEP_INJECTOR").map(PathBuf::from) {
        return if path.exists() {
            Ok(path)
        } else {
            Err(LaunchError::NoInjector { searched: path })
        };
    }
    let folder = std::env::current_exe()
        .ok()
        .and_then(|path| Some(path.parent()?.to_owned()))
        .unwrap_or_default();
    let places = [
        folder.join(INJECTOR),
        folder.join("deps").join(INJECTOR),
        folder.join("../lib").join(INJECTOR),
    ];
    places
        .into_iter()
        .find(|path| path.exists())
        .ok_or(LaunchError::NoInjector { searched: folder })
}

/// How a program is started.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The injector's library.
    pub injector: PathBuf,
    /// Where its processes publish.
    pub segments: PathBuf,
    /// Where the locks of GPUs are.
    pub locks: PathBuf,
    metadata: PathBuf,
}

impl Launcher {
    /// Prepares a folder of its own for one run, with the metadata that its processes will read.
    pub fn prepare(
        injector: PathBuf,
        base: &Path,
        metadata: &Metadata,
    ) -> Result<Self, LaunchError> {
        let group = &metadata.segment.group;
        SegmentDirectory::open(base, group)?;
        let segments = base.join(format!("run-{}", std::process::id()));
        SegmentDirectory::open(&segments, group)?;
        let file = segments.join("metadata.toml");
        std::fs::write(&file, metadata.text()).map_err(|source| LaunchError::Metadata {
            path: file.clone(),
            source,
        })?;
        Ok(Self {
            injector,
            segments,
            locks: base.to_owned(),
            metadata: file,
        })
    }

    /// Variables that put the injector into a program and its children.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            (INJECTION, self.injector.clone()),
            ("LOCKSTEP_SAMPLE_METADATA", self.metadata.clone()),
            ("LOCKSTEP_SAMPLE_SEGMENTS", self.segments.clone()),
            ("LOCKSTEP_SAMPLE_LOCKS", self.locks.clone()),
        ]
    }

    /// Starts `command`, with the injector in it unless it is to run untouched. The reader tells the
    /// injector's sentences, so the program's output stays its own.
    pub fn start(&self, command: &[String], injected: bool) -> Result<Child, LaunchError> {
        let (program, arguments) = command.split_first().ok_or_else(|| LaunchError::Program {
            program: String::new(),
            source: io::ErrorKind::InvalidInput.into(),
        })?;
        let mut child = Command::new(program);
        child.args(arguments);
        if injected {
            child
                .envs(self.environment())
                .env("LOCKSTEP_SAMPLE_QUIET", "1");
        } else {
            child.env_remove(INJECTION);
        }
        // An interrupt at the terminal ends the program; the reader stays to store its samples.
        child.process_group(0);
        child.spawn().map_err(|source| LaunchError::Program {
            program: program.clone(),
            source,
        })
    }

    /// Starts the process that samples for the whole run, so that no program's end leaves a moment
    /// unsampled: `command` with this run's variables. Nothing if it cannot sample; then the first
    /// program does, and says what is wrong.
    pub fn start_sampler(&self, command: &mut Command) -> Option<SamplerProcess> {
        let environment = self.environment().into_iter();
        let child = command
            .envs(environment.filter(|(name, _)| *name != INJECTION))
            .env_remove(INJECTION)
            .env("LOCKSTEP_SAMPLE_QUIET", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .ok()?;
        let mut sampler = SamplerProcess { child };
        sampler.is_ready().then_some(sampler)
    }

    /// Removes the run's folder. Segments that are still used keep it.
    pub fn clean(&self) {
        // What stays is a file of a few lines in shared memory, and no result.
        let _ = std::fs::remove_file(&self.metadata);
        let _ = std::fs::remove_dir(&self.segments);
    }
}

/// The process that samples for a run.
pub struct SamplerProcess {
    child: Child,
}

impl SamplerProcess {
    /// Waits for its word that it samples, or for its end.
    fn is_ready(&mut self) -> bool {
        let Some(output) = self.child.stdout.take() else {
            return false;
        };
        let mut line = String::new();
        let said = io::BufReader::new(output).read_line(&mut line);
        let ready = said.is_ok() && line.trim() == "ready";
        if !ready {
            // It may have ended already.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        ready
    }

    /// Asks for its last samples.
    pub fn end(&mut self) {
        if let Some(mut input) = self.child.stdin.take() {
            // One that has ended does not listen; the end of the pipe tells one that does.
            let _ = input.write_all(b"end\n");
        }
    }

    /// Waits until it is gone; it was asked to end and everything of it was read.
    pub fn wait(&mut self) {
        // Whether it ended well is in its segment, which was read.
        let _ = self.child.wait();
    }
}
