//! Batches of faults: what an SM may say, what an entry costs, and how the host works through the
//! 2 MiB of a batch.

use std::sync::Arc;

use lockstep_config::UvmConfig;
use lockstep_units::Duration;

use crate::LARGE_PAGES;
use crate::harness::{Bench, settings};
use crate::settings::Settings;

/// Pages that lie in blocks of their own.
const APART: u64 = 16;

/// Batches without prefetcher that cost nothing, with changes.
fn batches(change: impl FnOnce(&mut UvmConfig)) -> Arc<Settings> {
    settings(|config| {
        config.prefetch.policy = "none".into();
        let fault = &mut config.fault;
        fault.service = "calibrated".into();
        for cost in [
            &mut fault.batch_cost,
            &mut fault.kib_cost,
            &mut fault.new_block_cost,
            &mut fault.cold_cost,
        ] {
            *cost = Duration::ZERO;
        }
        change(config);
    })
}

/// How many pages came with each batch: one replay each.
fn sizes(bench: &Bench) -> Vec<usize> {
    let log = bench.gmmu.migration_log();
    let mut ends: Vec<u64> = bench.replays.iter().map(|(at, _)| *at).collect();
    ends.dedup_by(|later, earlier| *later - *earlier < 100);
    let mut begin = 0;
    let mut sizes = Vec::new();
    for end in ends {
        sizes.push(log.iter().filter(|m| begin < m.end && m.end <= end).count());
        begin = end;
    }
    sizes
}

#[test]
fn an_sm_says_so_much_between_two_replays() {
    let settings = batches(|config| config.fault.per_sm = 7);
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 2 << 20);
    for index in 0..20 {
        bench.touch(0, 0, index * APART, false);
    }
    bench.run_until(u64::MAX);
    assert_eq!(bench.accesses.len(), 20);
    assert_eq!(sizes(&bench), [7, 7, 6]);
    let stats = bench.gmmu.stats();
    assert_eq!(stats.batches.get(), 3);
    assert_eq!(stats.held_back.get(), 13 + 6);
    // Two SMs may say twice as much.
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 2 << 20);
    for index in 0..20 {
        bench.touch(0, (index % 2) as u32, index * APART, false);
    }
    bench.run_until(u64::MAX);
    assert_eq!(sizes(&bench), [14, 6]);
}

#[test]
fn every_access_of_an_instruction_counts() {
    let settings = batches(|config| config.fault.per_sm = 7);
    let mut bench = Bench::new(&settings);
    // All lines of a page each, as a warp that reads every 128 bytes.
    bench.accesses_a_page = 32;
    bench.gmmu.map_memory(0, 2 << 20);
    for index in 0..3 {
        bench.touch(0, 0, index * APART, false);
    }
    bench.run_until(u64::MAX);
    assert_eq!(
        sizes(&bench),
        [1, 1, 1],
        "one page takes all that may be said"
    );
    let stats = bench.gmmu.stats();
    assert_eq!(stats.batch_faults.get(), 3 * 7);
    assert_eq!(stats.batch_duplicates.get(), 3 * 6);
    assert_eq!(stats.far_faults.get(), 3);
}

#[test]
fn more_is_said_while_the_host_has_to_be_woken() {
    let settings = batches(|config| {
        config.fault.per_sm = 2;
        config.fault.per_sm_asleep = 5;
        config.fault.wake_cost = Duration::microseconds(20);
        config.fault.poll_duration = Duration::microseconds(1000);
    });
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 2 << 20);
    for index in 0..9 {
        bench.touch(0, 0, index * APART, false);
    }
    bench.run_until(u64::MAX);
    assert_eq!(sizes(&bench), [5, 2, 2]);
}

/// Four SMs that touch three pages each, all at once; an entry is written in a microsecond, and the host looks after
/// 2.5 of them.
fn twelve_touches(change: impl FnOnce(&mut UvmConfig)) -> Bench {
    let settings = batches(|config| {
        config.fault.entry_interval = Duration::microseconds(1);
        config.fault.pickup = Duration::nanoseconds(2500);
        config.fault.poll_duration = Duration::microseconds(1000);
        change(config);
    });
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 2 << 20);
    for index in 0..12 {
        bench.touch(0, (index % 4) as u32, index * APART, false);
    }
    bench.run_until(u64::MAX);
    bench
}

