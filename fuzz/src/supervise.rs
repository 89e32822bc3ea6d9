//! Workers side by side: started, watched, ended, and what they found.

use crate::targets::Target;
use crate::worker::Share;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// A case that takes longer hangs.
const LONGEST_CASE: Duration = Duration::from_secs(20);
/// Memory that a worker may have in all, that of the simulated GPU included.
const MEMORY: u64 = 2 << 30;
/// How often workers are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Seeds of one finding that are kept.
const KEPT: usize = 3;

/// What went wrong, by the kind and place of it.
pub type Findings = BTreeMap<String, Finding>;

/// One thing that went wrong.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// How often.
    pub count: u64,
    /// Some seeds.
    pub seeds: Vec<u64>,
    /// What was said the first time.
    pub example: String,
}

/// What came of a target.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Cases that were run.
    pub cases: u64,
    /// What went wrong.
    pub findings: Findings,
}

impl Outcome {
    fn found(&mut self, what: String, example: &str, seed: u64) {
        let finding = self.findings.entry(what).or_insert_with(|| Finding {
            example: example.to_owned(),
            ..Finding::default()
        });
        finding.count += 1;
        if finding.seeds.len() < KEPT {
            finding.seeds.push(seed);
        }
    }
}

/// How a target is run.
pub struct Plan<'a> {
    /// The corpus, for the workers.
    pub corpus: &'a Path,
    /// Processes side by side.
    pub jobs: u64,
    /// For how long.
    pub time: Duration,
    /// First seed.
    pub seed: u64,
}

struct Worker {
    process: Child,
    status: PathBuf,
    share: Share,
    /// What its status said when it last changed, and when that was.
    seen: ((u64, u64), Instant),
}

/// Runs a target and gathers what its workers find.
#[allow(clippy::disallowed_methods, reason = "the host's time limits a run")]
pub fn run(target: &Target, plan: &Plan<'_>) -> Result<Outcome> {
    let folder = std::env::temp_dir().join(format!("lockstep-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (send, said) = channel();
    let mut outcome = Outcome::default();
    let mut workers = Vec::new();
    for job in 0..plan.jobs {
        let share = Share {
            from: plan.seed + job,
            stride: plan.jobs,
            done: 0,
        };
        let status = folder.join(job.to_string());
        workers.push(start(target, plan, share, status, &send)?);
    }
    let end = Instant::now() + plan.time;
    while Instant::now() < end {
        std::thread::sleep(LOOK);
        for worker in &mut workers {
            if let Some((what, seed)) = trouble(worker) {
                end_process(&mut worker.process);
                outcome.found(what, "", seed);
                let (_, done) = status(&worker.status);
                let share = Share {
                    from: seed + plan.jobs,
                    done: done + 1,
                    ..worker.share
                };
                *worker = start(target, plan, share, worker.status.clone(), &send)?;
            }
        }
        take_panics(&said, &mut outcome);
    }
    for worker in &mut workers {
        end_process(&mut worker.process);
        outcome.cases += status(&worker.status).1;
    }
    drop(send);
    take_panics(&said, &mut outcome);
    std::fs::remove_dir_all(&folder)?;
    Ok(outcome)
}

fn start(
    target: &Target,
    plan: &Plan<'_>,
    share: Share,
    status: PathBuf,
    send: &Sender<String>,
) -> Result<Worker> {
    std::fs::write(&status, [0; 16])?;
    let program = std::env::current_exe().context("where this program is")?;
    let mut process = Command::new(program)
        .args(["worker", "--target", target.name, "--corpus"])
        .arg(plan.corpus)
        .args(["--from", &share.from.to_string()])
        .args(["--stride", &share.stride.to_string()])
        .args(["--done", &share.done.to_string(), "--status"])
        .arg(&status)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("a worker could not be started")?;
    if let Some(output) = process.stdout.take() {
        let send = send.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
    }
    #[allow(clippy::disallowed_methods, reason = "the host's time limits a case")]
    let now = Instant::now();
    Ok(Worker {
        process,
        status,
        share,
        seen: ((u64::MAX, 0), now),
    })
}

/// What is wrong with a worker, and the seed that it came to.
#[allow(clippy::disallowed_methods, reason = "the host's time limits a case")]
fn trouble(worker: &mut Worker) -> Option<(String, u64)> {
    let now = status(&worker.status);
    let seed = if now == (0, 0) {
        worker.share.from
    } else {
        now.0
    };
    if let Ok(Some(ended)) = worker.process.try_wait() {
        let mut said = String::new();
        if let Some(mut errors) = worker.process.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        let last = said.lines().last().unwrap_or_default();
        let how = match ended.signal() {
            Some(signal) => format!("ended by signal {signal}"),
            None => format!("{ended}"),
        };
        return Some((format!("{how}: {last}"), seed));
    }
    if resident(worker.process.id()) > MEMORY {
        return Some(("more than 2 GiB of memory".to_owned(), seed));
    }
    if now != worker.seen.0 {
        worker.seen = (now, Instant::now());
    } else if worker.seen.1.elapsed() > LONGEST_CASE {
        return Some(("a hang of more than 20 s".to_owned(), seed));
    }
    None
}

/// Bytes of memory that a process has.
fn resident(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0u64) * rustix::param::page_size() as u64
}

/// The seed of a worker's case and how many it has done.
fn status(path: &Path) -> (u64, u64) {
    let mut bytes = [0; 16];
    let read = std::fs::File::open(path).and_then(|file| file.read_exact_at(&mut bytes, 0));
    if read.is_err() {
        return (0, 0);
    }
    let (seed, done) = bytes.split_at(8);
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    };
    (number(seed), number(done))
}

fn end_process(process: &mut Child) {
    // One that has ended cannot be ended, which is as well.
    let _ = process.kill();
    let _ = process.wait();
}

fn take_panics(said: &Receiver<String>, outcome: &mut Outcome) {
    while let Ok(line) = said.try_recv() {
        if let Some((seed, panic)) = line.split_once('\t')
            && let Ok(seed) = seed.parse()
        {
            let (place, words) = panic.split_once(": ").unwrap_or((panic, ""));
            outcome.found(format!("panic at {place}"), words, seed);
        }
    }
}
