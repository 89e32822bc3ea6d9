//! A series reads back as it was written, in blocks and joined, whole or cut.

use lockstep_counters::COUNTERS;
use lockstep_run_folder::series::{Part, Recorder, SERIES, Sample, SampledLaunch, Series, finish};
use std::fs::File;
use std::path::PathBuf;

/// A folder that is gone with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("lockstep-run-folder-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

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
    let mut recorder = Recorder::begin(File::create(folder.0.join(SERIES)).unwrap()).unwrap();
    for step in 1..=500 {
        if pause && step == 200 {
            // Long enough for a block to be written before its time.
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

/// Joins the blocks of a folder.
fn join(folder: &Folder) -> Vec<u8> {
    let mut joined = Vec::new();
    assert!(finish(&folder.0, &mut joined).unwrap());
    std::fs::write(folder.0.join(SERIES), &joined).unwrap();
    joined
}

#[test]
fn blocks_and_joined_ones_say_the_same_and_bytes_do_not_depend_on_when_blocks_were_written() {
    let mut all = Vec::new();
    for pause in [false, true] {
        let folder = written(&format!("series-{pause}"), pause);
        assert!(!Series::open(&folder.0).unwrap().is_complete());
        let before = instructions(&folder, Part::Sm);
        assert_eq!(before.len(), 500);
        assert_eq!(before[0], (10.0, 1, Some(0), 1));
        assert_eq!(before[2].2, None);
        all.push(join(&folder));
        assert!(Series::open(&folder.0).unwrap().is_complete());
        assert_eq!(instructions(&folder, Part::Sm), before);
        assert_eq!(instructions(&folder, Part::Gpu).len(), 500);
    }
    assert!(all[0] == all[1]);
}

#[test]
fn a_series_that_was_cut_anywhere_reads_up_to_there() {
    let folder = written("series-cut", true);
    let whole = instructions(&folder, Part::Sm);
    let path = folder.0.join(SERIES);
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
fn a_joined_series_that_was_cut_is_refused() {
    let folder = written("series-joined-cut", false);
    let bytes = join(&folder);
    std::fs::write(folder.0.join(SERIES), &bytes[..bytes.len() - 1]).unwrap();
    let series = Series::open(&folder.0).unwrap();
    let refused = series.each(Part::Slice, &["inst_executed"], |_| Ok(()));
    let sentence = refused.unwrap_err().to_string();
    assert!(sentence.ends_with("it ends within a block"), "{sentence}");
}

#[test]
fn changed_bytes_are_read_or_refused_and_nothing_else() {
    let folder = written("series-changed", false);
    let bytes = join(&folder);
    let series = Series::open(&folder.0).unwrap();
    let mut refused = 0;
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1 << (place % 8);
        std::fs::write(folder.0.join(SERIES), &changed).unwrap();
        for part in Part::ALL {
            let read = series.each_with_keys(part, &["inst_executed"], |block| {
                let rows = block.time_ns.len();
                assert_eq!(block.counters[0].len(), rows);
                assert_eq!(block.keys.kernel.len(), rows);
                Ok(())
            });
            refused += usize::from(read.is_err());
        }
    }
    assert!(refused > bytes.len() / 4, "{refused} of {}", bytes.len());
}

#[test]
fn what_is_no_series_is_refused_by_name() {
    let folder = Folder::new("series-wrong");
    assert!(Series::open(&folder.0).is_none());
    std::fs::write(folder.0.join(SERIES), b"PAR1 and then nothing").unwrap();
    let series = Series::open(&folder.0).unwrap();
    let refused = series.each(Part::Gpu, &["inst_executed"], |_| Ok(()));
    assert!(refused.unwrap_err().to_string().contains(SERIES));
}
