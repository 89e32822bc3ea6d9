//! GMMU and host runtime as a whole.

use std::sync::Arc;

use lockstep_units::Duration;

use crate::PAGE;
use crate::evict::EVICTORS;
use crate::gmmu::Advice;
use crate::harness::{Access, Bench, settings, touch_all};
use crate::prefetch::PREFETCHERS;
use crate::settings::Settings;

fn access(bench: &Bench, page: u64) -> Access {
    *bench.accesses.iter().find(|a| a.page == page).unwrap()
}

/// Section 1.6 of the facts: one access to a cold block, another warp behind it.
#[test]
fn one_fault_takes_its_time_to_the_cycle() {
    let settings = settings(|config| config.prefetch.policy = "sequential-local".into());
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 64 << 10);
    bench.touch(0, 0, 0, false);
    bench.touch(200, 1, 1, false);
    bench.run_until(u64::MAX);
    assert_eq!(access(&bench, 0).at, 55_623);
    let stats = bench.gmmu.stats();
    assert_eq!(stats.far_faults.get(), 1);
    assert_eq!(stats.fault_pending.get() + stats.fault_merged.get(), 1);
    assert_eq!(bench.replays, [(55_522, 0), (63_679, 1)]);
    let log = bench.gmmu.migration_log();
    assert_eq!((log[0].start, log[0].end), (54_101, 55_522));
    assert_eq!((log[1].start, log[1].end), (55_522, 63_679));
    assert_eq!(access(&bench, 1).at, 63_679 + 100 + 1);
    // Both asked twice.
    assert_eq!(stats.walks.get(), 4);
}

#[test]
fn faults_are_counted_as_arithmetic_says() {
    let bytes = 12 << 20;
    for (policy, expected) in [("none", 3072), ("sequential-local", 192), ("tree", 36)] {
        for service in ["additive", "serial", "batch", "calibrated"] {
            let settings = settings(|config| {
                config.prefetch.policy = policy.into();
                config.fault.service = service.into();
            });
            let bench = touch_all(&settings, bytes);
            assert_eq!(
                bench.gmmu.stats().far_faults.get(),
                expected,
                "{policy} {service}"
            );
        }
    }
}

#[test]
fn every_policy_completes_without_enough_memory() {
    let bytes: u64 = 8 << 20;
    for service in ["additive", "serial", "batch", "calibrated"] {
        for prefetcher in PREFETCHERS {
            for evictor in EVICTORS {
                for clean in ["copy", "drop"] {
                    let settings = settings(|config| {
                        config.fault.service = service.into();
                        config.prefetch.policy = prefetcher.name.into();
                        config.prefetch.oversubscribed = prefetcher.name.into();
                        config.evict.policy = evictor.name.into();
                        config.evict.clean = clean.into();
                        config.oversubscription = 150;
                    });
                    let mut bench = Bench::new(&settings);
                    bench.gmmu.map_memory(0, bytes);
                    for round in 0..2 {
                        for page in (0..bytes / PAGE).step_by(5) {
                            let now = bench.accesses.len() as u64;
                            bench.touch(now, (page % 4) as u32, page, round == 0);
                        }
                    }
                    bench.run_until(u64::MAX);
                    let touched = (bytes / PAGE).div_ceil(5) as usize;
                    let name = format!("{service} {} {} {clean}", prefetcher.name, evictor.name);
                    assert_eq!(bench.accesses.len(), 2 * touched, "{name}");
                    assert!(bench.gmmu.next().is_none(), "{name}");
                    let frames = bench.gmmu.frames();
                    let resident: u32 = bench.gmmu.space().trees().map(|t| t.device.count()).sum();
                    assert!(u64::from(resident) <= frames, "{name}");
                }
            }
        }
    }
}

#[test]
fn a_page_that_is_wanted_back_comes_after_it_has_left() {
    let settings = settings(|config| {
        config.prefetch.policy = "none".into();
        config.prefetch.oversubscribed = "none".into();
        config.evict.policy = "lru-4k".into();
        config.oversubscription = 200;
    });
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 8 << 20);
    bench.touch_in_turn(0, (0..1025).chain([0]), true);
    let log = bench.gmmu.migration_log();
    let moves: Vec<_> = log.iter().filter(|record| record.page == 0).collect();
    assert_eq!(moves.len(), 3);
    assert!(moves[1].end <= moves[2].start);
    assert_eq!(bench.gmmu.stats().refaults.get(), 1);
    assert_eq!(bench.gmmu.stats().thrashed.get(), 1);
}

