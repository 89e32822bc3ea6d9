//! Equal digests however the host runs the simulation, and after saving and loading.

use std::sync::Arc;

use crate::common::*;
use lockstep_gpu::{
    Advance, EngineOptions, Gpu, INTERCONNECTS, Mode, Options, Perturbation, Recorder, Schedule,
    Watch,
};
use lockstep_isa::Module;
use lockstep_isa::instruction::SystemCallKind;
use lockstep_isa::memory::{AtomicOperation, AtomicType, Scope, Space};
use lockstep_stats::Digest;
use lockstep_units::{Cycles, Duration, Time};

/// Everything that could depend on an order: racing stores, float sums, tickets, locks, spinning,
/// shared memory, divergence, local memory, printing, the heap, sleep.
fn everything() -> Arc<Module> {
    let mut k = Assembler::new();
    k.shared_bytes = 512;
    k.local_bytes = 128;
    let [thread, offset, value, old, lane, pointer, up, size, zero] = k.regs();
    let [p, q] = [k.pred(), k.pred()];
    let _ = up;
    k.thread(thread);
    k.lane(lane);
    k.shl(offset, thread, imm(2));
    // Stores that race for 64 words, from every SM.
    k.and(value, offset, imm(0xfc));
    k.store(Space::Global, BASE, value, thread, WEAK);
    // Sums whose result depends on the order of its terms.
    k.mul(value, thread, imm(0x9e37_79b9));
    k.shr(value, value, imm(9));
    k.add(value, value, imm(0x3f00_0000));
    let add = AtomicOperation::Add;
    let float = AtomicType::F32 { flush: false };
    k.atomic(
        None,
        Space::Global,
        add,
        float,
        BASE + 1024,
        imm(0),
        &[value.into()],
        RELAXED,
    );
    // Tickets, and the store that follows a reduction.
    k.atomic(
        Some(old),
        Space::Global,
        add,
        AtomicType::U32,
        BASE + 2048,
        imm(0),
        &[imm(1)],
        RELAXED,
    );
    k.store(Space::Global, BASE + 0x1_0000, offset, old, WEAK);
    k.atomic(
        None,
        Space::Global,
        AtomicOperation::Xor,
        AtomicType::U32,
        BASE + 0x2_0000,
        offset,
        &[imm(99)],
        RELAXED,
    );
    k.store(Space::Global, BASE + 0x2_0000, offset, lane, WEAK);
    // Shared memory, a barrier, local memory.
    k.and(size, offset, imm(0x1fc));
    k.store(Space::Shared, 0, size, old, WEAK);
    k.sync();
    k.load(value, Space::Shared, 0, imm(12), WEAK);
    k.store(Space::Local, 0, imm(64), value, WEAK);
    // Lanes part ways; one in sixteen takes a lock.
    k.and(zero, lane, imm(15));
    k.equal(p, zero, imm(7));
    let (skip, again) = (k.label(), k.label());
    k.branch_if(p, false, skip);
    k.place(again);
    k.atomic(
        Some(old),
        Space::Global,
        AtomicOperation::CompareAndSwap,
        AtomicType::U32,
        BASE + 3072,
        imm(0),
        &[imm(0), imm(1)],
        RELAXED,
    );
    k.equal(q, old, imm(0));
    k.branch_if(q, false, again);
    k.load(value, Space::Global, BASE + 3072 + 64, imm(0), ACQUIRE);
    k.mul(value, value, imm(1_103_515_245));
    k.add(value, value, thread);
    k.store(Space::Global, BASE + 3072 + 64, imm(0), value, RELAXED);
    k.store(Space::Global, BASE + 3072, imm(0), imm(0), RELEASE);
    k.place(skip);
    k.fence(Scope::Gpu);
    // A few lanes print, allocate and sleep.
    k.equal(p, lane, imm(5));
    k.mov(size, imm(40));
    k.mov(zero, imm(0));
    k.guarded(p, true, |k| {
        k.system(SystemCallKind::Allocate, &[size.into()], Some(pointer));
        k.system(SystemCallKind::Sleep, &[imm(300)], None);
        k.store(Space::Global, BASE + 0x3_0000, offset, pointer, WEAK);
    });
    k.load(value, Space::Local, 0, imm(64), WEAK);
    k.store(Space::Global, BASE + 0x4_0000, offset, value, WEAK);
    k.clock(value);
    k.store(Space::Global, BASE + 0x5_0000, offset, value, WEAK);
    k.finish()
}

fn new_gpu(mode: Mode, engine: EngineOptions) -> Gpu {
    let options = Options {
        mode,
        engine,
        watchdog: Some(Cycles(5_000_000)),
        ..Options::default()
    };
    Gpu::new(&small(6), memory(), options).unwrap()
}

