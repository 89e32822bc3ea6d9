//! Sentences for the user, on standard error.
//!
//! They are written with one system call each and without the standard library's lock, so
//! that they come out whole from any thread and at any time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Exit status of a program whose simulator is gone or fails it (BSD's "internal software error").
const SIMULATOR_GONE: i32 = 70;

/// Writes `lockstep: <sentence>`.
pub fn sentence(text: &str) {
    let line = format!("lockstep: {text}\n");
    // SAFETY: the pointer and length are those of a live string.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// Writes a sentence the first time only.
pub fn once(said: &AtomicBool, text: &str) {
    if !said.swap(true, Ordering::Relaxed) {
        sentence(text);
    }
}

/// Sentences that were said.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Most of them that are kept; those that come later are said each time.
const MOST_KEPT: usize = 64;

/// Writes a sentence unless it was written before: a library with a dozen images for other GPUs says once that
/// there is none for this one.
pub fn unless_said(text: &str) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let new = match said.len() < MOST_KEPT {
        true => said.insert(text.to_owned()),
        false => !said.contains(text),
    };
    drop(said);
    if new {
        sentence(text);
    }
}

/// Held by the thread that ends the program: others may notice at the same time, and one says why.
static ENDING: Mutex<()> = Mutex::new(());

/// Ends the program because it cannot be simulated any further.
pub fn fatal(reason: &str) -> ! {
    let _held = ENDING.lock();
    sentence(reason);
    // SAFETY: `_exit` has no preconditions. Handlers of the program's exit would call CUDA.
    unsafe { libc::_exit(SIMULATOR_GONE) }
}

/// Ends the program because its simulator is gone.
pub fn simulator_gone(reason: &str) -> ! {
    let _held = ENDING.lock();
    sentence(&format!(
        "the simulator is gone ({reason}); this program's GPU is gone with it, so it ends here"
    ));
    // SAFETY: `_exit` has no preconditions. Handlers of the program's exit would call CUDA.
    unsafe { libc::_exit(SIMULATOR_GONE) }
}