#[test]
fn the_eviction_trigger_is_that_of_the_vector() {
    // 1024 frames with 5 % kept free: 51.2 must be free.
    for (resident, evicts) in [(980u64, true), (972, false)] {
        let settings = settings(|config| {
            config.prefetch.policy = "none".into();
            config.prefetch.oversubscribed = "none".into();
            config.evict.policy = "lru-4k".into();
            config.evict.free_buffer = 5;
            config.oversubscription = 200;
        });
        let mut bench = Bench::new(&settings);
        bench.gmmu.map_memory(0, 8 << 20);
        bench.touch_in_turn(0, 0..resident, false);
        assert_eq!(bench.gmmu.stats().evictions.get() > 0, evicts, "{resident}");
    }
}

#[test]
fn a_prefetch_of_the_program_brings_pages_and_catches_faults() {
    let settings = settings(|_| {});
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 6 << 20);
    bench.gmmu.prefetch(0, 7, 4096, (4 << 20) - 4096, true);
    bench.touch(10, 0, 600, false);
    bench.run_until(u64::MAX);
    assert_eq!(bench.done.len(), 1);
    assert_eq!(bench.gmmu.stats().far_faults.get(), 1);
    // The second chunk is not registered yet when page 600 faults; all the rest is there.
    for page in 1..1024 {
        assert!(bench.gmmu.space().is_resident(page), "{page}");
    }
    assert!(!bench.gmmu.space().is_resident(0));
    bench.gmmu.prefetch(1_000_000, 8, 0, 6 << 20, false);
    bench.run_until(u64::MAX);
    assert_eq!(bench.done.len(), 2);
    assert!(!(0..1536).any(|page| bench.gmmu.space().is_resident(page)));
}

#[test]
fn advice_to_stay_on_the_host_moves_nothing() {
    let settings = settings(|_| {});
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 1 << 20);
    bench.gmmu.advise(0, 64 << 10, Advice::PreferredHost);
    bench.touch_in_turn(0, [0, 1, 0], false);
    let stats = bench.gmmu.stats();
    assert_eq!((stats.far_faults.get(), stats.remote_reads.get()), (0, 3));
    // Every use goes over the link: nothing is left in the TLB.
    assert_eq!(bench.translators[0].stats.hits.get(), 0);
}

#[test]
fn a_block_moves_after_enough_reads_over_the_link() {
    let settings = settings(|config| {
        config.zero_copy.mode = "always".into();
        config.prefetch.policy = "sequential-local".into();
    });
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 1 << 20);
    bench.touch_in_turn(0, [0; 12], false);
    let stats = bench.gmmu.stats();
    assert_eq!((stats.remote_reads.get(), stats.far_faults.get()), (8, 1));
    assert_eq!(stats.counter_migrations.get(), 1);
    bench.touch(10_000_000, 0, 20, true);
    bench.run_until(u64::MAX);
    assert_eq!(bench.gmmu.stats().far_faults.get(), 2);
}

#[test]
fn shooting_down_everything_costs_hits() {
    let run = |shootdown: &str| {
        let settings = settings(|config| {
            config.tlb.shootdown = shootdown.into();
            config.prefetch.policy = "none".into();
        });
        let mut bench = Bench::new(&settings);
        bench.gmmu.map_memory(0, 1 << 20);
        bench.touch_in_turn(0, (0..64).flat_map(|page| [page, 0]), false);
        bench.translators[0].stats.hits.get()
    };
    assert!(run("entry") > run("whole"));
    assert_eq!(run("entry"), run("range"));
}

#[test]
fn whole_blocks_are_mapped_by_one_entry() {
    let settings = settings(|config| {
        config.promotion = true;
        config.prefetch.policy = "tree".into();
        config.tlb.shootdown_on = "unmap".into();
    });
    let bench = touch_all(&settings, 2 << 20);
    let stats = &bench.translators[0].stats;
    // Pages that fault are translated alone; what came with them by block or more.
    let misses = stats.accesses.get() - stats.hits.get();
    assert!(misses <= 2 * 32, "{misses}");
}

