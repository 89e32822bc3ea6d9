//! Stores of several warps into the same lines: how long they are combined, and that all of it is saved.

use std::sync::Arc;

use crate::back_pressure::{finish, has_one_answer, started, sum};
use crate::common::*;
use lockstep_config::GpuConfig;
use lockstep_isa::Module;
use lockstep_isa::memory::Space;
use lockstep_units::Cycles;

/// Every warp of a block stores a word into each of 32 sectors, and again elsewhere.
fn words_of_sectors() -> Arc<Module> {
    let mut k = Assembler::new();
    let [lane, warp, block, offset] = k.regs();
    k.lane(lane);
    k.warp(warp);
    k.block(block);
    k.shl(offset, lane, imm(5));
    k.shl(warp, warp, imm(2));
    k.add(offset, offset, warp);
    k.shl(block, block, imm(10));
    k.add(offset, offset, block);
    k.store(Space::Global, BASE, offset, lane, WEAK);
    k.store(Space::Global, BASE + 0x4_0000, offset, lane, WEAK);
    k.finish()
}

fn config(own: u64, other: u64) -> GpuConfig {
    let mut config = small(6);
    config.l1.write_combining_window = Cycles(own);
    config.l1.cross_warp_combining_window = Cycles(other);
    config.l1.write_combining_lines = 16;
    config
}

/// Sectors that reach L2.
fn written(own: u64, other: u64) -> u64 {
    let mut gpu = started(&config(own, other), &words_of_sectors(), 1);
    finish(&mut gpu);
    sum(&gpu, "slice/", "written_sectors")
}

#[test]
fn the_shorter_other_warps_are_waited_for_the_more_sectors_leave() {
    let all = 2 * 24 * 8 * 64;
    assert_eq!(written(0, 0), all, "nothing is combined");
    assert_eq!(written(128, 0), all, "no warp stores to a line twice");
    assert_eq!(written(0, 128), all, "not longer than the window of a warp");
    let [short, long] = [60, 128].map(|other| written(128, other));
    assert!(short < all && long < short, "{long} {short} {all}");
}

#[test]
fn lines_that_wait_are_saved_with_their_warps() {
    has_one_answer(&config(128, 60), &words_of_sectors(), 5);
}
