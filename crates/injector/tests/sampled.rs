//! Periodic sampling against a fake GPU that checks the order of calls.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use lockstep_schema::Metadata;
use lockstep_segment::now;
use lockstep_segment::{RecordKind, SegmentDirectory, SegmentReader};
use support::{Bench, Rows};

const FINE: &str = "interval = \"1 ms\"\n\
    counters = [\"inst_executed\", \"active_cycles\", \"inst_issued\", \"thread_inst_executed_pred_on\", \"warps_launched\"]\n\
    gauges.interval = \"20 ms\"\n";

/// Warps, instructions and so on of launches with these sizes.
fn warps(grid: u64, block: u64, count: u64) -> u64 {
    grid * block.div_ceil(32) * count
}

#[test]
fn the_series_adds_up_to_what_ran() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    bench.run_well(&[
        "context 0",
        "launch 0 7 vector_add 1000 256 50 3000000 20",
        "sync",
    ]);
    let collected = bench.collect(&metadata);
    let all = |_: &_| String::new();
    let started = warps(1000, 256, 20);
    assert_eq!(collected.totals("warps_launched", all)[""], started);
    assert_eq!(collected.totals("inst_executed", all)[""], started * 50);
    assert_eq!(
        collected.totals("thread_inst_executed_pred_on", all)[""],
        started * 50 * 31
    );
    assert_eq!(
        collected.totals("inst_executed", |key| key.kernel.to_string())["vector_add"],
        started * 50
    );
    assert_eq!(collected.rows.launches.len(), 20);
    // Cumulative: no counter ever goes down.
    let mut last = 0;
    for row in &collected.rows.series {
        assert!(row.counters[0].unwrap() >= last);
        last = row.counters[0].unwrap();
    }
    assert!(
        collected.rows.series.len() > 50,
        "60 ms at one sample a millisecond"
    );
    assert!(
        collected.rows.series.iter().all(|row| row.exact),
        "one kernel, so nothing was divided"
    );
    assert_eq!(bench.segment_count(), 0, "a segment that was read goes");
}

#[test]
fn gauges_and_the_host_side_are_on_the_same_time_line() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    bench.run_well(&["context 0", "launch 0 7 k 10 32 5 50000000 2", "sync"]);
    let collected = bench.collect(&metadata);
    let (gpu, host): (Vec<_>, Vec<_>) = collected
        .rows
        .gauges
        .iter()
        .partition(|row| !row.gpu.is_empty());
    assert!(gpu.len() >= 3 && host.len() >= 3);
    let read = [
        Some(345_678),
        Some(45),
        Some(1980),
        Some(3201),
        Some(1 << 36),
    ];
    assert!(
        gpu.iter().all(
            |row| row.gauges == read && &*row.gpu == "GPU-face0000-0000-0000-0000-000000000000"
        )
    );
    assert!(host.iter().all(|row| row.gauges[1].unwrap() > 100_000));
    let launch = &collected.rows.launches[0];
    assert!(
        gpu.iter()
            .any(|row| row.time > launch.begin && row.time < launch.begin + 200_000_000)
    );
}

#[test]
fn contexts_threads_and_ways_to_launch_are_told_apart() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    bench.run_well(&[
        "context 0",
        "context 0",
        "launch 0 7 first 100 128 10 5000000 4",
        "sync",
        "ex 1 9 second 200 64 30 5000000 3",
        "sync",
        "graph 0 11 third 50 256 20 5000000 5",
        "sync",
        "threads 4 1 fourth 10 32 40 1000000 6",
        "sync",
    ]);
    let collected = bench.collect(&metadata);
    let name = |key: &lockstep_attribution::Key| format!("{} {}", key.context, key.kernel);
    let expected: BTreeMap<String, u64> = [
        ("1 first", 4),
        ("2 second", 3),
        ("1 third", 5),
        ("2 fourth", 24),
    ]
    .map(|(key, n)| (key.to_owned(), n))
    .into();
    assert_eq!(collected.launches(name), expected);
    let started = collected.totals("warps_launched", name);
    assert_eq!(started["1 first"], warps(100, 128, 4));
    assert_eq!(started["2 second"], warps(200, 64, 3));
    assert_eq!(started["1 third"], warps(50, 256, 5));
    // Four streams at once; a late sample counts as other.
    let other = started.get("0 (other)").copied().unwrap_or(0);
    assert!(
        (started["2 fourth"] + other).abs_diff(warps(10, 32, 24)) <= 4,
        "{started:?}"
    );
    let executed = collected.totals("inst_executed", name);
    // Neighbours share the interval in which one ends and the next begins.
    for (name, exact) in [
        ("1 first", warps(100, 128, 4) * 10),
        ("2 second", warps(200, 64, 3) * 30),
    ] {
        assert!(
            executed[name].abs_diff(exact) * 50 <= exact,
            "{name}: {} instead of {exact}",
            executed[name]
        );
    }
    let streams = collected.launches(|key| key.stream.to_string());
    assert_eq!(streams.len(), 3 + 4, "each thread had a stream of its own");
}