#[test]
fn a_stalled_tlb_takes_nothing_until_the_page_is_there() {
    let settings = settings(|config| config.fault.mode = "stall-sm".into());
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 1 << 20);
    bench.touch(0, 0, 0, false);
    bench.run_until(200);
    assert!(bench.translators[0].is_full());
    bench.run_until(u64::MAX);
    assert!(!bench.translators[0].is_full());
}

/// Device and host touch a page in turn; gives the bench and how long each touch of the device
/// took.
fn to_and_fro(settings: &Arc<Settings>, rounds: u64) -> (Bench, Vec<u64>) {
    let mut bench = Bench::new(settings);
    bench.gmmu.map_memory(0, 64 << 10);
    let (mut now, mut took) = (0, Vec::new());
    for round in 0..rounds {
        bench.touch(now, 0, 0, true);
        bench.run_until(u64::MAX);
        took.push(bench.accesses.last().unwrap().at - now);
        now = bench.accesses.last().unwrap().at + 10;
        bench.gmmu.host_access(now, round, 0, PAGE, true);
        bench.run_until(u64::MAX);
        now = bench.done.last().unwrap().0 + 10;
    }
    (bench, took)
}

#[test]
fn the_device_waits_for_pages_that_the_host_takes_back_too_often() {
    let settings = settings(|config| config.thrash.policy = "driver".into());
    let nap = settings.cycles(settings.config.thrash.nap);
    let (bench, took) = to_and_fro(&settings, 8);
    let waited: Vec<bool> = took.iter().map(|cycles| *cycles > nap / 2).collect();
    // Every third time, as on an H200 (`validation/hardware/h200/uvm_idle.csv`, to and fro).
    let third = [false, false, false, true, false, false, true, false];
    assert_eq!(waited, third, "{took:?}");
    assert_eq!(bench.gmmu.stats().thrash_pinned.get(), 0);
}

#[test]
fn pages_that_thrash_all_the_same_stay_on_the_host() {
    let settings = settings(|config| {
        config.thrash.policy = "driver".into();
        config.thrash.pin_threshold = 0;
    });
    let (bench, _) = to_and_fro(&settings, 4);
    let stats = bench.gmmu.stats();
    assert!(stats.thrash_pinned.get() > 0);
    assert_eq!(stats.remote_writes.get(), 1);
}

#[test]
fn walks_that_may_not_begin_together_are_planned_one_by_one() {
    let faults = |starts| {
        let settings = settings(|config| {
            config.walk.walks_per_cycle = starts;
            config.prefetch.policy = "sequential-local".into();
        });
        let mut bench = Bench::new(&settings);
        bench.gmmu.map_memory(0, 64 << 10);
        for sm in 0..4 {
            bench.touch(0, sm, u64::from(sm), false);
        }
        bench.run_until(u64::MAX);
        assert_eq!(bench.accesses.len(), 4);
        bench.gmmu.stats().far_faults.get()
    };
    assert_eq!((faults(0), faults(1)), (4, 1));
}

#[test]
fn a_host_that_was_idle_has_to_be_woken() {
    let settings = settings(|config| {
        config.fault.service = "calibrated".into();
        config.fault.poll_duration = Duration::microseconds(4);
        config.fault.wake_cost = Duration::microseconds(20);
        config.fault.cold_cost = Duration::microseconds(40);
        config.fault.cold_after = Duration::microseconds(500);
        config.prefetch.policy = "none".into();
    });
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 64 << 10);
    let mut now = 0;
    let mut took = Vec::new();
    for (page, pause) in [(0, 0), (1, 0), (2, 50), (3, 1000)] {
        now += settings.cycles(Duration::microseconds(pause));
        bench.touch(now, 0, page, false);
        bench.run_until(u64::MAX);
        took.push(bench.accesses.last().unwrap().at - now);
        now = bench.accesses.last().unwrap().at;
    }
    let [first, next, woken, cold] = took[..] else {
        panic!("{took:?}");
    };
    let micros = |count| settings.cycles(Duration::microseconds(count));
    assert_eq!(woken - next, micros(20));
    assert_eq!(cold - next, micros(20) + micros(40));
    // The first touches its 2 MiB for the first time, besides.
    assert!(first > cold);
}

