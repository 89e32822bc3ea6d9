//! The saved state of a GPU in the middle of a kernel.

use crate::corpus::Corpus;
use crate::random::Random;
use crate::{mutate, samples, tiny};
use lockstep_frontend::ptx;
use lockstep_gpu::memory::Contents;
use lockstep_gpu::{Gpu, Launch, Mode, Options};
use lockstep_isa::Module;
use lockstep_units::{Duration, Time};
use std::sync::{Arc, OnceLock};

/// Where its memory lies.
const BASE: u64 = 0x2000_0000_0000;
const SIZE: u64 = 1 << 24;

fn module() -> Arc<Module> {
    static HELD: OnceLock<Arc<Module>> = OnceLock::new();
    let make = || {
        let image = ptx::parse(samples::KERNEL).expect("the kernel is good PTX");
        Arc::new(image.link(&[]).expect("the kernel links"))
    };
    HELD.get_or_init(make).clone()
}

fn gpu() -> Option<Gpu> {
    let contents = Contents::anonymous(BASE, SIZE).ok()?;
    let options = Options {
        mode: Mode::Timing,
        ..Options::default()
    };
    Gpu::new(&tiny::config(90), Arc::new(contents), options).ok()
}

/// What a GPU with a kernel on it saves.
fn saved() -> &'static [u8] {
    static HELD: OnceLock<Vec<u8>> = OnceLock::new();
    HELD.get_or_init(|| {
        let Some(mut gpu) = gpu() else {
            return Vec::new();
        };
        let _ = gpu.contents().map(BASE..BASE + (1 << 20));
        let mut launch = Launch::new(&module(), "kernel", [4, 1, 1], [64, 1, 1])
            .expect("the module has the kernel");
        launch.arguments = BASE.to_le_bytes().to_vec();
        let _ = gpu.launch(launch);
        // Until its loads are under way.
        gpu.advance(Time::ZERO + Duration::nanoseconds(800));
        gpu.save()
    })
}

pub fn make(_: &Corpus, random: &mut Random) -> Vec<u8> {
    let mut input = saved().to_vec();
    let range = 0..input.len();
    mutate::bytes(random, &mut input, range, &[]);
    input
}

/// A state that is taken on also runs.
pub fn run(bytes: &[u8]) {
    let Some(mut gpu) = gpu() else {
        return;
    };
    let module = module();
    if gpu.load(bytes, &|_| Some(module.clone())).is_ok() {
        let end = gpu.now() + Duration::microseconds(50);
        let _ = gpu.advance(end);
    }
}