#[test]
fn a_launch_into_a_captured_stream_is_none() {
    for mode in ["sampled", "exact"] {
        let mut bench = Bench::new();
        let text = "interval = \"1 ms\"\ncounters = [\"inst_executed\", \"warps_launched\"]\n";
        let metadata = bench.metadata(&format!("mode = \"{mode}\"\n{text}"));
        bench.run_well(&["context 0", "capture 0 7 k 100 128 10 2000000 3", "sync"]);
        let collected = bench.collect(&metadata);
        let name = |key: &lockstep_attribution::Key| key.kernel.to_string();
        assert_eq!(collected.launches(name)["k"], 3, "{mode}");
        let started = collected.totals("warps_launched", name);
        assert_eq!(started["k"], warps(100, 128, 3), "{mode}");
    }
}

#[test]
fn streams_at_once_are_marked_and_told_apart() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    // The same kernel in two contexts at once: alone, nothing would tell which of them ran.
    bench.run_well(&[
        "context 0",
        "context 0",
        "launch 0 7 light 100 128 10 3000000 40",
        "launch 1 9 heavy 100 128 80 3000000 40",
        "sync",
        "sleep 20",
    ]);
    let mut marks = 0;
    for path in SegmentDirectory::observe(&bench.segments())
        .segments()
        .unwrap()
    {
        let mut reader = SegmentReader::open(&path).unwrap();
        let records = reader.read().records;
        let reached = records
            .iter()
            .filter(|(_, record)| record.kind == RecordKind::Progress);
        marks += reached.count();
    }
    assert!(marks >= 2, "the device told how far streams were, {marks}");
    let collected = bench.collect(&metadata);
    let name = |key: &lockstep_attribution::Key| key.kernel.to_string();
    let started = collected.totals("warps_launched", name);
    for name in ["light", "heavy"] {
        let all = warps(100, 128, 40);
        assert!(started[name].abs_diff(all) * 100 <= all, "{started:?}");
    }
}

#[test]
fn processes_share_one_gpu_and_one_of_them_samples_it() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    let shared = bench.folder.join("device");
    bench.set("FAKE_GPU_SHARED", shared.to_str().unwrap());
    // The first one is up before the second starts, and outlives it.
    let first = bench.spawn(&[
        "context 0",
        "sleep 300",
        "launch 0 7 alpha 100 128 10 4000000 5",
        "sync",
        "sleep 400",
    ]);
    std::thread::sleep(Duration::from_millis(100));
    let second = bench.spawn(&[
        "context 0",
        "sleep 350",
        "launch 0 7 beta 300 128 40 4000000 5",
        "sync",
    ]);
    let (alpha, beta) = (first.id(), second.id());
    for child in [second, first] {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    bench.no_complaints();
    let collected = bench.collect(&metadata);
    let by_process = collected.totals("warps_launched", |key| {
        format!("{} {}", key.process, key.kernel)
    });
    assert_eq!(by_process[&format!("{alpha} alpha")], warps(100, 128, 5));
    assert_eq!(by_process[&format!("{beta} beta")], warps(300, 128, 5));
    let executed = collected.totals("inst_executed", |key| key.process.to_string());
    assert_eq!(executed[&alpha.to_string()], warps(100, 128, 5) * 10);
    assert_eq!(executed[&beta.to_string()], warps(300, 128, 5) * 40);
}

