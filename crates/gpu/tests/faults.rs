//! What stops a kernel, and what its message says; calls that leave the device code.

use crate::common::*;
use lockstep_gpu::{Advance, Contents, EngineOptions, FaultKind, Gpu, GpuError, Mode, Options};
use lockstep_isa::instruction::{BlockBarrierMode, CodeAddress, Flow, SystemCallKind};
use lockstep_isa::memory::{AtomicOperation, AtomicType, Space};
use lockstep_isa::{Module, Operation};
use lockstep_units::{Cycles, Time};
use std::sync::Arc;

const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];

/// Runs a kernel of 2 blocks of 64 threads that must fail, and gives the message without cycle.
fn failure(mode: Mode, k: Assembler) -> String {
    let mut gpu = gpu(&small(2), mode);
    let id = gpu.launch(launch(&k.finish(), 2, 64, &[])).unwrap();
    let Err(GpuError::Fault(fault)) = gpu.run_until_complete(id) else {
        panic!("the kernel did not fail");
    };
    let text = fault.to_string();
    let (before, after) = text.split_once(", cycle ").unwrap();
    format!("{before}: {}", after.split_once(": ").unwrap().1)
}

fn check(build: impl Fn(&mut Assembler), expected: &str) {
    for mode in MODES {
        let mut k = Assembler::new();
        build(&mut k);
        assert_eq!(failure(mode, k), expected, "{mode:?}");
    }
}

#[test]
fn an_address_outside_allocations_is_named_with_its_thread() {
    check(
        |k| {
            let [thread, offset] = k.regs();
            k.thread(thread);
            // What lies in the same page of 2 MiB as an allocation is mapped.
            k.mul(offset, thread, imm(1 << 15));
            k.store(Space::Global, BASE, offset, thread, WEAK);
        },
        // Thread 64 is the first of block 1.
        "kernel `test` (launch 0), block (1,0,0), thread (0,0,0), instruction 2, SM 1: illegal \
         global store of 4 bytes at 0x200000200000, 1048576 bytes past the end of the nearest \
         allocation, 0x200000000000 to 0x200000100000 (1048576 bytes)",
    );
}

#[test]
fn misaligned_addresses_are_refused() {
    check(
        |k| {
            let value = k.reg();
            k.load(value, Space::Global, BASE, imm(2), RELAXED);
        },
        "kernel `test` (launch 0), block (0,0,0), thread (0,0,0), instruction 0, SM 0: misaligned \
         global load: 0x200000000002 is not a multiple of 4",
    );
}

#[test]
fn shared_and_local_accesses_stay_inside() {
    check(
        |k| {
            k.shared_bytes = 64;
            let lane = k.reg();
            k.lane(lane);
            // Shared memory comes in units of 128 bytes.
            k.shl(lane, lane, imm(3));
            k.store(Space::Shared, 0, lane, lane, WEAK);
        },
        "kernel `test` (launch 0), block (0,0,0), thread (16,0,0), instruction 2, SM 0: illegal \
         shared store of 4 bytes at 0x80, outside the 128 bytes of shared memory of the block",
    );
    check(
        |k| {
            k.local_bytes = 16;
            let value = k.reg();
            k.load(value, Space::Local, 0, imm(16), WEAK);
        },
        "kernel `test` (launch 0), block (0,0,0), thread (0,0,0), instruction 0, SM 0: illegal \
         local load of 4 bytes at 0x10, outside the 16 bytes of local memory that a thread has for its stack; deep \
         recursion needs more, see cudaDeviceSetLimit(cudaLimitStackSize, ...)",
    );
}

#[test]
fn what_cannot_run_says_so() {
    check(
        |k| k.unsupported("`tex.3d` is not modelled"),
        "kernel `test` (launch 0), block (0,0,0), thread (0,0,0), instruction 0, SM 0: \
         unsupported instruction: `tex.3d` is not modelled",
    );
    check(
        |k| k.system(SystemCallKind::Trap, &[], None),
        "kernel `test` (launch 0), block (0,0,0), thread (0,0,0), instruction 0, SM 0: the kernel \
         executed a trap",
    );
    check(
        |k| {
            let value = k.reg();
            let add = AtomicOperation::Increment;
            k.atomic(
                Some(value),
                Space::Global,
                add,
                AtomicType::F64,
                BASE,
                imm(0),
                &[],
                RELAXED,
            );
        },
        "kernel `test` (launch 0), block (0,0,0), thread (0,0,0), instruction 0, SM 0: \
         unsupported instruction: atomic Increment on F64",
    );
}

