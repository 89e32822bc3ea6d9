//! Records of calls.

use super::two;
use crate::corpus::{Corpus, Kind};
use crate::random::Random;
use crate::{mutate, samples, tiny};
use lockstep_simulation::Mode;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;

pub fn make(corpus: &Corpus, random: &mut Random) -> Vec<u8> {
    let (mut input, other) = two(random, &corpus.of(Kind::Record));
    if input.is_empty() || random.once_in(2) {
        input = samples::record(corpus);
    }
    mutate::packed(random, &mut input, other);
    input
}

pub fn run(bytes: &[u8]) {
    let Ok(file) = in_memory(bytes) else {
        return;
    };
    let description = tiny::description(tiny::config(90), Mode::Functional);
    let _ = lockstep_simulation::replay(&description, Path::new(&path_of(&file)));
}

/// A file that is on no disk.
pub fn in_memory(bytes: &[u8]) -> std::io::Result<std::fs::File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let mut file = std::fs::File::from(rustix::fs::memfd_create("input", flags)?);
    file.write_all(bytes)?;
    Ok(file)
}

/// Its path.
pub fn path_of(file: &std::fs::File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
