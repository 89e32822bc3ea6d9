use super::*;
use crate::Mark;

const MILLISECOND: u64 = 1_000_000;
/// What was seen on an H200, and not a multiple of the interval.
const TURN: u64 = 2_170_000;

/// A stream whose launches repeat: kernels with warps, instructions a warp, and nanoseconds.
struct Stream {
    process: u32,
    kernels: Vec<(&'static str, u32, u64, u64)>,
    launches: u64,
    /// Nanoseconds between launches on the host; from the end of the one before, if it waits.
    pace: u64,
    waits: bool,
}

/// What each kernel got, and what it did: instructions and warps.
type Sums = BTreeMap<String, ((u64, u64), (u64, u64))>;

/// Runs streams of different processes in turns of two milliseconds, as a GPU does, and divides
/// what a sampler sees of it.
fn share(streams: &[Stream], marked: bool) -> Sums {
    let mut attribution = Attribution::new("GPU-1".into(), 3, Some(1));
    let mut sums = Sums::new();
    // By stream: launches over, and nanoseconds done of the one that runs.
    let mut state = vec![(0u64, 0u64); streams.len()];
    let mut ends: Vec<Vec<u64>> = vec![Vec::new(); streams.len()];
    let mut samples: Vec<[f64; 3]> = Vec::new();
    let (mut time, mut turn, mut turn_end) = (0u64, 0, TURN);
    let step = 1_000;
    let made = |ends: &[Vec<u64>], s: usize, number: u64| {
        let before = (number as usize).checked_sub(1).map(|last| ends[s][last]);
        if streams[s].waits {
            before.unwrap_or(0) + streams[s].pace
        } else {
            number * streams[s].pace
        }
    };
    let ready = |state: &[(u64, u64)], ends: &[Vec<u64>], s: usize, time: u64| {
        state[s].0 < streams[s].launches && made(ends, s, state[s].0) <= time
    };
    let resumed = |state: &[(u64, u64)], s: usize| {
        let kernels = &streams[s].kernels;
        let warps = kernels[state[s].0 as usize % kernels.len()].1;
        (state[s].1 > 0).then_some(f64::from(warps))
    };
    while (0..streams.len()).any(|s| state[s].0 < streams[s].launches) {
        if time >= turn_end || !ready(&state, &ends, turn, time) {
            let next = (1..=streams.len())
                .map(|by| (turn + by) % streams.len())
                .find(|s| ready(&state, &ends, *s, time));
            turn = next.unwrap_or(turn);
            // Warps that were interrupted are started again.
            if let Some(warps) = resumed(&state, turn) {
                samples.resize((time / MILLISECOND) as usize + 1, [0.0; 3]);
                samples.last_mut().unwrap()[1] += warps;
            }
            turn_end = time + TURN;
        }
        samples.resize((time / MILLISECOND) as usize + 1, [0.0; 3]);
        if ready(&state, &ends, turn, time) {
            let stream = &streams[turn];
            let (over, done) = &mut state[turn];
            let kernel = stream.kernels[*over as usize % stream.kernels.len()];
            let warps = f64::from(kernel.1);
            let sample = samples.last_mut().unwrap();
            if *done == 0 {
                sample[1] += warps;
            }
            sample[0] += warps * kernel.2 as f64 * step as f64 / kernel.3 as f64;
            sample[2] += 132.0 * 1.98 * step as f64;
            *done += step;
            if *done >= kernel.3 {
                (*over, *done) = (*over + 1, 0);
                ends[turn].push(time + step);
            }
        }
        time += step;
    }
    let mut marks = Vec::new();
    for (s, stream) in streams.iter().enumerate() {
        for number in 0..stream.launches {
            let (name, warps, rate, _) = stream.kernels[number as usize % stream.kernels.len()];
            let row = LaunchRow {
                launch: number + 1,
                key: Key {
                    gpu: "GPU-1".into(),
                    process: stream.process,
                    context: 1,
                    stream: 7,
                    kernel: name.into(),
                },
                grid: [warps, 1, 1],
                block: [32, 1, 1],
                begin: made(&ends, s, number),
                end: made(&ends, s, number) + 5,
                exact: false,
                counters: vec![None; 3],
            };
            let (_, did) = sums
                .entry(format!("{name} {}", stream.process))
                .or_default();
            did.0 += u64::from(warps) * rate;
            did.1 += u64::from(warps);
            attribution.launched(row, false, &mut Vec::new());
        }
        // A mark about every half millisecond of its own time, seen by somebody who looks every quarter.
        let time = stream.kernels.iter().map(|kernel| kernel.3).max().unwrap();
        let every = match stream.waits {
            true => 1,
            false => (500_000 / time.max(stream.pace)).max(1),
        };
        let numbers = (every - 1..stream.launches).step_by(every as usize);
        for number in numbers.filter(|_| marked) {
            let seen = ends[s][number as usize].next_multiple_of(250_000);
            let mark = Mark {
                launch: number + 1,
                begin: seen - 250_000,
                end: seen,
            };
            marks.push((stream.process, mark));
        }
    }
    marks.sort_by_key(|(_, mark)| mark.end);
    let mut marks = marks.into_iter().peekable();
    let samples: Vec<DeviceSample> = samples
        .iter()
        .enumerate()
        .map(|(i, counts)| DeviceSample {
            begin: i as u64 * MILLISECOND,
            end: (i as u64 + 1) * MILLISECOND,
            growth: counts
                .iter()
                .map(|count| Some(count.round() as u64))
                .collect(),
            after_gap: false,
        })
        .collect();
    // As a reader comes by: half a second at a time.
    let mut done = Vec::new();
    for batch in samples.chunks(500) {
        // What happened a little later is known when a batch is divided, and no more.
        let known = batch.last().unwrap().end + 20 * MILLISECOND;
        while let Some((process, mark)) = marks.next_if(|(_, mark)| mark.end <= known) {
            attribution.progressed(process, 1, 7, mark);
        }
        for (sample, parts) in batch.iter().zip(attribution.samples(batch, &mut done)) {
            // Warps add up over a run of intervals.
            for i in [0, 2] {
                let whole: u64 = parts.iter().filter_map(|part| part.growth[i]).sum();
                assert_eq!(
                    whole,
                    sample.growth[i].unwrap(),
                    "parts add up to the whole"
                );
            }
            let keys = parts.len();
            for part in parts {
                assert!(!part.exact || keys == 1);
                let name = format!("{} {}", part.key.kernel, part.key.process);
                let (got, _) = sums.entry(name).or_default();
                got.0 += part.growth[0].unwrap();
                got.1 += part.growth[1].unwrap();
            }
        }
    }
    attribution.finish(&mut done);
    let launches: u64 = streams.iter().map(|stream| stream.launches).sum();
    assert_eq!(done.len() as u64, launches, "every launch is told once");
    sums
}

/// The largest error of a process's instructions, in parts of the GPU's, and of its warps.
fn worst(sums: &Sums) -> f64 {
    let mut by_process: BTreeMap<&str, [(u64, u64); 2]> = BTreeMap::new();
    for (name, (got, did)) in sums {
        let process = name.rsplit(' ').next().unwrap();
        let sum = by_process.entry(process).or_default();
        for (sum, part) in sum.iter_mut().zip([(got.0, did.0), (got.1, did.1)]) {
            *sum = (sum.0 + part.0, sum.1 + part.1);
        }
    }
    by_process.remove("0");
    let whole: u64 = by_process.values().map(|sum| sum[0].1).sum();
    let of = |(got, did): (u64, u64), base: u64| got.abs_diff(did) as f64 / base as f64;
    let errors = by_process.values();
    let errors = errors.flat_map(|sum| [of(sum[0], whole), of(sum[1], sum[1].1)]);
    errors.fold(0.0, f64::max)
}

fn steady(process: u32, name: &'static str, warps: u32, rate: u64, time: u64) -> Stream {
    Stream {
        process,
        kernels: vec![(name, warps, rate, time)],
        launches: 1500,
        pace: 5_000,
        waits: false,
    }
}

#[test]
fn contexts_that_take_turns_are_told_apart() {
    let streams = [
        steady(1, "first", 132, 6_000, 12_000),
        steady(2, "second", 264, 12_000, 23_000),
        steady(3, "third", 396, 18_000, 35_000),
        steady(4, "fourth", 528, 24_000, 46_000),
    ];
    let sums = share(&streams, true);
    assert!(worst(&sums) < 0.02, "{} {sums:?}", worst(&sums));
}

#[test]
fn the_same_warps_at_different_rates_need_marks() {
    let streams = [
        steady(1, "slow", 500, 24_000, 46_000),
        steady(2, "fast", 500, 3_000, 46_000),
    ];
    let sums = share(&streams, true);
    assert!(worst(&sums) < 0.02, "{} {sums:?}", worst(&sums));
}

#[test]
fn processes_of_very_different_kernels_are_told_apart() {
    let streams = [
        Stream {
            process: 1,
            kernels: vec![("fill", 60_000, 59, 60_000), ("add", 60_000, 20, 75_000)],
            launches: 800,
            pace: 6_000,
            waits: false,
        },
        // Waits for each of its launches, as a search by levels does.
        Stream {
            process: 2,
            kernels: vec![
                ("expand", 31_000, 40, 30_000),
                ("advance", 31_000, 15, 20_000),
            ],
            launches: 60,
            pace: 30_000,
            waits: true,
        },
        steady(3, "steady", 528, 23_800, 46_000),
    ];
    // The second never has an interval to itself, so its part is known to some hundredths of
    // the whole only; its warps are known.
    let sums = share(&streams, true);
    let whole: u64 = sums.values().map(|(_, did)| did.0).sum();
    for process in ["1", "2", "3"] {
        let of_process = sums.iter().filter(|(name, _)| name.ends_with(process));
        let mut sum = [0i64; 4];
        for (_, (got, did)) in of_process {
            for (sum, part) in sum.iter_mut().zip([got.0, did.0, got.1, did.1]) {
                *sum += part as i64;
            }
        }
        assert!(sum[0].abs_diff(sum[1]) * 20 <= whole, "{process} {sums:?}");
        assert!(
            sum[2].abs_diff(sum[3]) * 20 <= sum[3] as u64,
            "{process} {sums:?}"
        );
    }
}

#[test]
fn without_marks_warps_are_told_apart_coarsely() {
    let streams = [
        steady(1, "first", 132, 12_000, 46_000),
        steady(2, "second", 528, 12_000, 46_000),
    ];
    for (name, (got, did)) in share(&streams, false) {
        let ratio = got.1 as f64 / did.1.max(1) as f64;
        assert!(
            name.starts_with("(other)") || (ratio - 1.0).abs() < 0.1,
            "{name} {ratio}"
        );
    }
}
