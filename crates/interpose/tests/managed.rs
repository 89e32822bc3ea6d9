//! The host's own accesses to managed memory, with every means to stop them.

mod support;

use support::programs::{check_status, command, compile, text};
use support::{Knowledge, Simulator};

/// Runs the program with a means; the simulator lets all pages leave at every synchronisation.
fn run(means: &str) -> Option<(std::process::Output, Vec<String>)> {
    let name = format!("managed_access_{means}");
    let program = compile("managed_access.cu", &name, &["-std=c++17"])?;
    let simulator = Simulator::start(Knowledge {
        globals: vec![("word", 4, true)],
        pages_leave: true,
        ..Knowledge::default()
    });
    let output = command(&program, &simulator)
        .env("LOCKSTEP_HOST_FAULTS", means)
        .output()
        .unwrap();
    Some((output, simulator.log()))
}

fn check(means: &str) -> Vec<String> {
    let Some((output, log)) = run(means) else {
        return Vec::new();
    };
    check_status(&output, 0);
    assert_eq!(text(&output), "copies\nwrong 0\n", "{means}");
    log
}

/// A means that was asked for and is not to be had ends the program, with what to do.
fn refused(output: &std::process::Output, means: &str) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    let sentence = format!("lockstep: LOCKSTEP_HOST_FAULTS={means}: ");
    output.status.code() == Some(70) && said.contains(&sentence)
}

#[test]
fn an_unknown_means_is_refused() {
    if let Some((output, _)) = run("magic") {
        assert!(refused(&output, "magic"), "{output:?}");
    }
}

/// The stand-in brings eight pages back at a time, and the program reads 350 pages twice.
const LEAST: usize = 2 * (350 / 8);

fn accesses(log: &[String]) -> usize {
    log.iter()
        .filter(|line| line.starts_with("HostAccess "))
        .count()
}

#[test]
fn every_access_is_noticed_by_the_kernel() {
    let Some((output, log)) = run("kernel") else {
        return;
    };
    if refused(&output, "kernel") {
        println!("skipped: userfaultfd is not allowed here");
        return;
    }
    check_status(&output, 0);
    assert_eq!(text(&output), "copies\nwrong 0\n");
    assert!(log.contains(&"HostAccessMeans Kernel".to_string()));
    assert!(accesses(&log) > LEAST, "{}", accesses(&log));
    assert!(log.iter().any(|line| line.ends_with(" writing")));
}

#[test]
fn every_access_is_noticed_by_protection() {
    let log = check("protection");
    if log.is_empty() {
        return;
    }
    assert!(log.contains(&"HostAccessMeans Protection".to_string()));
    assert!(accesses(&log) > LEAST, "{}", accesses(&log));
    assert!(log.iter().any(|line| line.ends_with(" writing")));
}

#[test]
fn without_means_the_simulator_knows() {
    let log = check("none");
    if log.is_empty() {
        return;
    }
    assert!(log.contains(&"HostAccessMeans None".to_string()));
    assert_eq!(accesses(&log), 0);
}
