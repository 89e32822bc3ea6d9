//! A reader says what it could not read.

use std::fs;
use std::io;
use std::path::PathBuf;

use lockstep_attribution::LaunchRow;
use lockstep_telemetry::sampling::{Collector, GaugeRow, SeriesRow, Sink};
use lockstep_telemetry::schema::Metadata;
use lockstep_telemetry::segment::{IdentityKind, NO_IDENTITY, Publisher, SegmentDirectory};

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