/// The message of a kernel whose module was changed behind the assembler's back.
fn failure_of(mode: Mode, change: impl Fn(&mut Module)) -> String {
    let mut k = Assembler::new();
    let [thread, offset] = k.regs();
    k.thread(thread);
    k.mul(offset, thread, imm(4));
    let mut module = Arc::try_unwrap(k.finish()).unwrap();
    change(&mut module);
    let mut gpu = gpu(&small(2), mode);
    let id = gpu.launch(launch(&Arc::new(module), 2, 64, &[])).unwrap();
    let Err(GpuError::Fault(fault)) = gpu.run_until_complete(id) else {
        panic!("the kernel did not fail");
    };
    fault.kind.to_string()
}

/// Such code was indexed with, and ended the simulator.
#[test]
fn a_register_above_the_count_is_an_illegal_instruction() {
    for mode in MODES {
        let message = failure_of(mode, |module| {
            module.code.edit(|code| code[1].destination = Some(200));
        });
        assert_eq!(
            message,
            "illegal instruction: test+0x10: `an instruction` touches R200, and kernel `test` has 32 \
             registers a thread; the code is damaged or its header is",
            "{mode:?}"
        );
    }
}

#[test]
fn code_of_another_kernel_cannot_be_jumped_into() {
    for mode in MODES {
        let message = failure_of(mode, |module| {
            // A kernel with more registers lies behind the first.
            let mut other = module.kernels[0].clone();
            (other.name, other.entry) = ("other".into(), module.code.len() as u32);
            other.warp_registers = 250;
            module.sections = vec![0, other.entry];
            module.code.edit(|code| {
                let mut wide = code[0].clone();
                wide.destination = Some(240);
                code[1].operation = Operation::Flow(Flow::BranchIndirect {
                    address: CodeAddress::Index,
                });
                code[1].sources[0] = imm(u64::from(other.entry)).into();
                let exit = code[code.len() - 1].clone();
                code.extend([wide, exit]);
            });
            module.kernels.push(other);
        });
        assert_eq!(
            message, "jump to 0x3, where no code of the kernel is",
            "{mode:?}"
        );
    }
}

#[test]
fn what_cannot_run_does_no_harm_where_its_guard_does_not_hold() {
    for mode in MODES {
        let mut k = Assembler::new();
        let thread = k.reg();
        let p = k.pred();
        k.thread(thread);
        k.guarded(p, true, |k| k.unsupported("`tex.3d` is not modelled"));
        run(&mut gpu(&small(2), mode), &k.finish(), 2, 64, &[]);
    }
}

#[test]
fn a_barrier_that_nobody_reaches_is_a_hang() {
    for mode in MODES {
        let mut k = Assembler::new();
        k.barrier(BlockBarrierMode::Sync, imm(3), Some(96));
        let text = failure(mode, k);
        assert!(text.contains("barrier 3 has 64 of 96 threads"), "{text}");
    }
}

#[test]
fn a_kernel_that_never_ends_meets_the_watchdog() {
    for mode in MODES {
        let options = Options {
            mode,
            watchdog: Some(Cycles(50_000)),
            ..Options::default()
        };
        let mut gpu = Gpu::new(&small(1), memory(), options).unwrap();
        let mut k = Assembler::new();
        let value = k.reg();
        let again = k.here();
        k.add(value, value, imm(1));
        k.branch(again);
        let id = gpu.launch(launch(&k.finish(), 1, 32, &[])).unwrap();
        let error = gpu.run_until_complete(id).unwrap_err().to_string();
        assert!(error.contains("longer than the watchdog allows"), "{error}");
    }
}

#[test]
fn a_gpu_can_be_used_after_a_fault() {
    for mode in MODES {
        let mut gpu = gpu(&small(2), mode);
        let mut k = Assembler::new();
        k.store(Space::Global, BASE, imm(64), imm(5), WEAK);
        k.system(SystemCallKind::Trap, &[], None);
        let id = gpu.launch(launch(&k.finish(), 8, 64, &[])).unwrap();
        assert!(gpu.run_until_complete(id).is_err());
        assert!(
            matches!(gpu.advance(Time::NEVER), Advance::Faulted(_)),
            "it stays"
        );
        let before = gpu.now();
        gpu.abort().unwrap();
        assert!(gpu.now() >= before && gpu.is_idle());
        let mut k = Assembler::new();
        k.store(Space::Global, BASE, imm(0), imm(9), WEAK);
        run(&mut gpu, &k.finish(), 8, 64, &[]);
        assert_eq!(word(&gpu, BASE), 9);
    }
}