/// A GPU with this interconnect, and somebody who watches nearly everything.
fn watched_gpu(kind: &str, fresh: bool, engine: EngineOptions) -> (Gpu, Recorder) {
    let mut config = small(6);
    config.interconnect.kind = kind.into();
    config.interconnect.network.buffer_flits = 2;
    let mut watches = vec![
        "dispatcher,0,20000,300",
        "sm 1,2000,8000,400",
        "slice,2500,6000,200",
        "dram,0,20000,100",
        "request,2000,5000,150",
        "reply 2,2000,5000,150",
    ];
    if config.interconnect.has_networks() {
        watches.push("network,2000,5000,150");
    }
    let watches: Vec<Watch> = watches
        .iter()
        .map(|watch| Watch::parse(watch).unwrap())
        .collect();
    let recorder = Recorder::new(&watches, &config).unwrap();
    let options = Options {
        mode: Mode::Timing,
        engine,
        watchdog: Some(Cycles(5_000_000)),
        recorder: recorder.clone(),
        ..Options::default()
    };
    let contents = if fresh {
        Arc::new(lockstep_gpu::Contents::anonymous(BASE, SIZE).unwrap())
    } else {
        memory()
    };
    let gpu = Gpu::new(&config, contents, options).unwrap();
    (gpu, recorder.unwrap())
}

#[test]
fn every_interconnect_has_one_answer_and_is_seen_the_same_way() {
    let module = everything();
    let mut ends = Vec::new();
    for kind in INTERCONNECTS {
        let mut reference = None;
        for (threads, jumping, seed) in [
            (1, true, None),
            (1, false, None),
            (2, true, None),
            (3, true, Some(4)),
            (8, true, None),
        ] {
            let engine = EngineOptions {
                threads,
                jumping,
                schedule: Schedule::Dynamic,
                perturbation: seed.map(|seed| Perturbation { seed }),
                ..EngineOptions::default()
            };
            let (mut gpu, recorder) = watched_gpu(kind.name, false, engine);
            start(&mut gpu, &module);
            finish(&mut gpu);
            let seen = (root(&gpu), recorder.text());
            let first = reference.get_or_insert(seen.clone());
            assert_eq!(seen.0, first.0, "{}, {threads} threads", kind.name);
            assert!(seen.1 == first.1, "{}, {threads} threads: lines", kind.name);
        }
        let (expected, lines) = reference.unwrap();
        assert!(lines.lines().count() > 500, "{}: {lines}", kind.name);
        // Nobody watching changes nothing.
        let mut config = small(6);
        config.interconnect.kind = kind.name.into();
        config.interconnect.network.buffer_flits = 2;
        let mut gpu = gpu(&config, Mode::Timing);
        start(&mut gpu, &module);
        finish(&mut gpu);
        assert_eq!(root(&gpu), expected, "{}: watched or not", kind.name);
        ends.push(gpu.now());
        // Saved in the middle of it.
        let at = Time(gpu.now().0 / 3);
        let (mut first, _) = watched_gpu(kind.name, false, EngineOptions::default());
        start(&mut first, &module);
        first.advance_to(at).unwrap();
        let saved = first.save();
        let (mut second, _) = watched_gpu(kind.name, true, EngineOptions::default());
        second.load(&saved, &|_| Some(module.clone())).unwrap();
        assert!(second.save() == saved, "{}: what was saved", kind.name);
        finish(&mut second);
        assert_eq!(root(&second), expected, "{}: saved at {at}", kind.name);
    }
    ends.sort();
    ends.dedup();
    assert_eq!(ends.len(), INTERCONNECTS.len(), "each has its own time");
}

fn fresh_gpu(mode: Mode, engine: EngineOptions) -> Gpu {
    let contents = Arc::new(lockstep_gpu::Contents::anonymous(BASE, SIZE).unwrap());
    let options = Options {
        mode,
        engine,
        watchdog: Some(Cycles(5_000_000)),
        ..Options::default()
    };
    Gpu::new(&small(6), contents, options).unwrap()
}

fn start(gpu: &mut Gpu, module: &Arc<Module>) {
    gpu.set_heap(BASE + 0x8_0000..BASE + 0x9_0000);
    for queue in 0..2 {
        let mut one = launch(module, 8, 96, &[]);
        one.queue = queue;
        gpu.launch(one).unwrap();
    }
    let mut last = launch(module, 3, 64, &[]);
    last.at = Time(20_000_000);
    gpu.launch(last).unwrap();
}

fn finish(gpu: &mut Gpu) {
    while !gpu.is_idle() {
        if let Advance::Faulted(fault) = gpu.advance(Time::NEVER) {
            panic!("{fault}");
        }
    }
}

