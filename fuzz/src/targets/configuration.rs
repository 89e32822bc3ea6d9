//! Descriptions of GPUs.

use super::two;
use crate::corpus::{Corpus, Kind};
use crate::random::Random;
use crate::{mutate, tiny};
use lockstep_config::{GpuConfig, to_toml};
use lockstep_simulation::{Mode, Session};

/// Files of the catalogue, and the whole of the tiny GPU.
pub fn make(corpus: &Corpus, random: &mut Random) -> Vec<u8> {
    let (mut input, other) = two(random, &corpus.of(Kind::Toml));
    if input.is_empty() || random.once_in(2) {
        input = to_toml(&tiny::config(90)).into_bytes();
    }
    mutate::text(random, &mut input, other);
    input
}

pub fn run(bytes: &[u8]) {
    let Ok(file) = super::record::in_memory(bytes) else {
        return;
    };
    let path = super::record::path_of(&file);
    let Ok(config) = lockstep_config::load::<&str>(Some(&path), &[]) else {
        return;
    };
    if is_small(&config) {
        let _ = Session::new(&tiny::description(config, Mode::Timing));
    }
}

/// A GPU of thousands of SMs is a good one, and takes longer to build than a case may.
fn is_small(config: &GpuConfig) -> bool {
    config.device.sms <= 256 && config.l2.slices <= 256
}
