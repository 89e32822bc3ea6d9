//! The commands `sample` and `sampled`, from the command line to the run folder.

mod support;

use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::time::Duration;

use lockstep_attribution::LaunchRow;
use lockstep_collector::{GaugeRow, SeriesRow, Sink};
use lockstep_schema::Metadata;
use lockstep_segment::now;
use support::{Bench, Rows, command, injector, program, text};

fn out(bench: &Bench) -> PathBuf {
    bench.folder.join("out")
}

fn run(bench: &Bench, arguments: &[&str]) -> Output {
    command(bench, arguments).output().unwrap()
}

#[test]
fn a_run_folder_has_what_the_program_did() {
    let bench = Bench::new();
    let folder = out(&bench);
    let output = run(
        &bench,
        &[
            "sample",
            "--interval",
            "1 ms",
            "--out",
            folder.to_str().unwrap(),
            "--",
            &program(),
            "context 0",
            "launch 0 7 k 100 128 10 5000000 8",
            "sync",
            "exit 7",
        ],
    );
    assert_eq!(
        output.status.code(),
        Some(7),
        "the program's own exit code: {}",
        text(&output.stderr)
    );
    bench.no_complaints();
    let summary: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("summary.json")).unwrap())
            .unwrap();
    assert_eq!(summary["source"], "real");
    assert_eq!(summary["exit_code"], 7);
    assert_eq!(summary["lost"], 0);
    let totals = summary["totals"].as_array().unwrap();
    assert_eq!(totals.len(), 1, "{totals:#?}");
    assert_eq!(totals[0]["kernel"], "k");
    assert_eq!(totals[0]["launches"], 8);
    assert_eq!(totals[0]["counters"]["warps_launched"], 3200);
    assert_eq!(totals[0]["counters"]["inst_executed"], 32_000);

    let kernels = std::fs::read_to_string(folder.join("kernels.csv")).unwrap();
    let mut lines = kernels.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(
        columns[..9].join(","),
        "launch,kernel,gpu,context,stream,grid,block,start_ns,duration_ns"
    );
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 8);
    assert!(
        rows.iter()
            .all(|row| row.len() == columns.len() && row[5] == "100x1x1" && row[6] == "128x1x1")
    );

    let series = std::fs::read_to_string(folder.join("series.csv")).unwrap();
    let mut lines = series.lines();
    let width = lines.next().unwrap().split(',').count();
    assert!(lines.clone().count() > 30);
    assert!(lines.all(|line| line.split(',').count() == width));
    let left: Vec<_> = std::fs::read_dir(bench.folder.join("base"))
        .unwrap()
        .flatten()
        .map(|one| one.path())
        .collect();
    assert!(
        left.iter()
            .all(|path| path.extension().is_some_and(|ending| ending == "lock")),
        "{left:?}"
    );
}

#[test]
fn without_kernels_the_program_runs_without_the_injector() {
    let bench = Bench::new();
    let folder = out(&bench);
    let output = run(
        &bench,
        &[
            "sample",
            "--no-kernels",
            "--interval",
            "1 ms",
            "--out",
            folder.to_str().unwrap(),
            "--",
            "sh",
            "-c",
            "echo \"injected: $CUDA_INJECTION64_PATH$LOCKSTEP_SAMPLE_SEGMENTS\"; exit 3",
        ],
    );
    assert_eq!(text(&output.stdout), "injected: \n");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let summary = std::fs::read_to_string(folder.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["exit_code"], 3);
    assert!(summary["losses"].as_array().unwrap().is_empty());
}

/// The program ends well, and what was asked for is not there.
#[test]
fn counters_that_cannot_be_read_are_an_error_of_the_command() {
    let mut bench = Bench::new();
    bench.set("FAKE_GPU_FAIL", "cuptiPmSamplingEnable=35");
    let folder = out(&bench);
    let output = run(
        &bench,
        &[
            "sample",
            "--interval",
            "1 ms",
            "--out",
            folder.to_str().unwrap(),
            "--",
            &program(),
            "context 0",
            "launch 0 7 k 100 128 10 1000000 5",
            "sync",
        ],
    );
    let said = text(&output.stderr);
    assert_eq!(text(&output.stdout), "program done\n");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"),
        "{said}"
    );
    let summary = std::fs::read_to_string(folder.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["exit_code"], 0, "the program's own");
    assert!(!summary["losses"].as_array().unwrap().is_empty());
}

