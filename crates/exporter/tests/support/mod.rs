//! A folder for a test, and a publisher with something to tell.

#![allow(dead_code, unused_imports, reason = "each test uses a part of this")]

mod page;
pub mod prometheus;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use lockstep_segment::{
    IdentityKind, NO_IDENTITY, Publisher, Record, RecordKind, SegmentDirectory,
};
pub use page::{get, sum, values};

/// Name of the only GPU.
pub const GPU: &str = "GPU-5a3c";
/// Counters that publishers have, in this order.
pub const COUNTERS: [&str; 2] = ["inst_executed", "warps_launched"];
/// Metadata of the same counters.
pub const METADATA: &str =
    "interval = \"1 ms\"\ncounters = [\"inst_executed\", \"warps_launched\"]\n";
/// Time between two samples, in nanoseconds.
pub const INTERVAL: u64 = 1_000_000;

/// A folder that goes with its test.
pub struct Folder(pub PathBuf);

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Folder {
    pub fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("lockstep-exporter-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        SegmentDirectory::open(&path, "").unwrap();
        Self(path)
    }

    pub fn segments(&self) -> PathBuf {
        self.0.join("programs")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A sampled program that samples for itself, as the injector would publish it.
pub struct Program {
    publisher: Publisher,
    device: u32,
    context: u32,
    launches: u64,
    pub time: u64,
}

impl Program {
    pub fn start(segments: &Path, names: &[(IdentityKind, &str)]) -> Self {
        Self::with_room(segments, names, 8 << 20)
    }

    pub fn with_room(segments: &Path, names: &[(IdentityKind, &str)], room: u64) -> Self {
        let directory = SegmentDirectory::open(segments, "").unwrap();
        let mut publisher = Publisher::create(&directory, 5, room).unwrap();
        publisher.name(IdentityKind::Node, NO_IDENTITY, 0, "n17");
        publisher.name(IdentityKind::Process, NO_IDENTITY, 1, "program");
        for (kind, text) in names {
            publisher.name(*kind, NO_IDENTITY, 0, text);
        }
        for counter in COUNTERS {
            publisher.name(IdentityKind::Counter, NO_IDENTITY, 0, counter);
        }
        let device = publisher.name(IdentityKind::Device, NO_IDENTITY, 3, GPU);
        let context = publisher.name(IdentityKind::Context, device, 1, "");
        Self {
            publisher,
            device,
            context,
            launches: 0,
            time: 1_800_000_000_000_000_000,
        }
    }

    fn record(&self, kind: RecordKind) -> Record {
        let mut record = Record::new(kind);
        record.device = self.device;
        record.context = self.context;
        record.begin = self.time;
        record.end = self.time;
        record
    }

    /// Launches a kernel of one block of `warps` warps, known by its host time.
    pub fn launch(&mut self, kernel: &str, warps: u32) {
        let mut record = self.record(RecordKind::Launch);
        record.kernel = self
            .publisher
            .name_once(IdentityKind::Kernel, NO_IDENTITY, kernel);
        record.stream = 7;
        record.grid = [1; 3];
        record.block = [32 * warps, 1, 1];
        self.launches += 1;
        record.launch = self.launches;
        self.publisher.publish(&record);
        self.publisher.beat(self.time);
    }

    /// An interval in which the GPU counted so much.
    pub fn sample(&mut self, instructions: u64, warps: u64) {
        let mut record = self.record(RecordKind::DeviceSample);
        self.time += INTERVAL;
        record.end = self.time;
        record.set(0, instructions);
        record.set(1, warps);
        self.publisher.publish(&record);
        self.publisher.beat(self.time);
    }

    /// Gauges: watts, degrees, and bytes in use.
    pub fn gauges(&mut self, milliwatts: u64, degrees: u64, used: u64) {
        let mut record = self.record(RecordKind::Gauges);
        record.set(0, milliwatts);
        record.set(1, degrees);
        record.set(4, used);
        self.publisher.publish(&record);
    }

    pub fn lose(&mut self, sentence: &str) {
        self.publisher
            .name(IdentityKind::Loss, NO_IDENTITY, 0, sentence);
    }
}
