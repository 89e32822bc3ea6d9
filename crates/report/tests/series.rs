//! A series reads back as it was written, in pieces and as one table, whole or cut.

mod common;

use common::Folder;
use lockstep_counters::COUNTERS;
use lockstep_report::series::{Part, Recorder, STORED, Sample, SampledLaunch, Series, finish};
use std::fs::File;

/// One of the intervals.
fn sample(step: u32) -> Sample {
    Sample {
        time_ns: f64::from(step) * 10.0,
        interval_ns: 10.0,
        gpu: 0,
        launch: (!step.is_multiple_of(3)).then(|| SampledLaunch {
            launch: u64::from(step / 100),
            stream: 7,
            kernel: "_Z3addPf".into(),
        }),
    }
}

fn written(name: &str, pause: bool) -> Folder {
    let folder = Folder::new(name);
    std::fs::create_dir_all(&folder.0).unwrap();
    let mut recorder = Recorder::begin(|name| File::create(folder.0.join(name))).unwrap();
    for step in 1..=500 {
        if pause && step == 200 {
            // Long enough for a piece to be written before its time.
            std::thread::sleep(std::time::Duration::from_millis(1200));
        }
        let mut counters = [0; COUNTERS.len()];
        counters[2] = u64::from(step);
        let added = recorder.add(&sample(step), |rows| {
            rows.add(Part::Sm, step % 4, &counters);
            rows.add(Part::Slice, 9, &counters);
            rows.add(Part::Gpu, 0, &counters);
        });
        assert!(added);
    }
    recorder.finish().unwrap();
    folder
}

fn instructions(folder: &Folder, part: Part) -> Vec<(f64, u32, Option<u64>, u64)> {
    let series = Series::open(&folder.0).unwrap();
    let mut rows = Vec::new();
    let read = series.each_with_keys(part, &["inst_executed"], |block| {
        for (row, time) in block.time_ns.iter().enumerate() {
            let (number, launch) = (block.number[row], block.keys.launch[row]);
            rows.push((*time, number, launch, block.counters[0][row]));
        }
        Ok(())
    });
    read.unwrap();
    rows
}

#[test]
fn pieces_and_table_say_the_same_and_bytes_do_not_depend_on_when_pieces_were_written() {
    let mut tables = Vec::new();
    for pause in [false, true] {
        let folder = written(&format!("series-{pause}"), pause);
        let before = instructions(&folder, Part::Sm);
        assert_eq!(before.len(), 500);
        assert_eq!(before[0], (10.0, 1, Some(0), 1));
        assert_eq!(before[2].2, None);
        let table = File::create(folder.0.join("table")).unwrap();
        assert!(finish(&folder.0, table).unwrap());
        tables.push(std::fs::read(folder.0.join("table")).unwrap());
        std::fs::rename(folder.0.join("table"), folder.0.join(STORED)).unwrap();
        assert!(Series::open(&folder.0).unwrap().is_complete());
        assert_eq!(instructions(&folder, Part::Sm), before);
        let slices = instructions(&folder, Part::Gpu);
        assert_eq!(slices.len(), 500);
    }
    assert!(tables[0] == tables[1]);
}

#[test]
fn pieces_that_were_cut_anywhere_read_up_to_there() {
    let folder = written("series-cut", true);
    let whole = instructions(&folder, Part::Sm);
    let path = folder.0.join(Part::Sm.pieces());
    let bytes = std::fs::read(&path).unwrap();
    let mut seen = 0;
    for length in (0..bytes.len()).step_by(97) {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let part = instructions(&folder, Part::Sm);
        assert_eq!(part, whole[..part.len()], "at {length}");
        assert!(part.len() >= seen, "at {length}");
        seen = part.len();
    }
    assert!(seen > 0);
}

#[test]
fn what_is_no_series_is_refused_by_name() {
    let folder = Folder::new("series-wrong");
    std::fs::create_dir_all(&folder.0).unwrap();
    assert!(Series::open(&folder.0).is_none());
    std::fs::write(folder.0.join(STORED), b"PAR1 and then nothing").unwrap();
    let series = Series::open(&folder.0).unwrap();
    let refused = series.each(Part::Gpu, &["inst_executed"], |_| Ok(()));
    assert!(refused.unwrap_err().to_string().contains("series.parquet"));
}
