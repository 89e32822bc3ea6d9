//! The work distributor on a small GPU, with all orders of arrivals, sizes and priorities: every
//! schedule ends, queues keep their order, urgent kernels come first.

use std::sync::Arc;

use crate::common::*;
use lockstep_config::GpuConfig;
use lockstep_gpu::{Gpu, KernelRecord, Mode};
use lockstep_isa::Module;
use lockstep_units::Cycles;

/// A kernel of a schedule.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    blocks: u32,
    threads: u32,
    rounds: u32,
    queue: u64,
    priority: i32,
    /// Cycles after the first.
    after: u64,
    /// Blocks of a cluster.
    cluster: u32,
    /// May begin before the one before it in its queue has ended.
    programmatic: bool,
}

/// Blocks: one, more than fit at once with few threads, more than fit with many.
const BLOCKS: [u32; 3] = [1, 5, 9];
/// Threads: an SM holds four or one of these.
const THREADS: [u32; 2] = [32, 128];
/// Times a thread goes round: short and long.
const ROUNDS: [u32; 2] = [1, 60];
const QUEUES: [u64; 2] = [0, 1];
const PRIORITIES: [i32; 2] = [0, -1];
/// At once, before the first block leaves, while blocks run.
const AFTER: [u64; 3] = [0, 40, 900];

/// Two SMs of four warps each.
fn tiny() -> GpuConfig {
    let settings = [
        "device.sms=2",
        "device.gpcs=1",
        "device.gpc-tpcs=[1]",
        "device.gpc-of-tpc=[0]",
        "dispatch.first-sms=[]",
        "sm.warps=4",
        "l2.slices=2",
        "l2.interleave-slices=2",
        "l2.partitions=1",
        "l2.first-partition-gpcs=[]",
        "l2.capacity=1280 KiB",
        "dram.channels=2",
    ];
    lockstep_config::load(Some("h200"), &settings).unwrap()
}

/// Counts down.
fn module() -> Arc<Module> {
    let mut k = Assembler::new();
    let [turns] = k.regs();
    let more = k.pred();
    k.mov(turns, Assembler::argument(0));
    let again = k.here();
    k.sub(turns, turns, imm(1));
    k.not_equal(more, turns, imm(0));
    k.branch_if(more, true, again);
    k.finish()
}

fn every_arrival() -> Vec<Arrival> {
    let mut all = Vec::new();
    for blocks in BLOCKS {
        for threads in THREADS {
            for rounds in ROUNDS {
                for queue in QUEUES {
                    for priority in PRIORITIES {
                        for after in AFTER {
                            all.push(Arrival {
                                blocks,
                                threads,
                                rounds,
                                queue,
                                priority,
                                after,
                                cluster: 1,
                                programmatic: false,
                            });
                        }
                    }
                }
            }
        }
    }
    all
}

/// Runs a schedule on a GPU that has nothing to do, and gives the records in the order of calls.
fn run_schedule(gpu: &mut Gpu, module: &Arc<Module>, schedule: &[Arrival]) -> Vec<KernelRecord> {
    let clock = gpu.config().device.clock;
    let begin = gpu.now();
    let mut calls: Vec<usize> = (0..schedule.len()).collect();
    calls.sort_by_key(|index| schedule[*index].after);
    let mut ids = vec![None; schedule.len()];
    for index in calls {
        let arrival = schedule[index];
        let at = begin + clock.duration(Cycles(arrival.after));
        gpu.advance_to(at).unwrap();
        let blocks = arrival.blocks * arrival.cluster;
        let mut one = launch(module, blocks, arrival.threads, &[arrival.rounds]);
        one.cluster = Some([arrival.cluster, 1, 1]);
        one.programmatic = arrival.programmatic;
        one.queue = arrival.queue;
        one.priority = arrival.priority;
        ids[index] = Some(gpu.launch(one).unwrap());
    }
    let ids = ids.into_iter().flatten();
    ids.map(|id| {
        gpu.run_until_complete(id)
            .unwrap_or_else(|error| panic!("{schedule:?}: {error}"))
    })
    .collect()
}

