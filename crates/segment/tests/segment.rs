//! A segment keeps what it was given: through growth, slow readers, kills and hostile bytes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use lockstep_segment::{
    IdentityKind, Liveness, NO_IDENTITY, Publisher, Record, RecordKind, RowKey, SegmentDirectory,
    SegmentReader,
};

/// A folder of its own for each test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("lockstep-segment-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
    fn open(&self) -> SegmentDirectory {
        SegmentDirectory::open(&self.0, "").unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn launch(number: u64) -> Record {
    let mut record = Record::new(RecordKind::Launch);
    record.launch = number;
    record.begin = number * 10;
    record.end = number * 10 + 5;
    record.set(1, number * number);
    record
}

#[test]
fn records_and_names_arrive_in_order() {
    let folder = Folder::new("order");
    let mut publisher = Publisher::create(&folder.open(), 5, 8 << 20).unwrap();
    let kernel = publisher.name_once(IdentityKind::Kernel, NO_IDENTITY, "vector_add");
    assert_eq!(
        publisher.name_once(IdentityKind::Kernel, NO_IDENTITY, "vector_add"),
        kernel
    );
    let mut reader = SegmentReader::open(publisher.path()).unwrap();
    for number in 0..100 {
        publisher.publish(&launch(number));
    }
    let batch = reader.read();
    assert_eq!(batch.lost, 0);
    assert_eq!(batch.records.len(), 100);
    for (index, record) in batch.records {
        assert_eq!(record, launch(index));
    }
    assert_eq!(reader.identities()[kernel as usize].text, "vector_add");
    assert!(reader.read().records.is_empty());
}

#[test]
fn a_ring_nobody_reads_grows_and_keeps_everything() {
    let folder = Folder::new("grow");
    let mut publisher = Publisher::create(&folder.open(), 5, 64 << 20).unwrap();
    for number in 0..100_000 {
        publisher.publish(&launch(number));
    }
    assert_eq!(publisher.lost(), 0);
    let mut reader = SegmentReader::open(publisher.path()).unwrap();
    let mut next = 0;
    loop {
        let batch = reader.read();
        if batch.records.is_empty() {
            break;
        }
        assert_eq!(batch.lost, 0);
        for (index, record) in batch.records {
            assert_eq!(index, next);
            assert_eq!(record, launch(next));
            next += 1;
        }
    }
    assert_eq!(next, 100_000);
}

#[test]
fn beyond_the_maximum_the_oldest_go_and_both_sides_count_them() {
    let folder = Folder::new("maximum");
    let mut publisher = Publisher::create(&folder.open(), 5, 1 << 20).unwrap();
    for number in 0..50_000 {
        publisher.publish(&launch(number));
    }
    let mut reader = SegmentReader::open(publisher.path()).unwrap();
    let mut read = 0;
    loop {
        let batch = reader.read();
        if batch.records.is_empty() {
            break;
        }
        read += batch.records.len() as u64;
        for (index, record) in batch.records {
            assert_eq!(record, launch(index));
        }
    }
    assert!(publisher.lost() > 0);
    assert_eq!(read + reader.lost(), 50_000);
    assert_eq!(reader.lost(), publisher.lost());
}

#[test]
fn acknowledged_room_is_used_again() {
    let folder = Folder::new("reuse");
    let mut publisher = Publisher::create(&folder.open(), 5, 64 << 20).unwrap();
    let mut reader = SegmentReader::open(publisher.path()).unwrap();
    let mut read = 0;
    for number in 0..200_000u64 {
        publisher.publish(&launch(number));
        if number % 500 == 499 {
            read += reader.read().records.len();
            reader.acknowledge(reader.cursor());
        }
    }
    assert_eq!(read, 200_000);
    assert!(
        fs::metadata(publisher.path()).unwrap().len() < 1 << 20,
        "the first ring was enough"
    );
}

#[test]
fn a_new_reader_continues_where_the_killed_one_had_stored() {
    let folder = Folder::new("resume");
    let mut publisher = Publisher::create(&folder.open(), 5, 8 << 20).unwrap();
    for number in 0..300 {
        publisher.publish(&launch(number));
    }
    let mut first = SegmentReader::open(publisher.path()).unwrap();
    assert_eq!(first.read().records.len(), 300);
    first.acknowledge(120);
    drop(first);
    let mut second = SegmentReader::open(publisher.path()).unwrap();
    let records = second.read().records;
    assert_eq!(records.first().unwrap().0, 120);
    assert_eq!(records.len(), 180);
}

#[test]
fn a_reader_beside_a_busy_publisher_sees_only_whole_records() {
    let folder = Folder::new("race");
    let mut publisher = Publisher::create(&folder.open(), 5, 1 << 20).unwrap();
    let path = publisher.path().to_owned();
    let key = RowKey {
        device: 1,
        context: 2,
        stream: 3,
        kernel: 4,
    };
    publisher.accumulate(key, 1, 1, 0, &[1, 1]);
    let writer = std::thread::spawn(move || {
        for number in 0..300_000 {
            publisher.publish(&launch(number));
            publisher.accumulate(key, 1, 1, number, &[1, 1]);
        }
        publisher.finish();
        publisher
    });
    let mut reader = SegmentReader::open(&path).unwrap();
    let mut seen = 0;
    while reader.liveness() == Liveness::Running {
        for (index, record) in reader.read().records {
            assert_eq!(record, launch(index));
            seen += 1;
        }
        for row in reader.rows() {
            assert_eq!(row.launches, row.values[0], "one seqlock, one state");
            assert_eq!(row.values[0], row.values[1]);
        }
    }
    loop {
        let records = reader.read().records;
        if records.is_empty() {
            break;
        }
        seen += records.len() as u64;
    }
    drop(writer.join().unwrap());
    assert_eq!(seen + reader.lost(), 300_000);
    assert_eq!(reader.rows()[0].launches, 300_001);
}

#[test]
fn names_and_rows_have_no_fixed_limit() {
    let folder = Folder::new("limits");
    let mut publisher = Publisher::create(&folder.open(), 3, 64 << 20).unwrap();
    let names: Vec<String> = (0..5_000)
        .map(|i| format!("kernel_with_a_long_name_{i}_{}", "x".repeat(i % 300)))
        .collect();
    for (i, name) in names.iter().enumerate() {
        let kernel = publisher.name_once(IdentityKind::Kernel, NO_IDENTITY, name);
        assert_eq!(kernel as usize, i);
        let key = RowKey {
            device: 0,
            context: i as u32 % 50,
            stream: 0,
            kernel,
        };
        publisher.accumulate(key, 1, 7, 0, &[i as u64, 2, 3]);
    }
    let mut reader = SegmentReader::open(publisher.path()).unwrap();
    reader.read();
    assert_eq!(reader.identities().len(), 5_000);
    for (identity, name) in reader.identities().iter().zip(&names) {
        assert_eq!(&identity.text, name);
    }
    let rows = reader.rows();
    assert_eq!(rows.len(), 5_000);
    assert!(
        rows.iter()
            .enumerate()
            .all(|(i, row)| row.values[0] == i as u64)
    );
}

#[test]
fn a_segment_is_private_unless_a_group_is_configured() {
    let folder = Folder::new("mode");
    let publisher = Publisher::create(&folder.open(), 3, 1 << 20).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(publisher.path()), 0o600);
    assert_eq!(mode(&folder.0), 0o700);

    let shared = Folder::new("mode-group");
    let own_group = rustix_group();
    let directory = SegmentDirectory::open(&shared.0, &own_group.to_string()).unwrap();
    let publisher = Publisher::create(&directory, 3, 1 << 20).unwrap();
    assert_eq!(mode(publisher.path()), 0o640);
    assert_eq!(mode(&shared.0), 0o750);

    let error = SegmentDirectory::open(&shared.0, "no_such_group_here").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no group is called `no_such_group_here`; leave segment.group empty, or name a group of this node"
    );
}