fn root(gpu: &Gpu) -> Digest {
    gpu.digest("gpu").root()
}

#[test]
fn threads_schedules_delays_and_jumping_do_not_show() {
    let module = everything();
    for mode in [Mode::Functional, Mode::Timing] {
        let mut reference = None;
        for threads in [1, 2, 3, 8] {
            for schedule in [Schedule::Static, Schedule::Dynamic, Schedule::Balanced] {
                for seed in [None, Some(threads as u64 + 7)] {
                    for jumping in [true, false] {
                        if !jumping && (seed.is_some() || threads > 2) {
                            continue;
                        }
                        let engine = EngineOptions {
                            threads,
                            schedule,
                            jumping,
                            perturbation: seed.map(|seed| Perturbation { seed }),
                            ..EngineOptions::default()
                        };
                        let mut gpu = new_gpu(mode, engine);
                        start(&mut gpu, &module);
                        finish(&mut gpu);
                        let tree = gpu.digest("gpu");
                        let (first, root) = reference.get_or_insert((tree.clone(), tree.root()));
                        assert_eq!(
                            tree.root(),
                            *root,
                            "{mode:?}, {threads} threads, {schedule:?}, delays {seed:?}, jumping \
                             {jumping}: {:?}",
                            first.differences(&tree)
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn saving_and_loading_inside_kernels_does_not_show() {
    let module = everything();
    for mode in [Mode::Functional, Mode::Timing] {
        let mut gpu = new_gpu(mode, EngineOptions::default());
        start(&mut gpu, &module);
        finish(&mut gpu);
        let (expected, end) = (root(&gpu), gpu.now());
        let mut random = Random(11);
        for _ in 0..20 {
            let at = Time(random.below(end.0));
            let mut first = new_gpu(mode, EngineOptions::default());
            start(&mut first, &module);
            while first.now() < at {
                if let Advance::Faulted(fault) = first.advance(at) {
                    panic!("{fault}");
                }
            }
            let saved = first.save();
            let threads = 1 + random.below(3) as usize;
            let mut second = fresh_gpu(
                mode,
                EngineOptions {
                    threads,
                    ..EngineOptions::default()
                },
            );
            second.load(&saved, &|_| Some(module.clone())).unwrap();
            assert_eq!(
                second.save(),
                saved,
                "{mode:?} at {at}: what is loaded is what was saved"
            );
            drop(first);
            finish(&mut second);
            assert_eq!(root(&second), expected, "{mode:?}, saved at {at}");
        }
    }
}

#[test]
fn stopping_and_going_on_does_not_show() {
    let module = everything();
    for mode in [Mode::Functional, Mode::Timing] {
        let mut gpu = new_gpu(mode, EngineOptions::default());
        start(&mut gpu, &module);
        finish(&mut gpu);
        let expected = root(&gpu);
        let mut random = Random(5);
        let mut gpu = new_gpu(mode, EngineOptions::default());
        start(&mut gpu, &module);
        while !gpu.is_idle() {
            let step = Duration::nanoseconds(1 + random.below(500));
            if let Advance::Faulted(fault) = gpu.advance(gpu.now() + step) {
                panic!("{fault}");
            }
        }
        assert_eq!(root(&gpu), expected, "{mode:?}");
    }
}

#[test]
fn broken_state_is_refused() {
    let module = everything();
    let mut gpu = new_gpu(Mode::Functional, EngineOptions::default());
    start(&mut gpu, &module);
    gpu.advance_to(Time(1_000_000)).unwrap();
    let saved = gpu.save();
    let mut random = Random(3);
    for _ in 0..200 {
        let mut other = fresh_gpu(Mode::Functional, EngineOptions::default());
        let length = random.below(saved.len() as u64) as usize;
        assert!(
            other
                .load(&saved[..length], &|_| Some(module.clone()))
                .is_err()
        );
    }
    // Parts index each other's state: a changed byte would end the simulator, or lie.
    for _ in 0..200 {
        let mut changed = saved.clone();
        let place = random.below(saved.len() as u64) as usize;
        changed[place] ^= 1 << random.below(8);
        let mut other = fresh_gpu(Mode::Functional, EngineOptions::default());
        assert!(other.load(&changed, &|_| Some(module.clone())).is_err());
    }
    let mut other = fresh_gpu(Mode::Functional, EngineOptions::default());
    assert!(
        other.load(&saved, &|_| None).is_err(),
        "the module is missing"
    );
    let mut other = fresh_gpu(Mode::Timing, EngineOptions::default());
    assert!(
        other.load(&saved, &|_| Some(module.clone())).is_err(),
        "another mode"
    );
}