#[test]
fn the_host_finds_what_is_written_when_it_looks() {
    let bench = twelve_touches(|config| config.fault.poll_interval = Duration::nanoseconds(4600));
    // Three entries in 2.5 us; after a batch, those that ask again have 4.6 us less their walk.
    assert_eq!(sizes(&bench), [3, 5, 4]);
    assert_eq!(bench.accesses.len(), 12);
    assert_eq!(bench.gmmu.stats().batch_flushed.get(), 9 + 4);
}

#[test]
fn a_host_that_has_to_be_woken_finds_what_was_written_meanwhile() {
    let bench = twelve_touches(|config| config.fault.wake_cost = Duration::microseconds(6));
    // Nine entries in 8.5 us; the batch that follows needs nobody to be woken.
    assert_eq!(sizes(&bench), [9, 3]);
}

#[test]
fn an_entry_of_the_buffer_costs_even_if_its_page_is_known() {
    let took = |sms: u32, entry: u64, page: u64| {
        let settings = batches(|config| {
            config.fault.entry_cost = Duration::nanoseconds(entry);
            config.fault.page_cost = Duration::nanoseconds(page);
        });
        let mut bench = Bench::new(&settings);
        bench.gmmu.map_memory(0, 2 << 20);
        for sm in 0..sms {
            bench.touch(0, sm, 0, false);
        }
        bench.run_until(u64::MAX);
        assert_eq!(bench.gmmu.stats().batches.get(), 1);
        bench.replays[0].0
    };
    let cycles = |nanoseconds| settings(|_| ()).cycles(Duration::nanoseconds(nanoseconds));
    let free = took(3, 0, 0);
    assert_eq!(took(1, 5000, 0) - free, cycles(5000));
    assert_eq!(took(3, 5000, 0) - free, cycles(15_000));
    assert_eq!(
        took(3, 0, 5000) - free,
        cycles(5000),
        "a page is served once"
    );
}

#[test]
fn a_tree_moves_while_the_host_works_on_the_next() {
    let settings = batches(|config| config.fault.block_cost = Duration::microseconds(100));
    let mut bench = Bench::new(&settings);
    bench.gmmu.map_memory(0, 6 << 20);
    for tree in 0..3 {
        bench.touch(0, 0, tree * u64::from(LARGE_PAGES), false);
    }
    bench.run_until(u64::MAX);
    let log = bench.gmmu.migration_log();
    let block = settings.cycles(Duration::microseconds(100));
    let starts: Vec<u64> = log.iter().map(|m| m.start).collect();
    assert_eq!(starts[1] - starts[0], block);
    assert_eq!(starts[2] - starts[1], block);
    assert!(
        log[0].end < starts[1],
        "it has moved before the next begins"
    );
    // Nobody goes on before all is done.
    assert!(bench.replays.iter().all(|(at, _)| *at >= log[2].end));
    assert_eq!(bench.gmmu.stats().batches.get(), 1);
}

/// The order in which pages come where an SM may say one thing at a time.
fn order(seed: u64, one_page_a_warp: bool) -> Vec<u64> {
    let settings = batches(|config| {
        config.fault.per_sm = 1;
        config.seed = seed;
    });
    let mut bench = Bench::new(&settings);
    bench.one_page_a_warp = one_page_a_warp;
    bench.gmmu.map_memory(0, 2 << 20);
    for index in 0..8 {
        bench.touch(0, 0, index * APART, false);
    }
    bench.run_until(u64::MAX);
    let log = bench.gmmu.migration_log();
    log.iter().map(|record| record.page / APART).collect()
}

#[test]
fn an_instruction_with_several_pages_begins_again_anywhere() {
    let in_turn: Vec<u64> = (0..8).collect();
    for seed in 1..5 {
        assert_eq!(order(seed, true), in_turn, "instructions go on in turn");
        let mut any = order(seed, false);
        assert_eq!(any, order(seed, false), "a seed always gives the same");
        any.sort_unstable();
        assert_eq!(any, in_turn, "every page comes once");
    }
    assert!((1..5).any(|seed| order(seed, false) != in_turn));
}
