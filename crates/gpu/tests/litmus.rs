//! The rule of decision 0002, by outcomes: what CUDA's memory model forbids never happens, and
//! what programs rely on always does. Each test runs 1,000 times over random SM counts, latencies
//! (and so epochs), positions and delays, in both modes.

use std::sync::{Arc, OnceLock};

use crate::common::*;
use lockstep_config::GpuConfig;
use lockstep_gpu::{Gpu, Mode};
use lockstep_isa::Module;
use lockstep_isa::memory::{AtomicOperation, AtomicType, Scope, Space, Strength};
use lockstep_units::{Cycles, Duration};

/// Runs of every test.
const RUNS: u64 = 1000;

/// A small GPU whose shape follows from the seed.
fn random_gpu(random: &mut Random) -> Gpu {
    let mode = if random.below(2) == 0 {
        Mode::Functional
    } else {
        Mode::Timing
    };
    // Reading the GPU file takes longer than a litmus test.
    static FILE: OnceLock<GpuConfig> = OnceLock::new();
    let mut config = FILE.get_or_init(|| small(1)).clone();
    config.device.sms = 1 + random.below(5) as u32;
    config.l2.slices = [1, 2, 4][random.below(3) as usize];
    config.interconnect.request_latency = Cycles(16 + random.below(120));
    config.interconnect.reply_latency = Cycles(16 + random.below(120));
    config.dispatch.latency = Cycles(16 + random.below(200));
    config.dispatch.block_interval = Duration::picoseconds(500 + 500 * random.below(60));
    config.launch.start_latency = Cycles(1);
    config.launch.finish_latency = Cycles(1);
    // Of a stream of its own: what else follows from the seed stays as it is.
    let kind = Random(random.0 ^ 0x1e7).below(8) as usize;
    let kind = ["mesh", "switched", "simple"].get(kind).copied();
    config.interconnect.kind = kind.unwrap_or("crossbar").into();
    if config.interconnect.has_networks() {
        config.interconnect.request_latency += Cycles(16);
        config.interconnect.reply_latency += Cycles(16);
        config.interconnect.network.buffer_flits = 1 + random.0 as u32 % 4;
    }
    gpu(&config, mode)
}

/// Words that a test uses: some share a sector, some a slice, some neither.
fn places(random: &mut Random) -> [u64; 2] {
    let first = BASE + 4 * random.below(16);
    let second = match random.below(3) {
        0 => first + 4,
        1 => first + 128,
        _ => first + 4096 + 4 * random.below(2000),
    };
    [first, second]
}

/// Passes some time, different for every thread.
fn delay(k: &mut Assembler, random: &mut Random) {
    let turns = random.below(60);
    let counter = k.reg();
    let more = k.pred();
    k.mov(counter, imm(turns + 1));
    let again = k.here();
    k.sub(counter, counter, imm(1));
    k.not_equal(more, counter, imm(0));
    k.branch_if(more, true, again);
}

/// A kernel in which block 0 does one thing and block 1 another, one thread each.
fn two_threads(
    random: &mut Random,
    first: impl FnOnce(&mut Assembler, &mut Random),
    second: impl FnOnce(&mut Assembler, &mut Random),
) -> Arc<Module> {
    let mut k = Assembler::new();
    let block = k.reg();
    let is_first = k.pred();
    let end = k.label();
    let other = k.label();
    k.block(block);
    k.equal(is_first, block, imm(0));
    k.branch_if(is_first, false, other);
    delay(&mut k, random);
    first(&mut k, random);
    k.branch(end);
    k.place(other);
    delay(&mut k, random);
    second(&mut k, random);
    k.place(end);
    k.finish()
}

const OUT: u64 = BASE + 0x8_0000;

fn spin(k: &mut Assembler, address: u64, wanted: u64, strength: Strength) {
    let value = k.reg();
    let wait = k.pred();
    let again = k.here();
    k.load(value, Space::Global, address, imm(0), strength);
    k.not_equal(wait, value, imm(wanted));
    k.branch_if(wait, true, again);
}

fn report(k: &mut Assembler, index: u64, value: R) {
    k.store(Space::Global, OUT, imm(4 * index), value, WEAK);
}

