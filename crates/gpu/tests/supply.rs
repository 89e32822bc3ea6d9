//! What warps wait for before they can work: code that no launch brought, constants by index, and
//! translations; one digest for any number of threads and a save in the middle.

use std::sync::Arc;

use crate::common::*;
use lockstep_config::GpuConfig;
use lockstep_gpu::{Contents, EngineOptions, Gpu, Mode, Options};
use lockstep_isa::Module;
use lockstep_isa::memory::Space;
use lockstep_units::{Cycles, Time};

/// Where kernels leave their cycles.
const RESULT: u64 = BASE + 0x8000;

/// Instructions that a launch brings along on an H200.
const BROUGHT: usize = 4096;

/// Reads the clock around what `body` makes, and stores the difference.
fn timed(body: impl FnOnce(&mut Assembler)) -> Arc<Module> {
    let mut k = Assembler::new();
    let [before, after] = k.regs();
    k.clock(before);
    body(&mut k);
    k.clock(after);
    k.sub(after, after, before);
    k.store(Space::Global, RESULT, imm(0), after, WEAK);
    k.finish()
}

fn machine(config: &GpuConfig, threads: usize, contents: Arc<Contents>) -> Gpu {
    let options = Options {
        mode: Mode::Timing,
        engine: EngineOptions {
            threads,
            ..EngineOptions::default()
        },
        watchdog: Some(Cycles(3_000_000)),
        ..Options::default()
    };
    Gpu::new(config, contents, options).unwrap()
}

/// Cycles that a kernel of one warp counts in each of some launches.
fn cycles<const LAUNCHES: usize>(config: &GpuConfig, module: &Arc<Module>) -> [u32; LAUNCHES] {
    let mut gpu = machine(config, 1, memory());
    std::array::from_fn(|_| {
        run(&mut gpu, module, 1, 32, &[]);
        word(&gpu, RESULT)
    })
}

fn straight(k: &mut Assembler, instructions: usize) {
    let sum = k.reg();
    k.mov(sum, imm(1));
    for _ in 0..instructions {
        k.add(sum, sum, imm(3));
    }
}

/// A load from a table whose lanes read words so many bytes apart.
fn constants(k: &mut Assembler, apart: u64) {
    let [lane, offset, value, sum] = k.regs();
    k.lane(lane);
    k.mul(offset, lane, imm(apart));
    k.mov(sum, imm(0));
    for _ in 0..16 {
        k.load(value, Space::Constant { bank: 3 }, 0, offset, WEAK);
        k.add(sum, sum, value);
    }
}

/// Loads past L1 from so many regions of 64 KiB in turn.
fn regions(k: &mut Assembler, count: u64) {
    let [value, sum] = k.regs();
    k.mov(sum, imm(0));
    for round in 0..8 {
        for region in 0..count {
            let address = BASE + (region << 16) + round * 128;
            k.load(value, Space::Global, address, imm(0), RELAXED);
            k.add(sum, sum, value);
        }
    }
}

/// A GPU whose uTLB has two entries of 64 KiB, and whose GPCs have two of 128 KiB.
fn few_translations() -> GpuConfig {
    let mut config = small(2);
    let translation = &mut config.translation;
    translation.micro_tlb_entries = 2;
    translation.micro_tlb_reach.0 = 64 << 10;
    translation.gpc_tlb_entries = 2;
    translation.gpc_tlb_reach.0 = 128 << 10;
    config
}

#[test]
fn code_beyond_what_a_launch_brings_comes_from_l2() {
    let config = small(2);
    let [short] = cycles(&config, &timed(|k| straight(k, BROUGHT / 2)));
    let [first, again] = cycles(&config, &timed(|k| straight(k, 4 * BROUGHT)));
    // Each line of 8 instructions beyond waits, and more so the first time.
    let expected = 8 * short;
    assert!(first > again, "{first} {again}");
    assert!(
        again > expected + expected / 10,
        "{again}, by length {expected}"
    );
}

#[test]
fn lanes_that_read_different_constants_wait_for_each_other() {
    let config = small(2);
    let [_, same] = cycles(&config, &timed(|k| constants(k, 0)));
    let [_, different] = cycles(&config, &timed(|k| constants(k, 4)));
    let [_, far] = cycles(&config, &timed(|k| constants(k, 2048)));
    let replays = 16 * 31 * config.sm.front_end.constant_replay.0 as u32;
    assert!(different >= same + replays, "{same} {different}");
    assert!(far > different + replays, "{different} {far}");
}

#[test]
fn more_memory_than_the_tlbs_reach_takes_longer() {
    let config = few_translations();
    let [_, in_reach] = cycles(&config, &timed(|k| regions(k, 2)));
    let [_, micro] = cycles(&config, &timed(|k| regions(k, 4)));
    let [_, walks] = cycles(&config, &timed(|k| regions(k, 8)));
    let mut free = small(2);
    free.translation.micro_tlb_entries = 0;
    let [_, without] = cycles(&free, &timed(|k| regions(k, 2)));
    assert_eq!(in_reach, without, "what fits is not touched");
    let [_, without] = cycles(&free, &timed(|k| regions(k, 4)));
    assert!(micro > without, "{micro} {without}");
    let [_, without] = cycles(&free, &timed(|k| regions(k, 8)));
    let walk = config.translation.walk_latency.0 as u32;
    assert!(walks > without + 8 * walk, "{walks} {without}");
}

#[test]
fn one_answer_for_all_threads_and_saved_in_the_middle() {
    let config = few_translations();
    let module = timed(|k| {
        constants(k, 64);
        regions(k, 8);
        straight(k, 2 * BROUGHT);
        constants(k, 2048);
    });
    let launch = launch(&module, 4, 64, &[]);
    let mut reference = None;
    for threads in [1, 2, 5] {
        let mut gpu = machine(&config, threads, memory());
        let id = gpu.launch(launch.clone()).unwrap();
        gpu.run_until_complete(id).unwrap();
        let root = gpu.digest("gpu").root();
        assert_eq!(*reference.get_or_insert(root), root, "{threads}");
        if threads > 1 {
            continue;
        }
        for part in [6, 3, 2] {
            let mut first = machine(&config, 1, memory());
            let id = first.launch(launch.clone()).unwrap();
            first.advance_to(Time(gpu.now().0 / part)).unwrap();
            let saved = first.save();
            let contents = Arc::new(Contents::anonymous(BASE, SIZE).unwrap());
            let mut second = machine(&config, 1, contents);
            second.load(&saved, &|_| Some(module.clone())).unwrap();
            second.run_until_complete(id).unwrap();
            assert_eq!(second.digest("gpu").root(), root, "saved at 1/{part}");
        }
    }
}
