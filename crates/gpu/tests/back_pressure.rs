//! Slices that run out of MSHRs and of room in their queues: their SMs wait, and nothing else changes.

use std::sync::Arc;

use crate::common::*;
use lockstep_config::GpuConfig;
use lockstep_gpu::{Advance, Contents, EngineOptions, Gpu, Mode, Options};
use lockstep_isa::Module;
use lockstep_isa::memory::{AtomicOperation, AtomicType, Scope, Space};
use lockstep_stats::{Digest, Table};
use lockstep_units::{Cycles, Time};

/// Loads, stores and atomics that all miss, weak and strong, a line a thread.
fn misses() -> Arc<Module> {
    let mut k = Assembler::new();
    let [thread, offset, value, other] = k.regs();
    k.thread(thread);
    k.shl(offset, thread, imm(7));
    k.and(offset, offset, imm(0x3_ff80));
    k.load(value, Space::Global, BASE, offset, WEAK);
    k.load(other, Space::Global, BASE + 0x4_0000, offset, RELAXED);
    k.add(value, value, other);
    k.add(value, value, thread);
    k.store(Space::Global, BASE + 0x8_0000, offset, value, WEAK);
    k.atomic(
        Some(other),
        Space::Global,
        AtomicOperation::Add,
        AtomicType::U32,
        BASE + 0xc_0000,
        offset,
        &[value.into()],
        RELAXED,
    );
    k.fence(Scope::Gpu);
    k.store(Space::Global, BASE + 0x8_0040, offset, other, WEAK);
    k.finish()
}

/// Six SMs, with so many MSHRs, targets and credits.
fn config(mshrs: u32, targets: u32, credits: u32) -> GpuConfig {
    let mut config = small(6);
    (config.l2.mshrs, config.l2.mshr_targets) = (mshrs, targets);
    (
        config.interconnect.credits,
        config.interconnect.held_requests,
    ) = (credits, 4);
    config
}

fn new_gpu(config: &GpuConfig, contents: Arc<Contents>, threads: usize) -> Gpu {
    let options = Options {
        mode: Mode::Timing,
        engine: EngineOptions {
            threads,
            ..EngineOptions::default()
        },
        watchdog: Some(Cycles(20_000_000)),
        ..Options::default()
    };
    Gpu::new(config, contents, options).unwrap()
}

fn fresh(config: &GpuConfig, threads: usize) -> Gpu {
    let contents = Contents::anonymous(BASE, SIZE).unwrap();
    new_gpu(config, Arc::new(contents), threads)
}

/// A GPU on which two kernels of many blocks begin.
pub fn started(config: &GpuConfig, module: &Arc<Module>, threads: usize) -> Gpu {
    let mut gpu = new_gpu(config, memory(), threads);
    for queue in 0..2 {
        let mut one = launch(module, 24, 256, &[]);
        one.queue = queue;
        gpu.launch(one).unwrap();
    }
    gpu
}

pub fn finish(gpu: &mut Gpu) -> Digest {
    while !gpu.is_idle() {
        if let Advance::Faulted(fault) = gpu.advance(Time::NEVER) {
            panic!("{fault}");
        }
    }
    gpu.digest("gpu").root()
}

/// The digest is one for all numbers of threads, and where a GPU is saved at any moment and another goes on.
pub fn has_one_answer(config: &GpuConfig, module: &Arc<Module>, seed: u64) {
    let mut gpu = started(config, module, 1);
    let expected = finish(&mut gpu);
    let end = gpu.now();
    for threads in [2, 4] {
        let mut gpu = started(config, module, threads);
        assert_eq!(finish(&mut gpu), expected, "{threads} threads");
    }
    let mut random = Random(seed);
    for round in 0..12 {
        let at = Time(end.0 / 8 + random.below(end.0 * 3 / 4));
        let mut first = started(config, module, 1);
        first.advance_to(at).unwrap();
        let saved = first.save();
        let mut second = fresh(config, 1 + round % 4);
        second.load(&saved, &|_| Some(module.clone())).unwrap();
        assert!(second.save() == saved, "what is loaded is what was saved");
        assert_eq!(finish(&mut second), expected, "saved at {at}");
    }
}

/// The sum of a statistic over all components.
pub fn sum(gpu: &Gpu, component: &str, name: &str) -> u64 {
    let mut table = Table::default();
    gpu.statistics("gpu", &mut table);
    let rows = table.rows();
    let rows = rows
        .iter()
        .filter(|row| row.component.contains(component) && row.name == name);
    rows.map(|row| row.value).sum()
}

#[test]
fn full_tables_and_queues_have_one_answer_also_when_they_are_saved() {
    let module = misses();
    // Few of everything; MSHRs alone; credits alone.
    for (mshrs, targets, credits) in [(4, 2, 2), (3, 0, 0), (0, 0, 1)] {
        let config = config(mshrs, targets, credits);
        let mut gpu = started(&config, &module, 1);
        finish(&mut gpu);
        let stalls = sum(&gpu, "slice/", "mshr_stalls");
        let held = sum(&gpu, "/credits", "held");
        assert_eq!(stalls > 1000, mshrs > 0, "{stalls} stalls");
        assert_eq!(held > 1000, credits > 0, "{held} held back");
        has_one_answer(&config, &module, 3);
    }
}

#[test]
fn the_fewer_mshrs_and_credits_the_longer_it_takes() {
    let module = misses();
    let time = |mshrs, credits| {
        let mut gpu = started(&config(mshrs, 0, credits), &module, 1);
        finish(&mut gpu);
        gpu.now().0
    };
    let [few, some, any] = [4, 32, 0].map(|mshrs| time(mshrs, 0));
    assert!(few > some + some / 4 && some >= any, "{few} {some} {any}");
    let [one, many] = [1, 64].map(|credits| time(0, credits));
    assert!(one > many, "{one} {many}");
}

/// Back-pressure moves when things happen, never what they sum up to.
#[test]
fn sums_are_those_of_a_machine_without_bounds() {
    let module = misses();
    let sums = [config(0, 0, 0), config(2, 1, 1)].map(|config| {
        let mut gpu = started(&config, &module, 1);
        finish(&mut gpu);
        let all = words(&gpu, BASE + 0xc_0000, 0x4_0000 / 4);
        all.into_iter().step_by(32).collect::<Vec<u32>>()
    });
    assert_eq!(sums[0], sums[1]);
    // Every line is that of three threads of each launch: its number, and 2,048 and 4,096 more.
    for (line, sum) in (0..).zip(&sums[0]) {
        assert_eq!(*sum, 2 * (3 * line + 2048 + 4096), "line {line}");
    }
}
