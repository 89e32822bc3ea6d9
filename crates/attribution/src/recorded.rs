//! Divides what was recorded on a real GPU while several contexts or processes shared it.
//!
//! A recording has a line for each thing that a reader learned, in order: `L` a launch (process,
//! context, stream, kernel, number, grid, block, begin and end on the host), `M` a mark (process,
//! context, stream, launch, begin, end), `B` samples that are divided together (begin, end and growth
//! of each). Times are nanoseconds from the first; NVIDIA H200, driver 580.159.04, one sample a
//! millisecond, programs of studies/counter-parity, 2026-11-15.

use std::collections::BTreeMap;

use crate::{Attribution, DeviceSample, Key, LaunchRow, Mark, SHARED_ERROR_BOUND};

/// What a warp of each kernel of the recorded programs executes, counted alone (studies/counter-parity).
const INSTRUCTIONS: [(&str, f64); 9] = [
    ("fill", 59.0),
    ("vectorAdd", 20.0),
    ("expand", 87.1),
    ("advance", 20.83),
    ("steady", 23_783.0),
    ("first", 5_972.0),
    ("second", 11_908.0),
    ("third", 17_847.0),
    ("fourth", 23_783.0),
];

fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// How far one stream, or one kernel of it, is off.
struct Errors {
    /// Instructions, in parts of those of the whole recording.
    instructions: f64,
    /// Warps, in parts of its own.
    warps: f64,
    /// Instructions, in parts of what the GPU executed in the intervals that it shared.
    of_shared: f64,
}

/// Errors by process, context and stream; with `kernels`, by kernel too.
///
/// With `counted`, what a warp of each kernel executes is known beforehand.
fn errors(recording: &str, kernels: bool, counted: bool) -> BTreeMap<String, Errors> {
    let mut attribution = Attribution::new("GPU-1".into(), 5, Some(4));
    if counted {
        let names = recording.lines().filter(|line| line.starts_with('L'));
        let names = names.filter_map(|line| line.split(' ').nth(4));
        let rates = names.filter_map(|name| {
            let known = INSTRUCTIONS
                .iter()
                .find(|(known, _)| name.contains(known))?;
            let rates = vec![Some(known.1), None, None, None, None];
            Some((name.to_owned(), rates))
        });
        attribution.know(rates.collect());
    }
    let mut got: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    let mut did: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    let mut done = Vec::new();
    let name = |key: &Key| {
        let kernel = if kernels { &*key.kernel } else { "" };
        format!("{} {} {} {kernel}", key.process, key.context, key.stream)
    };
    let mut shared: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    let mut whole = 0.0;
    for line in recording.lines() {
        let words: Vec<&str> = line.splitn(7, ' ').collect();
        match words[0] {
            "L" => {
                let rest = numbers(words[6]);
                let key = Key {
                    gpu: "GPU-1".into(),
                    process: words[1].parse().unwrap(),
                    context: words[2].parse().unwrap(),
                    stream: words[3].parse().unwrap(),
                    kernel: words[4].into(),
                };
                let grid = [rest[0] as u32, rest[1] as u32, rest[2] as u32];
                let block = [rest[3] as u32, rest[4] as u32, rest[5] as u32];
                let warps = f64::from(grid.iter().product::<u32>())
                    * f64::from(block.iter().product::<u32>().div_ceil(32));
                let (_, rate) = INSTRUCTIONS
                    .iter()
                    .find(|(name, _)| words[4].contains(name))
                    .unwrap();
                let sum = did.entry(name(&key)).or_default();
                *sum = (sum.0 + rate * warps, sum.1 + warps);
                whole += rate * warps;
                let row = LaunchRow {
                    launch: words[5].parse().unwrap(),
                    key,
                    grid,
                    block,
                    begin: rest[6],
                    end: rest[7],
                    exact: false,
                    counters: vec![None; 5],
                };
                attribution.launched(row, false, &mut done);
            }
            "M" => {
                let mark = numbers(line);
                let place = |i: usize| mark[i] as u32;
                let (launch, begin, end) = (mark[3], mark[4], mark[5]);
                attribution.progressed(place(0), place(1), place(2), Mark { launch, begin, end });
            }
            "B" => {
                let samples: Vec<DeviceSample> = line[2..]
                    .split(';')
                    .map(|one| {
                        let all = numbers(one);
                        DeviceSample {
                            begin: all[0],
                            end: all[1],
                            growth: all[2..].iter().map(|growth| Some(*growth)).collect(),
                            after_gap: false,
                        }
                    })
                    .collect();
                let divided = attribution.samples(&samples, &mut done);
                let parts = samples.iter().zip(divided);
                for (sample, part) in parts
                    .flat_map(|(sample, parts)| parts.into_iter().map(move |one| (sample, one)))
                {
                    if part.shared {
                        let (until, sum) = shared.entry(name(&part.key)).or_default();
                        // Several kernels of a stream share an interval once.
                        if std::mem::replace(until, sample.end) != sample.end {
                            *sum += sample.growth[0].unwrap() as f64;
                        }
                    }
                    let sum = got.entry(name(&part.key)).or_default();
                    *sum = (
                        sum.0 + part.growth[0].unwrap() as f64,
                        sum.1 + part.growth[4].unwrap() as f64,
                    );
                }
            }
            _ => {}
        }
    }
    did.into_iter()
        .map(|(name, did)| {
            let got = got.get(&name).copied().unwrap_or_default();
            let shared = shared.get(&name).map_or(0.0, |(_, sum)| *sum);
            let errors = Errors {
                instructions: (got.0 - did.0) / whole,
                warps: got.1 / did.1 - 1.0,
                of_shared: (got.0 - did.0) / shared.max(1.0),
            };
            (name, errors)
        })
        .collect()
}

