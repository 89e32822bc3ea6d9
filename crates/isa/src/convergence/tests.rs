//! Divergence and reconvergence, step by step.

use super::*;
use crate::warp_register::LANES;

/// As PTX runs.
fn warp(lanes: Mask) -> Convergence {
    Convergence::new(lanes, 0, 4, true)
}

/// As machine code runs.
fn native(lanes: Mask) -> Convergence {
    Convergence::new(lanes, 0, 4, false)
}

#[test]
fn the_smaller_side_of_a_branch_goes_first() {
    for (taken, first, pc) in [(0x1, 0x1, 9), (0x7, 0x8, 1), (0x3, 0xc, 1)] {
        let mut warp = native(0xf);
        warp.branch(taken, 9);
        assert_eq!((warp.pc(), warp.active()), (pc, first), "{taken:#x}");
    }
}

#[test]
fn one_sibling_is_kept_and_the_rest_goes_by_its_place() {
    let mut warp = native(0xff);
    warp.converge_set(0); // 0
    warp.branch(0xf8, 5); // 1: lanes 0 to 2 first, at 2; lanes 3 to 7 kept
    warp.branch(0x6, 4); // 2: lane 0 first, at 3; lanes 1, 2 kept, 3 to 7 among the rest
    assert_eq!((warp.pc(), warp.active()), (3, 0x1));
    warp.branch(0x1, 5);
    assert_eq!(warp.converge_wait(0), 0); // 5
    assert_eq!((warp.pc(), warp.active()), (4, 0x6), "the sibling");
    warp.advance();
    assert_eq!(warp.converge_wait(0), 0); // 5
    assert_eq!((warp.pc(), warp.active()), (5, 0xf8), "the rest");
    assert_eq!(warp.converge_wait(0), 0x7, "all are counted");
    assert_eq!((warp.pc(), warp.active()), (6, 0xff));
}

#[test]
fn an_indirect_jump_goes_to_one_target_at_a_time() {
    let mut warp = native(0xf);
    let mut targets = [7; LANES];
    targets[0] = 3;
    warp.branch_indirect(&targets);
    assert_eq!((warp.pc(), warp.active()), (3, 0x1));
    warp.exit(0x1);
    assert_eq!((warp.pc(), warp.active()), (0, 0xe), "again");
    warp.branch_indirect(&targets);
    assert_eq!((warp.pc(), warp.active()), (7, 0xe));
}

#[test]
fn lanes_of_an_outer_call_are_not_waited_for() {
    let mut warp = native(0x7);
    warp.converge_set(0); // 0
    warp.branch(0x1, 8); // lane 0 waits at the outer barrier
    assert_eq!(warp.converge_wait(0), 0);
    assert_eq!((warp.pc(), warp.active()), (2, 0x6));
    let outer = warp.barrier(0);
    warp.clear_barrier(0);
    warp.converge_set(0);
    warp.converge_wait(0);
    assert_eq!(
        (warp.pc(), warp.active()),
        (4, 0x6),
        "the inner call's own lanes"
    );
    warp.set_barrier(0, outer);
    warp.branch(0x6, 8);
    warp.converge_wait(0);
    assert_eq!((warp.pc(), warp.active()), (9, 0x7));
}

#[test]
fn a_uniform_branch_keeps_the_warp_together() {
    let mut warp = warp(0xf);
    warp.branch(0xf, 7);
    assert_eq!((warp.pc(), warp.active()), (7, 0xf));
    assert!(warp.waiting_paths().is_empty());
}

#[test]
fn lanes_that_diverge_reconverge_at_the_barrier() {
    let mut warp = warp(0xf);
    warp.converge_set(0); // 0
    warp.branch(0x3, 3); // 1: lanes 0,1 to 3; lanes 2,3 to 2
    assert_eq!((warp.pc(), warp.active()), (3, 0x3));
    warp.converge_wait(0); // 3
    assert_eq!((warp.pc(), warp.active()), (2, 0xc));
    warp.branch(0xc, 3);
    warp.converge_wait(0);
    assert_eq!((warp.pc(), warp.active()), (4, 0xf));
}

#[test]
fn an_ended_lane_is_not_waited_for() {
    let mut warp = warp(0xf);
    warp.converge_set(0);
    warp.branch(0x3, 5);
    warp.converge_wait(0); // lanes 0,1 wait at 5
    warp.exit(0xc); // lanes 2,3 end at 2
    assert_eq!((warp.pc(), warp.active(), warp.live()), (6, 0x3, 0x3));
}