#[test]
fn when_the_sampler_of_a_gpu_goes_another_takes_over() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    let shared = bench.folder.join("device");
    bench.set("FAKE_GPU_SHARED", shared.to_str().unwrap());
    let mut first = bench.spawn(&["context 0", "sleep 60000"]);
    std::thread::sleep(Duration::from_millis(200));
    let second = bench.spawn(&[
        "context 0",
        "sleep 1800",
        "launch 0 7 late 100 128 10 4000000 5",
        "sync",
    ]);
    std::thread::sleep(Duration::from_millis(200));
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(second.wait_with_output().unwrap().status.success());
    let collected = bench.collect(&metadata);
    assert_eq!(
        collected.totals("warps_launched", |key| key.kernel.to_string())["late"],
        warps(100, 128, 5)
    );
}

#[test]
fn a_device_clock_of_its_own_is_matched() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    bench.set("FAKE_GPU_CLOCK_OFFSET", "-86400000000000");
    bench.run_well(&["context 0", "launch 0 7 k 100 128 10 20000000 5", "sync"]);
    let collected = bench.collect(&metadata);
    assert_eq!(
        collected.totals("warps_launched", |key| key.kernel.to_string())["k"],
        warps(100, 128, 5)
    );
    let launch = &collected.rows.launches[0];
    assert!(
        collected
            .rows
            .series
            .iter()
            .all(|row| row.time.abs_diff(launch.begin) < 1_000_000_000)
    );
}

#[test]
fn timed_kernels_have_the_devices_own_times() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(&format!("timeline = \"kernels\"\n{FINE}"));
    bench.run_well(&[
        "context 0",
        "launch 0 7 k 100 128 10 20000000 5",
        "sync",
        "destroy 0",
    ]);
    let collected = bench.collect(&metadata);
    assert_eq!(collected.rows.launches.len(), 5);
    assert!(
        collected
            .rows
            .launches
            .iter()
            .all(|row| row.end - row.begin == 20_000_000)
    );
    assert_eq!(
        collected.totals("inst_executed", |key| key.kernel.to_string())["k"],
        warps(100, 128, 50)
    );
}

#[test]
fn without_kernels_no_launch_is_noted_and_the_gpu_is_one_row() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(&format!("timeline = \"none\"\n{FINE}"));
    bench.run_well(&[
        "context 0",
        "launch 0 7 k 100 128 10 20000000 5",
        "graph 0 7 g 100 128 10 20000000 2",
        "sync",
        "destroy 0",
    ]);
    let collected = bench.collect(&metadata);
    assert!(collected.rows.launches.is_empty());
    let totals = collected.totals("inst_executed", |key| key.kernel.to_string());
    assert_eq!(totals.keys().collect::<Vec<_>>(), ["(all)"]);
    assert_eq!(totals["(all)"], warps(100, 128, 70));
    assert!(collected.rows.series.iter().all(|row| row.exact));
}

#[test]
fn sixteen_processes_are_read_at_once_without_loss() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    let programs: Vec<_> = (0..16)
        .map(|i| {
            let launch = format!("launch 0 7 kernel_{i} 8 32 10 1000 4000");
            bench.spawn(&["context 0", &launch, "sync", &launch, "sync"])
        })
        .collect();
    let mut collector = bench.collector(&metadata);
    let mut rows = Rows::default();
    let mut running = programs;
    while !running.is_empty() {
        collector.poll(now(), &mut rows).unwrap();
        running.retain_mut(|child| child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    collector.poll(now(), &mut rows).unwrap();
    assert_eq!(collector.records().1, 0, "lost");
    assert_eq!(collector.processes().len(), 16);
    let mut launches: BTreeMap<String, u64> = BTreeMap::new();
    for row in &rows.launches {
        *launches.entry(row.key.kernel.to_string()).or_default() += 1;
    }
    assert_eq!(launches.len(), 16);
    assert!(
        launches.values().all(|count| *count == 8000),
        "{launches:?}"
    );
    assert_eq!(bench.segment_count(), 0);
    bench.no_complaints();
}

#[test]
fn a_killed_program_leaves_what_it_had_published() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    let mut program = bench.spawn(&[
        "context 0",
        "launch 0 7 doomed 100 128 10 1000000 50",
        "sync",
        "sleep 60000",
    ]);
    std::thread::sleep(Duration::from_millis(600));
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(bench.segment_count(), 1, "left behind");
    let collected = bench.collect(&metadata);
    assert_eq!(collected.rows.launches.len(), 50);
    assert_eq!(
        collected.totals("warps_launched", |key| key.kernel.to_string())["doomed"],
        warps(100, 128, 50)
    );
    assert_eq!(bench.segment_count(), 0, "reaped");
}