/// Launches of one queue follow each other, in the order of calls.
fn check_queues(schedule: &[Arrival], records: &[KernelRecord]) {
    for (index, first) in schedule.iter().enumerate() {
        for (other, second) in schedule.iter().enumerate() {
            let earlier = (first.after, index) < (second.after, other);
            if earlier && first.queue == second.queue {
                // Nobody says when its dependents may begin, so they begin when its blocks have ended.
                let begins = if second.programmatic {
                    records[index].start
                } else {
                    records[index].end
                };
                assert!(begins <= records[other].start, "{schedule:?}");
            }
        }
    }
}

#[test]
fn every_pair_of_kernels_ends_in_order() {
    let (config, module, all) = (tiny(), module(), every_arrival());
    let mut gpus = [Mode::Timing, Mode::Functional].map(|mode| gpu(&config, mode));
    for first in all.iter().filter(|first| first.after == 0) {
        for second in &all {
            let schedule = [*first, *second];
            for gpu in &mut gpus {
                let records = run_schedule(gpu, &module, &schedule);
                check_queues(&schedule, &records);
            }
        }
    }
}

#[test]
fn triples_of_kernels_end_in_order() {
    let (config, module, all) = (tiny(), module(), every_arrival());
    let mut gpu = gpu(&config, Mode::Timing);
    let mut random = Random(17);
    for _ in 0..6000 {
        let mut schedule: [Arrival; 3] =
            std::array::from_fn(|_| all[random.below(all.len() as u64) as usize]);
        for arrival in &mut schedule {
            arrival.queue = random.below(3);
        }
        let records = run_schedule(&mut gpu, &module, &schedule);
        check_queues(&schedule, &records);
    }
}

/// Clusters of two take both SMs at once, among kernels that take them one by one, and some begin early: all of
/// them end, whatever comes when.
#[test]
fn clusters_among_others_end_in_order() {
    let (config, module, all) = (tiny(), module(), every_arrival());
    let mut random = Random(23);
    for mode in [Mode::Timing, Mode::Functional] {
        let mut gpu = gpu(&config, mode);
        for _ in 0..2000 {
            let mut schedule: [Arrival; 4] =
                std::array::from_fn(|_| all[random.below(all.len() as u64) as usize]);
            for arrival in &mut schedule {
                arrival.queue = random.below(3);
                arrival.cluster = 1 + random.below(2) as u32;
                arrival.programmatic = random.below(3) == 0;
            }
            let records = run_schedule(&mut gpu, &module, &schedule);
            check_queues(&schedule, &records);
        }
    }
}

/// A kernel behind one whose cluster waits for room does not take that room block by block.
#[test]
fn small_blocks_do_not_keep_a_cluster_waiting() {
    let (config, module) = (tiny(), module());
    let arrival = |blocks, cluster, queue, rounds, after| Arrival {
        blocks,
        threads: 128,
        rounds,
        queue,
        priority: 0,
        after,
        cluster,
        programmatic: false,
    };
    let mut gpu = gpu(&config, Mode::Timing);
    // Two blocks of different length, then the cluster, then a flood.
    let schedule = [
        arrival(1, 1, 0, 400, 0),
        arrival(1, 1, 1, 900, 10),
        arrival(1, 2, 2, 10, 900),
        arrival(60, 1, 3, 300, 1000),
    ];
    let records = run_schedule(&mut gpu, &module, &schedule);
    assert!(records[2].end < records[3].end, "{records:?}");
    let flood = records[3].end.0 - records[3].start.0;
    let waited = records[2].end.0 - records[2].start.0;
    assert!(waited < flood / 4, "{waited} of {flood}");
}

/// Measured on an H200 (`host_and_streams.cu prio`): blocks of the urgent kernel leave as soon as
/// the first blocks of the other end.
#[test]
fn urgent_blocks_leave_before_those_that_wait() {
    let (config, module) = (tiny(), module());
    let long = Arrival {
        blocks: 9,
        threads: 128,
        rounds: 400,
        queue: 0,
        priority: 0,
        after: 0,
        cluster: 1,
        programmatic: false,
    };
    let late = |priority| Arrival {
        blocks: 2,
        queue: 1,
        priority,
        after: 900,
        ..long
    };
    let mut gpu = gpu(&config, Mode::Timing);
    let [patient, urgent] = [0, -1].map(|priority| {
        let records = run_schedule(&mut gpu, &module, &[long, late(priority)]);
        assert!(records[1].start < records[0].end);
        records[1].end < records[0].end
    });
    assert!(urgent && !patient, "{urgent} {patient}");
}