#[test]
fn a_broken_barrier_lets_the_others_go() {
    let mut warp = warp(0xf);
    warp.converge_set(1);
    warp.branch(0x3, 9);
    warp.converge_wait(1);
    warp.converge_break(1, 0xc);
    assert_eq!((warp.pc(), warp.active()), (3, 0xc));
    warp.exit(0xc);
    assert_eq!((warp.pc(), warp.active()), (10, 0x3));
}

#[test]
fn two_paths_in_one_region_each_find_their_lanes() {
    let mut warp = warp(0xf);
    warp.branch(0x3, 10); // lanes 0,1 at 10; lanes 2,3 at 1
    warp.converge_set(0);
    warp.branch(0x1, 20); // lane 0 at 20, lane 1 at 12
    warp.converge_wait(0); // lane 0 waits; lanes 2,3 run next
    assert_eq!((warp.pc(), warp.active()), (1, 0xc));
    warp.converge_set(0);
    warp.branch(0xc, 20);
    warp.converge_wait(0); // lanes 2,3 wait with lane 0; lane 1 is missing
    assert_eq!((warp.pc(), warp.active()), (12, 0x2));
    warp.branch(0x2, 20);
    warp.converge_wait(0);
    assert_eq!((warp.pc(), warp.active()), (21, 0xf));
    assert_eq!(warp.barrier(0), 0, "an open barrier keeps nobody");
}

#[test]
fn a_spinning_path_yields() {
    let mut warp = warp(0x3);
    warp.branch(0x1, 5); // lane 0 at 5, lane 1 at 1
    warp.branch(0x1, 0);
    let mut turns = 0;
    while warp.active() == 0x1 {
        warp.branch(0x1, 0);
        turns += 1;
        assert!(turns < 100, "lane 1 starves");
    }
    assert_eq!((warp.pc(), warp.active()), (1, 0x2));
}

#[test]
fn lanes_at_a_barrier_go_on_when_the_others_wait_for_them() {
    let mut warp = warp(0x3);
    warp.converge_set(0); // 0
    warp.branch(0x1, 4); // 1: lane 0 leaves the loop, lane 1 spins at 2 and 3
    warp.converge_wait(0); // 4
    let mut turns = 0;
    while warp.active() == 0x2 {
        warp.yield_to_others(false); // 2
        if warp.active() == 0x2 {
            warp.branch(0x2, 2); // 3
        }
        turns += 1;
        assert!(turns < 100, "lane 0 holds what lane 1 waits for");
    }
    assert_eq!((warp.pc(), warp.active()), (5, 0x1));
    warp.exit(0x1);
    warp.branch(0x2, 4);
    warp.converge_wait(0);
    assert_eq!((warp.pc(), warp.active()), (5, 0x2));
}

#[test]
fn a_warp_sync_reconverges_divergent_lanes() {
    let mut warp = warp(0x3);
    warp.branch(0x1, 4);
    warp.warp_sync(0x3); // lane 0 waits at 4
    assert_eq!((warp.pc(), warp.active()), (1, 0x2));
    warp.branch(0x2, 4);
    warp.warp_sync(0x3);
    assert_eq!((warp.pc(), warp.active()), (5, 0x3));
}

#[test]
fn suspended_lanes_go_on_together() {
    let mut warp = warp(0x3);
    warp.branch(0x1, 4);
    warp.suspend(0);
    warp.branch(0x2, 4);
    warp.suspend(0);
    assert_eq!((warp.active(), warp.suspended(0)), (0, 0x3));
    assert_eq!(warp.resume(0), 0x3);
    assert_eq!((warp.pc(), warp.active()), (5, 0x3));
}

#[test]
fn the_smaller_side_of_an_indirect_jump_goes_first() {
    let mut warp = native(0xff);
    let mut targets = [7; LANES];
    targets[6] = 3;
    targets[7] = 4;
    warp.branch_indirect(&targets);
    assert_eq!((warp.pc(), warp.active()), (3, 0x40), "not the many");
    warp.exit(0x40);
    assert_eq!((warp.pc(), warp.active()), (0, 0xbf), "again");
    warp.branch_indirect(&targets);
    assert_eq!((warp.pc(), warp.active()), (4, 0x80));
}

