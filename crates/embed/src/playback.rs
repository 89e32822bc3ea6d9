//! A GPU with CUDA's runtime before it, which takes the calls of a program from a record, in the caller's time.

use crate::guard::{self, Failure, Handle, Troubles};
use crate::handle::{description, given_back, made};
use crate::listeners::Listeners;
use crate::results::{hand_out, named, put_text};
use crate::{
    LockstepKernelEnd, LockstepMemoryListener, LockstepOptions, LockstepStatus, LockstepVisitor,
};
use lockstep_simulation::{Entry, Playback, PlayedLaunch, Reached, Results};
use lockstep_units::Time;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};

/// How far a playback has come.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct LockstepProgress {
    /// Where the GPU stands, in femtoseconds since the beginning.
    pub now: u64,
    /// Simulated time of the host in femtoseconds: when the last call was answered, if an entry is wanted.
    pub host: u64,
    /// Not 0 if all that was entered is done, and time passes only after the next entry.
    pub wants_entry: u32,
    /// Not 0 if it is over: it failed, and `lockstep_playback_finish` says why.
    pub is_over: u32,
}

/// One simulated GPU that plays the calls of a program.
pub struct LockstepPlayback {
    played: Played,
    listeners: Listeners,
    troubles: Troubles,
}

/// A playback, and what has come of it.
pub(crate) struct Played {
    playback: Playback,
    launches: BTreeMap<u32, PlayedLaunch>,
    results: Option<Results>,
}

impl Handle for LockstepPlayback {
    type Inside = Played;

    fn parts(&mut self) -> (&mut Played, &mut Troubles) {
        (&mut self.played, &mut self.troubles)
    }

    fn troubles(&self) -> &Troubles {
        &self.troubles
    }
}

/// Makes an idle GPU at time zero that plays calls. With a `listener`, what is behind its L1 caches is outside, as
/// after `lockstep_on_memory_request`; null for the GPU's own L2 and DRAM. `kernel_end`, if it is not null, is told of
/// every launch that ended, in the order of calls. On failure `message`, if it is not null, gets the reason, cut to
/// `message_bytes`.
///
/// # Safety
/// The pointers are good, those in `options` too, and what is called for as long as the playback lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_playback_create(
    options: *const LockstepOptions,
    listener: LockstepMemoryListener,
    kernel_end: LockstepKernelEnd,
    context: *mut c_void,
    playback: *mut *mut LockstepPlayback,
    message: *mut c_char,
    message_bytes: usize,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    unsafe {
        made(playback, message, message_bytes, || {
            Ok(LockstepPlayback {
                played: Played {
                    playback: Playback::new(&description(options)?, listener.is_some())?,
                    launches: BTreeMap::new(),
                    results: None,
                },
                listeners: Listeners::new(kernel_end, listener, context),
                troubles: Troubles::default(),
            })
        })
    }
}

/// Gives it the next entry of a record, when one is wanted.
///
/// # Safety
/// The pointers are good; `entry` for `entry_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_playback_enter(
    playback: *mut LockstepPlayback,
    entry: *const u8,
    entry_bytes: usize,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(playback, |played| {
            let bytes = guard::slice(entry, entry_bytes, "bytes of an entry")?;
            let entry = Entry::from_bytes(bytes);
            let entry = entry.map_err(|error| Failure::argument(error.to_string()))?;
            Ok(played.playback.enter(entry)?)
        })
    })
}

/// Lets time pass until a boundary of epochs that is not before `until`, in femtoseconds since the beginning, or until
/// all that was entered is done; `progress` says how far it came. With memory outside and `until` at its greatest, who
/// is told of requests completes them: it is refused where nothing happens before one is complete.
///
/// # Safety
/// The pointers are good, and so is who is told of what happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_playback_advance(
    playback: *mut LockstepPlayback,
    until: u64,
    progress: *mut LockstepProgress,
) -> LockstepStatus {
    loop {
        // SAFETY: as the caller says.
        let passed = match unsafe { guard::on(playback, |played| played.pass(Time(until))) } {
            Ok(passed) => passed,
            Err(status) => return status,
        };
        // SAFETY: the call above found the pointer good, and nothing of it is borrowed.
        unsafe {
            let launches = passed.launches.iter().map(|launch| launch.number as u32);
            (*playback).listeners.tell(launches, &passed.requests);
        }
        if passed.wants_entry || passed.is_over || passed.now.0 >= until {
            let found = LockstepProgress {
                now: passed.now.0,
                host: passed.host.0,
                wants_entry: u32::from(passed.wants_entry),
                is_over: u32::from(passed.is_over),
            };
            // SAFETY: as the caller says.
            return guard::status(unsafe { guard::on(playback, |_| guard::put(progress, found)) });
        }
    }
}

