//! Sentences for the user, each told once, and details for a log.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Mutex, OnceLock};

use crate::{clock, settings};

static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Tells `sentence` on standard error unless a reader does; true the first time.
pub fn tell(sentence: &str) -> bool {
    detail(sentence);
    let first = TOLD
        .lock()
        .is_ok_and(|mut told| told.insert(sentence.to_owned()));
    if first && std::env::var_os(settings::QUIET).is_none() {
        let _ = writeln!(std::io::stderr(), "lockstep: {sentence}");
    }
    first
}

/// Appends a line to the log, if the environment names one.
pub fn detail(line: &str) {
    static FILE: OnceLock<Option<Mutex<std::fs::File>>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let path = std::env::var_os(settings::LOG)?;
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .ok()
            .map(Mutex::new)
    });
    if let Some(Ok(mut file)) = file.as_ref().map(Mutex::lock) {
        let _ = writeln!(file, "{} {} {line}", clock::now(), std::process::id());
    }
}
