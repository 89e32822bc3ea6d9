//! The plugin in a real ldmsd: sampled there, pulled by an aggregator on another port, stored as CSV.
//! Where no ldmsd is installed the test says so and passes. `LDMS_PREFIX` names an installation.

#[path = "../../exporter/tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::{Folder, GPU, METADATA, Program};

/// An installation of LDMS.
struct Ldms(PathBuf);

impl Ldms {
    fn find() -> Option<Self> {
        let named = std::env::var_os("LDMS_PREFIX").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let in_path =
            std::env::split_paths(&path).filter_map(|folder| Some(folder.parent()?.to_owned()));
        let usual = ["/usr", "/usr/local", "/opt/ovis", "/opt/ldms"].map(PathBuf::from);
        let places = named.into_iter().chain(in_path).chain(usual);
        places.map(Self).find(|one| one.program("ldmsd").exists())
    }

    fn program(&self, name: &str) -> PathBuf {
        self.0.join("sbin").join(name)
    }

    /// A command of LDMS that finds LDMS's own plugins and ours.
    fn command(&self, name: &str, plugin: &Path) -> Command {
        let libraries = self.0.join("lib");
        let plugins = libraries.join("ovis-ldms");
        let both = format!("{}:{}", plugins.display(), plugin.display());
        let mut command = Command::new(self.program(name));
        command
            .env("LD_LIBRARY_PATH", libraries)
            .env("ZAP_LIBPATH", plugins)
            .env("LDMSD_PLUGIN_LIBPATH", both)
            .stdin(Stdio::null());
        command
    }
}

/// A daemon that ends with the test.
struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    fn start(
        ldms: &Ldms,
        plugin: &Path,
        folder: &Path,
        name: &str,
        port: u16,
        lines: &str,
    ) -> Self {
        let settings = folder.join(format!("{name}.conf"));
        fs::write(&settings, lines).unwrap();
        let log = folder.join(format!("{name}.log"));
        let child = ldms
            .command("ldmsd", plugin)
            .args(["-x", &format!("sock:{port}:127.0.0.1"), "-v", "INFO", "-c"])
            .arg(&settings)
            .arg("-l")
            .arg(&log)
            .spawn()
            .unwrap();
        Self { child, log }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody has at this moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The last row of a file of store_csv, by column; nothing before there is one.
fn last_row(path: &Path) -> Option<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).ok()?;
    // What follows the last end of a line is half a row.
    let text = &text[..text.rfind('\n')?];
    let head = text.lines().next()?.strip_prefix('#')?;
    let row = text.lines().last().filter(|line| !line.starts_with('#'))?;
    let (names, values) = (head.split(','), row.split(','));
    Some(
        names
            .map(str::to_owned)
            .zip(values.map(str::to_owned))
            .collect(),
    )
}