/// Two kernels of one stream that alternate within every interval, in one proportion: nothing in the
/// samples tells them apart.
#[test]
fn what_an_exact_run_counted_tells_kernels_apart_that_samples_do_not() {
    let bench = Bench::new();
    let (counted, folder) = (bench.folder.join("counted"), out(&bench));
    let (counted, folder) = (counted.to_str().unwrap(), folder.to_str().unwrap());
    let program = program();
    let mut steps = vec!["context 0"];
    for _ in 0..40 {
        steps.extend([
            "launch 0 7 busy 10 32 90 100000 1",
            "launch 0 7 lazy 10 32 10 100000 1",
        ]);
    }
    steps.push("sync");
    let arguments = |first: &[&str]| {
        let mut all: Vec<String> = first.iter().map(|one| (*one).to_owned()).collect();
        all.extend(["--".to_owned(), program.clone()]);
        all.extend(steps.iter().map(|one| (*one).to_owned()));
        all
    };
    let run_well = |first: &[&str]| {
        let all = arguments(first);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let output = run(&bench, &all);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    };
    run_well(&["sample", "--exact", "--out", counted]);
    run_well(&[
        "sample",
        "--interval",
        "1 ms",
        "--rates",
        counted,
        "--out",
        folder,
    ]);
    bench.no_complaints();
    let summary = std::fs::read_to_string(format!("{folder}/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let of = |kernel: &str| {
        let totals = summary["totals"].as_array().unwrap().iter();
        let totals = totals.filter(|total| total["kernel"] == kernel);
        totals
            .map(|total| total["counters"]["inst_executed"].as_u64().unwrap())
            .sum::<u64>()
    };
    let (busy, lazy) = (of("busy"), of("lazy"));
    assert_eq!(busy + lazy, 40 * 10 * 100, "{summary:#}");
    assert!(busy.abs_diff(40 * 10 * 90) < 400, "{busy} and {lazy}");
}

#[test]
fn a_run_that_tells_nothing_stops_before_the_program_starts() {
    let bench = Bench::new();
    let nothing = bench.folder.to_str().unwrap();
    let arguments = ["sample", "--rates", nothing, "--", "/bin/echo", "started"];
    let output = run(&bench, &arguments);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "", "the program did not run");
    let told = text(&output.stderr);
    assert!(
        told.contains("cannot read the launches of an exact run"),
        "{told}"
    );
}

