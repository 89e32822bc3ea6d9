//! A schedule of kernels, streams, events and copies; the input is a seed.

use crate::corpus::Corpus;
use crate::random::Random;
use crate::schedule;

pub fn make(_: &Corpus, random: &mut Random) -> Vec<u8> {
    random.next().to_le_bytes().to_vec()
}

pub fn run(bytes: &[u8]) {
    if let Some(seed) = bytes.first_chunk() {
        schedule::check(u64::from_le_bytes(*seed));
    }
}
