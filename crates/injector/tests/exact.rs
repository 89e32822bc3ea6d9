//! Exact counts through the range profiler of the fake GPU.

mod support;

use support::Bench;

const EXACT: &str = "mode = \"exact\"\ninterval = \"1 ms\"\n\
    counters = [\"inst_executed\", \"active_cycles\", \"inst_issued\", \"thread_inst_executed\", \"warps_launched\"]\n";

#[test]
fn every_launch_has_its_own_counts() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(EXACT);
    bench.run_well(&[
        "context 0",
        "launch 0 7 a 100 128 10 10000 3",
        "ex 0 8 b 10 64 7 10000 2",
        "graph 0 9 g 5 32 3 10000 4",
        "sync",
    ]);
    let collected = bench.collect(&metadata);
    let of = |kernel: &str| {
        let rows = collected
            .rows
            .launches
            .iter()
            .filter(|row| &*row.key.kernel == kernel);
        rows.map(|row| {
            (
                row.counters[0].unwrap(),
                row.counters[3].unwrap(),
                row.counters[4].unwrap(),
            )
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(of("a"), [(4000, 128_000, 400); 3]);
    assert_eq!(of("b"), [(140, 4480, 20); 2]);
    assert_eq!(
        of("g"),
        [(15, 480, 5); 4],
        "each kernel of a graph is a range"
    );
    assert!(collected.rows.launches.iter().all(|row| row.exact));
    assert_eq!(
        collected.totals("warps_launched", |_| String::new())[""],
        1200 + 40 + 20
    );
}

#[test]
fn more_launches_than_an_image_holds_are_all_counted() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(EXACT);
    bench.run_well(&[
        "context 0",
        "launch 0 7 k 10 32 5 100 1000",
        "sync",
        "destroy 0",
    ]);
    let collected = bench.collect(&metadata);
    assert_eq!(collected.rows.launches.len(), 1000);
    assert!(
        collected
            .rows
            .launches
            .iter()
            .all(|row| row.exact && row.counters[0] == Some(50))
    );
}

#[test]
fn contexts_take_turns_and_threads_keep_their_order() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(EXACT);
    bench.run_well(&[
        "context 0",
        "context 0",
        "launch 0 7 a 10 32 5 1000 3",
        "launch 1 7 b 20 32 5 1000 3",
        "launch 0 7 a 10 32 5 1000 3",
        "threads 4 1 c 30 32 5 1000 50",
        "destroy 1",
        "launch 0 7 a 10 32 5 1000 3",
    ]);
    let collected = bench.collect(&metadata);
    let name = |key: &lockstep_attribution::Key| format!("{} {}", key.context, key.kernel);
    let started = collected.totals("warps_launched", name);
    assert_eq!(started["1 a"], 90);
    assert_eq!(started["2 b"], 60);
    assert_eq!(started["2 c"], 4 * 50 * 30);
    assert!(collected.rows.launches.iter().all(|row| row.exact));
}

#[test]
fn graphs_made_while_another_context_is_counted_have_all_their_counts() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(EXACT);
    bench.run_well(&[
        "context 0",
        "context 0",
        "launch 0 7 a 10 32 5 1000 3",
        "launch 1 8 b 20 32 5 1000 3",
        // Made in context 0 while the profiler of context 1 runs, and as the first thing of all.
        "graph 0 7 g 5 32 3 1000 4",
        "context 0",
        "graph 2 9 h 6 32 3 1000 3",
        "capture 1 8 c 7 32 3 1000 2",
    ]);
    let collected = bench.collect(&metadata);
    assert!(collected.rows.launches.iter().all(|row| row.exact));
    let started = collected.totals("warps_launched", |key| key.kernel.to_string());
    assert_eq!((started["g"], started["h"], started["c"]), (20, 18, 14));
}

