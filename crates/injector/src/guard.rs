//! Keeps faults of the injector out of the program's own calls, and tells them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{report, session};

/// Runs `body`, which is called while `doing`. A panic in it ends nothing but is told, and the
/// reader of the samples ends with it.
pub fn guarded(doing: &str, body: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(body)).is_ok() {
        return;
    }
    let sentence = format!(
        "a fault inside the injector while {doing}: counts are missing from then on; please report it"
    );
    // Telling takes the same locks; if that panics too, the message of the panic itself was printed.
    let _ = catch_unwind(|| match session::current() {
        Some(session) => session.lose(&sentence),
        None => {
            report::tell(&sentence);
        }
    });
}