#[test]
fn message_passing() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut gpu = random_gpu(&mut random);
        let [data, flag] = places(&mut random);
        let style = random.below(4);
        let weak_data = random.below(2) == 0;
        let data_strength = if weak_data { WEAK } else { RELAXED };
        let module = two_threads(
            &mut random,
            |k, _| {
                k.store(Space::Global, data, imm(0), imm(42), data_strength);
                match style {
                    0 => {
                        k.fence(Scope::Gpu);
                        k.store(Space::Global, flag, imm(0), imm(1), RELAXED);
                    }
                    1 => k.store(Space::Global, flag, imm(0), imm(1), RELEASE),
                    2 => {
                        k.fence(Scope::System);
                        k.store(Space::Global, flag, imm(0), imm(1), VOLATILE);
                    }
                    _ => k.atomic(
                        None,
                        Space::Global,
                        AtomicOperation::Exchange,
                        AtomicType::U32,
                        flag,
                        imm(0),
                        &[imm(1)],
                        RELEASE,
                    ),
                }
            },
            |k, _| {
                let value = k.reg();
                match style {
                    0 | 2 => {
                        spin(k, flag, 1, VOLATILE);
                        k.fence(Scope::Gpu);
                    }
                    _ => spin(k, flag, 1, ACQUIRE),
                }
                k.load(value, Space::Global, data, imm(0), data_strength);
                report(k, 0, value);
            },
        );
        run(&mut gpu, &module, 2, 1, &[]);
        assert_eq!(word(&gpu, OUT), 42, "seed {seed}");
    }
}

#[test]
fn an_acquire_orders_what_does_not_depend_on_it() {
    let mut seen = [0; 2];
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut gpu = random_gpu(&mut random);
        let [data, flag] = places(&mut random);
        let module = two_threads(
            &mut random,
            |k, _| {
                k.store(Space::Global, data, imm(0), imm(42), WEAK);
                k.store(Space::Global, flag, imm(0), imm(1), RELEASE);
            },
            |k, random| {
                // One look at the flag, no loop: sometimes too early.
                for _ in 0..random.below(12) {
                    delay(k, random);
                }
                let [raised, value] = k.regs();
                k.load(raised, Space::Global, flag, imm(0), ACQUIRE);
                k.load(value, Space::Global, data, imm(0), WEAK);
                report(k, 0, raised);
                report(k, 1, value);
            },
        );
        run(&mut gpu, &module, 2, 1, &[]);
        let [raised, value] = [0, 1].map(|index| word(&gpu, OUT + 4 * index));
        assert!(
            raised == 0 || value == 42,
            "seed {seed}: the flag without the data"
        );
        seen[raised as usize] += 1;
    }
    assert!(seen[0] > 20 && seen[1] > 20, "the seeds try both: {seen:?}");
}

#[test]
fn store_buffering() {
    let mut seen = [0; 4];
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut gpu = random_gpu(&mut random);
        let [x, y] = places(&mut random);
        let pick = |random: &mut Random| {
            if random.below(2) == 0 { WEAK } else { RELAXED }
        };
        let side = |mine: u64, other: u64, index: u64| {
            move |k: &mut Assembler, random: &mut Random| {
                let value = k.reg();
                k.store(Space::Global, mine, imm(0), imm(1), pick(random));
                k.fence(Scope::Gpu);
                k.load(value, Space::Global, other, imm(0), pick(random));
                report(k, index, value);
            }
        };
        let module = two_threads(&mut random, side(x, y, 0), side(y, x, 1));
        run(&mut gpu, &module, 2, 1, &[]);
        let [first, second] = [0, 1].map(|index| word(&gpu, OUT + 4 * index));
        assert!(
            first == 1 || second == 1,
            "seed {seed}: both read the old value"
        );
        seen[(2 * first + second) as usize] += 1;
    }
    assert!(
        seen[1] > 0 && seen[2] > 0 && seen[3] > 0,
        "the seeds try all orders: {seen:?}"
    );
}

#[test]
fn coherence_of_reads() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut gpu = random_gpu(&mut random);
        let [x, _] = places(&mut random);
        const READS: u64 = 12;
        let module = two_threads(
            &mut random,
            |k, random| {
                for value in 1..=6 {
                    let strength = if random.below(2) == 0 { WEAK } else { RELAXED };
                    k.store(Space::Global, x, imm(0), imm(value), strength);
                    if random.below(2) == 0 {
                        delay(k, random);
                    }
                }
            },
            |k, random| {
                for index in 0..READS {
                    let value = k.reg();
                    let strength = if random.below(2) == 0 { WEAK } else { RELAXED };
                    k.load(value, Space::Global, x, imm(0), strength);
                    report(k, index, value);
                    if random.below(3) == 0 {
                        delay(k, random);
                    }
                }
            },
        );
        run(&mut gpu, &module, 2, 1, &[]);
        let reads = words(&gpu, OUT, READS as usize);
        assert!(
            reads.is_sorted(),
            "seed {seed}: a value came back: {reads:?}"
        );
        assert_eq!(word(&gpu, x), 6, "seed {seed}: the last store stays");
    }
}

