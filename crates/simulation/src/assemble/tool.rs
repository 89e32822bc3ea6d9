//! Assembler and linker as processes: in a folder of their own, for a limited time.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is read of what a tool says.
const MOST_SAID: u64 = 64 << 10;
/// The longest pause between two looks at whether a tool has ended.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// Attempts to start a tool that somebody is still writing.
const ATTEMPTS: usize = 100;

/// Work with files, in a folder of its own that is gone afterwards.
pub(super) fn in_folder<T>(work: impl FnOnce(&Path) -> Result<T, String>) -> Result<T, String> {
    static FOLDERS: AtomicU64 = AtomicU64::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("lockstep-ptxas-{}-{number}", std::process::id()));
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let done = work(&folder);
    // What is left there hurts nobody.
    let _ = std::fs::remove_dir_all(&folder);
    done
}

/// Runs a tool and reads the file that it writes, or gives the first lines of what it said.
pub(super) fn output_of(
    command: &mut Command,
    output: &Path,
    limit: Duration,
) -> Result<Vec<u8>, String> {
    let (success, said) = run(command, &output.with_file_name("said.txt"), limit)?;
    if !success {
        let first: Vec<&str> = said.lines().take(4).collect();
        return Err(first.join("; "));
    }
    std::fs::read(output).map_err(|error| format!("it wrote no machine code: {error}"))
}

/// Runs a tool to its end; whether it succeeded, and what it said into the file.
pub(super) fn run(
    command: &mut Command,
    said: &Path,
    limit: Duration,
) -> Result<(bool, String), String> {
    let told = |error: std::io::Error| error.to_string();
    let heard = File::create(said).map_err(told)?;
    command
        .stdin(Stdio::null())
        .stdout(heard.try_clone().map_err(told)?)
        .stderr(heard)
        // What it starts itself is ended with it.
        .process_group(0);
    let mut child = start(command).map_err(told)?;
    let success = wait(&mut child, limit)?;
    let mut text = Vec::new();
    File::open(said)
        .and_then(|file| file.take(MOST_SAID).read_to_end(&mut text))
        .map_err(told)?;
    Ok((success, String::from_utf8_lossy(&text).into_owned()))
}

fn start(command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..ATTEMPTS {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(LONGEST_PAUSE);
            }
            other => return other,
        }
    }
    command.spawn()
}

#[allow(
    clippy::disallowed_methods,
    reason = "how long a tool takes is no part of any simulated time"
)]
fn wait(child: &mut Child, limit: Duration) -> Result<bool, String> {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status.success());
        }
        if begin.elapsed() >= limit {
            let process = rustix::process::Pid::from_child(child);
            // Both fail only if it has ended just now.
            let _ = rustix::process::kill_process_group(process, rustix::process::Signal::KILL);
            let _ = child.wait();
            return Err(format!(
                "it did not end within {} s and was stopped",
                limit.as_secs()
            ));
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}
