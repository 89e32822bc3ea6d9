//! A run that is killed or stopped leaves a folder that opens, whenever that happens.

mod support;

use rustix::process::Signal;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;
use support::{Folder, SCALE, signal, wait_until};

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts more launches than there is time for.
fn start(folder: &Folder) -> Child {
    std::fs::write(folder.0.join("scale.ptx"), SCALE).unwrap();
    let words = "kernel scale.ptx --grid 64 --block 128 --arg f32[8192]=iota --arg f32:1.5 --arg u32:8192 \
                 --repeat 20000 --threads 1 --series 500 --out out";
    let mut command = folder.lockstep();
    command.args(words.split_whitespace());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn ended(child: &mut Child) -> ExitStatus {
    let mut status = None;
    wait_until("the run ends", PATIENCE, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

fn rows(out: &Path) -> usize {
    let text = std::fs::read_to_string(out.join("kernels.csv")).unwrap_or_default();
    text.lines().count().saturating_sub(1)
}

#[test]
fn a_killed_run_leaves_a_folder_that_opens() {
    type Moment = (&'static str, fn(&Path) -> bool);
    let moments: [Moment; 4] = [
        ("its first summary", |out| out.join("summary.json").exists()),
        ("its first table", |out| out.join("kernels.csv").exists()),
        ("three launches", |out| rows(out) >= 3),
        ("the first block of a series", |out| {
            let blocks = out.join("series.blocks").metadata();
            rows(out) > 3 && blocks.is_ok_and(|about| about.len() > 4096)
        }),
    ];
    for (what, reached) in moments {
        let folder = Folder::new();
        let out = folder.0.join("out");
        let mut child = start(&folder);
        wait_until(what, PATIENCE, || reached(&out));
        let known = rows(&out);
        signal(&child, Signal::KILL);
        ended(&mut child);
        let said = folder.run(&["report", "out"]);
        assert_eq!(said.code, Some(0), "{what}: {said:?}");
        assert!(said.out.contains("the run is partial"), "{what}: {said:?}");
        if known > 0 {
            assert!(said.out.contains("scale"), "{what}: {said:?}");
            assert!(rows(&out) >= known, "{what}");
        }
        let series = folder.run(&["export", "out", "--table", "series", "--to", "csv"]);
        if what == "the first block of a series" {
            assert_eq!(series.code, Some(0), "{series:?}");
            assert!(series.out.lines().count() > 10, "{series:?}");
        }
    }
}

#[test]
fn a_run_that_is_interrupted_ends_with_all_it_has() {
    let folder = Folder::new();
    let out = folder.0.join("out");
    let mut child = start(&folder);
    wait_until("three launches", PATIENCE, || rows(&out) >= 3);
    signal(&child, Signal::INT);
    assert_eq!(ended(&mut child).code(), Some(130));
    let summary = std::fs::read_to_string(out.join("summary.json")).unwrap();
    for field in [
        "\"state\": \"stopped\"",
        "\"partial\": true",
        "\"digest\": \"",
    ] {
        assert!(summary.contains(field), "{field}: {summary}");
    }
    // The last tables have taken the place of those that grew.
    let series = std::fs::read(out.join("series.blocks")).unwrap();
    assert_eq!(series[..10], *b"LKSERIES\x01\x01", "it is marked as whole");
    assert!(out.join("stats.csv").exists() && rows(&out) >= 3);
    let said = folder.run(&["report", "out"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("The run stopped"), "{said:?}");
}
