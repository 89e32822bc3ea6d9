//! Whatever fails is one sentence, and the program runs on.

mod support;

use lockstep_schema::Metadata;
use support::Bench;

const FINE: &str = "interval = \"1 ms\"\ncounters = [\"inst_executed\", \"warps_launched\"]\n";
const STEPS: &[&str] = &["context 0", "launch 0 7 k 100 128 10 1000000 5", "sync"];

/// Runs with a failure, and wants the program's own output and exactly this sentence.
fn sentence(prepare: impl FnOnce(&mut Bench)) -> String {
    let mut bench = Bench::new();
    prepare(&mut bench);
    let output = bench.run(STEPS);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "program done\n");
    bench.no_complaints();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(error.lines().count(), 1, "one sentence: {error}");
    error.trim_end().to_owned()
}

fn failing(what: &str) -> String {
    sentence(|bench| {
        bench.metadata(FINE);
        bench.set("FAKE_GPU_FAIL", what);
    })
}

#[test]
fn no_permission_is_one_sentence() {
    assert_eq!(
        failing("cuptiPmSamplingEnable=35"),
        "lockstep: no counters of GPU-face0000-0000-0000-0000-000000000000: enabling periodic sampling: \
         CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35); the driver lets only administrators read counters \
         (NVreg_RestrictProfilingToAdminUsers)"
    );
}

#[test]
fn a_busy_gpu_is_one_sentence() {
    let text = failing("cuptiPmSamplingGetCounterAvailability=26");
    assert!(
        text.contains("another profiler, or DCGM, holds the counters of this GPU"),
        "{text}"
    );
}

#[test]
fn another_tool_is_one_sentence() {
    let text = failing("cuptiSubscribe=39");
    assert!(
        text.contains("another tool already listens in this process"),
        "{text}"
    );
}

#[test]
fn no_management_library_is_one_sentence_and_counters_go_on() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(FINE);
    bench.set("LOCKSTEP_NVML", "/nonexistent/libnvidia-ml.so");
    let error = bench.run_well(STEPS);
    assert!(error.starts_with("lockstep: no power, temperature, clocks and memory: the management library cannot be opened"));
    let collected = bench.collect(&metadata);
    assert_eq!(
        collected.totals("warps_launched", |_| String::new())[""],
        2000
    );
    assert_eq!(
        collected.collector.notices().len(),
        1,
        "the reader can show it too"
    );
}

#[test]
fn no_cupti_is_one_sentence() {
    let text = sentence(|bench| bench.set("LOCKSTEP_CUPTI", "/nonexistent/libcupti.so"));
    assert!(
        text.starts_with("lockstep: CUPTI cannot be opened ("),
        "{text}"
    );
}

#[test]
fn an_unknown_counter_is_one_sentence_with_the_nearest_names() {
    let text = sentence(|bench| {
        let path = bench.folder.join("wrong.toml");
        std::fs::write(
            &path,
            "interval = \"1 ms\"\ncounters = [\"warps_launch\"]\n",
        )
        .unwrap();
        bench.set("LOCKSTEP_SAMPLE_METADATA", path.to_str().unwrap());
    });
    assert!(
        text.contains("no counter is called `warps_launch`; nearest: `warps_launched`, "),
        "{text}"
    );
}

#[test]
fn a_malformed_file_is_told_and_the_program_runs_on() {
    let mut bench = Bench::new();
    let path = bench.folder.join("wrong.toml");
    std::fs::write(&path, "interval = 10 ms").unwrap();
    bench.set("LOCKSTEP_SAMPLE_METADATA", path.to_str().unwrap());
    let error = bench.run_well(STEPS);
    assert!(
        error.contains("wrong.toml: malformed metadata: TOML parse error at line 1"),
        "{error}"
    );
}

#[test]
fn a_counter_of_several_passes_is_left_out_by_name() {
    let mut bench = Bench::new();
    let metadata = bench.metadata(
        "interval = \"1 ms\"\ncounters = [\"inst_executed\", \"active_cycles\", \"inst_issued\", \"warps_launched\", \"dram_bytes_read\"]\n",
    );
    let error = bench.run_well(STEPS);
    assert_eq!(
        error,
        "lockstep: `dram_bytes_read` is left out: with the others it needs 2 passes over a kernel on GH100, and \
         sampling has one; use mode = \"exact\", or fewer counters\n"
    );
    let collected = bench.collect(&metadata);
    assert_eq!(
        collected.totals("warps_launched", |_| String::new())[""],
        2000
    );
    let row = &collected.rows.series[0];
    assert_eq!(row.counters[4], None, "what was not counted stays empty");
}

#[test]
fn a_folder_without_permission_is_one_sentence() {
    let text = sentence(|bench| bench.set("LOCKSTEP_SAMPLE_SEGMENTS", "/proc/lockstep"));
    assert!(
        text.starts_with("lockstep: /proc/lockstep: cannot make the folder"),
        "{text}"
    );
}

#[test]
fn a_decoder_that_fails_midway_ends_sampling_not_the_program() {
    let text = failing("cuptiPmSamplingDecodeData=999");
    assert!(
        text.starts_with(
            "lockstep: sampling of GPU-face0000-0000-0000-0000-000000000000 ends: decoding samples"
        ),
        "{text}"
    );
}

#[test]
fn an_exact_mode_that_is_refused_still_has_a_time_line() {
    let mut bench = Bench::new();
    let metadata =
        bench.metadata("mode = \"exact\"\ninterval = \"1 ms\"\ncounters = [\"inst_executed\"]\n");
    bench.set("FAKE_GPU_FAIL", "cuptiRangeProfilerEnable=35");
    let error = bench.run_well(STEPS);
    assert_eq!(error.lines().count(), 1, "{error}");
    let collected = bench.collect(&metadata);
    assert_eq!(collected.rows.launches.len(), 5);
    assert!(
        collected
            .rows
            .launches
            .iter()
            .all(|row| row.counters[0].is_none())
    );
}

#[test]
fn nothing_is_published_where_the_metadata_is_wrong() {
    let mut bench = Bench::new();
    bench.set("LOCKSTEP_SAMPLE_METADATA", "/nonexistent.toml");
    let error = bench.run_well(STEPS);
    assert!(
        error.starts_with("lockstep: /nonexistent.toml: cannot read the metadata file"),
        "{error}"
    );
    assert!(bench.collect(&Metadata::default()).rows.launches.is_empty());
}
