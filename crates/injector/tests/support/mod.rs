//! Runs the fake program with the injector in it, and reads what was published.

#![allow(dead_code, reason = "each test uses a part of this")]

pub mod daemon;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use lockstep_attribution::{Key, LaunchRow};
use lockstep_collector::{Collector, GaugeRow, SeriesRow, Sink};
use lockstep_schema::Metadata;
use lockstep_segment::SegmentDirectory;
use lockstep_segment::now;

/// One test's folder, programs and device.
pub struct Bench {
    pub folder: PathBuf,
    pub environment: Vec<(String, String)>,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The folder of this build's outputs.
pub fn outputs() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().to_owned()
}

/// The injector as this build made it.
pub fn injector() -> PathBuf {
    let folder = outputs();
    let places = [
        folder.join("deps/liblockstep_injector.so"),
        folder.join("liblockstep_injector.so"),
    ];
    places
        .into_iter()
        .find(|path| path.exists())
        .expect("cargo builds the library for its tests")
}

impl Bench {
    pub fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("lockstep-injector-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        SegmentDirectory::open(&folder, "").unwrap();
        let fake = outputs().join("examples/libfake_gpu.so");
        assert!(fake.exists(), "cargo builds examples for its tests");
        let mut bench = Self {
            folder,
            environment: Vec::new(),
        };
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        for variable in [
            "FAKE_GPU",
            "LOCKSTEP_CUPTI",
            "LOCKSTEP_NVML",
            "LOCKSTEP_LIBCUDA",
        ] {
            bench.set(variable, &text(&fake));
        }
        bench.set("FAKE_GPU_LOG", &text(&bench.folder.join("complaints")));
        bench.set("LOCKSTEP_SAMPLE_SEGMENTS", &text(&bench.segments()));
        bench.set("LOCKSTEP_SAMPLE_LOCKS", &text(&bench.folder));
        bench.set("CUDA_INJECTION64_PATH", &text(&injector()));
        bench.set("RUST_BACKTRACE", "0");
        bench
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    pub fn metadata(&mut self, text: &str) -> Metadata {
        let path = self.folder.join("metadata.toml");
        std::fs::write(&path, text).unwrap();
        self.set("LOCKSTEP_SAMPLE_METADATA", path.to_str().unwrap());
        Metadata::parse("test", text).unwrap()
    }

    pub fn segments(&self) -> PathBuf {
        self.folder.join("segments")
    }

    pub fn command(&self, steps: &[&str]) -> Command {
        let mut command = Command::new(outputs().join("examples/fake_program"));
        command.args(steps).envs(self.environment.iter().cloned());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, steps: &[&str]) -> Output {
        self.command(steps).output().unwrap()
    }

    pub fn spawn(&self, steps: &[&str]) -> Child {
        self.command(steps).spawn().unwrap()
    }

    /// Runs to a good end, and wants no complaint of the fake library.
    pub fn run_well(&self, steps: &[&str]) -> String {
        let output = self.run(steps);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{error}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "program done\n");
        self.no_complaints();
        error
    }

    pub fn no_complaints(&self) {
        let text = std::fs::read_to_string(self.folder.join("complaints")).unwrap_or_default();
        assert_eq!(text, "", "the fake library saw calls out of order");
    }

    pub fn collector(&self, metadata: &Metadata) -> Collector {
        Collector::new(SegmentDirectory::observe(&self.segments()), metadata)
    }

    /// Everything that was published, once nobody publishes any more.
    pub fn collect(&self, metadata: &Metadata) -> Collected {
        let mut collector = self.collector(metadata);
        let mut rows = Rows::default();
        collector.poll(now(), &mut rows).unwrap();
        Collected { collector, rows }
    }

    pub fn segment_count(&self) -> usize {
        SegmentDirectory::observe(&self.segments())
            .segments()
            .unwrap()
            .len()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Rows in memory.
#[derive(Default)]
pub struct Rows {
    pub series: Vec<SeriesRow>,
    pub launches: Vec<LaunchRow>,
    pub gauges: Vec<GaugeRow>,
}

impl Sink for Rows {
    fn series(&mut self, row: &SeriesRow) -> std::io::Result<()> {
        self.series.push(row.clone());
        Ok(())
    }
    fn launch(&mut self, row: &LaunchRow) -> std::io::Result<()> {
        self.launches.push(row.clone());
        Ok(())
    }
    fn gauges(&mut self, row: &GaugeRow) -> std::io::Result<()> {
        self.gauges.push(row.clone());
        Ok(())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub struct Collected {
    pub collector: Collector,
    pub rows: Rows,
}

impl Collected {
    /// Totals of one counter by what `name` makes of a key.
    pub fn totals(&self, counter: &str, name: impl Fn(&Key) -> String) -> BTreeMap<String, u64> {
        let place = self
            .collector
            .counters()
            .iter()
            .position(|known| *known == counter)
            .unwrap();
        let mut sums = BTreeMap::new();
        for (key, totals) in self.collector.totals() {
            *sums.entry(name(key)).or_default() += totals.counters[place].unwrap_or(0);
        }
        sums
    }

    pub fn launches(&self, name: impl Fn(&Key) -> String) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for row in &self.rows.launches {
            *sums.entry(name(&row.key)).or_default() += 1;
        }
        sums
    }
}

/// The command with the fake GPU's environment, in a base folder of its own.
pub fn command(bench: &Bench, arguments: &[&str]) -> Command {
    let mut command = Command::new(outputs().join("examples/sample"));
    let ours = [
        "LOCKSTEP_SAMPLE_SEGMENTS",
        "LOCKSTEP_SAMPLE_LOCKS",
        "CUDA_INJECTION64_PATH",
    ];
    let environment = bench
        .environment
        .iter()
        .filter(|(name, _)| !ours.contains(&name.as_str()))
        .cloned();
    command.args(arguments).envs(environment);
    command
        .env("LOCKSTEP_SAMPLE_BASE", bench.folder.join("base"))
        .env("FAKE_GPU_SHARED", bench.folder.join("device"))
        .env("LOCKSTEP_INJECTOR", injector());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The program that does what its arguments say.
pub fn program() -> String {
    outputs()
        .join("examples/fake_program")
        .to_str()
        .unwrap()
        .to_owned()
}

/// What a command said.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