#[test]
fn reduction_then_store_in_one_thread() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut gpu = random_gpu(&mut random);
        let [x, _] = places(&mut random);
        let body = |k: &mut Assembler, random: &mut Random, at: u64, index: u64| {
            let value = k.reg();
            let add = AtomicOperation::Add;
            // Two adds, then the store that must win, then an add on top of it.
            for _ in 0..2 {
                k.atomic(
                    None,
                    Space::Global,
                    add,
                    AtomicType::U32,
                    at,
                    imm(0),
                    &[imm(5)],
                    RELAXED,
                );
            }
            if random.below(2) == 0 {
                delay(k, random);
            }
            k.store(Space::Global, at, imm(0), imm(100), WEAK);
            k.load(value, Space::Global, at, imm(0), WEAK);
            report(k, index, value);
            k.atomic(
                None,
                Space::Global,
                add,
                AtomicType::U32,
                at,
                imm(0),
                &[imm(1)],
                RELAXED,
            );
            k.load(value, Space::Global, at, imm(0), WEAK);
            report(k, index + 1, value);
        };
        // Both threads work in one sector, on words of their own.
        let neighbour = if x.is_multiple_of(8) { x + 4 } else { x - 4 };
        let module = two_threads(
            &mut random,
            |k, random| body(k, random, x, 0),
            |k, random| body(k, random, neighbour, 2),
        );
        run(&mut gpu, &module, 2, 1, &[]);
        assert_eq!(words(&gpu, OUT, 4), [100, 101, 100, 101], "seed {seed}");
        assert_eq!(
            [word(&gpu, x), word(&gpu, neighbour)],
            [101; 2],
            "seed {seed}"
        );
    }
}

/// Every thread takes a lock, adds one to a counter with plain accesses, and gives it back.
fn locked_increment(random: &mut Random, lock: u64, counter: u64) -> Arc<Module> {
    let mut k = Assembler::new();
    let [old, value, done] = k.regs();
    let [taken, waits] = [k.pred(), k.pred()];
    delay(&mut k, random);
    k.mov(done, imm(0));
    let exchange_release = random.below(2) == 0;
    let again = k.here();
    k.atomic(
        Some(old),
        Space::Global,
        AtomicOperation::CompareAndSwap,
        AtomicType::U32,
        lock,
        imm(0),
        &[imm(0), imm(1)],
        RELAXED,
    );
    k.equal(taken, old, imm(0));
    let skip = k.label();
    k.branch_if(taken, false, skip);
    k.fence(Scope::Gpu);
    k.load(value, Space::Global, counter, imm(0), WEAK);
    k.add(value, value, imm(1));
    k.store(Space::Global, counter, imm(0), value, WEAK);
    k.fence(Scope::Gpu);
    if exchange_release {
        k.atomic(
            None,
            Space::Global,
            AtomicOperation::Exchange,
            AtomicType::U32,
            lock,
            imm(0),
            &[imm(0)],
            RELAXED,
        );
    } else {
        k.store(Space::Global, lock, imm(0), imm(0), VOLATILE);
    }
    k.mov(done, imm(1));
    k.place(skip);
    k.equal(waits, done, imm(0));
    k.branch_if(waits, true, again);
    k.finish()
}

fn check_lock(threads: impl Fn(&mut Random) -> (u32, u32)) {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut gpu = random_gpu(&mut random);
        let [lock, counter] = places(&mut random);
        let module = locked_increment(&mut random, lock, counter);
        let (grid, block) = threads(&mut random);
        run(&mut gpu, &module, grid, block, &[]);
        assert_eq!(
            word(&gpu, counter),
            grid * block,
            "seed {seed}: {grid} x {block}"
        );
        assert_eq!(word(&gpu, lock), 0, "seed {seed}");
    }
}

#[test]
fn lock_within_a_warp() {
    check_lock(|random| (1, 2 + random.below(5) as u32));
}

#[test]
fn lock_within_an_sm() {
    // One thread of each of several warps, and of several blocks where SMs are few.
    check_lock(|random| (1, 32 * (1 + random.below(2) as u32) + 1));
}

#[test]
fn lock_across_sms() {
    check_lock(|random| (2 + random.below(6) as u32, 1));
}