#[test]
fn what_was_written_comes_back_when_the_host_waits() {
    let settings = settings(|config| config.host_access = "sync-flush".into());
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 1 << 20);
    bench.touch_in_turn(0, 0..16, true);
    bench.touch(10_000_000, 0, 16, false);
    bench.run_until(u64::MAX);
    bench.gmmu.flush(20_000_000, 1);
    bench.run_until(u64::MAX);
    let space = bench.gmmu.space();
    assert!(!space.is_resident(0) && space.is_resident(16));
    assert_eq!(bench.done.len(), 1);
}

#[test]
fn freeing_memory_gives_its_frames_back() {
    let settings = settings(|_| {});
    let mut bench = touch_all(&settings, 4 << 20);
    bench.gmmu.unmap_memory(0);
    bench.gmmu.map_memory(0, 4 << 20);
    bench.run_until(u64::MAX);
    assert!(!bench.gmmu.space().is_resident(0));
    bench.touch(1 << 40, 0, 3, false);
    bench.run_until(u64::MAX);
    assert!(bench.gmmu.space().is_resident(3));
}

/// Many SMs, pages in any order: the same every time, and everything ends.
#[test]
fn a_run_is_the_same_every_time() {
    let run = || {
        let settings = settings(|config| {
            config.prefetch.policy = "random".into();
            config.tlb.l2_entries = 64;
            config.walk.mode = "levels".into();
            config.walk.walkers = 2;
            config.fault.mshrs = 8;
            config.oversubscription = 120;
        });
        let mut bench = Bench::new(&settings);
        bench.gmmu.map_memory(0, 6 << 20);
        for step in 0..4000u64 {
            let page = step.wrapping_mul(2_654_435_761) >> 7 & 1023;
            bench.touch(step * 3, (step % 4) as u32, page, step % 3 == 0);
        }
        bench.run_until(u64::MAX);
        assert_eq!(bench.accesses.len(), 4000);
        (bench.accesses, bench.gmmu.stats().clone())
    };
    assert_eq!(run(), run());
}

/// Memory that nobody has touched is on neither side: the device fills it with zeros, and what the
/// host touches first has to move.
#[test]
fn memory_that_nobody_touched_is_filled_and_does_not_move() {
    let settings = settings(|config| {
        config.fault.service = "calibrated".into();
        config.first_touch = "zero-fill".into();
        config.prefetch.policy = "sequential-local".into();
        config.fault.fill_block_cost = Duration::microseconds(5);
        config.fault.block_cost = Duration::microseconds(50);
    });
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 4 << 20);
    assert_eq!(bench.gmmu.space().away(0, 1024), [(0, 1024)]);
    // The host touches a page and gets its block.
    bench.gmmu.host_access(0, 7, 17 * PAGE, 1, true);
    bench.run_until(10);
    assert_eq!(bench.done, [(0, 7)], "it waits for nothing");
    assert_eq!(bench.gmmu.space().away(0, 1024), [(0, 16), (32, 992)]);
    assert!(bench.gmmu.space().is_away(600) && !bench.gmmu.space().is_away(17));
    let end = bench.touch_in_turn(0, [0], false);
    let stats = bench.gmmu.stats();
    assert_eq!((stats.far_faults.get(), stats.zero_filled.get()), (1, 16));
    assert_eq!(stats.demand.get() + stats.prefetch.get(), 0);
    assert!(bench.gmmu.migration_log().is_empty());
    bench.touch(end, 0, 17, false);
    bench.run_until(u64::MAX);
    let moved = bench.accesses.last().unwrap().at - end;
    let stats = bench.gmmu.stats();
    assert_eq!(stats.demand.get() + stats.prefetch.get(), 16 * PAGE);
    assert_eq!(stats.zero_filled.get(), 16);
    assert!(
        moved > settings.cycles(Duration::microseconds(50)),
        "{moved}"
    );
    // What was filled and goes to the host moves like everything else.
    bench.gmmu.prefetch(end + moved, 8, 0, 16 * PAGE, false);
    bench.run_until(u64::MAX);
    assert!(!bench.gmmu.space().is_away(0));
    assert_eq!(bench.gmmu.stats().host_back.get(), 16 * PAGE);
}