#[test]
fn a_capture_is_not_broken_by_launches_of_others() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(EXACT);
    bench.run_well(&[
        "context 0",
        "context 0",
        "launch 1 8 b 20 32 5 1000 3",
        "launch 0 7 a 10 32 5 1000 3",
        "capture_beside 0 7 1 k",
        "launch 0 7 a 10 32 5 1000 3",
    ]);
    let collected = bench.collect(&metadata);
    assert!(collected.rows.launches.iter().all(|row| row.exact));
    let started = collected.totals("warps_launched", |key| key.kernel.to_string());
    assert_eq!((started["a"], started["b"], started["k"]), (60, 60, 30));
}

#[test]
fn a_context_goes_when_nobody_else_launches() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(EXACT);
    bench.run_well(&[
        "context 0",
        "context 0",
        "launch 1 8 b 20 32 5 1000 3",
        "launch 0 7 a 10 32 5 1000 3",
        "destroy_beside 0 1 g",
        // Another thread launches after a call whose end nobody told.
        "threads 2 1 b 20 32 5 1000 3",
        "destroy 1",
        "context 0",
        "threads 2 2 c 10 32 5 1000 3",
    ]);
    let collected = bench.collect(&metadata);
    assert!(collected.rows.launches.iter().all(|row| row.exact));
    let started = collected.totals("warps_launched", |key| key.kernel.to_string());
    assert_eq!((started["a"], started["b"]), (30, 180));
    assert_eq!((started["g"], started["c"]), (30, 60));
}

#[test]
fn a_capture_that_lasts_is_never_broken_and_what_it_costs_is_told() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(EXACT);
    let told = bench.run_well(&[
        "context 0",
        "context 0",
        "launch 1 8 b 20 32 5 1000 3",
        "launch 0 7 a 10 32 5 1000 3",
        "capture_lasts 0 7 1 k",
        "launch 1 8 b 20 32 5 1000 3",
    ]);
    assert!(
        told.contains("they were made while a graph was captured"),
        "{told}"
    );
    let collected = bench.collect(&metadata);
    let rows = &collected.rows.launches;
    let of = |kernel: &str, exact: bool| {
        let rows = rows.iter().filter(|row| &*row.key.kernel == kernel);
        rows.filter(|row| row.exact == exact).count()
    };
    assert_eq!((of("a", true), of("b", true)), (3, 6));
    // Two in the captured context, whose profiler runs; two and a graph of two in the other.
    assert_eq!((of("k", true), of("k", false)), (2, 4));
}

#[test]
fn processes_count_in_turns_on_one_gpu() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(EXACT);
    let shared = bench.folder.join("shared");
    bench.set("FAKE_GPU_SHARED", shared.to_str().unwrap());
    // One is idle for longer than it may keep the hardware, the others launch all the time.
    let idle = [
        "context 0",
        "launch 0 7 a 10 32 5 1000 3",
        "sleep 1900",
        "launch 0 7 a 10 32 5 1000 3",
    ];
    let busy = ["context 0", "launch 0 7 b 20 32 5 2000000 600"];
    let programs = [bench.spawn(&idle), bench.spawn(&busy), bench.spawn(&busy)];
    for program in programs {
        let output = program.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && error.is_empty(), "{error}");
    }
    bench.no_complaints();
    let collected = bench.collect(&metadata);
    assert!(collected.rows.launches.iter().all(|row| row.exact));
    let started = collected.totals("warps_launched", |key| key.kernel.to_string());
    assert_eq!((started["a"], started["b"]), (60, 2 * 600 * 20));
}

#[test]
fn what_an_ended_process_left_is_waited_for_and_what_stays_is_not() {
    let steps = [
        "context 0",
        "context 0",
        "launch 0 7 a 10 32 5 1000 3",
        "launch 1 7 a 10 32 5 1000 3",
    ];
    for (left, exact) in [("300", 6), ("60000", 0)] {
        let mut bench = Bench::new();
        let metadata = bench.metadata(EXACT);
        bench.set("FAKE_GPU_LEFT_FOR", left);
        let told = bench.run_well(&steps);
        assert_eq!(told.contains("another profiler"), exact == 0, "{told}");
        let collected = bench.collect(&metadata);
        let rows = collected.rows.launches.iter();
        assert_eq!(rows.filter(|row| row.exact).count(), exact);
        assert_eq!(collected.rows.launches.len(), 6);
    }
}
