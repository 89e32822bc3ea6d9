//! What bytes are thrown at, one file a reader.

mod checkpoint;
mod configuration;
mod image;
mod record;
mod schedule;
mod state;
mod trace;
mod wire;

pub use image::try_image;

use crate::corpus::Corpus;
use crate::random::Random;

/// One reader: how an input is made, and what is done with it.
pub struct Target {
    /// As the command line has it.
    pub name: &'static str,
    /// What it tries.
    pub sentence: &'static str,
    /// Makes the input of a seed.
    pub make: fn(&Corpus, &mut Random) -> Vec<u8>,
    /// Reads it, and runs what there is to run.
    pub run: fn(&[u8]),
}

/// All targets, in the order in which they run.
pub const TARGETS: &[Target] = &[
    Target {
        name: "ptx",
        sentence: "PTX is parsed, linked, and its kernels run in both modes",
        make: image::make_ptx,
        run: image::run_ptx,
    },
    Target {
        name: "cubin",
        sentence: "machine code is read, listed, linked, and its kernels run in both modes",
        make: image::make_cubin,
        run: image::run_cubin,
    },
    Target {
        name: "fatbinary",
        sentence: "a container is unpacked, and what fits it runs",
        make: image::make_fatbinary,
        run: image::run_fatbinary,
    },
    Target {
        name: "toml",
        sentence: "the description of a GPU is read, and the GPU is built",
        make: configuration::make,
        run: configuration::run,
    },
    Target {
        name: "wire-server",
        sentence: "what a CUDA program sends is read and answered",
        make: wire::make_server,
        run: wire::run_server,
    },
    Target {
        name: "wire-client",
        sentence: "what a simulator answers is read by a program",
        make: wire::make_client,
        run: wire::run_client,
    },
    Target {
        name: "record",
        sentence: "a record of calls is replayed",
        make: record::make,
        run: record::run,
    },
    Target {
        name: "state",
        sentence: "the saved state of a GPU is loaded",
        make: state::make,
        run: state::run,
    },
    Target {
        name: "checkpoint",
        sentence: "the checkpoint of a run is read",
        make: checkpoint::make,
        run: checkpoint::run,
    },
    Target {
        name: "trace",
        sentence: "a trace of a kernel is read, and its code is bound",
        make: trace::make,
        run: trace::run,
    },
    Target {
        name: "schedule",
        sentence: "kernels, streams, events and copies end in order, alike for 1, 2 and 5 threads",
        make: schedule::make,
        run: schedule::run,
    },
];

/// The target of a name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// A good input of some, and another one that lends pieces.
fn two<'a>(random: &mut Random, inputs: &[&'a [u8]]) -> (Vec<u8>, &'a [u8]) {
    let first = random.pick(inputs).copied().unwrap_or_default();
    let second = random.pick(inputs).copied().unwrap_or_default();
    (first.to_vec(), second)
}