/// The winner of a lock waits at the barrier behind the loop until the others give way.
#[test]
fn lanes_that_yield_are_not_waited_for() {
    let mut warp = native(0x7);
    warp.converge_set(0); // 0
    warp.yield_to_others(false); // 1: alone, without effect
    warp.branch(0x6, 1); // 2: lane 0 has the lock and goes first
    warp.converge_wait(0); // 3
    assert_eq!((warp.pc(), warp.active()), (1, 0x6));
    warp.yield_to_others(false); // 1
    assert_eq!((warp.pc(), warp.active()), (3, 0x1), "once more");
    warp.converge_wait(0);
    assert_eq!((warp.pc(), warp.active()), (4, 0x1));
    warp.exit(0x1);
    assert_eq!((warp.pc(), warp.active()), (2, 0x6));
    warp.branch(0x4, 1);
    warp.converge_wait(0); // 3: no member any more
    assert_eq!((warp.pc(), warp.active()), (4, 0x2));
}

#[test]
fn a_barrier_from_a_register_is_executed_once_more() {
    let mut warp = native(0x7);
    warp.converge_set(0); // 0
    let mask = warp.barrier(0);
    warp.clear_barrier(0);
    warp.set_barrier(0, mask);
    warp.converge_wait(0); // 1
    assert_eq!((warp.pc(), warp.active()), (2, 0x7));
    let again = Reissued {
        instructions: 1,
        lanes: 3,
    };
    assert_eq!(warp.take_reissued(), again);
    warp.converge_set(0); // 2
    warp.converge_wait(0); // 3
    assert_eq!(
        warp.take_reissued(),
        Reissued::default(),
        "a fresh one is not"
    );
}

#[test]
fn lanes_at_an_earlier_barrier_are_deferred_and_run_last() {
    let mut warp = native(0xf);
    warp.converge_set(0); // 0
    warp.branch(0x1, 5); // 1: lane 0 waits at 5, the barrier of the caller
    assert_eq!(warp.converge_wait(0), 0);
    assert_eq!((warp.pc(), warp.active()), (2, 0xe));
    let outer = warp.barrier(0);
    warp.clear_barrier(0);
    warp.set_barrier(0, outer);
    warp.branch(0xe, 9); // 2
    warp.converge_wait(0); // 9: complete, with lane 0 elsewhere
    assert_eq!((warp.pc(), warp.active()), (10, 0xe));
    assert_eq!(warp.waiting_paths()[0].state, PathState::Deferred);
    warp.branch(0x2, 20); // 10: lane 1 first
    warp.exit(0x2);
    assert_eq!((warp.pc(), warp.active()), (11, 0xc), "who is ready first");
    warp.exit(0xc);
    assert_eq!((warp.pc(), warp.active()), (5, 0x1));
}

#[test]
fn a_loop_of_machine_code_is_not_interrupted() {
    let mut warp = native(0x3);
    warp.branch(0x2, 100); // lane 0 first at a tie
    for _ in 0..10_000 {
        warp.branch(0x1, 1);
    }
    assert_eq!(warp.active(), 0x1);
}

#[test]
fn of_the_rest_the_youngest_is_next_though_larger() {
    let mut warp = native(0xff);
    warp.branch(0xc0, 40);
    warp.suspend(1); // lanes 6, 7
    warp.resume(1);
    warp.branch(0x07, 20); // lanes 3 to 5 first, at 2
    warp.branch(0x08, 50); // lane 3 first; lanes 4, 5 kept, lanes 0 to 2 among the rest with 6, 7
    warp.suspend(2);
    assert_eq!((warp.pc(), warp.active()), (3, 0x30), "the sibling");
    warp.suspend(3);
    assert_eq!((warp.pc(), warp.active()), (20, 0x07), "the youngest");
    warp.suspend(4);
    assert_eq!((warp.pc(), warp.active()), (41, 0xc0), "the oldest");
}

