//! Kernels that can never end are found out, and no others.

use crate::common::*;
use lockstep_engine::Options as EngineOptions;
use lockstep_gpu::{Gpu, GpuError, KernelRecord, Mode, Options};
use lockstep_isa::Module;
use lockstep_isa::memory::{AtomicOperation, AtomicType, Space};
use lockstep_units::Cycles;
use std::sync::Arc;

const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];

fn run_watched(
    mode: Mode,
    threads: usize,
    module: &Arc<Module>,
    grid: u32,
    block: u32,
) -> Result<KernelRecord, GpuError> {
    let options = Options {
        mode,
        watchdog: Some(Cycles(100_000_000)),
        patience: Some(Cycles(40_000)),
        engine: EngineOptions {
            threads,
            ..EngineOptions::default()
        },
        ..Options::default()
    };
    let mut gpu = Gpu::new(&small(4), memory(), options).unwrap();
    let id = gpu.launch(launch(module, grid, block, &[])).unwrap();
    gpu.run_until_complete(id)
}

/// A kernel that must be found out, with one message for any number of threads.
fn stuck(build: impl Fn(&mut Assembler), grid: u32, block: u32) -> Vec<String> {
    let texts = MODES.map(|mode| {
        let mut k = Assembler::new();
        build(&mut k);
        let module = k.finish();
        let texts = [1, 2, 5].map(|threads| {
            let outcome = run_watched(mode, threads, &module, grid, block);
            outcome.expect_err("it can never end").to_string()
        });
        assert!(
            texts[0].contains("no warp can make progress"),
            "{}",
            texts[0]
        );
        assert_eq!(texts[0], texts[1], "{mode:?}");
        assert_eq!(texts[0], texts[2], "{mode:?}");
        texts[0].clone()
    });
    texts.to_vec()
}

/// A kernel that takes its time and ends.
fn ends(build: impl Fn(&mut Assembler), grid: u32, block: u32) {
    for mode in MODES {
        let mut k = Assembler::new();
        build(&mut k);
        if let Err(error) = run_watched(mode, 2, &k.finish(), grid, block) {
            panic!("{mode:?}: {error}");
        }
    }
}

fn wait_for_flag(k: &mut Assembler, space: Space, base: u64) {
    let (value, set) = (k.reg(), k.pred());
    let again = k.here();
    k.load(value, space, base, imm(128), RELAXED);
    k.less(set, value, imm(1));
    k.branch_if(set, true, again);
}

#[test]
fn a_flag_that_nobody_sets() {
    for text in stuck(|k| wait_for_flag(k, Space::Global, BASE), 8, 64) {
        assert!(text.contains("reading 0x200000000080"), "{text}");
        assert!(text.contains("spin at instruction"), "{text}");
    }
}

#[test]
fn a_flag_in_shared_memory_while_others_wait_at_a_barrier() {
    let build = |k: &mut Assembler| {
        k.shared_bytes = 256;
        let (warp, first) = (k.reg(), k.pred());
        k.warp(warp);
        k.less(first, warp, imm(1));
        let meet = k.label();
        k.branch_if(first, false, meet);
        wait_for_flag(k, Space::Shared, 0);
        k.place(meet);
        k.sync();
    };
    for text in stuck(build, 3, 128) {
        assert!(text.contains("reading shared memory at 0x80"), "{text}");
        assert!(text.contains("barrier 0 has 96"), "{text}");
    }
}

#[test]
fn a_lock_that_is_never_given_back() {
    let build = |k: &mut Assembler| {
        let (old, held) = (k.reg(), k.pred());
        let again = k.here();
        let swap = AtomicOperation::CompareAndSwap;
        let values = [imm(0), imm(1)];
        let kind = AtomicType::U32;
        k.atomic(
            Some(old),
            Space::Global,
            swap,
            kind,
            BASE,
            imm(64),
            &values,
            RELAXED,
        );
        k.less(held, imm(0), old);
        k.branch_if(held, true, again);
    };
    for text in stuck(build, 4, 32) {
        assert!(text.contains("reading 0x200000000040"), "{text}");
    }
}

/// One block sets a flag after a while, the others wait for it.
fn set_late(k: &mut Assembler) {
    let [block, count] = k.regs();
    let (first, more) = (k.pred(), k.pred());
    k.block(block);
    k.less(first, block, imm(1));
    let (wait, over) = (k.label(), k.label());
    k.branch_if(first, false, wait);
    k.mov(count, imm(0));
    let again = k.here();
    k.add(count, count, imm(1));
    k.less(more, count, imm(60_000));
    k.branch_if(more, true, again);
    k.store(Space::Global, BASE, imm(128), imm(1), RELAXED);
    k.branch(over);
    k.place(wait);
    wait_for_flag(k, Space::Global, BASE);
    k.place(over);
}

#[test]
fn a_flag_that_is_set_after_a_long_time() {
    ends(set_late, 4, 32);
}

/// Looking often, rarely or never is nothing that the simulation could tell.
#[test]
fn being_watched_changes_nothing() {
    for mode in MODES {
        let digests = [None, Some(1_000), Some(7_777)].map(|patience| {
            let mut k = Assembler::new();
            set_late(&mut k);
            let options = Options {
                mode,
                patience: patience.map(Cycles),
                ..Options::default()
            };
            let mut gpu = Gpu::new(&small(4), memory(), options).unwrap();
            let id = gpu.launch(launch(&k.finish(), 4, 32, &[])).unwrap();
            gpu.run_until_complete(id).unwrap();
            gpu.digest("gpu").root()
        });
        assert_eq!(digests[0], digests[1], "{mode:?}");
        assert_eq!(digests[0], digests[2], "{mode:?}");
    }
}

/// The counter is in memory; registers are the same in every round.
#[test]
fn rounds_that_are_counted_in_memory() {
    for space in [Space::Global, Space::Shared, Space::Local] {
        let build = |k: &mut Assembler| {
            (k.shared_bytes, k.local_bytes) = (256, 256);
            let base = if space == Space::Global { BASE } else { 0 };
            let (count, more) = (k.reg(), k.pred());
            let again = k.here();
            k.load(count, space, base, imm(0), WEAK);
            k.add(count, count, imm(1));
            k.store(space, base, imm(0), count, WEAK);
            k.less(more, count, imm(20_000));
            k.mov(count, imm(0));
            k.branch_if(more, true, again);
        };
        ends(build, 1, 32);
    }
}

#[test]
fn who_waits_for_the_clock() {
    let build = |k: &mut Assembler| {
        let [now, start] = k.regs();
        let early = k.pred();
        k.clock(start);
        k.add(start, start, imm(400_000));
        let again = k.here();
        k.clock(now);
        k.less(early, now, start);
        // Nothing is left of the time that was read.
        k.mov(now, imm(0));
        k.branch_if(early, true, again);
    };
    for mode in MODES {
        let mut k = Assembler::new();
        build(&mut k);
        let mut module = Arc::try_unwrap(k.finish()).unwrap();
        module.listing = vec!["CS2R R0, SR_CLOCKLO".into(); module.code.len()];
        let ended = run_watched(mode, 2, &Arc::new(module), 1, 32);
        assert!(ended.is_ok(), "{mode:?}: {ended:?}");
    }
}
