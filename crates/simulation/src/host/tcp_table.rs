//! The kernel's tables of TCP as text. Reading them takes milliseconds, since the kernel goes through all of a large
//! hash table for each, so that who can do with an old text is given one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How old a text may be for those who ask what was there lately.
const LATELY: Duration = Duration::from_millis(200);

/// How often those are given a new text who would rather have one.
const OFTEN: u32 = 100;

static ASKED: AtomicU32 = AtomicU32::new(0);
static LAST: Mutex<Option<(Instant, Arc<str>)>> = Mutex::new(None);

/// The tables as they are now.
#[expect(
    clippy::disallowed_methods,
    reason = "how old a text is, not what is simulated"
)]
pub fn now() -> Arc<str> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let begun = Instant::now();
    let text: Arc<str> = tables
        .map(|path| std::fs::read_to_string(path).unwrap_or_default())
        .concat()
        .into();
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    *last = Some((begun, text.clone()));
    text
}

/// The tables as they were a moment ago. Numbers of sockets are not given twice, so who is found there was at that
/// end; who is not may have come since.
pub fn lately() -> Arc<str> {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match last {
        Some((begun, text)) if begun.elapsed() < LATELY => text,
        _ => now(),
    }
}

/// The tables as they are now, for those who ask first; a program that has asked often is answered with what was there
/// lately, so that its calls do not wait for the kernel.
pub fn now_at_first() -> Arc<str> {
    match ASKED.fetch_add(1, Ordering::Relaxed) {
        asked if asked < OFTEN => now(),
        _ => lately(),
    }
}
