//! Who has a socket open.
//!
//! The kernel shows for each process what it has open, so to find who has one socket all files of all processes are
//! looked at. Where it was found is kept: the next time one look there is enough.
//!
//! Start reading at [`are_open`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Most sockets whose place is kept.
const MOST_KEPT: usize = 4096;

/// Where sockets were found, by their numbers.
static FOUND: Mutex<BTreeMap<u64, Place>> = Mutex::new(BTreeMap::new());

/// An open file of a process.
#[derive(Clone)]
struct Place {
    process: u32,
    file: PathBuf,
}

/// Whether one of these processes has a socket open.
pub fn are_open(number: u64, processes: &[u32]) -> bool {
    let name = format!("socket:[{number}]");
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = found.get(&number)
        && processes.contains(&place.process)
        && is_named(&place.file, &name)
    {
        return true;
    }
    let Some(place) = processes.iter().find_map(|process| find(*process, &name)) else {
        found.remove(&number);
        return false;
    };
    if found.len() >= MOST_KEPT {
        found.clear();
    }
    found.insert(number, place);
    true
}

/// Where a process has a file open that the kernel names so.
fn find(process: u32, name: &str) -> Option<Place> {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    let mut files = files.filter_map(|file| Some(file.ok()?.path()));
    let file = files.find(|file| is_named(file, name))?;
    Some(Place { process, file })
}

fn is_named(file: &Path, name: &str) -> bool {
    std::fs::read_link(file).is_ok_and(|target| target == Path::new(name))
}
