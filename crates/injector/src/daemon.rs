//! The sampler of a node: owns the counters of every GPU, so that programs publish time lines only.
//!
//! It holds the same lock per GPU as the first injector would, publishes into a segment of its own,
//! and gives its GPUs up while DCGM runs, which needs the same hardware. It also removes segments
//! that dead programs left.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use lockstep_schema::Metadata;
use lockstep_segment::{KEPT, SegmentDirectory};

use crate::driver::Driver;
use crate::neighbours::Neighbours;
use crate::nvml::Nvml;
use crate::session::Session;
use crate::settings::Settings;
use crate::{clock, worker};

/// What the daemon does.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// Counters, interval and mode.
    pub metadata: Metadata,
    /// Give the counters up while DCGM runs.
    pub yields_to_dcgm: bool,
    /// Stop after this time; otherwise never.
    pub time: Option<Duration>,
    /// Where programs publish.
    pub segments: PathBuf,
    /// Where the locks of GPUs are.
    pub locks: PathBuf,
    /// Serve one run: say `ready` on standard output, and stop when standard input says `end`. If
    /// it ends without that, its reader is gone, and the daemon stays for the programs that publish.
    pub serves_a_run: bool,
}

impl DaemonOptions {
    /// For one run, as its environment says.
    pub fn of_run() -> Result<Self, String> {
        let settings = Settings::from_environment()?;
        Ok(Self {
            metadata: settings.metadata,
            yields_to_dcgm: true,
            time: None,
            segments: settings.segments,
            locks: settings.locks,
            serves_a_run: true,
        })
    }
}

impl Default for DaemonOptions {
    fn default() -> Self {
        let base = SegmentDirectory::of_user();
        Self {
            metadata: Metadata::default(),
            yields_to_dcgm: true,
            time: None,
            segments: base.join("programs"),
            locks: base,
            serves_a_run: false,
        }
    }
}

/// What the reader of a run last said.
const LISTENING: u8 = 0;
const ORPHANED: u8 = 1;
const ENDING: u8 = 2;

/// A running daemon. One per process.
pub struct Daemon {
    session: &'static Session,
    options: DaemonOptions,
    gpus: u32,
}

/// Program that owns the counters for DCGM.
const DCGM: &str = "nv-hostengine";
/// Time between looks at DCGM, at GPUs without an owner, and at dead segments.
const LOOK: u64 = 1_000_000_000;

impl Daemon {
    /// Starts the driver and learns the GPUs; a sentence if that is impossible.
    pub fn start(options: DaemonOptions) -> Result<Self, String> {
        let settings = Settings {
            metadata: options.metadata.clone(),
            segments: options.segments.clone(),
            locks: options.locks.clone(),
        };
        let gpus = Driver::open()?.start()?;
        let session = Session::begin(settings)?;
        session.mark_as_sampler();
        for index in 0..gpus {
            session.learn_gpu(index);
        }
        Ok(Self {
            session,
            options,
            gpus,
        })
    }

    /// Samples until the time is up.
    pub fn run(self) {
        let session = self.session;
        let mut nvml = match Nvml::open(&self.options.metadata.gauges.names) {
            Ok(nvml) => Some(nvml),
            Err(sentence) => {
                session.tell(&sentence);
                None
            }
        };
        let begun = clock::now();
        let (mut look_due, mut gauges_due) = (0, 0);
        let reader = Arc::new(AtomicU8::new(LISTENING));
        let mut programs = Neighbours::new(session.segment());
        loop {
            let now = clock::now();
            if now >= look_due {
                self.look();
                if look_due == 0 && self.options.serves_a_run {
                    println!("ready");
                    listen(&reader, session);
                }
                let orphaned = reader.load(Ordering::Relaxed) == ORPHANED;
                if orphaned && !programs.share(&session.gpus()) {
                    break;
                }
                look_due = now + LOOK;
            }
            session.beat();
            worker::drain_samples(session);
            if now >= gauges_due {
                worker::read_gauges(session, nvml.as_mut());
                gauges_due = now + self.options.metadata.gauge_interval_nanoseconds();
            }
            let over = self
                .options
                .time
                .is_some_and(|time| now - begun > time.as_nanos() as u64);
            if over || session.wait(Duration::from_nanos(worker::drain_interval(session))) {
                break;
            }
        }
        // The last kernel's counts are complete only when its interval is.
        let interval = self.options.metadata.interval_nanoseconds();
        std::thread::sleep(Duration::from_nanos(interval * 2));
        session.release_all();
        session.finish();
    }

    /// Yields or claims, and cleans up.
    fn look(&self) {
        if self.options.yields_to_dcgm && program_runs(DCGM) {
            if self.session.release_all() {
                self.session
                    .tell("counters are left to DCGM while nv-hostengine runs");
            }
        } else {
            for index in 0..self.gpus {
                self.session.claim(index);
            }
        }
        if let Ok(directory) =
            SegmentDirectory::open(&self.options.segments, &self.options.metadata.segment.group)
        {
            // What cannot be removed now is looked at again.
            let _ = directory.reap(clock::now(), KEPT);
        }
    }
}

/// Hears what the reader of a run says.
fn listen(reader: &Arc<AtomicU8>, session: &'static Session) {
    let reader = Arc::clone(reader);
    // Nobody waits for this thread: it ends with the process, or when the reader has spoken.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        if read.is_ok() && line.trim() == "end" {
            reader.store(ENDING, Ordering::Relaxed);
            session.stop();
        } else {
            reader.store(ORPHANED, Ordering::Relaxed);
        }
    });
}

/// Whether a program of that name runs on this node.
fn program_runs(name: &str) -> bool {
    let Ok(list) = std::fs::read_dir("/proc") else {
        return false;
    };
    list.filter_map(Result::ok)
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .bytes()
                .all(|byte| byte.is_ascii_digit())
        })
        .any(|entry| {
            std::fs::read_to_string(entry.path().join("comm"))
                .is_ok_and(|comm| comm.trim_end() == name)
        })
}
