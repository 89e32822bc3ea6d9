//! Figures of what publishes now, over restarts of the exporter and beside other readers.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use lockstep_exporter::{Live, page};
use lockstep_schema::Metadata;
use lockstep_segment::{IdentityKind, SegmentDirectory, SegmentReader};
use support::{Folder, GPU, INTERVAL, METADATA, Program, sum, values};

fn open(folder: &Folder, top: usize) -> Live {
    let metadata = Metadata::parse("test", METADATA).unwrap();
    Live::open(&folder.segments(), &folder.0, &metadata, top).unwrap()
}

fn shown(live: &Live) -> String {
    page(&Arc::new(live.figures().clone()))
}

/// Late enough for everything that is published.
const LATER: u64 = 600_000_000;

#[test]
fn counts_carry_job_rank_node_and_gpu() {
    let folder = Folder::new();
    let names = [(IdentityKind::Job, "4711"), (IdentityKind::Rank, "2")];
    let mut program = Program::start(&folder.segments(), &names);
    let mut live = open(&folder, 0);
    program.launch("k", 4);
    program.sample(400, 4);
    program.gauges(123_456, 61, 3 << 30);
    live.poll(program.time + LATER).unwrap();
    let values = values(&shown(&live));
    let gpu = format!("gpu=\"3\",UUID=\"{GPU}\",Hostname=\"n17\",source=\"real\"");
    let counted = |name: &str| values[&format!("{name}{{{gpu},hpc_job=\"4711\",rank=\"2\"}}")];
    assert_eq!(counted("lockstep_gpu_inst_executed_total"), 400.0);
    assert_eq!(counted("lockstep_gpu_warps_launched_total"), 4.0);
    assert_eq!(counted("lockstep_gpu_launches_total"), 1.0);
    // In dcgm-exporter's units: watts, and MiB.
    let read = |name: &str| values[&format!("{name}{{{gpu}}}")];
    assert_eq!(read("DCGM_FI_DEV_POWER_USAGE"), 123.456);
    assert_eq!(read("DCGM_FI_DEV_GPU_TEMP"), 61.0);
    assert_eq!(read("DCGM_FI_DEV_FB_USED"), 3072.0);
    let absent = |name: &str| values.keys().all(|key| !key.starts_with(name));
    assert!(
        absent("DCGM_FI_DEV_SM_CLOCK"),
        "it was not read, so it is absent"
    );
    assert!(absent("lockstep_gpu_inst_issued"), "nobody counted it");
}

#[test]
fn a_restarted_exporter_goes_on_and_no_counter_ever_falls() {
    let folder = Folder::new();
    let mut program = Program::start(&folder.segments(), &[]);
    let (mut instructions, mut warps, mut launches) = (0, 0, 0);
    let mut before: BTreeMap<String, f64> = BTreeMap::new();
    let mut random = 12_345_u64;
    for _ in 0..60 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        for _ in 0..random >> 60 {
            program.launch("k", 2);
            program.sample(200, 2);
            (instructions, warps, launches) = (instructions + 200, warps + 2, launches + 1);
        }
        // Some samples are too young to be divided; some launches have not been seen to end.
        program.launch("late", 3);
        launches += 1;
        let mut live = open(&folder, 1);
        let delay = if random >> 40 & 1 == 0 {
            INTERVAL * 3
        } else {
            LATER
        };
        live.poll(program.time + delay).unwrap();
        let now = values(&shown(&live));
        for (name, value) in &before {
            let gauge = name.starts_with("lockstep_processes");
            assert!(
                gauge || now[name] >= *value,
                "{name}: {value}, then {}",
                now[name]
            );
        }
        before = now;
        program.sample(300, 3);
        (instructions, warps) = (instructions + 300, warps + 3);
    }
    let end = program.time + LATER;
    drop(program);
    let mut live = open(&folder, 1);
    live.poll(end).unwrap();
    let page = shown(&live);
    assert_eq!(
        sum(&page, "lockstep_gpu_inst_executed_total"),
        f64::from(instructions)
    );
    assert_eq!(
        sum(&page, "lockstep_gpu_warps_launched_total"),
        f64::from(warps)
    );
    assert_eq!(
        sum(&page, "lockstep_gpu_launches_total"),
        f64::from(launches)
    );
    assert_eq!(sum(&page, "lockstep_records_lost_total"), 0.0);
    let left = SegmentDirectory::observe(&folder.segments())
        .segments()
        .unwrap();
    assert!(
        left.is_empty(),
        "a program that ended leaves nothing: {left:?}"
    );
}

