//! A reader says what it could not read.

use std::fs;
use std::io;
use std::path::PathBuf;

use lockstep_attribution::LaunchRow;
use lockstep_collector::{Collector, GaugeRow, SeriesRow, Sink};
use lockstep_schema::Metadata;
use lockstep_segment::{
    IdentityKind, NO_IDENTITY, Publisher, Record, RecordKind, SegmentDirectory,
};

/// Keeps what launches and rows of the series counted.
#[derive(Default)]
struct Kept {
    launches: Vec<Vec<Option<u64>>>,
    series: Vec<Vec<Option<u64>>>,
}

impl Sink for Kept {
    fn series(&mut self, row: &SeriesRow) -> io::Result<()> {
        self.series.push(row.counters.clone());
        Ok(())
    }
    fn launch(&mut self, row: &LaunchRow) -> io::Result<()> {
        self.launches.push(row.counters.clone());
        Ok(())
    }
    fn gauges(&mut self, _: &GaugeRow) -> io::Result<()> {
        Ok(())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes rows and keeps none.
struct Nowhere;

impl Sink for Nowhere {
    fn series(&mut self, _: &SeriesRow) -> io::Result<()> {
        Ok(())
    }
    fn launch(&mut self, _: &LaunchRow) -> io::Result<()> {
        Ok(())
    }
    fn gauges(&mut self, _: &GaugeRow) -> io::Result<()> {
        Ok(())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn folder(name: &str) -> PathBuf {
    let path =
        std::env::temp_dir().join(format!("lockstep-collector-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

#[test]
fn a_segment_that_cannot_be_read_is_a_loss_told_once() {
    let path = folder("unreadable");
    SegmentDirectory::open(&path, "").unwrap();
    fs::write(path.join("1-2-0.segment"), b"something else").unwrap();
    let mut collector = Collector::new(SegmentDirectory::observe(&path), &Metadata::default());
    for now in 0..3 {
        collector.poll(now, &mut Nowhere).unwrap();
    }
    let losses = collector.losses();
    assert_eq!(losses.len(), 1, "{losses:?}");
    assert!(
        losses[0].contains("1-2-0.segment: not a segment that this version reads"),
        "{losses:?}"
    );
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn what_an_injector_lost_is_a_loss_and_what_it_notes_is_none() {
    let path = folder("told");
    let directory = SegmentDirectory::open(&path, "").unwrap();
    let mut publisher = Publisher::create(&directory, 5, 8 << 20).unwrap();
    publisher.name(IdentityKind::Notice, NO_IDENTITY, 0, "no gauges");
    let mut collector = Collector::new(SegmentDirectory::observe(&path), &Metadata::default());
    collector.poll(0, &mut Nowhere).unwrap();
    assert_eq!(collector.losses(), Vec::<String>::new());
    publisher.name(IdentityKind::Loss, NO_IDENTITY, 0, "no counters of GPU-1");
    collector.poll(1, &mut Nowhere).unwrap();
    assert_eq!(collector.losses(), ["no counters of GPU-1"]);
    assert_eq!(collector.notices().len(), 1);
    drop(publisher);
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_folder_that_cannot_be_listed_is_an_error() {
    let path = folder("file");
    fs::write(&path, b"").unwrap();
    let mut collector = Collector::new(SegmentDirectory::observe(&path), &Metadata::default());
    let error = collector.poll(0, &mut Nowhere).unwrap_err().to_string();
    assert!(error.contains("cannot list the folder"), "{error}");
    fs::remove_file(path).unwrap();
}

/// A simulated GPU tells what a kernel counts while it runs, and of its end only what is left.
#[test]
fn a_launch_that_was_told_in_parts_is_stored_whole() {
    let path = folder("parts");
    let directory = SegmentDirectory::open(&path, "").unwrap();
    let mut publisher = Publisher::create(&directory, 5, 8 << 20).unwrap();
    let gpu = publisher.name(IdentityKind::Device, NO_IDENTITY, 0, "GPU-1");
    let kernel = publisher.name_once(IdentityKind::Kernel, NO_IDENTITY, "long");
    publisher.name(IdentityKind::Counter, NO_IDENTITY, 0, "inst_executed");
    let mut tell = |kind, launch, end, count| {
        let mut record = Record::new(kind);
        (record.device, record.kernel, record.launch) = (gpu, kernel, launch);
        (record.begin, record.end, record.exact) = (end, end, true);
        record.set(0, count);
        publisher.publish(&record);
    };
    tell(RecordKind::DeviceSample, 1, 10, 30);
    tell(RecordKind::DeviceSample, 1, 20, 20);
    let mut collector = Collector::new(SegmentDirectory::observe(&path), &Metadata::default());
    let mut kept = Kept::default();
    collector.poll(30, &mut kept).unwrap();
    tell(RecordKind::Launch, 1, 40, 50);
    tell(RecordKind::Launch, 2, 50, 7);
    collector.poll(60, &mut kept).unwrap();
    let counter = collector.counters();
    let counter = counter.iter().position(|name| *name == "inst_executed");
    let of = |rows: &[Vec<Option<u64>>]| -> Vec<u64> {
        rows.iter()
            .map(|row| row[counter.unwrap()].unwrap())
            .collect()
    };
    assert_eq!(of(&kept.launches), [100, 7]);
    assert_eq!(of(&kept.series), [30, 50, 100, 107], "sums of the kernel");
    drop(publisher);
    fs::remove_dir_all(path).unwrap();
}
