//! Warp instructions per second of host time, on one thread, for kernels of different kinds.
//!
//! `cargo bench -p lockstep-gpu`; items per second are warp instructions per second.

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use common::*;
use divan::counter::ItemsCount;
use lockstep_gpu::{Gpu, Mode};
use lockstep_isa::Module;
use lockstep_isa::memory::{AtomicOperation, AtomicType, Space};

fn main() {
    divan::main();
}

/// Side of the matrices.
const SIDE: u64 = 128;

/// `C = A B` with tiles of 16 x 16 in shared memory: 256 threads a block, one element a thread.
fn matrix_multiply() -> Arc<Module> {
    let mut k = Assembler::new();
    k.shared_bytes = 2048;
    let [
        thread,
        block,
        x,
        y,
        row,
        column,
        sum,
        a,
        b,
        tile,
        at_a,
        at_b,
        in_tile,
        from_a,
        from_b,
    ] = k.regs();
    let more = k.pred();
    let blocks = SIDE / 16;
    k.thread(thread);
    k.and(thread, thread, imm(255));
    k.block(block);
    k.and(x, thread, imm(15));
    k.shr(y, thread, imm(4));
    k.shr(row, block, imm(u64::from(blocks.ilog2())));
    k.shl(row, row, imm(4));
    k.add(row, row, y);
    k.and(column, block, imm(blocks - 1));
    k.shl(column, column, imm(4));
    k.add(column, column, x);
    k.mov(sum, imm(0));
    k.mov(tile, imm(0));
    k.mul(at_a, row, imm(SIDE));
    k.add(at_a, at_a, x);
    k.shl(at_a, at_a, imm(2));
    k.mul(at_b, y, imm(SIDE));
    k.add(at_b, at_b, column);
    k.shl(at_b, at_b, imm(2));
    k.shl(in_tile, thread, imm(2));
    k.shl(from_a, y, imm(6));
    k.shl(from_b, x, imm(2));
    let again = k.here();
    k.load(a, Space::Global, BASE, at_a, WEAK);
    k.load(b, Space::Global, BASE + 4 * SIDE * SIDE, at_b, WEAK);
    k.store(Space::Shared, 0, in_tile, a, WEAK);
    k.store(Space::Shared, 1024, in_tile, b, WEAK);
    k.sync();
    for step in 0..16 {
        k.load(a, Space::Shared, 4 * step, from_a, WEAK);
        k.load(b, Space::Shared, 1024 + 64 * step, from_b, WEAK);
        k.fma(sum, a, b, sum);
    }
    k.sync();
    k.add(at_a, at_a, imm(64));
    k.add(at_b, at_b, imm(64 * SIDE));
    k.add(tile, tile, imm(1));
    k.less(more, tile, imm(blocks));
    k.branch_if(more, true, again);
    k.mul(row, row, imm(SIDE));
    k.add(row, row, column);
    k.shl(row, row, imm(2));
    k.store(Space::Global, BASE + 8 * SIDE * SIDE, row, sum, WEAK);
    k.finish()
}

/// `c[i] = a[i] + b[i]`, one element a thread.
fn vector_add() -> Arc<Module> {
    let mut k = Assembler::new();
    let [thread, offset, a, b] = k.regs();
    k.thread(thread);
    k.shl(offset, thread, imm(2));
    k.load(a, Space::Global, BASE, offset, WEAK);
    k.load(b, Space::Global, BASE + (256 << 10), offset, WEAK);
    k.add(a, a, b);
    k.store(Space::Global, BASE + (512 << 10), offset, a, WEAK);
    k.finish()
}

/// Reductions to 256 words, and plain stores beside them: how much strong accesses cost.
fn histogram() -> Arc<Module> {
    let mut k = Assembler::new();
    let [thread, bin] = k.regs();
    k.thread(thread);
    k.mul(bin, thread, imm(0x9e37_79b1));
    k.shr(bin, bin, imm(24));
    k.shl(bin, bin, imm(2));
    let add = AtomicOperation::Add;
    k.atomic(
        None,
        Space::Global,
        add,
        AtomicType::U32,
        BASE,
        bin,
        &[imm(1)],
        RELAXED,
    );
    k.finish()
}

fn fresh(mode: Mode) -> Gpu {
    let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
    gpu(&config, mode)
}

fn measure(
    bencher: divan::Bencher<'_, '_>,
    mode: Mode,
    module: &Arc<Module>,
    grid: u32,
    block: u32,
) {
    let count = run(&mut fresh(mode), module, grid, block, &[])
        .counters
        .inst_executed;
    let mut gpu = fresh(mode);
    bencher
        .counter(ItemsCount::new(count))
        .bench_local(|| run(&mut gpu, module, grid, block, &[]));
}

macro_rules! benches {
    ($module:ident, $mode:expr) => {
        mod $module {
            use super::*;

            #[divan::bench]
            fn matrix_multiply_128(bencher: divan::Bencher<'_, '_>) {
                measure(
                    bencher,
                    $mode,
                    &matrix_multiply(),
                    (SIDE * SIDE / 256) as u32,
                    256,
                );
            }

            #[divan::bench]
            fn vector_add_65536(bencher: divan::Bencher<'_, '_>) {
                measure(bencher, $mode, &vector_add(), 256, 256);
            }

            #[divan::bench]
            fn histogram_16384(bencher: divan::Bencher<'_, '_>) {
                measure(bencher, $mode, &histogram(), 64, 256);
            }
        }
    };
}

benches!(functional, Mode::Functional);
benches!(timing, Mode::Timing);