#[test]
fn every_loss_is_counted() {
    let folder = Folder::new();
    let mut live = open(&folder, 0);
    let mut program = Program::with_room(&folder.segments(), &[], 1 << 20);
    program.lose("no counters of GPU-5a3c");
    // More than the segment may hold before anybody reads.
    for _ in 0..20_000 {
        program.sample(1, 1);
    }
    // A sampler that paused.
    program.time += 10 * INTERVAL;
    program.sample(1, 1);
    std::fs::write(folder.segments().join("1-2-0.segment"), b"something else").unwrap();
    live.poll(program.time + LATER).unwrap();
    let page = shown(&live);
    let lost = sum(&page, "lockstep_records_lost_total");
    let read = sum(&page, "lockstep_gpu_warps_launched_total");
    assert!(lost > 0.0);
    assert_eq!(lost + read, 20_001.0, "read or lost, nothing else");
    assert_eq!(
        sum(&page, "lockstep_sample_gaps_total"),
        2.0,
        "lost, and never taken"
    );
    let missing = sum(&page, "lockstep_sample_gap_seconds_total");
    assert!((missing - (lost * 0.001 + 0.01)).abs() < 1e-9, "{missing}");
    assert_eq!(sum(&page, "lockstep_losses_total"), 2.0, "{page}");
}

#[test]
fn a_reader_that_stores_keeps_its_records_while_an_exporter_looks_on() {
    let folder = Folder::new();
    let mut program = Program::start(&folder.segments(), &[]);
    let directory = SegmentDirectory::observe(&folder.segments());
    let stores = directory.store().unwrap();
    let mut live = open(&folder, 0);
    program.launch("k", 1);
    program.sample(7, 1);
    live.poll(program.time + LATER).unwrap();
    let path = directory.segments().unwrap().remove(0);
    let acknowledged = || SegmentReader::open(&path).unwrap().cursor();
    assert_eq!(acknowledged(), 0, "the other reader has not stored them");
    drop(stores);
    program.launch("k", 1);
    program.sample(8, 1);
    live.poll(program.time + LATER).unwrap();
    assert!(acknowledged() > 0, "nobody else needs them");
    assert_eq!(sum(&shown(&live), "lockstep_gpu_inst_executed_total"), 15.0);
}

#[test]
fn the_kernels_that_execute_most_have_labels_and_the_sum_is_the_whole() {
    let folder = Folder::new();
    let mut program = Program::start(&folder.segments(), &[]);
    let mut live = open(&folder, 2);
    for (kernel, instructions) in [("small", 1), ("large", 1000), ("tiny", 2), ("middle", 50)] {
        program.launch(kernel, 1);
        program.sample(instructions, 1);
    }
    live.poll(program.time + LATER).unwrap();
    let page = shown(&live);
    let of = |kernel: &str| {
        let wanted = format!("kernel=\"{kernel}\"}}");
        let all = values(&page).into_iter();
        let mut found = all.filter(|(key, _)| {
            key.starts_with("lockstep_gpu_inst_executed") && key.ends_with(&wanted)
        });
        found.next().map(|(_, value)| value)
    };
    assert_eq!(of("large"), Some(1000.0), "{page}");
    assert_eq!(of("middle"), Some(50.0));
    assert_eq!(of("other"), Some(3.0));
    assert_eq!(of("small"), None);
}

#[test]
fn two_exporters_of_the_same_segments_are_one_too_many() {
    let folder = Folder::new();
    let _first = open(&folder, 0);
    let metadata = Metadata::parse("test", METADATA).unwrap();
    let second = Live::open(&folder.segments(), &folder.0, &metadata, 0);
    let error = second.err().unwrap().to_string();
    assert!(error.contains("another exporter of this user"), "{error}");
}

#[test]
fn what_an_exporter_keeps_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    open(&folder, 0).poll(1).unwrap();
    for name in ["exporter.json", "exporter.lock"] {
        let mode = std::fs::metadata(folder.0.join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