fn rustix_group() -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().gid()
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let folder = Folder::new("unsafe");
    fs::create_dir_all(&folder.0).unwrap();
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
    let error = SegmentDirectory::open(&folder.0, "").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("others may write to it (mode 777)"),
        "{error}"
    );
}

#[test]
fn reaping_removes_the_finished_and_leaves_the_living() {
    let folder = Folder::new("reap");
    let directory = folder.open();
    let alive = Publisher::create(&directory, 3, 1 << 20).unwrap();
    let finished = Publisher::create(&directory, 3, 1 << 20).unwrap();
    alive.beat(1_000);
    finished.beat(1_000);
    finished.finish();
    assert_eq!(directory.reap(1_500, 1_000).unwrap(), 0, "kept for a while");
    assert_eq!(directory.reap(9_000, 1_000).unwrap(), 1);
    assert!(alive.path().exists());
    assert!(!finished.path().exists());
}

#[test]
fn hostile_bytes_never_bring_a_reader_down() {
    let folder = Folder::new("hostile");
    let mut publisher = Publisher::create(&folder.open(), 5, 4 << 20).unwrap();
    publisher.name(IdentityKind::Kernel, NO_IDENTITY, 0, "k");
    for number in 0..5_000 {
        publisher.publish(&launch(number));
        publisher.accumulate(
            RowKey {
                device: 0,
                context: 0,
                stream: 0,
                kernel: 0,
            },
            1,
            1,
            1,
            &[1],
        );
    }
    let good = fs::read(publisher.path()).unwrap();
    let path = folder.0.join("hostile.segment");
    // A fixed generator: the same bytes on every run.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..300 {
        let mut bytes = good.clone();
        for _ in 0..1 + random() % 8 {
            let at = (random() % 3_400) as usize;
            bytes[at] = random() as u8;
        }
        bytes.truncate((random() % (good.len() as u64 + 1)) as usize);
        fs::write(&path, &bytes).unwrap();
        if let Ok(mut reader) = SegmentReader::open(&path) {
            for _ in 0..4 {
                reader.read();
            }
            reader.rows();
            reader.liveness();
        }
    }
}
