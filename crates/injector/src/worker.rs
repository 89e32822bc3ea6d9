//! The injector's one thread: drains samples, reads gauges, shows signs of life.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use lockstep_schema::Mode;

use crate::guard::guarded;
use crate::neighbours::Neighbours;
use crate::session::{self, Session, lock};
use crate::{activity, clock, host, nvml::Nvml};

/// Time between two looks at activity buffers.
const FLUSH_INTERVAL: u64 = 100_000_000;
/// Time between two looks at how far streams have come, while they share a GPU.
const LOOK_INTERVAL: u64 = 100_000;
/// Time between two looks for other processes on the same GPU.
const NEIGHBOURS_INTERVAL: u64 = 50_000_000;
/// Time between two attempts to become the sampler of a GPU whose sampler went.
const CLAIM_INTERVAL: u64 = 1_000_000_000;

static THREAD: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

/// Starts the thread and arranges for the end of the process.
pub fn start(session: &'static Session) -> Result<(), String> {
    // The program's signals must reach the program's own threads, so the new one blocks them all.
    // SAFETY: plain sets of signals, and valid places for them.
    let before = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
        before
    };
    let spawned = std::thread::Builder::new()
        .name("lockstep-sample".to_owned())
        .spawn(move || work(session));
    // SAFETY: the set from above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    match spawned {
        Ok(thread) => *lock(&THREAD) = Some(thread),
        Err(error) => return Err(format!("no thread for sampling: {error}")),
    }
    arrange_end();
    Ok(())
}

/// Has [`ended`] called at the end of the process, before anything arranged so far.
pub fn arrange_end() {
    // SAFETY: a function of the right signature, there until the process ends.
    unsafe { libc::atexit(ended) };
}

/// Time between two drains: several samples at once, but often enough for a live view.
pub fn drain_interval(session: &Session) -> u64 {
    (session.settings.metadata.interval_nanoseconds() * 8).clamp(10_000_000, 100_000_000)
}

fn work(session: &'static Session) {
    let mut nvml = match Nvml::open(&session.settings.metadata.gauges.names) {
        Ok(nvml) => Some(nvml),
        Err(sentence) => {
            session.tell(&sentence);
            None
        }
    };
    let mut neighbours = Neighbours::new(session.segment());
    let drain = drain_interval(session);
    let gauges = session.settings.metadata.gauge_interval_nanoseconds();
    let follows = session.settings.metadata.mode == Mode::Sampled && session.follows_launches();
    let begun = clock::now();
    let (mut drain_due, mut gauges_due, mut flush_due) = (begun, 0, 0);
    let (mut claim_due, mut neighbours_due) = (begun + CLAIM_INTERVAL, 0);
    loop {
        // Marks are looked at often, everything else when it is due.
        let pause = if session.progress.waits() {
            LOOK_INTERVAL
        } else {
            let due = if follows {
                drain_due.min(neighbours_due)
            } else {
                drain_due
            };
            due.saturating_sub(clock::now()).max(LOOK_INTERVAL)
        };
        if session.wait(Duration::from_nanos(pause)) {
            break;
        }
        guarded("reading samples", || {
            session.publish_progress();
            let now = clock::now();
            if follows && now >= neighbours_due {
                session
                    .progress
                    .set_neighbours(neighbours.share(&session.gpus()));
                neighbours_due = now + NEIGHBOURS_INTERVAL;
            }
            if now < drain_due {
                return;
            }
            drain_due = now + drain;
            session.beat();
            if session.settings.metadata.mode == Mode::Exact {
                session.publish_outcome(&session.gates.give_to_others());
            }
            drain_samples(session);
            if now >= flush_due && session.traces_kernels() {
                activity::flush(session, false);
                flush_due = now + FLUSH_INTERVAL;
            }
            if now >= gauges_due {
                read_gauges(session, nvml.as_mut());
                gauges_due = now + gauges;
            }
            if now >= claim_due && session.settings.metadata.mode == Mode::Sampled {
                let indices: Vec<u32> =
                    session.with_devices(|devices| devices.keys().copied().collect());
                for index in indices {
                    session.claim(index);
                }
                claim_due = now + CLAIM_INTERVAL;
            }
        });
    }
    session.publish_progress();
    read_gauges(session, nvml.as_mut());
}

/// Publishes what the hardware sampled since the last call.
pub fn drain_samples(session: &Session) {
    let mut losses = Vec::new();
    session.with_devices(|devices| {
        for device in devices.values_mut() {
            let identity = device.identity;
            let Some((sampler, _)) = &mut device.sampler else {
                continue;
            };
            match sampler.drain(&mut |interval| session.publish_interval(identity, &interval)) {
                Ok(false) => {}
                Ok(true) => losses.push(format!(
                    "samples of {} were lost: the hardware's buffer overflowed; use a longer interval",
                    device.uuid
                )),
                Err(error) => {
                    losses.push(format!("sampling of {} ends: {error}", device.uuid));
                    device.sampler = None;
                    device.refused = true;
                }
            }
        }
    });
    for sentence in losses {
        session.lose(&sentence);
    }
}

/// Publishes the gauges of every GPU, and the process's host side.
pub fn read_gauges(session: &Session, nvml: Option<&mut Nvml>) {
    session.publish(&host::read());
    let Some(nvml) = nvml else { return };
    let devices: Vec<(u32, String)> = session.with_devices(|devices| {
        devices
            .values()
            .map(|one| (one.identity, one.uuid.clone()))
            .collect()
    });
    for (identity, uuid) in devices {
        if let Some(mut record) = nvml.read(&uuid) {
            record.device = identity;
            record.begin = clock::now();
            record.end = record.begin;
            session.publish(&record);
        }
    }
}

/// The process ends: publish everything that is known, then say so.
extern "C" fn ended() {
    guarded("ending", || {
        static ENDED: AtomicBool = AtomicBool::new(false);
        let Some(session) = session::current() else {
            return;
        };
        if ENDED.swap(true, Ordering::SeqCst) {
            return;
        }
        session.stop();
        let thread = lock(&THREAD).take();
        if let Some(thread) = thread {
            // What it panicked about was told by itself.
            let _ = thread.join();
        }
        match session.settings.metadata.mode {
            Mode::Exact => session.publish_outcome(&session.gates.close_all()),
            Mode::Timeline => activity::flush(session, true),
            Mode::Sampled => {
                let sampling = session
                    .with_devices(|devices| devices.values().any(|one| one.sampler.is_some()));
                if session.traces_kernels() {
                    activity::flush(session, true);
                }
                if sampling {
                    // The last kernel's counts are complete only when its interval is.
                    let interval = session.settings.metadata.interval_nanoseconds();
                    std::thread::sleep(Duration::from_nanos(interval * 2));
                    finish_samplers(session);
                }
            }
        }
        session.finish();
    });
}

/// Publishes everything sampled so far, the interval that just ended included.
pub fn stop_samplers(session: &Session) {
    drain_samples(session);
    session.with_devices(|devices| {
        for device in devices.values_mut() {
            if let Some((sampler, _)) = &mut device.sampler {
                sampler.stop();
            }
        }
    });
    drain_samples(session);
}

fn finish_samplers(session: &Session) {
    stop_samplers(session);
    // The driver takes the rest down with the process. Parts of CUPTI may already be gone, and
    // taking a sampler down without them was seen to hang.
    session.with_devices(|devices| {
        for device in devices.values_mut() {
            std::mem::forget(device.sampler.take());
        }
    });
}