/// One program with four contexts; three programs at once: an addition, a search and a loop.
#[test]
fn what_shared_an_h200_is_told_apart() {
    let recordings: [(&str, &[u8]); 2] = [
        (
            "contexts",
            include_bytes!("../tests/data/contexts.recording.zst"),
        ),
        (
            "processes",
            include_bytes!("../tests/data/processes.recording.zst"),
        ),
    ];
    for (recording, bytes) in recordings {
        let text = String::from_utf8(zstd::decode_all(bytes).unwrap()).unwrap();
        for (name, errors) in errors(&text, false, false) {
            let (instructions, warps) = (errors.instructions, errors.warps);
            assert!(
                instructions.abs() < 0.04,
                "{recording} {name}: {instructions}"
            );
            assert!(
                warps.abs() < 0.02,
                "{recording} {name}: {warps} of its warps"
            );
            let off = errors.of_shared;
            assert!(off.abs() < SHARED_ERROR_BOUND, "{recording} {name}: {off}");
        }
    }
}

/// The same, where an exact run of the same kernels has told what they do: kernels are told apart too.
#[test]
fn what_was_counted_before_is_told_apart_better() {
    let bytes: &[u8] = include_bytes!("../tests/data/processes.recording.zst");
    let text = String::from_utf8(zstd::decode_all(bytes).unwrap()).unwrap();
    for (name, errors) in errors(&text, true, true) {
        let off = errors.instructions;
        assert!(off.abs() < 0.003, "{name}: {off} of all instructions");
    }
}

/// Prints the errors of recordings, to see what a change of the method does.
///
/// `LOCKSTEP_RECORDINGS="a.recording b.recording" cargo test -p lockstep-attribution recordings_again -- --ignored --nocapture`
#[test]
#[ignore = "a tool: divides the recordings that the environment names"]
#[allow(clippy::print_stdout, reason = "its output is what it is for")]
fn recordings_again() {
    println!(
        "recording,process context stream kernel,error of all instructions,error of its warps,error of shared instructions"
    );
    for path in std::env::var("LOCKSTEP_RECORDINGS")
        .unwrap_or_default()
        .split_whitespace()
    {
        let text = std::fs::read_to_string(path).unwrap();
        let file = std::path::Path::new(path).file_name().unwrap();
        for (kernels, counted) in [(false, false), (true, false), (false, true), (true, true)] {
            for (name, errors) in errors(&text, kernels, counted) {
                println!(
                    "{},{counted},{name},{:+.2} %,{:+.2} %,{:+.2} %",
                    file.display(),
                    errors.instructions * 100.0,
                    errors.warps * 100.0,
                    errors.of_shared * 100.0
                );
            }
        }
    }
}