impl Played {
    fn pass(&mut self, until: Time) -> Result<Reached, Failure> {
        let passed = self.playback.pass(until);
        if passed.awaits_memory {
            return Err(Failure::argument(format!(
                "{} requests wait for memory outside the GPU, and nothing else can happen before they are complete",
                self.playback.waiting()
            )));
        }
        for launch in &passed.launches {
            self.launches.insert(launch.number as u32, launch.clone());
        }
        Ok(passed)
    }

    fn launch(&self, number: u32) -> Result<&PlayedLaunch, Failure> {
        let launch = self.launches.get(&number);
        launch.ok_or_else(|| Failure::argument(format!("no launch {number} has ended")))
    }

    fn results(&self) -> Result<&Results, Failure> {
        let results = self.results.as_ref();
        results.ok_or_else(|| Failure::argument("the playback has not been finished"))
    }
}

/// A request is complete at a time, in femtoseconds, or now if that has passed.
///
/// # Safety
/// The pointer is good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_playback_complete(
    playback: *mut LockstepPlayback,
    request: u64,
    time: u64,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(playback, |played| {
            Ok(played.playback.complete(request, Time(time))?)
        })
    })
}

/// A counter of a launch that has ended, by its name in `kernels.csv`.
///
/// # Safety
/// The pointers are good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_playback_counter(
    playback: *mut LockstepPlayback,
    launch: u32,
    name: *const c_char,
    value: *mut u64,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(playback, |played| {
            let name = guard::text(name, "name of a counter")?;
            guard::put(value, named(&played.launch(launch)?.counters, name)?)
        })
    })
}

/// The (mangled) name of the kernel of a launch that has ended, with a zero behind it.
///
/// # Safety
/// The pointers are good; `name` may be written for `name_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_playback_kernel(
    playback: *mut LockstepPlayback,
    launch: u32,
    name: *mut c_char,
    name_bytes: usize,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(playback, |played| {
            put_text(&played.launch(launch)?.kernel, "the name", name, name_bytes)
        })
    })
}

/// Ends it where it stands, before statistics and digest are read. It fails if a kernel failed, or where the program
/// was answered otherwise or read other values when its calls were recorded.
///
/// # Safety
/// The pointer is good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_playback_finish(
    playback: *mut LockstepPlayback,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(playback, |played| {
            let results = played.playback.finish()?;
            let problems = results.summary.ending.problems.join("; ");
            played.results = Some(results);
            match problems.is_empty() {
                true => Ok(()),
                false => Err(Failure {
                    status: LockstepStatus::Fault,
                    message: problems,
                }),
            }
        })
    })
}

/// Hands every statistic of every component to a visitor, in their order, once it is finished.
///
/// # Safety
/// The pointers are good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_playback_statistics(
    playback: *mut LockstepPlayback,
    visitor: LockstepVisitor,
    context: *mut c_void,
) -> LockstepStatus {
    let table = |played: &mut Played| Ok(played.results()?.statistics.clone());
    // SAFETY: as the caller says.
    unsafe { hand_out(playback, table, visitor, context) }
}

/// Writes one hash of everything that was simulated, the digest of `lockstep run`: 64 hexadecimal digits and a zero,
/// into at least 65 bytes, once it is finished.
///
/// # Safety
/// The pointers are good; `digest` may be written for `digest_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_playback_digest(
    playback: *mut LockstepPlayback,
    digest: *mut c_char,
    digest_bytes: usize,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(playback, |played| {
            let found = played.results()?.summary.digest.clone().unwrap_or_default();
            put_text(&found, "a digest", digest, digest_bytes)
        })
    })
}

/// Why the last call on a playback failed; it stays until the next failure.
///
/// # Safety
/// The pointer is null or a playback of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_playback_message(
    playback: *const LockstepPlayback,
) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { guard::message(playback, c"there is no playback") }
}

/// Gives a playback back, also one that goes on; null is nothing to give.
///
/// # Safety
/// The playback is from this library and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_playback_destroy(playback: *mut LockstepPlayback) {
    // SAFETY: as the caller says.
    unsafe { given_back(playback) };
}