#[test]
fn impossible_launches_are_refused() {
    let mut gpu = gpu(&small(1), Mode::Functional);
    let module = Assembler::new().finish();
    let refused = |gpu: &mut Gpu, grid, block, shared| {
        let mut one = launch(&module, grid, block, &[]);
        one.config.dynamic_shared = shared;
        gpu.launch(one).unwrap_err().to_string()
    };
    assert!(refused(&mut gpu, 0, 32, 0).contains("must not be empty"));
    assert!(refused(&mut gpu, 1, 1025, 0).contains("at most 1024 threads"));
    assert!(refused(&mut gpu, 1, 32, 300 << 10).contains("shared memory"));
    let mut big = (*module).clone();
    big.kernels[0].registers = 255;
    let one = launch(&Arc::new(big), 1, 1024, &[]);
    let error = gpu.launch(one).unwrap_err().to_string();
    assert!(error.contains("fits on no SM"), "{error}");
}

#[test]
fn printed_text_comes_in_one_order() {
    for mode in MODES {
        let mut gpu = gpu(&small(2), mode);
        let (format, text) = (BASE + 4096, BASE + 8192);
        gpu.contents()
            .write(format, b"block %d lane %2u: %s %.1f\n\0");
        gpu.contents().write(text, b"hello\0");
        let mut k = Assembler::new();
        k.local_bytes = 64;
        let [block, lane, low, high, arguments, up] = k.regs();
        let few = k.pred();
        k.block(block);
        k.lane(lane);
        k.store(Space::Local, 0, imm(0), block, WEAK);
        k.store(Space::Local, 0, imm(4), lane, WEAK);
        k.mov(low, imm(text & 0xffff_ffff));
        k.mov(high, imm(text >> 32));
        k.store(Space::Local, 0, imm(8), low, WEAK);
        k.store(Space::Local, 0, imm(12), high, WEAK);
        k.store(Space::Local, 0, imm(16), imm(0), WEAK);
        k.store(Space::Local, 0, imm(20), imm(2.5f64.to_bits() >> 32), WEAK);
        k.mov(low, imm(format & 0xffff_ffff));
        k.mov(high, imm(format >> 32));
        let local = lockstep_isa::memory::LOCAL_WINDOW;
        k.mov(arguments, imm(local & 0xffff_ffff));
        k.mov(up, imm(local >> 32));
        k.less(few, lane, imm(2));
        k.guarded(few, true, |k| {
            k.system(SystemCallKind::Print, &[low.into(), arguments.into()], None);
        });
        run(&mut gpu, &k.finish(), 3, 32, &[]);
        let output = gpu.take_output();
        let mut text: Vec<&str> = output.iter().map(|one| one.text.as_str()).collect();
        assert!(output.is_sorted());
        text.sort_unstable();
        assert_eq!(
            text,
            [
                "block 0 lane  0: hello 2.5\n",
                "block 0 lane  1: hello 2.5\n",
                "block 1 lane  0: hello 2.5\n",
                "block 1 lane  1: hello 2.5\n",
                "block 2 lane  0: hello 2.5\n",
                "block 2 lane  1: hello 2.5\n",
            ]
        );
        assert!(gpu.take_output().is_empty());
    }
}

/// A kernel whose assertion fails in all lanes but the eighth of every warp.
fn asserting(gpu: &Gpu) -> Arc<Module> {
    gpu.contents().write(BASE, b"x > 0\0");
    gpu.contents().write(BASE + 64, b"a.cu\0");
    gpu.contents().write(BASE + 128, b"f\0");
    let mut k = Assembler::new();
    let [a, a1, b, b1, c, c1, lane] = k.regs();
    for (register, address) in [(a, BASE), (b, BASE + 64), (c, BASE + 128)] {
        k.mov(register, imm(address & 0xffff_ffff));
        k.mov(R(register.0 + 1), imm(address >> 32));
    }
    let _ = (a1, b1, c1);
    let fails = k.pred();
    k.lane(lane);
    k.not_equal(fails, lane, imm(7));
    k.guarded(fails, true, |k| {
        k.system(
            SystemCallKind::AssertFail,
            &[a.into(), b.into(), imm(12), c.into()],
            None,
        );
    });
    k.finish()
}

