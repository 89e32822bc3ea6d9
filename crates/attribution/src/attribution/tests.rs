use super::*;

fn row(kernel: &str, process: u32, begin: u64, end: u64, blocks: u32) -> LaunchRow {
    LaunchRow {
        launch: begin,
        key: Key {
            gpu: "GPU-1".into(),
            process,
            context: 1,
            stream: 7,
            kernel: kernel.into(),
        },
        grid: [blocks, 1, 1],
        block: [64, 1, 1],
        begin,
        end,
        exact: false,
        counters: vec![None; 2],
    }
}

fn sample(begin: u64, end: u64, instructions: u64, warps: u64) -> DeviceSample {
    DeviceSample {
        begin,
        end,
        growth: vec![Some(instructions), Some(warps)],
        after_gap: false,
    }
}

/// Feeds launches and samples, and sums what each kernel got.
fn sums(
    launches: Vec<(LaunchRow, bool)>,
    samples: &[DeviceSample],
) -> BTreeMap<String, (u64, u64)> {
    let mut attribution = Attribution::new("GPU-1".into(), 2, Some(1));
    let mut done = Vec::new();
    for (row, timed) in launches {
        attribution.launched(row, timed, &mut done);
    }
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for one in samples {
        for part in attribution.sample(one, &mut done) {
            let sum = sums
                .entry(format!("{} {}", part.key.kernel, part.key.process))
                .or_default();
            sum.0 += part.growth[0].unwrap();
            sum.1 += part.growth[1].unwrap();
        }
    }
    attribution.finish(&mut done);
    sums
}

#[test]
fn one_kernel_gets_everything() {
    let launches = vec![(row("a", 1, 5, 5, 50), false)];
    let sums = sums(launches, &[sample(0, 10, 700, 100), sample(10, 20, 300, 0)]);
    assert_eq!(sums, [("a 1".to_owned(), (1000, 100))].into());
}

#[test]
fn warps_tell_kernels_apart_that_run_one_after_the_other() {
    let launches = vec![
        (row("a", 1, 1, 1, 50), false),
        (row("b", 2, 2, 2, 100), false),
    ];
    let samples = [sample(0, 10, 1000, 100), sample(10, 20, 4000, 200)];
    let sums = sums(launches, &samples);
    assert_eq!(sums["a 1"], (1000, 100));
    assert_eq!(sums["b 2"], (4000, 200));
}

#[test]
fn a_shared_interval_is_divided_by_what_each_is_known_to_do() {
    // a: 10 instructions a warp; b: 40. First alone, then both in one interval.
    let launches = vec![
        (row("a", 1, 1, 1, 50), false),
        (row("b", 1, 2, 2, 50), false),
        (row("a", 1, 3, 3, 50), false),
        (row("b", 1, 4, 4, 50), false),
    ];
    let samples = [
        sample(0, 10, 1000, 100),
        sample(10, 20, 4000, 100),
        sample(20, 30, 5000, 200),
    ];
    let sums = sums(launches, &samples);
    assert_eq!(sums["a 1"], (2000, 200));
    assert_eq!(sums["b 1"], (8000, 200));
}

#[test]
fn kernels_that_always_share_intervals_are_told_apart_by_their_proportions() {
    // 200 warps of a and 200 of b in turn; intervals cut that at ever other places.
    let mut launches = Vec::new();
    for pair in 0..300 {
        launches.push((row("a", 1, 2 * pair, 2 * pair, 100), false));
        launches.push((row("b", 1, 2 * pair + 1, 2 * pair + 1, 100), false));
    }
    let mut done = 0;
    let samples: Vec<DeviceSample> = (0..461)
        .map(|i| {
            // a: 10 instructions a warp, b: 40.
            let mut instructions = 0;
            for warp in done..done + 260 {
                instructions += if warp / 200 % 2 == 0 { 10 } else { 40 };
            }
            done += 260;
            sample(10_000 + 10 * i, 10_010 + 10 * i, instructions, 260)
        })
        .collect();
    let sums = sums(launches, &samples);
    for (name, exact) in [("a 1", 600_000.0), ("b 1", 2_400_000.0)] {
        let ratio = sums[name].0 as f64 / exact;
        assert!((ratio - 1.0).abs() < 0.03, "{name}: {ratio}");
    }
}

#[test]
fn a_kernel_that_runs_on_keeps_what_the_next_cannot_explain() {
    let launches = vec![
        (row("short", 1, 1, 1, 50), false),
        (row("long", 1, 2, 2, 50), false),
        (row("short", 1, 3, 3, 50), false),
    ];
    let samples = [
        sample(0, 10, 1000, 100),
        sample(10, 20, 500, 100),
        sample(20, 30, 900, 0),
        // 800 more of the long one, then the short one's 1000.
        sample(30, 40, 1800, 100),
    ];
    let sums = sums(launches, &samples);
    assert_eq!(sums["short 1"], (2000, 200));
    assert_eq!(sums["long 1"], (2200, 100));
}

#[test]
fn a_launch_cannot_run_before_it_was_made() {
    let launches = vec![(row("late", 1, 15, 15, 50), false)];
    let sums = sums(launches, &[sample(0, 10, 70, 10), sample(10, 20, 500, 100)]);
    assert_eq!(sums["(other) 0"], (70, 10));
    assert_eq!(sums["late 1"], (500, 100));
}

#[test]
fn an_idle_device_has_nothing_left_to_do() {
    // Half of the first launch's warps were never seen.
    let launches = vec![
        (row("a", 1, 1, 1, 50), false),
        (row("b", 1, 1000, 1000, 50), false),
    ];
    let mut samples = vec![sample(0, 10, 500, 50)];
    samples.extend((1..8).map(|i| sample(10 * i, 10 * i + 10, 0, 0)));
    samples.push(sample(1000, 1010, 3000, 100));
    let sums = sums(launches, &samples);
    assert_eq!(sums["a 1"], (500, 50));
    assert_eq!(sums["b 1"], (3000, 100));
}

#[test]
fn timed_kernels_share_by_overlap() {
    let launches = vec![
        (row("a", 1, 0, 10, 50), true),
        (row("b", 1, 10, 30, 50), true),
    ];
    let sums = sums(
        launches,
        &[
            sample(0, 10, 100, 0),
            sample(10, 20, 600, 0),
            sample(20, 30, 600, 0),
        ],
    );
    assert_eq!(sums["a 1"].0, 100);
    assert_eq!(sums["b 1"].0, 1200);
}

/// A thread that is held up between the beginning of its call and the device: the device idles meanwhile.
#[test]
fn a_launch_whose_call_still_lasts_is_not_over() {
    let launches = vec![
        (row("held", 1, 5, 75, 50), false),
        (row("next", 1, 76, 77, 50), false),
    ];
    let idle = |begin| sample(begin, begin + 10, 0, 0);
    let mut samples: Vec<DeviceSample> = (0..7).map(|number| idle(number * 10)).collect();
    samples.extend([sample(70, 80, 400, 100), sample(80, 90, 400, 100)]);
    let sums = sums(launches, &samples);
    let held = ("held 1".to_owned(), (400, 100));
    assert_eq!(sums, [held, ("next 1".to_owned(), (400, 100))].into());
}
