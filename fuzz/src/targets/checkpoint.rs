//! The file that stands for a checkpoint of a run.

use crate::corpus::Corpus;
use crate::random::Random;
use crate::{mutate, samples};
use lockstep_simulation::Started;

pub fn make(_: &Corpus, random: &mut Random) -> Vec<u8> {
    let mut input = samples::checkpoint().to_vec();
    let range = 0..input.len();
    mutate::bytes(random, &mut input, range, &[]);
    input
}

/// As it is, which a digest refuses, and as if whoever changed it had made the digest anew.
pub fn run(bytes: &[u8]) {
    let _ = Started::parse(bytes, false);
    let _ = Started::parse(bytes, true);
}