#[test]
fn grid_barrier() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut gpu = random_gpu(&mut random);
        let [arrived, _] = places(&mut random);
        let blocks = 2 + random.below(6);
        const ROUNDS: u64 = 3;
        let mut k = Assembler::new();
        let [block, slot, next, value, count, thread] = k.regs();
        let [leader, wait] = [k.pred(), k.pred()];
        k.block(block);
        k.mul(slot, block, imm(40));
        k.thread(thread);
        k.equal(leader, thread, slot);
        k.shl(slot, block, imm(2));
        k.add(next, block, imm(1));
        let wrap = k.pred();
        k.equal(wrap, next, imm(blocks));
        k.guarded(wrap, true, |k| k.mov(next, imm(0)));
        k.shl(next, next, imm(2));
        delay(&mut k, &mut random);
        for round in 1..=ROUNDS {
            // Each block writes its word, and after the barrier reads that of its neighbour.
            let words = OUT + 0x1000 * round;
            k.guarded(leader, true, |k| {
                k.add(value, block, imm(100 * round));
                k.store(Space::Global, words, slot, value, WEAK);
            });
            k.sync();
            let joined = k.label();
            k.branch_if(leader, false, joined);
            k.fence(Scope::Gpu);
            k.atomic(
                None,
                Space::Global,
                AtomicOperation::Add,
                AtomicType::U32,
                arrived,
                imm(0),
                &[imm(1)],
                RELAXED,
            );
            let again = k.here();
            k.load(count, Space::Global, arrived, imm(0), VOLATILE);
            k.less(wait, count, imm(round * blocks));
            k.branch_if(wait, true, again);
            k.fence(Scope::Gpu);
            k.place(joined);
            k.sync();
            k.load(value, Space::Global, words, next, WEAK);
            k.guarded(leader, true, |k| {
                k.store(
                    Space::Global,
                    OUT + 0x1000 * (10 + round),
                    slot,
                    value,
                    WEAK,
                );
            });
        }
        run(&mut gpu, &k.finish(), blocks as u32, 40, &[]);
        for round in 1..=ROUNDS {
            let found = words(&gpu, OUT + 0x1000 * (10 + round), blocks as usize);
            let expected: Vec<u32> = (0..blocks)
                .map(|block| (100 * round + (block + 1) % blocks) as u32)
                .collect();
            assert_eq!(found, expected, "seed {seed}, round {round}");
        }
    }
}

#[test]
fn ordered_through_a_third_thread() {
    // Block 0 writes data; block 1 sees it and raises the flag; block 2 sees the flag and must
    // see the data: order is handed on.
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut gpu = random_gpu(&mut random);
        let [data, first] = places(&mut random);
        let second = first + 64;
        let mut k = Assembler::new();
        let [block, value] = k.regs();
        let p = k.pred();
        let (one, two, end) = (k.label(), k.label(), k.label());
        k.block(block);
        k.equal(p, block, imm(1));
        k.branch_if(p, true, one);
        k.equal(p, block, imm(2));
        k.branch_if(p, true, two);
        delay(&mut k, &mut random);
        k.store(Space::Global, data, imm(0), imm(7), WEAK);
        k.store(Space::Global, first, imm(0), imm(1), RELEASE);
        k.branch(end);
        k.place(one);
        spin(&mut k, first, 1, ACQUIRE);
        delay(&mut k, &mut random);
        k.store(Space::Global, second, imm(0), imm(1), RELEASE);
        k.branch(end);
        k.place(two);
        spin(&mut k, second, 1, ACQUIRE);
        k.load(value, Space::Global, data, imm(0), WEAK);
        report(&mut k, 0, value);
        k.place(end);
        run(&mut gpu, &k.finish(), 3, 1, &[]);
        assert_eq!(word(&gpu, OUT), 7, "seed {seed}");
    }
}

#[test]
fn a_reduction_of_another_warp_is_seen_through_a_barrier_and_a_fence() {
    // Warp 1 adds without waiting, the block meets, warp 0 fences and raises the flag: whoever
    // sees the flag sees the sum.
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let mut gpu = random_gpu(&mut random);
        let [sum, flag] = places(&mut random);
        let mut k = Assembler::new();
        let [block, thread, value] = k.regs();
        let p = k.pred();
        let (reader, end) = (k.label(), k.label());
        k.block(block);
        k.thread(thread);
        k.equal(p, block, imm(1));
        k.branch_if(p, true, reader);
        k.equal(p, thread, imm(40));
        k.guarded(p, true, |k| {
            k.atomic(
                None,
                Space::Global,
                AtomicOperation::Add,
                AtomicType::U32,
                sum,
                imm(0),
                &[imm(9)],
                RELAXED,
            );
        });
        k.sync();
        k.equal(p, thread, imm(0));
        k.branch_if(p, false, end);
        k.fence(Scope::Gpu);
        k.store(Space::Global, flag, imm(0), imm(1), RELAXED);
        k.branch(end);
        k.place(reader);
        spin(&mut k, flag, 1, ACQUIRE);
        k.load(value, Space::Global, sum, imm(0), WEAK);
        report(&mut k, 0, value);
        k.place(end);
        run(&mut gpu, &k.finish(), 2, 64, &[]);
        assert_eq!(word(&gpu, OUT), 9, "seed {seed}");
    }
}
