//! What orderings, accesses and instructions cost in simulated cycles: snapshots, so that a
//! change of timing is seen in review.

use std::fmt::Write;

use crate::common::*;
use expect_test::{Expect, expect};
use lockstep_gpu::Mode;
use lockstep_isa::instruction::Control;
use lockstep_isa::memory::{AtomicOperation, AtomicType, Scope, Space};

/// Cycles between two readings of the clock around `body`, on an H200 with one warp.
fn cycles(mode: Mode, body: &dyn Fn(&mut Assembler)) -> u32 {
    let mut gpu = gpu(&small(2), mode);
    let mut k = Assembler::new();
    let [before, after] = k.regs();
    k.clock(before);
    body(&mut k);
    k.clock(after);
    k.sub(after, after, before);
    k.store(Space::Global, BASE + 0x8000, imm(0), after, WEAK);
    run(&mut gpu, &k.finish(), 1, 32, &[]);
    word(&gpu, BASE + 0x8000)
}

/// What is measured, by name.
type Body<'a> = &'a dyn Fn(&mut Assembler);

fn check(rows: &[(&str, Body<'_>)], expected: Expect) {
    let mut text = String::new();
    for (name, body) in rows {
        let [functional, timing] = [Mode::Functional, Mode::Timing].map(|mode| cycles(mode, body));
        writeln!(text, "{name}: {functional} functional, {timing} timing").unwrap();
    }
    expected.assert_eq(&text);
}

/// Makes the clock wait for a value.
fn depend(k: &mut Assembler, value: R) {
    let p = k.pred();
    let next = k.label();
    k.equal(p, value, imm(12_345));
    k.branch_if(p, true, next);
    k.place(next);
}

#[test]
fn accesses() {
    check(
        &[
            ("nothing", &|_| {}),
            ("weak load, used", &|k| {
                let value = k.reg();
                k.load(value, Space::Global, BASE, imm(0), WEAK);
                depend(k, value);
            }),
            ("weak store", &|k| {
                k.store(Space::Global, BASE, imm(0), imm(1), WEAK)
            }),
            ("strong load, used", &|k| {
                let value = k.reg();
                k.load(value, Space::Global, BASE, imm(0), RELAXED);
                depend(k, value);
            }),
            ("strong store", &|k| {
                k.store(Space::Global, BASE, imm(0), imm(1), RELAXED)
            }),
            ("atomic, used", &|k| {
                let value = k.reg();
                let add = AtomicOperation::Add;
                let kind = AtomicType::U32;
                k.atomic(
                    Some(value),
                    Space::Global,
                    add,
                    kind,
                    BASE,
                    imm(0),
                    &[imm(1)],
                    RELAXED,
                );
                depend(k, value);
            }),
            ("reduction", &|k| {
                let add = AtomicOperation::Add;
                k.atomic(
                    None,
                    Space::Global,
                    add,
                    AtomicType::U32,
                    BASE,
                    imm(0),
                    &[imm(1)],
                    RELAXED,
                );
            }),
            ("shared load, used", &|k| {
                k.shared_bytes = 64;
                let value = k.reg();
                k.load(value, Space::Shared, 0, imm(0), WEAK);
                depend(k, value);
            }),
        ],
        expect![[r#"
            nothing: 1 functional, 2 timing
            weak load, used: 4 functional, 784 timing
            weak store: 2 functional, 2 timing
            strong load, used: 204 functional, 784 timing
            strong store: 2 functional, 2 timing
            atomic, used: 204 functional, 841 timing
            reduction: 2 functional, 2 timing
            shared load, used: 4 functional, 38 timing
        "#]],
    );
}

#[test]
fn orderings() {
    check(
        &[
            ("fence with nothing to order", &|k| k.fence(Scope::Gpu)),
            ("fence of the block after a store", &|k| {
                k.store(Space::Global, BASE, imm(0), imm(1), WEAK);
                k.fence(Scope::Block);
            }),
            ("fence after a weak store", &|k| {
                k.store(Space::Global, BASE, imm(0), imm(1), WEAK);
                k.fence(Scope::Gpu);
            }),
            ("fence after a strong store", &|k| {
                k.store(Space::Global, BASE, imm(0), imm(1), RELAXED);
                k.fence(Scope::Gpu);
            }),
            ("release after a weak store", &|k| {
                k.store(Space::Global, BASE, imm(0), imm(1), WEAK);
                k.store(Space::Global, BASE + 64, imm(0), imm(1), RELEASE);
            }),
            ("weak load after a reduction to its sector", &|k| {
                let value = k.reg();
                let add = AtomicOperation::Add;
                k.atomic(
                    None,
                    Space::Global,
                    add,
                    AtomicType::U32,
                    BASE,
                    imm(0),
                    &[imm(1)],
                    RELAXED,
                );
                k.load(value, Space::Global, BASE, imm(0), WEAK);
                depend(k, value);
            }),
            ("barrier of one warp", &|k| k.sync()),
        ],
        expect![[r#"
            fence with nothing to order: 2 functional, 267 timing
            fence of the block after a store: 3 functional, 3 timing
            fence after a weak store: 100 functional, 545 timing
            fence after a strong store: 202 functional, 544 timing
            release after a weak store: 4 functional, 4 timing
            weak load after a reduction to its sector: 205 functional, 827 timing
            barrier of one warp: 2 functional, 15 timing
        "#]],
    );
}

#[test]
fn instructions() {
    check(
        &[
            ("10 dependent adds", &|k| {
                let value = k.reg();
                for _ in 0..10 {
                    k.add(value, value, imm(1));
                }
            }),
            ("10 independent adds", &|k| {
                for _ in 0..10 {
                    let value = k.reg();
                    k.mov(value, imm(1));
                }
            }),
            ("guard after a comparison", &|k| {
                let value = k.reg();
                let p = k.pred();
                k.equal(p, value, imm(0));
                k.guarded(p, true, |k| k.mov(value, imm(1)));
            }),
        ],
        expect![[r#"
            10 dependent adds: 11 functional, 40 timing
            10 independent adds: 11 functional, 22 timing
            guard after a comparison: 3 functional, 17 timing
        "#]],
    );
}

#[test]
fn control_bits_rule_where_they_are() {
    // A chain of adds under control bits: the stall count alone spaces them, whatever they read.
    let chain = |stall: u8| {
        cycles(Mode::Timing, &|k| {
            let value = k.reg();
            for _ in 0..10 {
                k.add(value, value, imm(1));
                k.control(Control {
                    stall,
                    write_counter: 7,
                    read_counter: 7,
                    ..Control::default()
                });
            }
        })
    };
    assert_eq!(chain(5) - chain(4), 10);
    assert_eq!(chain(12) - chain(4), 80);

    // A load raises a counter; what waits for the counter waits for memory.
    let load = |wait_mask: u8| {
        cycles(Mode::Timing, &|k| {
            let [value, other] = k.regs();
            k.load(value, Space::Global, BASE, imm(0), WEAK);
            k.control(Control {
                stall: 2,
                write_counter: 3,
                read_counter: 7,
                ..Control::default()
            });
            k.mov(other, imm(0));
            k.control(Control {
                stall: 2,
                write_counter: 7,
                read_counter: 7,
                wait_mask,
                ..Control::default()
            });
        })
    };
    assert!(load(0) < 20, "{}", load(0));
    assert!(load(1 << 3) > 400, "{}", load(1 << 3));
}

/// Cycles of a kernel whose only work is on the double-precision unit: so many warps, 100 each.
fn doubles(warps: u32, shared: bool) -> u64 {
    let mut config = small(1);
    config.sm.fp64_unit_shared = shared;
    config.sm.interval.double = lockstep_units::Cycles(16);
    let mut k = Assembler::new();
    for _ in 0..100 {
        let value = k.reg();
        k.mov(value, imm(1));
        k.on_double();
    }
    let mut gpu = gpu(&config, Mode::Timing);
    run(&mut gpu, &k.finish(), 1, 32 * warps, &[]).cycles()
}

#[test]
fn sub_cores_share_a_double_precision_unit_where_there_is_one() {
    let [alone, four] = [1, 4].map(|warps| doubles(warps, false));
    assert!(four < alone + 100, "a unit a sub-core: {alone} {four}");
    let [shared, shared_four] = [1, 4].map(|warps| doubles(warps, true));
    assert_eq!(shared, alone, "a warp alone does not notice");
    let more = 3 * 100 * 16;
    assert!(
        (four + more - 100..four + more + 100).contains(&shared_four),
        "one unit for all: {four} {shared_four}"
    );
}
