//! What threads share, over [primitives](crate::primitives) that can be exchanged.

pub(crate) use crate::primitives::*;

/// A lock whose holder cannot leave anything half done: poisoning carries no meaning.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// On its own cache lines (two, since processors fetch them in pairs), so that neighbours written
/// by other threads do not slow it down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