#[test]
fn who_passes_a_barrier_as_a_stranger_leaves_its_sibling_in_place() {
    let mut warp = native(0xff);
    warp.branch(0xf8, 30); // lanes 0 to 2 first
    warp.branch(0x03, 20); // lane 2 first, at 2; lanes 0, 1 kept
    warp.branch(0x04, 30);
    warp.suspend(1);
    warp.branch(0x03, 30); // 20
    assert_eq!((warp.pc(), warp.active()), (30, 0x03));
    warp.branch(0x01, 40); // at a tie lane 1 first, at 31; lane 0 kept
    warp.set_barrier(0, 0x81);
    warp.converge_wait(0);
    assert_eq!((warp.pc(), warp.active()), (32, 0x02), "not recorded");
    warp.branch(0x02, 40);
    warp.suspend(2);
    assert_eq!((warp.pc(), warp.active()), (40, 0x01), "the sibling");
}

#[test]
fn who_is_scheduled_at_a_barrier_lets_strangers_who_wait_there_go_on() {
    let mut warp = native(0xff);
    warp.set_barrier(0, 0x12);
    warp.branch(0x0f, 20); // lanes 4 to 7 first at a tie
    warp.suspend(1);
    warp.branch(0x0c, 30); // lanes 0, 1 first at a tie, at 21; lanes 2, 3 kept
    warp.branch(0x01, 30); // lane 1 first, at 22; lane 0 kept
    warp.branch(0x02, 30);
    warp.converge_wait(0); // lane 1 waits for lane 4
    assert_eq!((warp.pc(), warp.active()), (30, 0x01), "the sibling");
    warp.set_barrier(0, 0x8c); // as a return from a call does
    warp.suspend(2);
    assert_eq!((warp.pc(), warp.active()), (30, 0x0c), "the rest");
    assert_eq!(warp.converge_wait(0), 0x02, "counted with them");
    assert_eq!(
        (warp.pc(), warp.active()),
        (31, 0x02),
        "not recorded any more"
    );
}

#[test]
fn lanes_that_were_deferred_before_go_first_when_their_next_barrier_is_complete() {
    let mut warp = native(0xff);
    warp.set_barrier(0, 0x3);
    warp.branch(0x1, 5);
    warp.converge_wait(0); // lane 0 waits for lane 1
    warp.branch(0x2, 9);
    warp.converge_wait(0); // lane 1 comes and frees lane 0
    assert_eq!((warp.pc(), warp.active()), (10, 0x2));
    warp.suspend(LAST_WARP_BARRIER + 1);
    warp.branch(0xe0, 20); // lanes 2 to 4 first at a tie, at 3
    warp.branch(0x18, 40); // lane 2 first; lanes 3, 4 kept, lanes 5 to 7 among the rest
    warp.suspend(LAST_WARP_BARRIER + 2);
    assert_eq!((warp.pc(), warp.active()), (40, 0x18));
    warp.set_barrier(0, 0xe1);
    warp.take_reissued();
    warp.suspend(LAST_WARP_BARRIER + 3);
    assert_eq!((warp.pc(), warp.active()), (20, 0xe0), "ready ones first");
    warp.converge_wait(0); // complete, but lane 0 was deferred before
    assert_eq!((warp.pc(), warp.active()), (5, 0x1));
    warp.converge_wait(0);
    assert_eq!((warp.pc(), warp.active()), (6, 0x1), "nothing holds it");
    warp.suspend(LAST_WARP_BARRIER + 4);
    assert_eq!((warp.pc(), warp.active()), (20, 0xe0), "once more");
    warp.converge_wait(0);
    assert_eq!((warp.pc(), warp.active()), (21, 0xe0));
    assert_eq!(
        warp.take_reissued(),
        Reissued::default(),
        "each was executed by itself"
    );
}

/// Recursion does this: a lane leaves all its calls with lanes of an inner one, and stands at `__syncthreads()`.
#[test]
fn lanes_at_a_barrier_of_the_block_arrive_for_their_warp() {
    let mut warp = native(0xf);
    warp.branch(0x1, 9); // lane 0 first
    warp.suspend(0);
    assert!(!warp.is_stuck_at_block_barrier(), "the others are ready");
    warp.set_barrier(0, 0xf); // 1: as a return from a call does
    warp.converge_wait(0); // 2
    assert!(warp.is_stuck_at_block_barrier());
    warp.resume(0);
    assert_eq!((warp.pc(), warp.active()), (10, 0x1));
    warp.suspend(LAST_WARP_BARRIER);
    assert_eq!((warp.pc(), warp.active()), (1, 0xe), "once more");
    warp.converge_wait(0);
    assert_eq!((warp.pc(), warp.active()), (2, 0xe));
}

