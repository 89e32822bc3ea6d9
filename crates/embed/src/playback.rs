//! A GPU with CUDA's runtime before it, which takes the calls of a program from a record, in the caller's time.

use crate::guard::{self, Failure, Troubles};
use crate::handle::{description, given_back, made};
use crate::results::{hand_out, named, put_text};
use crate::{
    LockstepKernelEnd, LockstepMemoryListener, LockstepMemoryRequest, LockstepOptions,
    LockstepStatus, LockstepVisitor,
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
    playback: Playback,
    launches: BTreeMap<u32, PlayedLaunch>,
    results: Option<Results>,
    kernel_end: (LockstepKernelEnd, *mut c_void),
    memory: (LockstepMemoryListener, *mut c_void),
    troubles: Troubles,
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
                playback: Playback::new(&description(options)?, listener.is_some())?,
                launches: BTreeMap::new(),
                results: None,
                kernel_end: (kernel_end, context),
                memory: (listener, context),
                troubles: Troubles::default(),
            })
        })
    }
}

/// Does work on a playback that C points to.
///
/// # Safety
/// The pointer is null, or from this library, and nobody else uses the playback meanwhile.
unsafe fn on<T>(
    playback: *mut LockstepPlayback,
    work: impl FnOnce(&mut LockstepPlayback) -> Result<T, Failure>,
) -> Result<T, LockstepStatus> {
    // SAFETY: as the caller says.
    let Some(handle) = (unsafe { playback.as_mut() }) else {
        return Err(LockstepStatus::InvalidArgument);
    };
    let mut troubles = std::mem::take(&mut handle.troubles);
    let answer = troubles.watch(|| work(handle));
    handle.troubles = troubles;
    answer
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
        on(playback, |handle| {
            let bytes = guard::slice(entry, entry_bytes, "bytes of an entry")?;
            let entry = Entry::from_bytes(bytes);
            let entry = entry.map_err(|error| Failure::argument(error.to_string()))?;
            Ok(handle.playback.enter(entry)?)
        })
    })
}

/// Lets time pass until a boundary of epochs that is not before `until`, in femtoseconds since the beginning, or until
/// all that was entered is done; `progress` says how far it came.
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
        let passed = unsafe { on(playback, |handle| Ok(handle.pass(Time(until)))) };
        let passed = match passed {
            Ok(passed) => passed,
            Err(status) => return status,
        };
        // SAFETY: the call above found the pointer good, and nothing of it is borrowed.
        unsafe {
            let (kernel_end, memory) = ((*playback).kernel_end, (*playback).memory);
            if let (Some(tell), context) = kernel_end {
                for launch in &passed.launches {
                    tell(context, launch.number as u32);
                }
            }
            if let (Some(tell), context) = memory {
                for request in &passed.requests {
                    let request = LockstepMemoryRequest::from(request);
                    tell(context, &raw const request);
                }
            }
        }
        if passed.wants_entry || passed.is_over || passed.now.0 >= until {
            let found = LockstepProgress {
                now: passed.now.0,
                host: passed.host.0,
                wants_entry: u32::from(passed.wants_entry),
                is_over: u32::from(passed.is_over),
            };
            // SAFETY: as the caller says.
            return guard::status(unsafe { on(playback, |_| guard::put(progress, found)) });
        }
    }
}

impl LockstepPlayback {
    fn pass(&mut self, until: Time) -> Reached {
        let passed = self.playback.pass(until);
        for launch in &passed.launches {
            self.launches.insert(launch.number as u32, launch.clone());
        }
        passed
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
        on(playback, |handle| {
            Ok(handle.playback.complete(request, Time(time))?)
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
        on(playback, |handle| {
            let name = guard::text(name, "name of a counter")?;
            guard::put(value, named(&handle.launch(launch)?.counters, name)?)
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
        on(playback, |handle| {
            put_text(&handle.launch(launch)?.kernel, "the name", name, name_bytes)
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
        on(playback, |handle| {
            let results = handle.playback.finish()?;
            let problems = results.summary.ending.problems.join("; ");
            handle.results = Some(results);
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
    let Some(visit) = visitor else {
        return LockstepStatus::InvalidArgument;
    };
    // SAFETY: as the caller says.
    match unsafe { on(playback, |handle| Ok(handle.results()?.statistics.clone())) } {
        Ok(table) => {
            // SAFETY: as the caller says; nothing of the playback is borrowed.
            unsafe { hand_out(&table, visit, context) };
            LockstepStatus::Ok
        }
        Err(status) => status,
    }
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
        on(playback, |handle| {
            let found = handle.results()?.summary.digest.clone().unwrap_or_default();
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
    match unsafe { playback.as_ref() } {
        Some(handle) => handle.troubles.message().as_ptr(),
        None => c"there is no playback".as_ptr(),
    }
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