/// The last row once its column has a value.
fn wait_for(
    path: &Path,
    column: &str,
    value: &str,
    daemons: &[&Daemon],
) -> BTreeMap<String, String> {
    let begun = instant();
    loop {
        let row = last_row(path);
        let found = row.as_ref().and_then(|row| row.get(column));
        if let (true, Some(row)) = (found.is_some_and(|found| found == value), &row) {
            return row.clone();
        }
        let said: Vec<String> = daemons.iter().map(|daemon| daemon.said()).collect();
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "{}: no row with {column}={value}: {row:?}\n{}",
            path.display(),
            said.join("\n")
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What `ldms_ls` says of the sets with records, once it has a word.
fn wait_for_listing(ldms: &Ldms, plugin: &Path, port: u16, word: &str) -> String {
    let begun = instant();
    loop {
        let mut command = ldms.command("ldms_ls", plugin);
        let port = port.to_string();
        command.args(["-x", "sock", "-h", "127.0.0.1", "-p", &port, "-v", "-l"]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if said.contains(word) {
            return said;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{said}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Three instances of the plugin, one of them with records, beside a sampler of LDMS's own.
fn sampler(folder: &Path, metadata: &Path) -> String {
    format!(
        "load name=meminfo\n\
         config name=meminfo producer=n17 instance=n17/meminfo component_id=17\n\
         start name=meminfo interval=200000 offset=0\n\
         load name=lockstep_sampler\n\
         config name=lockstep_sampler producer=n17 instance=n17/gpu component_id=17 segments={} metadata={}\n\
         start name=lockstep_sampler interval=200000 offset=0\n\
         load name=second plugin=lockstep_sampler\n\
         config name=second producer=n17 instance=n17/second component_id=17 schema=second segments={} metadata={}\n\
         start name=second interval=200000 offset=0\n\
         load name=third plugin=lockstep_sampler\n\
         config name=third producer=n17 instance=n17/third component_id=17 records=8 segments={} metadata={}\n\
         start name=third interval=200000 offset=0\n",
        folder.join("programs").display(),
        metadata.display(),
        folder.join("second").display(),
        metadata.display(),
        folder.join("third").display(),
        metadata.display()
    )
}

fn aggregator(port: u16, store: &Path) -> String {
    let mut lines = format!(
        "prdcr_add name=n17 host=127.0.0.1 port={port} xprt=sock type=active reconnect=200000\n\
         prdcr_start name=n17\n\
         updtr_add name=all interval=200000 offset=100000\n\
         updtr_prdcr_add name=all regex=.*\n\
         updtr_start name=all\n\
         load name=store_csv\n\
         config name=store_csv path={} buffer=0\n",
        store.display()
    );
    for (name, schema) in [
        ("gpu", "lockstep_sampler"),
        ("other", "second"),
        ("memory", "meminfo"),
    ] {
        lines += &format!(
            "strgp_add name={name} plugin=store_csv container=node schema={schema}\n\
             strgp_prdcr_add name={name} regex=.*\n\
             strgp_start name={name}\n"
        );
    }
    lines
}

#[test]
fn ldmsd_samples_and_an_aggregator_stores() {
    let Some(ldms) = Ldms::find() else {
        eprintln!("skipped: no ldmsd is installed; LDMS_PREFIX names where one is");
        return;
    };
    let folder = Folder::new();
    let (segments, metadata) = (folder.segments(), folder.0.join("counters.toml"));
    fs::write(&metadata, METADATA).unwrap();
    let (plugin, store) = (folder.0.join("plugin"), folder.0.join("store"));
    fs::create_dir_all(&plugin).unwrap();
    fs::create_dir_all(&store).unwrap();
    let test = std::env::current_exe().unwrap();
    let built = test.with_file_name("liblockstep_sampler.so");
    fs::copy(built, plugin.join("liblockstep_sampler.so")).unwrap();

    let (port, other) = (free_port(), free_port());
    let start = || {
        let lines = sampler(&folder.0, &metadata);
        Daemon::start(&ldms, &plugin, &folder.0, "sampler", port, &lines)
    };
    let sampling = start();
    let aggregate = || {
        let lines = aggregator(port, &store);
        Daemon::start(&ldms, &plugin, &folder.0, "aggregator", other, &lines)
    };
    let aggregating = aggregate();

    let publish = |segments: &Path, instructions, warps| {
        let mut program = Program::start(segments, &[]);
        program.time = lockstep_segment::now();
        program.launch("_Z6kernelv", warps as u32);
        program.sample(instructions, warps);
        program.gauges(123_456, 61, 3 << 30);
    };
    publish(&segments, 400, 4);
    let table = store.join("node/lockstep_sampler");
    let row = wait_for(&table, "inst_executed", "400", &[&sampling, &aggregating]);
    let is = |name: &str, value: &str| assert_eq!(row[name], value, "{name}: {row:?}");
    is("warps_launched", "4");
    is("launches", "1");
    is("ProducerName", "n17");
    is("component_id", "17");
    is("job_id", "0");
    is("records_lost", "0");
    is("losses", "0");
    assert!(row["gpu_uuid"].contains(GPU), "{row:?}");

    // CPU and GPU stand in one table by producer, component, job and second.
    let memory = wait_for(
        &store.join("node/meminfo"),
        "component_id",
        "17",
        &[&sampling],
    );
    for name in ["ProducerName", "component_id", "job_id", "app_id"] {
        assert_eq!(memory[name], row[name], "{name}");
    }

    // Another instance reads other segments.
    publish(&folder.0.join("second"), 7, 1);
    let second = wait_for(
        &store.join("node/second"),
        "inst_executed",
        "7",
        &[&sampling],
    );
    assert_eq!(second["launches"], "1");

    // A third one has records: a row for each kernel.
    publish(&folder.0.join("third"), 9, 1);
    let listed = wait_for_listing(&ldms, &plugin, port, "_Z6kernelv");
    assert!(listed.contains("lockstep_records"), "{listed}");

    // One that is killed is followed by one that goes on. So is the aggregator: LDMS's own now and then does not
    // connect again with a sampler that was killed.
    drop((sampling, aggregating));
    publish(&segments, 11, 1);
    let (sampling, aggregating) = (start(), aggregate());
    let row = wait_for(&table, "inst_executed", "411", &[&sampling, &aggregating]);
    assert_eq!(row["launches"], "2");
    for said in [sampling.said(), aggregating.said()] {
        assert!(!said.contains("ERROR: lockstep_sampler"), "{said}");
    }
}

#[allow(clippy::disallowed_methods, reason = "the time that a test may take")]
fn instant() -> Instant {
    Instant::now()
}