#[test]
fn lanes_at_a_barrier_wait_for_those_that_something_outside_lets_go_on() {
    let mut warp = native(0xf);
    warp.converge_set(0); // 0
    warp.branch(0x1, 9); // 1: lane 0 first
    warp.suspend(LAST_WARP_BARRIER + 1);
    warp.converge_wait(0); // 2
    assert_eq!(warp.active(), 0);
}

#[test]
fn warp_syncs_at_two_places_wait_for_each_other() {
    let mut warp = native(0xf);
    warp.branch(0x1, 9); // lane 0 at 9, the others at 1
    warp.warp_sync(0xf);
    assert_eq!((warp.pc(), warp.active()), (1, 0xe));
    warp.warp_sync(0xf);
    assert_ne!(warp.active(), 0, "all have come");
    let others = warp.waiting_paths()[0];
    let mut places = [(warp.pc(), warp.active()), (others.pc, others.lanes)];
    places.sort_unstable();
    assert_eq!(places, [(2, 0xe), (10, 0x1)]);
}

#[test]
fn a_collective_is_executed_once_where_lanes_waited_first() {
    let mut warp = native(0xf);
    warp.branch(0x1, 20); // lane 0 first, at 20; the others at 1
    warp.collective(0x1, 0xf, 23); // 20: waits
    assert_eq!((warp.pc(), warp.active()), (1, 0xe));
    warp.collective(0xe, 0xf, 4); // 1: all have come
    assert_eq!((warp.pc(), warp.active()), (21, 0xf), "the first place");
    warp.advance();
    warp.end_collective(); // 22
    assert_eq!((warp.pc(), warp.active()), (4, 0xe), "each to its own");
    warp.exit(0xe);
    assert_eq!((warp.pc(), warp.active()), (23, 0x1), "whose code it was");
}

#[test]
fn a_collective_of_lanes_that_are_together_waits_for_nobody() {
    let mut warp = native(0xff);
    warp.branch(0xf0, 40); // lanes 0 to 3 first at a tie
    warp.collective(0xf, 0xf, 9); // 1
    assert_eq!((warp.pc(), warp.active()), (2, 0xf));
    warp.end_collective(); // 2
    assert_eq!((warp.pc(), warp.active()), (9, 0xf));
}

#[test]
fn lanes_of_two_collectives_at_one_place_do_not_mix() {
    let mut warp = native(0xff);
    warp.collective(0x0f, 0x0f, 5); // 0
    assert_eq!((warp.pc(), warp.active()), (1, 0x0f));
    warp.end_collective();
    assert_eq!((warp.pc(), warp.active()), (5, 0x0f));
    warp.exit(0x0f);
    assert_eq!((warp.pc(), warp.active()), (0, 0xf0), "with their own mask");
}

#[test]
fn a_collective_does_not_wait_for_lanes_that_end() {
    let mut warp = native(0x7);
    warp.branch(0x4, 9); // lane 2 first
    warp.collective(0x4, 0x7, 12); // 9
    warp.branch(0x1, 30); // 1: lane 1 first at a tie, at 2
    warp.collective(0x2, 0x7, 6); // 2
    assert_eq!((warp.pc(), warp.active()), (30, 0x1));
    warp.exit(0x1);
    assert_eq!((warp.pc(), warp.active()), (10, 0x6));
}

/// `__syncwarp()` in a branch that not all lanes take.
#[test]
fn lanes_behind_a_branch_do_not_wait_for_lanes_that_wait_for_them() {
    let mut warp = native(0xf);
    warp.converge_set(0); // 0
    warp.branch(0x3, 9); // 1: lanes 2, 3 first at a tie
    warp.warp_sync(0xf); // 2
    assert_eq!((warp.pc(), warp.active()), (9, 0x3));
    warp.converge_wait(0); // 9: waits for lanes 2 and 3, which wait for these
    assert_eq!((warp.pc(), warp.active()), (9, 0x3), "once more");
    warp.converge_wait(0);
    assert_eq!((warp.pc(), warp.active()), (10, 0x3));
    warp.exit(0x3);
    assert_eq!((warp.pc(), warp.active()), (3, 0xc));
}