#[test]
fn a_killed_reader_loses_nothing() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    let program = bench.spawn(&[
        "context 0",
        "launch 0 7 k 100 128 10 1000000 100",
        "sync",
        "sleep 400",
        "launch 0 7 k 100 128 10 1000000 100",
        "sync",
    ]);
    // The first reader goes without a word, whatever it was doing.
    let mut seen = Rows::default();
    let mut first = bench.collector(&metadata);
    for _ in 0..12 {
        first.poll(now(), &mut seen).unwrap();
        std::thread::sleep(Duration::from_millis(25));
    }
    std::mem::forget(first);
    assert!(program.wait_with_output().unwrap().status.success());
    let collected = bench.collect(&metadata);
    let mut launches: Vec<u64> = seen
        .launches
        .iter()
        .chain(&collected.rows.launches)
        .map(|row| row.launch)
        .collect();
    launches.sort_unstable();
    launches.dedup();
    assert_eq!(
        launches.len(),
        200,
        "every launch was stored by one reader or the other"
    );
    assert_eq!(collected.collector.records().1, 0);
    assert_eq!(bench.segment_count(), 0);
}

#[test]
fn a_fork_does_not_disturb_its_parent() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    bench.run_well(&[
        "context 0",
        "launch 0 7 k 100 128 10 1000000 5",
        "sync",
        "fork",
        "launch 0 7 k 100 128 10 1000000 5",
        "sync",
    ]);
    let collected = bench.collect(&metadata);
    assert_eq!(collected.rows.launches.len(), 10);
}

#[test]
fn a_program_that_aborts_leaves_a_readable_segment() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    let output = bench.run(&[
        "context 0",
        "launch 0 7 k 100 128 10 1000000 5",
        "sync",
        "sleep 150",
        "abort",
    ]);
    assert!(!output.status.success());
    let collected = bench.collect(&metadata);
    assert_eq!(collected.rows.launches.len(), 5);
    assert_eq!(bench.segment_count(), 0);
}

#[test]
fn a_long_busy_run_clears_its_image_and_loses_only_the_moments_between() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    // An image of 67 samples is full a dozen times in this run.
    bench.set("FAKE_GPU_SAMPLE_BYTES", "750000");
    bench.run_well(&["context 0", "launch 0 7 k 1000 256 50 2000000 400", "sync"]);
    let counted = bench
        .collect(&metadata)
        .totals("inst_executed", |key| key.kernel.to_string())["k"];
    let exact = warps(1000, 256, 400) * 50;
    assert!(
        counted <= exact && (exact - counted) * 20 <= exact,
        "{counted} of {exact}"
    );
}

#[test]
fn preloading_names_the_library_to_the_driver() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    let library = support::injector();
    bench
        .environment
        .retain(|(name, _)| name != "CUDA_INJECTION64_PATH");
    bench.set("LD_PRELOAD", library.to_str().unwrap());
    bench.run_well(&["context 0", "launch 0 7 k 100 128 10 1000000 5", "sync"]);
    assert_eq!(bench.collect(&metadata).rows.launches.len(), 5);
}

#[test]
fn the_default_metadata_serves_a_program_without_any() {
    let bench = Bench::new();
    bench.run_well(&["context 0", "launch 0 7 k 100 128 10 1000000 5", "sync"]);
    let collected = bench.collect(&Metadata::default());
    assert_eq!(
        collected.totals("warps_launched", |key| key.kernel.to_string())["k"],
        warps(100, 128, 5)
    );
}
