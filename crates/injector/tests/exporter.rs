//! Programs, a sampler and its endpoint, killed and started again.

#[path = "../../exporter/tests/support/page.rs"]
mod page;
mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use support::{Bench, command, program, text};

/// A sampler that serves.
struct Daemon {
    child: Child,
    url: String,
}

impl Daemon {
    fn start(bench: &Bench) -> Self {
        let arguments = ["sampled", "--prometheus", "127.0.0.1:0", "--ignore-dcgm"];
        let mut child = command(bench, &arguments).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line.trim().strip_prefix("figures are at ");
        let url = url
            .unwrap_or_else(|| panic!("no address: {line}"))
            .to_owned();
        let daemon = Self { child, url };
        daemon.wait_for("it samples", |page| {
            page::sum(page, "lockstep_sampled_seconds_total") > 0.0
        });
        daemon
    }

    /// Scrapes until the page is as it should be, and fails with what it was.
    fn wait_for(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let begun = instant();
        loop {
            let (_, page) = page::get(&self.url, "");
            if is_there(&page) {
                return page;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{what}: {page}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A program of a job, with nothing but the injector in its environment.
fn start(bench: &Bench, job: &str, kernel: &str) -> Child {
    let mut child = Command::new(program());
    child.args([
        "context 0",
        &format!("launch 0 7 {kernel} 100 128 10 20000000 5"),
        "sync",
    ]);
    let ours = ["LOCKSTEP_SAMPLE_SEGMENTS", "LOCKSTEP_SAMPLE_LOCKS"];
    let environment = bench.environment.iter();
    child.envs(
        environment
            .filter(|(name, _)| !ours.contains(&name.as_str()))
            .cloned(),
    );
    child
        .env("LOCKSTEP_SAMPLE_BASE", bench.folder.join("base"))
        .env("SLURM_JOB_ID", job)
        .env("SLURM_PROCID", "1");
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
    let daemon = Daemon::start(&bench);
    assert!(start(&bench, "99", "first").wait().unwrap().success());
    daemon.wait_for("the first job", |page| warps(page, "99") == 2000.0);
    daemon.kill();
    let daemon = Daemon::start(&bench);
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

#[allow(clippy::disallowed_methods, reason = "the time that a test may take")]
fn instant() -> Instant {
    Instant::now()
}