#[test]
fn lanes_with_several_masks_go_on_group_by_group() {
    let mut warp = native(0xff);
    warp.warp_sync_exclusive(0x0f, 0x0f); // 0
    assert_eq!((warp.pc(), warp.active()), (1, 0x0f));
    warp.suspend(1);
    assert_eq!((warp.pc(), warp.active()), (0, 0xf0), "again");
    warp.warp_sync_exclusive(0xf0, 0xf0);
    assert_eq!((warp.pc(), warp.active()), (1, 0xf0));
}

/// Lanes at a collective recorded themselves in the barrier that a lane which they wait for uses on its way.
#[test]
fn a_lane_passes_a_barrier_whose_others_wait_for_it_at_a_collective() {
    let mut warp = native(0xf);
    warp.branch(0x1, 20); // lane 0 first, at 20
    warp.suspend(1);
    warp.converge_set(0); // 1: as compilers do before a collective
    warp.branch(0x2, 9); // 2: lane 1 first, spins
    warp.suspend(2);
    warp.collective(0xc, 0xf, 6); // 3: lanes 2, 3 wait for lanes 0, 1
    warp.resume(1);
    assert_eq!((warp.pc(), warp.active()), (21, 0x1));
    warp.resume(2);
    warp.converge_set(0); // 21
    assert_eq!(warp.barrier(0), 0xf);
    warp.converge_wait(0); // 22: lane 1 may still come
    assert_eq!((warp.pc(), warp.active()), (10, 0x2));
    warp.yield_to_others(false); // 10: nobody waits for lane 1 any more
    assert_eq!((warp.pc(), warp.active()), (22, 0x1), "once more");
    warp.converge_wait(0);
    assert_eq!((warp.pc(), warp.active()), (23, 0x1));
    assert_eq!(warp.barrier(0), 0xc, "they meet behind the collective");
    warp.converge_set(0); // 23
    warp.converge_wait(0); // 24: only lanes at the collective are missing
    assert_eq!((warp.pc(), warp.active()), (25, 0x1));
    warp.collective(0x1, 0xf, 28); // 25
    assert_eq!((warp.pc(), warp.active()), (11, 0x2));
    warp.collective(0x2, 0xf, 14); // 11: the last one
    assert_eq!((warp.pc(), warp.active()), (4, 0xf));
}

#[test]
fn lanes_with_several_masks_wait_for_their_own() {
    let mut masks = [0x0f; LANES];
    masks[4..8].fill(0xf0);
    let mut warp = native(0xff);
    warp.warp_sync_each(0xff, &masks); // 0: all are here
    assert_eq!((warp.pc(), warp.active()), (1, 0xff));
    warp.branch(0x11, 9); // 1: lanes 0 and 4 first, at 9
    warp.branch(0x10, 20); // 9: at a tie lane 0, at 10
    warp.suspend(1);
    assert_eq!((warp.pc(), warp.active()), (20, 0x10));
    warp.suspend(2);
    warp.warp_sync_each(0xee, &masks); // 2: each group lacks one
    assert_eq!(warp.active(), 0);
    warp.resume(1);
    warp.branch(0x1, 2); // 11
    warp.warp_sync(0x0f);
    assert_eq!((warp.pc(), warp.active()), (3, 0x0f), "not the other group");
    warp.exit(0x0f);
    warp.resume(2);
    warp.branch(0x10, 2); // 21
    warp.warp_sync(0xf0);
    assert_eq!((warp.pc(), warp.active()), (3, 0xf0));
}

#[test]
fn a_lane_that_sleeps_in_an_inner_call_leaves_those_who_wait_in_outer_calls() {
    let mut warp = native(0xf);
    warp.converge_set(1); // 0
    warp.branch(0x1, 9); // 1: lane 0 waits in the outer call
    assert_eq!(warp.converge_wait(1), 0); // 9
    assert_eq!((warp.pc(), warp.active()), (2, 0xe));
    warp.clear_barrier(1); // kept in a register, as in the next call
    warp.converge_set(1); // 2
    warp.branch(0x2, 9); // 3: lane 1 waits in its call
    assert_eq!(warp.converge_wait(1), 0); // 9
    let kept = warp.barrier(1);
    warp.clear_barrier(1);
    warp.yield_to_others(true); // 4: lanes 2 and 3 are in no barrier
    assert_eq!((warp.pc(), warp.active()), (5, 0xc));
    warp.set_barrier(1, kept);
    warp.branch(0xc, 9); // 5
    warp.converge_wait(1); // 9
    assert_eq!((warp.pc(), warp.active()), (10, 0xe), "without lane 0");
}
