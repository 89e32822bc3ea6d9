//! A process that runs cases, one after the other, under limits.
//!
//! What it is doing stands in its status file: the seed of the case, and how many it has done. A
//! panic is a line on standard output; a process that dies or hangs is its supervisor's business.

use crate::corpus::Corpus;
use crate::random::Random;
use crate::targets::Target;
use crate::tiny;
use anyhow::{Context, Result};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Memory of its own that a worker may have.
const MEMORY: u64 = 2 << 30;
/// A case is asked to stop after so long: kernels that spin are no fault of the simulator.
const PATIENCE: Duration = Duration::from_secs(2);

/// Cases of one worker: every `stride`-th seed from `from` on.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// First seed.
    pub from: u64,
    /// Distance to the next.
    pub stride: u64,
    /// Cases that were done before.
    pub done: u64,
}

/// The last panic: where and what.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Runs cases until somebody ends the process.
pub fn run(target: &Target, corpus: &Corpus, share: Share, status: &Path) -> Result<()> {
    limit_memory();
    note_panics();
    let status = std::fs::OpenOptions::new()
        .write(true)
        .open(status)
        .with_context(|| status.display().to_string())?;
    let running = stop_slow_cases();
    let (mut seed, mut done) = (share.from, share.done);
    loop {
        let mut now = [0; 16];
        now[..8].copy_from_slice(&seed.to_le_bytes());
        now[8..].copy_from_slice(&done.to_le_bytes());
        status.write_all_at(&now, 0)?;
        running.fetch_add(1, Ordering::Relaxed);
        if let Some(panic) = case(target, corpus, seed) {
            println!("{seed}\t{panic}");
        }
        seed += share.stride;
        done += 1;
    }
}

/// The input of a seed.
pub fn input(target: &Target, corpus: &Corpus, seed: u64) -> Vec<u8> {
    (target.make)(corpus, &mut Random::new(seed))
}

/// Runs the case of a seed; a panic is given back as a sentence.
pub fn case(target: &Target, corpus: &Corpus, seed: u64) -> Option<String> {
    // What makes inputs also runs code of the simulator.
    let ran = catch_unwind(AssertUnwindSafe(|| {
        (target.run)(&input(target, corpus, seed));
    }));
    ran.is_err().then(|| {
        let panic = PANIC.lock();
        panic.map_or_else(|_| String::new(), |panic| panic.clone())
    })
}

/// Keeps what a panic says instead of printing it.
pub fn note_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        let message = info.payload_as_str().unwrap_or("").replace('\n', " ");
        if let Ok(mut panic) = PANIC.lock() {
            *panic = format!("{}: {message}", place.unwrap_or_default());
        }
    }));
}

fn limit_memory() {
    for (resource, most) in [(libc::RLIMIT_DATA, MEMORY), (libc::RLIMIT_CORE, 0)] {
        let limit = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        // SAFETY: the structure is whole and lives until the call returns.
        unsafe { libc::setrlimit(resource, &limit) };
    }
}

/// A thread that asks a case to stop when it has run for long; the count it is given changes with
/// every case.
#[allow(clippy::disallowed_methods, reason = "the host's time limits a case")]
fn stop_slow_cases() -> &'static AtomicU64 {
    static CASE: AtomicU64 = AtomicU64::new(0);
    std::thread::spawn(|| {
        let (mut known, mut since) = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let now = CASE.load(Ordering::Relaxed);
            if now != known {
                (known, since) = (now, Instant::now());
            } else if since.elapsed() > PATIENCE {
                tiny::stop();
            }
        }
    });
    &CASE
}