/// A GPU of two SMs with this memory, simulated by some threads.
fn on_threads(mode: Mode, threads: usize, contents: Arc<Contents>) -> Gpu {
    let engine = EngineOptions {
        threads,
        ..EngineOptions::default()
    };
    let options = Options {
        mode,
        engine,
        ..Options::default()
    };
    Gpu::new(&small(2), contents, options).unwrap()
}

/// What is said of failed assertions, and when.
fn asserted(gpu: &mut Gpu) -> (String, Time) {
    match gpu.advance(Time::NEVER) {
        Advance::Faulted(fault) => match fault.kind {
            FaultKind::Assert(text) => (text, gpu.now()),
            other => panic!("{other}"),
        },
        _ => panic!("the assertions hold"),
    }
}

#[test]
fn every_thread_whose_assertion_fails_says_so_in_one_order() {
    for mode in MODES {
        let mut said: Vec<(String, Time)> = Vec::new();
        for (threads, saved) in [(1, false), (3, false), (1, true)] {
            let mut gpu = on_threads(mode, threads, memory());
            let kernel = asserting(&gpu);
            gpu.launch(launch(&kernel, 2, 64, &[])).unwrap();
            if saved {
                // All have failed by then, and the kernel is not given up yet.
                gpu.advance_to(Time(said[0].1.0 / 2)).unwrap();
                let bytes = gpu.save();
                let contents = Arc::new(Contents::anonymous(BASE, SIZE).unwrap());
                gpu = on_threads(mode, threads, contents);
                gpu.load(&bytes, &|_| Some(kernel.clone())).unwrap();
            }
            said.push(asserted(&mut gpu));
        }
        assert!(said.iter().all(|one| *one == said[0]), "{mode:?}: {said:?}");
        let mut lines: Vec<&str> = said[0].0.lines().collect();
        let first = "a.cu:12: f: block: [0,0,0], thread: [0,0,0] Assertion `x > 0` failed.";
        assert!(lines.contains(&first), "{mode:?}: {lines:?}");
        // The lanes of a warp come one after the other.
        for warp in lines.chunks(31) {
            let place = |line: &str| line.split("thread: [").nth(1).map(str::to_owned);
            let number =
                |line: &&str| -> Option<u32> { place(line)?.split(',').next()?.parse().ok() };
            let threads: Vec<_> = warp.iter().map(number).collect();
            assert!(
                threads.is_sorted() && threads[0].is_some(),
                "{mode:?}: {warp:?}"
            );
        }
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 4 * 31, "{mode:?}: {lines:?}");
    }
}

#[test]
fn the_device_heap_hands_out_every_byte_once() {
    for mode in MODES {
        let mut gpu = gpu(&small(3), mode);
        gpu.set_heap(BASE + 0x8_0000..BASE + 0x9_0000);
        let mut k = Assembler::new();
        let [thread, offset, pointer, up, size, zero] = k.regs();
        k.mov(size, imm(100));
        k.mov(zero, imm(0));
        k.system(SystemCallKind::Allocate, &[size.into()], Some(pointer));
        k.thread(thread);
        k.shl(offset, thread, imm(3));
        k.store(Space::Global, BASE, offset, pointer, WEAK);
        k.store(Space::Global, BASE + 4, offset, up, WEAK);
        run(&mut gpu, &k.finish(), 5, 32, &[]);
        let found = words(&gpu, BASE, 320);
        let mut pointers: Vec<u64> = found
            .chunks(2)
            .map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32)
            .collect();
        pointers.sort_unstable();
        let expected: Vec<u64> = (0..160).map(|n| BASE + 0x8_0000 + 112 * n).collect();
        assert_eq!(pointers, expected);
    }
}

#[test]
fn a_sleeping_warp_wakes_after_its_time() {
    for mode in MODES {
        let mut gpu = gpu(&small(1), mode);
        let mut k = Assembler::new();
        let [before, after, sum] = k.regs();
        k.clock(before);
        k.system(SystemCallKind::Sleep, &[imm(1000)], None);
        k.clock(after);
        k.sub(sum, after, before);
        k.store(Space::Global, BASE, imm(0), sum, WEAK);
        run(&mut gpu, &k.finish(), 1, 32, &[]);
        let cycles = word(&gpu, BASE);
        assert!((1980..2100).contains(&cycles), "{mode:?}: {cycles}");
    }
}
