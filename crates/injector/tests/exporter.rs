//! Programs, a sampler and its endpoint, killed and started again.

mod support;

use std::process::Child;

use support::daemon::{Daemon, page, program_of_user};
use support::{Bench, command, text};

/// A sampler that already samples.
fn sampler(bench: &Bench) -> Daemon {
    let daemon = Daemon::start(bench, &["--prometheus", "127.0.0.1:0", "--ignore-dcgm"]);
    daemon.wait_for("it samples", |page| {
        page::sum(page, "lockstep_sampled_seconds_total") > 0.0
    });
    daemon
}

/// A program of a job.
fn start(bench: &Bench, job: &str, kernel: &str) -> Child {
    let launch = format!("launch 0 7 {kernel} 100 128 10 20000000 5");
    let mut child = program_of_user(bench, &["context 0", &launch, "sync"]);
    child.env("SLURM_JOB_ID", job).env("SLURM_PROCID", "1");
    child.spawn().unwrap()
}

/// Warps that a job has launched, by the page.
fn warps(page: &str, job: &str) -> f64 {
    let label = format!("hpc_job=\"{job}\",rank=\"1\"");
    let all = page::values(page).into_iter();
    all.filter(|(key, _)| {
        key.starts_with("lockstep_gpu_warps_launched_total") && key.contains(&label)
    })
    .map(|(_, value)| value)
    .sum()
}

#[test]
fn jobs_are_counted_over_the_end_of_the_exporter() {
    let mut bench = Bench::new();
    let shared = bench.folder.join("device");
    bench.set("FAKE_GPU_SHARED", shared.to_str().unwrap());
    let daemon = sampler(&bench);
    assert!(start(&bench, "99", "first").wait().unwrap().success());
    daemon.wait_for("the first job", |page| warps(page, "99") == 2000.0);
    daemon.kill();
    let daemon = sampler(&bench);
    let page = daemon.wait_for("what was counted before", |page| warps(page, "99") > 0.0);
    assert_eq!(
        warps(&page, "99"),
        2000.0,
        "neither forgotten nor counted twice"
    );
    assert!(start(&bench, "100", "second").wait().unwrap().success());
    let page = daemon.wait_for("the second job", |page| warps(page, "100") == 2000.0);
    assert_eq!(warps(&page, "99"), 2000.0);
    assert_eq!(page::sum(&page, "lockstep_records_lost_total"), 0.0);
    assert_eq!(page::sum(&page, "lockstep_losses_total"), 0.0);
    daemon.kill();
    bench.no_complaints();
}

#[test]
fn an_open_address_is_refused_with_a_sentence() {
    let bench = Bench::new();
    let output = command(&bench, &["sampled", "--prometheus", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("0.0.0.0:0 is reachable from other machines"),
        "{said}"
    );
    assert!(said.contains("--tls-certificate"), "{said}");
}
