//! What stands between C and the simulation: pointers become references, failures a status with a sentence, and no
//! panic leaves.

use crate::LockstepStatus;
use lockstep_simulation::{EmbeddedError, RunError};
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call failed.
pub struct Failure {
    pub status: LockstepStatus,
    pub message: String,
}

impl Failure {
    /// The caller gave something that cannot be.
    pub fn argument(message: impl Into<String>) -> Self {
        Self {
            status: LockstepStatus::InvalidArgument,
            message: message.into(),
        }
    }

    /// The simulator panicked.
    pub fn internal() -> Self {
        Self {
            status: LockstepStatus::Internal,
            message: "the simulator failed; standard error has the reason".into(),
        }
    }
}

impl From<EmbeddedError> for Failure {
    fn from(error: EmbeddedError) -> Self {
        let status = match &error {
            EmbeddedError::Machine(_) => LockstepStatus::Configuration,
            EmbeddedError::Module(_) => LockstepStatus::Module,
            EmbeddedError::Request(_) => LockstepStatus::InvalidArgument,
            EmbeddedError::Gpu(_) => LockstepStatus::Fault,
            EmbeddedError::State(_) => LockstepStatus::State,
        };
        Self {
            status,
            message: error.to_string(),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let status = match &error {
            RunError::Machine(_) => LockstepStatus::Configuration,
            RunError::Request(_) => LockstepStatus::InvalidArgument,
            _ => LockstepStatus::Fault,
        };
        Self {
            status,
            message: error.to_string(),
        }
    }
}

/// What every handle of C has: why the last call failed, and whether the simulator itself did.
#[derive(Default)]
pub struct Troubles {
    message: CString,
    broken: bool,
}

impl Troubles {
    /// Why the last call failed.
    pub fn message(&self) -> &CStr {
        &self.message
    }

    /// Does work, unless the simulator has failed before; what it answers, or the status that C gets.
    pub fn watch<T>(
        &mut self,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, LockstepStatus> {
        if self.broken {
            return Err(LockstepStatus::Internal);
        }
        let failure = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(failure)) => failure,
            Err(_) => {
                self.broken = true;
                Failure::internal()
            }
        };
        let without_zeros = failure.message.replace('\0', "");
        self.message = CString::new(without_zeros).unwrap_or_default();
        Err(failure.status)
    }
}

/// What C has a pointer to: something that work is done on, and why that failed last.
pub(crate) trait Handle {
    /// What work is done on.
    type Inside;

    /// It, and its troubles.
    fn parts(&mut self) -> (&mut Self::Inside, &mut Troubles);

    /// Its troubles alone.
    fn troubles(&self) -> &Troubles;
}

/// Does work on what C points to; what it answers, or the status that C gets.
///
/// # Safety
/// The pointer is null, or from this library, and nobody else uses the handle meanwhile.
pub unsafe fn on<H: Handle, T>(
    handle: *mut H,
    work: impl FnOnce(&mut H::Inside) -> Result<T, Failure>,
) -> Result<T, LockstepStatus> {
    // SAFETY: as the caller says.
    let Some(handle) = (unsafe { handle.as_mut() }) else {
        return Err(LockstepStatus::InvalidArgument);
    };
    let (inside, troubles) = handle.parts();
    troubles.watch(|| work(inside))
}

/// Why the last call on a handle failed, for C; `missing` if there is no handle.
///
/// # Safety
/// The pointer is null or from this library.
pub unsafe fn message<H: Handle>(handle: *const H, missing: &'static CStr) -> *const c_char {
    // SAFETY: as the caller says.
    match unsafe { handle.as_ref() } {
        Some(handle) => handle.troubles().message().as_ptr(),
        None => missing.as_ptr(),
    }
}

/// A status of an outcome.
pub fn status(outcome: Result<(), LockstepStatus>) -> LockstepStatus {
    outcome.err().unwrap_or(LockstepStatus::Ok)
}

/// Puts an answer where C wants it.
///
/// # Safety
/// The pointer is null or may be written.
pub unsafe fn put<T>(place: *mut T, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::argument("there is no place for the answer"));
    }
    // SAFETY: not null, and as the caller says.
    unsafe { place.write(value) };
    Ok(())
}

/// A text that C points to.
///
/// # Safety
/// The pointer is null or ends with a zero, and lives as long as the answer is used.
pub unsafe fn text<'a>(words: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if words.is_null() {
        return Err(Failure::argument(format!("there is no {what}")));
    }
    // SAFETY: not null, and as the caller says.
    let words = unsafe { CStr::from_ptr(words) };
    words
        .to_str()
        .map_err(|_| Failure::argument(format!("the {what} is not UTF-8")))
}

/// Elements that C points to; none if there are none.
///
/// # Safety
/// The pointer is good for `count` elements, or `count` is 0, for as long as the answer is used.
pub unsafe fn slice<'a, T>(first: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() || count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::argument(format!("there are no {count} {what}")));
    }
    // SAFETY: not null, not too many, and as the caller says.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}