#[test]
fn a_wrong_file_stops_before_the_program_starts() {
    let bench = Bench::new();
    let file = bench.folder.join("wrong.toml");
    for (content, message) in [
        (
            "interval = \"1 ms\"\ncounters = [\"thread_inst_executed\"]",
            "needs several passes over a kernel",
        ),
        (
            "interval = \"1 ms\"\ncounters = [\"inst_exec\"]",
            "no counter is called `inst_exec`; nearest: `inst_executed`",
        ),
        ("interval = \"1 ms\"\ncounters = 3", "malformed metadata"),
    ] {
        std::fs::write(&file, content).unwrap();
        let output = run(
            &bench,
            &[
                "sample",
                "--metadata",
                file.to_str().unwrap(),
                "--",
                "/bin/echo",
                "started",
            ],
        );
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(text(&output.stdout), "", "the program did not run");
        assert!(
            text(&output.stderr).contains(message),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn a_program_without_cuda_runs_as_ever_and_one_that_is_missing_is_named() {
    let bench = Bench::new();
    let folder = out(&bench);
    let folder = folder.to_str().unwrap();
    let output = run(
        &bench,
        &["sample", "--out", folder, "--", "/bin/echo", "hello"],
    );
    assert_eq!(text(&output.stdout), "hello\n");
    assert!(text(&output.stderr).contains("made no CUDA context"));
    let output = run(
        &bench,
        &["sample", "--out", folder, "--", "/nonexistent/program"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot run `/nonexistent/program`: No such file"));
}

/// A disk that is full from the third row on.
struct FullDisk(Rows, usize);

impl FullDisk {
    fn write(&mut self) -> std::io::Result<()> {
        self.1 += 1;
        if self.1 > 3 {
            Err(std::io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }
}

impl Sink for FullDisk {
    fn series(&mut self, row: &SeriesRow) -> std::io::Result<()> {
        self.0.series(row)?;
        self.write()
    }
    fn launch(&mut self, row: &LaunchRow) -> std::io::Result<()> {
        self.0.launch(row)?;
        self.write()
    }
    fn gauges(&mut self, row: &GaugeRow) -> std::io::Result<()> {
        self.0.gauges(row)?;
        self.write()
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_loses_nothing_and_says_what_to_do() {
    let mut bench = Bench::new();
    let metadata =
        bench.metadata("interval = \"1 ms\"\ncounters = [\"inst_executed\", \"warps_launched\"]\n");
    bench.run_well(&["context 0", "launch 0 7 k 100 128 10 1000000 20", "sync"]);
    let mut collector = bench.collector(&metadata);
    let error = collector
        .poll(now(), &mut FullDisk(Rows::default(), 0))
        .unwrap_err();
    let folder =
        lockstep_collector::SampleFolder::create(&out(&bench), collector.counters()).unwrap();
    let sentence = folder.explain(error, &bench.segments()).to_string();
    assert!(
        sentence.contains(
            "the disk is full; the program runs on, and its samples stay in shared memory"
        ),
        "{sentence}"
    );
    assert!(sentence.ends_with(&format!(
        "`lockstep sample --attach {}`",
        bench.segments().display()
    )));
    drop(collector);
    // As the sentence says: another reader finds everything.
    let segments = bench.segments();
    let folder = out(&bench);
    let output = run(
        &bench,
        &[
            "sample",
            "--attach",
            segments.to_str().unwrap(),
            "--out",
            folder.to_str().unwrap(),
        ],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let summary = std::fs::read_to_string(folder.join("summary.json")).unwrap();
    assert!(summary.contains("\"launches\": 20"), "{summary}");
    assert_eq!(bench.segment_count(), 0);
}

#[test]
fn a_full_disk_from_the_start_is_named() {
    let bench = Bench::new();
    let folder = out(&bench);
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.join("series.csv")).unwrap();
    let output = run(
        &bench,
        &[
            "sample",
            "--out",
            folder.to_str().unwrap(),
            "--",
            "/bin/echo",
            "started",
        ],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("cannot write samples: No space left on device"),
        "{}",
        text(&output.stderr)
    );
}

/// Waits for a child that must end by itself.
fn end(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

#[test]
fn the_daemon_samples_for_everybody_and_yields_to_dcgm() {
    let mut bench = Bench::new();
    let shared = bench.folder.join("device");
    bench.set("FAKE_GPU_SHARED", shared.to_str().unwrap());
    let folder = out(&bench);
    let daemon = command(&bench, &["sampled", "--seconds", "6"])
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let reader = command(
        &bench,
        &[
            "sample",
            "--all",
            "--seconds",
            "7",
            "--out",
            folder.to_str().unwrap(),
        ],
    )
    .spawn()
    .unwrap();
    // A program of the same user, with nothing but the injector in its environment.
    let plain = |kernel: &str| {
        let mut program = Command::new(program());
        program.args([
            "context 0",
            &format!("launch 0 7 {kernel} 100 128 10 20000000 5"),
            "sync",
        ]);
        let ours = ["LOCKSTEP_SAMPLE_SEGMENTS", "LOCKSTEP_SAMPLE_LOCKS"];
        program.envs(
            bench
                .environment
                .iter()
                .filter(|(name, _)| !ours.contains(&name.as_str()))
                .cloned(),
        );
        program.env("LOCKSTEP_SAMPLE_BASE", bench.folder.join("base"));
        assert!(program.output().unwrap().status.success());
    };
    plain("before");
    // DCGM comes, for a while; nobody samples then, as the one program alive is the daemon.
    let host_engine = bench.folder.join("nv-hostengine");
    std::fs::copy("/bin/sleep", &host_engine).unwrap();
    let mut dcgm = Command::new(&host_engine).arg("60").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    dcgm.kill().unwrap();
    dcgm.wait().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    plain("after");
    let daemon = end(daemon);
    assert!(daemon.status.success(), "{}", text(&daemon.stderr));
    assert!(
        text(&daemon.stderr).contains("counters are left to DCGM while nv-hostengine runs"),
        "{}",
        text(&daemon.stderr)
    );
    assert!(end(reader).status.success());
    bench.no_complaints();
    let summary: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("summary.json")).unwrap())
            .unwrap();
    for kernel in ["before", "after"] {
        let total = summary["totals"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["kernel"] == kernel)
            .unwrap();
        assert_eq!(total["launches"], 5);
        assert_eq!(total["counters"]["warps_launched"], 2000, "{kernel}");
    }
}

#[test]
fn the_environment_for_every_program_is_printed() {
    let bench = Bench::new();
    let output = run(&bench, &["sample", "--environment"]);
    assert_eq!(
        text(&output.stdout),
        format!("export CUDA_INJECTION64_PATH={}\n", injector().display())
    );
    let _ = Metadata::default();
}
