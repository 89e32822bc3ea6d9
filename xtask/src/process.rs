//! Running commands: shown, captured, timed.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A command in the repository, not yet started.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(crate::project::root());
    command
}

/// `cargo` with these arguments.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = command(crate::project::cargo());
    cargo.args(arguments);
    // The toolchain that runs us stays pinned (RUSTUP_TOOLCHAIN): packages may carry a file that names another one.
    cargo
}

/// The command as one would type it.
pub fn shown(command: &Command) -> String {
    let mut words = vec![
        Path::new(command.get_program())
            .file_name()
            .unwrap_or(command.get_program())
            .to_string_lossy()
            .into_owned(),
    ];
    words.extend(
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

/// Runs it with its output on our terminal; an error names it and its exit status.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(())
}

/// What a captured command said and did.
pub struct Output {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// Processor time of the command and of all that it waited for, user and system together.
    pub processor: Duration,
}

impl Output {
    /// Whether it ended with 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// The end of what it said, for a report of its failure.
    pub fn tail(&self, lines: usize) -> String {
        let all = format!("{}{}", self.out, self.err);
        let kept: Vec<&str> = all.lines().rev().take(lines).collect();
        kept.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// Runs it to its end with its output kept; killed when it takes longer than `limit`.
pub fn capture(command: &mut Command, limit: Duration) -> Result<Output> {
    let start = now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    let out = drain(child.stdout.take());
    let err = drain(child.stderr.take());
    let mut killed = false;
    let (status, processor) = loop {
        if let Some(ended) = ended(&child)? {
            break ended;
        }
        if start.elapsed() > limit {
            killed = true;
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut err = err.join().unwrap_or_default();
    if killed {
        err.push_str(&format!(
            "\nkilled: it took longer than {} s\n",
            limit.as_secs()
        ));
    }
    Ok(Output {
        code: status.code(),
        out: out.join().unwrap_or_default(),
        err,
        processor,
    })
}

/// What git answers, without the last end of line.
pub fn git(arguments: &[&str]) -> Result<String> {
    let output = capture(command("git").args(arguments), Duration::from_secs(120))?;
    if !output.success() {
        bail!("git {}: {}", arguments.join(" "), output.tail(3));
    }
    Ok(output.out.trim().to_owned())
}

/// How a child ended and the processor time that it took, or `None` while it runs.
///
/// The standard library reaps a child without asking what it cost, so this asks the kernel itself.
fn ended(child: &Child) -> Result<Option<(ExitStatus, Duration)>> {
    let pid = libc::pid_t::try_from(child.id()).context("process number")?;
    let mut status = 0;
    // SAFETY: a `rusage` of zeros is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the types that the call fills.
    let reaped = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
    match reaped {
        0 => Ok(None),
        -1 => Err(std::io::Error::last_os_error()).context("cannot wait for a child process"),
        _ => Ok(Some((
            ExitStatus::from_raw(status),
            duration(usage.ru_utime) + duration(usage.ru_stime),
        ))),
    }
}

/// The kernel's time as a duration; it is never negative.
fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// Reads a pipe to its end on a thread of its own, so that a full one never blocks the child.
fn drain(pipe: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A broken pipe ends the text; what came before still helps.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The host's clock: tasks tell how long they took, and nothing else depends on it.
#[allow(
    clippy::disallowed_methods,
    reason = "times of tasks on the host, no model"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// A heading before a step.
pub fn step(text: &str) {
    println!("\n==> {text}");
    // Children write to the same terminal without our buffer.
    let _ = std::io::stdout().flush();
}

/// Calls `work` on every item, on as many threads as the machine has cores; results in order.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let results: std::sync::Mutex<Vec<Option<R>>> =
        std::sync::Mutex::new(items.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..workers.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(item);
                    if let Ok(mut results) = results.lock() {
                        results[index] = Some(result);
                    }
                }
            });
        }
    });
    results
        .into_inner()
        .unwrap_or_default()
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_items() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(
            in_parallel(&items, |item| item * 2),
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_captured_command_gives_both_streams_and_its_code() {
        let output = capture(
            command("sh").args(["-c", "echo out; echo err >&2; exit 3"]),
            Duration::from_secs(10),
        )
        .expect("sh runs");
        assert_eq!(
            (output.code, output.out.as_str(), output.err.as_str()),
            (Some(3), "out\n", "err\n")
        );
    }

    #[test]
    fn a_captured_command_tells_its_processor_time_and_not_its_sleep() {
        let limit = Duration::from_secs(60);
        let slept = capture(command("sleep").arg("0.2"), limit).expect("sleep runs");
        assert!(slept.processor < Duration::from_millis(150));
        let loops = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let worked = capture(command("sh").args(["-c", loops]), limit).expect("sh runs");
        assert!(worked.processor > slept.processor);
    }

    #[test]
    fn a_command_beyond_its_limit_is_killed() {
        let output =
            capture(command("sleep").arg("60"), Duration::from_millis(50)).expect("sleep runs");
        assert_eq!(output.code, None);
        assert!(output.err.contains("killed"), "{}", output.err);
    }
}
