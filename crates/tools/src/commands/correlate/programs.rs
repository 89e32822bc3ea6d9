//! Runs programs under `lockstep run`, each in a process of its own, so that one that crashes or
//! hangs is an entry in the report and not its end.

use anyhow::Context;
use lockstep_correlation::hardware::Case;
use lockstep_correlation::{Failure, ProgramRun, State, simulated};
use lockstep_text::note;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What is read of a program in `workloads.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Workload {
    name: String,
    #[serde(default)]
    small: Option<Vec<String>>,
    #[serde(default)]
    medium: Option<Vec<String>>,
    #[serde(default)]
    large: Option<Vec<String>>,
    #[serde(default)]
    tags: Vec<String>,
}

impl Workload {
    /// Its arguments at a size; nothing when it has none there.
    pub fn arguments(&self, size: &str) -> Option<&[String]> {
        match size {
            "default" => Some(&[]),
            "small" => self.small.as_deref(),
            "medium" => self.medium.as_deref(),
            "large" => self.large.as_deref(),
            _ => None,
        }
    }

    /// Whether it hands PTX text to the driver: the hardware ran what its driver made of that, and
    /// counts need not agree.
    fn is_ptx(&self) -> bool {
        self.tags.iter().any(|tag| tag == "ptx")
    }
}

/// Reads the table of programs.
pub fn load(path: &Path) -> anyhow::Result<BTreeMap<String, Workload>> {
    #[derive(Deserialize)]
    struct Table {
        program: Vec<Workload>,
    }
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let table: Table = toml::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(table
        .program
        .into_iter()
        .map(|program| (program.name.clone(), program))
        .collect())
}

/// How programs are run.
pub struct Programs<'options> {
    /// The command that simulates.
    pub simulator: PathBuf,
    /// The GPU.
    pub gpu: &'options str,
    /// Settings that differ from the catalogue's.
    pub settings: &'options [String],
    /// Where executables are.
    pub binaries: PathBuf,
    /// Where run folders go.
    pub out: PathBuf,
    /// Seconds that one may take.
    pub limit: u64,
    /// Programs that run at the same time.
    pub jobs: usize,
    /// Whether run folders that are there are taken.
    pub reuse: bool,
    /// Whether only instruction counts are wanted, which need no time.
    pub counts: bool,
    /// The state in which launches find the caches.
    pub state: State,
}

impl Programs<'_> {
    /// Runs all of them.
    pub fn run(&self, chosen: &[(Case, Workload)]) -> anyhow::Result<BTreeMap<Case, ProgramRun>> {
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("cannot make {}", self.out.display()))?;
        let jobs = match self.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            jobs => jobs,
        };
        let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        std::thread::scope(|scope| {
            for _ in 0..jobs.min(chosen.len()) {
                scope.spawn(|| {
                    while let Some((case, workload)) =
                        chosen.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let run = self.one(case, workload);
                        let mut done = done
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner);
                        let verdict = run.failure.as_ref().map_or("ok".into(), Failure::to_string);
                        note!(
                            "[{}/{}] {}/{} {:.1} s: {verdict}\n",
                            done.len() + 1,
                            chosen.len(),
                            case.program,
                            case.size,
                            run.seconds
                        );
                        done.insert(case.clone(), run);
                    }
                });
            }
        });
        Ok(done
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn one(&self, case: &Case, workload: &Workload) -> ProgramRun {
        let folder = self.out.join(format!("{}.{}", case.program, case.size));
        let mut run = ProgramRun {
            // Assembled, PTX has the instructions that hardware ran.
            from_ptx: workload.is_ptx() && !self.counts,
            ..ProgramRun::default()
        };
        let said = self.out.join(format!("{}.{}.out", case.program, case.size));
        if !(self.reuse && ended_well(&said) && folder.join("kernels.csv").exists()) {
            #[allow(
                clippy::disallowed_methods,
                reason = "how long the simulation took is outside every digest"
            )]
            let begin = Instant::now();
            run.failure = self.simulate(case, workload, &folder, &said);
            run.seconds = begin.elapsed().as_secs_f64();
        }
        if run.failure.is_none() {
            match simulated::launches(&folder.join("kernels.csv")) {
                Ok(launches) => run.launches = launches,
                Err(error) => run.failure = Some(Failure::Crashed(error.to_string())),
            }
        }
        run
    }

    fn simulate(
        &self,
        case: &Case,
        workload: &Workload,
        folder: &Path,
        said: &Path,
    ) -> Option<Failure> {
        let binary = self.binaries.join(&case.program);
        if !binary.exists() {
            return Some(Failure::NotBuilt);
        }
        let Some(arguments) = workload.arguments(&case.size) else {
            return Some(Failure::Crashed(format!(
                "workloads.toml has no arguments for its size `{}`, which hardware was measured at",
                case.size
            )));
        };
        let crashed = |error: std::io::Error| Some(Failure::Crashed(error.to_string()));
        // What an earlier run left would be taken for this one's.
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return crashed(error),
            _ => {}
        }
        let complaints = said.with_extension("err");
        let (out, err) = match (File::create(said), File::create(&complaints)) {
            (Ok(out), Ok(err)) => (out, err),
            (Err(error), _) | (_, Err(error)) => return crashed(error),
        };
        let mut command = Command::new(&self.simulator);
        let how: &[&str] = match (self.counts, workload.is_ptx()) {
            (true, _) => &["--mode", "functional", "--frontend", "sass", "--assemble"],
            (false, true) => &["--frontend", "ptx"],
            (false, false) => &["--frontend", "sass"],
        };
        let is_cold = !self.counts && self.state == State::Cold;
        command
            .args(["run", "--quiet", "--record", "none", "--threads", "1"])
            .args(["--gpu", self.gpu])
            .args(how)
            .args(is_cold.then_some("--cold-caches"))
            .args(
                self.settings
                    .iter()
                    .flat_map(|setting| ["--set", setting.as_str()]),
            )
            .arg("--out")
            .arg(folder)
            .arg("--")
            .arg(binary)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        let status = match command.spawn() {
            Ok(child) => wait(child, Duration::from_secs(self.limit)),
            Err(error) => return crashed(error),
        };
        judge(status, case, self.limit, said, &complaints)
    }
}

/// Waits that long; nothing if it had to be killed, and its whole group with it.
fn wait(mut child: Child, limit: Duration) -> Option<ExitStatus> {
    #[allow(
        clippy::disallowed_methods,
        reason = "a program that hangs is found by the host's clock"
    )]
    let end = Instant::now() + limit;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        #[allow(clippy::disallowed_methods, reason = "as above")]
        if Instant::now() > end {
            if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
                // It may have ended just now; then there is nothing to kill.
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            // It hung, whatever its end says.
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn judge(
    status: Option<ExitStatus>,
    case: &Case,
    limit: u64,
    said: &Path,
    complaints: &Path,
) -> Option<Failure> {
    let Some(status) = status else {
        return Some(Failure::Hung(limit));
    };
    // Without its output there is no verdict, which is a failure of its own.
    let out = std::fs::read_to_string(said).unwrap_or_default();
    let verdict = out
        .lines()
        .rev()
        .find(|line| line.starts_with("PASS ") || line.starts_with("FAIL "));
    match (status.code(), verdict) {
        (Some(0), Some(line)) if line.starts_with(&format!("PASS {} ", case.program)) => None,
        (Some(0), None) => Some(Failure::Wrong("it gave no verdict".into())),
        (_, Some(line)) if line.starts_with("FAIL ") => Some(Failure::Wrong(line.into())),
        (Some(0), Some(line)) => Some(Failure::Wrong(format!("verdict of something else: {line}"))),
        (code, _) => {
            let how = code.map_or_else(
                || format!("signal {}", status.signal().unwrap_or(0)),
                |code| format!("exit code {code}"),
            );
            let err = std::fs::read_to_string(complaints).unwrap_or_default();
            let why = err
                .lines()
                .find_map(|line| line.strip_prefix("ERROR "))
                .or(err.lines().rfind(|line| line.starts_with("lockstep:")))
                .or(err.lines().last());
            Some(Failure::Crashed(
                why.map_or(how.clone(), |why| format!("{how}, {why}")),
            ))
        }
    }
}

/// Whether the output of an earlier run ends with a verdict in its favour.
fn ended_well(said: &Path) -> bool {
    std::fs::read_to_string(said).is_ok_and(|out| out.lines().any(|line| line.starts_with("PASS ")))
}
