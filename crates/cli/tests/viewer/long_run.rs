//! A run folder of 1,400 launches with ten million samples, made from the folder of a short run: its launches over and
//! over, with samples of every SM and slice that a linear congruential generator makes up.

use lockstep_counters::COUNTERS;
use lockstep_run_folder::series::{Part, Recorder, SERIES, Sample, SampledLaunch, finish};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// Launches.
const LAUNCHES: u32 = 1_400;
/// Samples of each launch, of all parts.
const SAMPLES: u32 = 32;
/// Parts as an H200 has them.
const PARTS: [(Part, u32); 3] = [(Part::Gpu, 1), (Part::Sm, 132), (Part::Slice, 96)];
/// Nanoseconds of one sample.
const INTERVAL: f64 = 500.0;
/// Counters with values: the first ones that the page shows, and more than it shows at once.
const COUNTED: [&str; 6] = [
    "inst_executed",
    "inst_issued",
    "l1_sectors",
    "l2_sectors",
    "l2_sector_hits",
    "dram_bytes_read",
];

/// Writes it; how many rows its series has.
pub fn write(short: &Path, long: &Path) -> u64 {
    fs::create_dir_all(long).unwrap();
    fs::copy(short.join("summary.json"), long.join("summary.json")).unwrap();
    let table = fs::read_to_string(short.join("kernels.csv")).unwrap();
    fs::write(long.join("kernels.csv"), launches(&table)).unwrap();
    let rows = series(long);
    let mut joined = BufWriter::new(File::create(long.join("joined")).unwrap());
    assert!(finish(long, &mut joined).unwrap());
    joined.flush().unwrap();
    fs::rename(long.join("joined"), long.join(SERIES)).unwrap();
    rows
}

/// The launches of a table over and over, one after the other.
fn launches(table: &str) -> String {
    let (head, rows) = table.split_once('\n').unwrap();
    let place = |name: &str| head.split(',').position(|one| one == name).unwrap();
    let places = ["launch", "start_ns", "duration_ns"].map(place);
    let mut text = format!("{head}\n");
    let numbered = rows.lines().cycle().zip(0..LAUNCHES);
    for (row, number) in numbered {
        let mut cells: Vec<String> = row.split(',').map(str::to_string).collect();
        cells[places[0]] = number.to_string();
        cells[places[1]] = format!("{:.3}", begin(number));
        cells[places[2]] = format!("{:.3}", INTERVAL * f64::from(SAMPLES));
        text += &format!("{}\n", cells.join(","));
    }
    text
}

/// When a launch begins; nothing runs between two for a while.
fn begin(launch: u32) -> f64 {
    f64::from(launch) * INTERVAL * f64::from(SAMPLES + 4)
}

/// All parts, with their numbers.
fn parts() -> impl Iterator<Item = (Part, u32)> {
    let numbered = |(part, count)| (0..count).map(move |number| (part, number));
    PARTS.into_iter().flat_map(numbered)
}

/// Writes the samples as a simulation would; how many rows they are.
fn series(long: &Path) -> u64 {
    let counted = COUNTED.map(|name| {
        let place = COUNTERS.iter().position(|one| one.name == name);
        place.unwrap_or_else(|| panic!("there is no counter {name}"))
    });
    let mut recorder = Recorder::begin(File::create(long.join(SERIES)).unwrap()).unwrap();
    let (mut state, mut rows) = (1u64, 0);
    for launch in 0..LAUNCHES {
        let kernel: SampledLaunch = SampledLaunch {
            launch: launch.into(),
            stream: 0,
            kernel: "scale".into(),
        };
        for step in 1..=SAMPLES {
            let sample = Sample {
                time_ns: begin(launch) + INTERVAL * f64::from(step),
                interval_ns: INTERVAL,
                gpu: 0,
                launch: Some(kernel.clone()),
            };
            let added = recorder.add(&sample, |all| {
                for (part, number) in parts() {
                    let mut values = [0; COUNTERS.len()];
                    for place in counted {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        values[place] = (state >> 52) + 1;
                    }
                    all.add(part, number, &values);
                    rows += 1;
                }
            });
            assert!(added);
        }
    }
    recorder.finish().unwrap();
    rows
}
