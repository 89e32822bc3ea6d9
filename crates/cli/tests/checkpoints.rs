//! A run that is killed goes on from its checkpoint, and nothing of it can be told from its answer.

mod support;

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::{Folder, Said, build_cuda};

const SOURCE: &str = include_str!("sources/resumed.cu");
/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Launches of a run: some seconds of the host.
const LAUNCHES: &str = "40";

/// A folder with the program in it; nothing where it cannot be built.
fn prepared() -> Option<Folder> {
    let folder = Folder::new();
    std::fs::write(folder.0.join("input"), "20").unwrap();
    build_cuda(&folder, SOURCE, &["-arch=sm_90"]).then_some(folder)
}

/// Starts a run that is saved often.
fn start(folder: &Folder, out: &str, threads: &str) -> Child {
    let words = [
        "run",
        "--checkpoint-every",
        "20ms",
        "--threads",
        threads,
        "--out",
    ];
    let mut command = folder.lockstep();
    command.args(words).arg(out);
    command.args(["--", "./program", LAUNCHES, "input"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Waits until something holds of the run, or it ends; whether it goes on.
#[allow(clippy::disallowed_methods, reason = "a test that waits")]
fn goes_on_until(child: &mut Child, what: &str, mut holds: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if holds() {
            return true;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs until the checkpoint was written so many times, and kills it then.
fn killed_after(folder: &Folder, out: &str, threads: &str, checkpoints: usize) -> bool {
    let child = start(folder, out, threads);
    kill_after(child, &folder.0.join(out), checkpoints)
}

fn kill_after(mut child: Child, out: &Path, checkpoints: usize) -> bool {
    use std::os::unix::fs::MetadataExt;
    let state = out.join("checkpoint.state");
    let form = || {
        state
            .metadata()
            .ok()
            .map(|found| (found.ino(), found.mtime_nsec()))
    };
    let (mut last, mut seen) = (form(), 0);
    let alive = goes_on_until(&mut child, "checkpoints are written", || {
        let now = form();
        if now != last && now.is_some() {
            seen += 1;
            last = now;
        }
        seen >= checkpoints
    });
    child.kill().unwrap();
    child.wait().unwrap();
    alive
}

/// Digest and rows of a run that has ended.
fn answer(folder: &Folder, out: &str) -> (String, String) {
    let path = folder.0.join(out);
    let summary = std::fs::read_to_string(path.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["state"], "finished", "{summary}");
    let rows = std::fs::read_to_string(path.join("kernels.csv")).unwrap();
    (summary["digest"].as_str().unwrap().to_string(), rows)
}

fn resumed(folder: &Folder, out: &str, more: &[&str]) -> Said {
    folder.run(&[&["resume", out], more].concat())
}

#[test]
fn a_killed_run_goes_on_to_the_answer_of_one_that_was_not() {
    let Some(folder) = prepared() else {
        return;
    };
    let words = [
        "run",
        "--threads",
        "2",
        "--out",
        "whole",
        "--",
        "./program",
        LAUNCHES,
        "input",
    ];
    let whole = folder.run(&words);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    let expected = answer(&folder, "whole");
    let printed = |said: &Said| {
        let lines = said.out.lines().filter(|line| line.starts_with("launch "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    // Saved and not killed: nothing can be seen of it, and nothing of it stays.
    let mut child = start(&folder, "saved", "1");
    assert!(!goes_on_until(&mut child, "the run ends", || false));
    assert_eq!(answer(&folder, "saved"), expected);
    assert!(!folder.0.join("saved/checkpoint.state").exists());
    for (number, checkpoints) in [1, 2, 4].into_iter().enumerate() {
        let out = format!("out-{number}");
        let (before, after) = [("1", "2"), ("2", "1")][number % 2];
        assert!(
            killed_after(&folder, &out, before, checkpoints),
            "{out} ended early"
        );
        if number == 2 {
            // Killed again, further on.
            let mut command = folder.lockstep();
            command
                .args(["resume", &out])
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            assert!(kill_after(
                command.spawn().unwrap(),
                &folder.0.join(&out),
                2
            ));
        }
        let said = resumed(&folder, &out, &["--threads", after]);
        assert_eq!(said.code, Some(0), "{out}: {said:?}");
        assert_eq!(answer(&folder, &out), expected, "{out}");
        assert_eq!(printed(&said), printed(&whole), "{out}");
        assert!(!folder.0.join(&out).join("checkpoint.log").exists());
    }
}

#[test]
fn a_checkpoint_that_does_not_fit_is_refused() {
    let Some(folder) = prepared() else {
        return;
    };
    assert!(killed_after(&folder, "out", "2", 2), "the run ended early");
    let out = folder.0.join("out");
    let kernels = std::fs::read(out.join("kernels.csv")).unwrap();
    let refused = |what: &str| {
        let said = resumed(&folder, "out", &[]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(what), "{said:?}");
        // What the run left is still there.
        assert_eq!(std::fs::read(out.join("kernels.csv")).unwrap(), kernels);
    };
    for (name, reason) in [
        ("checkpoint.state", "the file was cut or changed"),
        ("checkpoint.log", "the file was changed"),
        ("checkpoint.pages", "the file was changed"),
    ] {
        let path = out.join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        // A byte of each page: older forms of a page are not looked at.
        for byte in bytes.iter_mut().skip(40).step_by(4096) {
            *byte ^= 1;
        }
        std::fs::write(&path, &bytes).unwrap();
        refused(reason);
        refused(&format!("{name}: byte"));
        std::fs::write(&path, &whole[..30]).unwrap();
        refused(name);
        std::fs::remove_file(&path).unwrap();
        refused("No such file");
        std::fs::write(&path, &whole).unwrap();
    }
    // A program that does something else.
    let input = folder.0.join("input");
    std::fs::write(&input, "21").unwrap();
    let said = resumed(&folder, "out", &[]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.err
            .contains("differs: before the checkpoint, thread 0: "),
        "{said:?}"
    );
    // With the old one it goes on.
    std::fs::write(&input, "20").unwrap();
    let said = resumed(&folder, "out", &["--quiet"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = resumed(&folder, "out", &[]);
    assert!(said.err.contains("there is no checkpoint"), "{said:?}");
}

#[test]
fn what_cannot_be_saved_is_refused() {
    let folder = Folder::new();
    for more in [
        "--gpus=2",
        "--series=1000",
        "--lines",
        "--check=memory",
        "--record=full",
    ] {
        let said = folder.run(&["run", "--checkpoint-every", "1s", more, "--", "true"]);
        assert_eq!(said.code, Some(2), "{more}: {said:?}");
        assert!(said.err.contains("cannot be saved"), "{more}: {said:?}");
    }
    let said = folder.run(&["run", "--checkpoint-every", "often", "--", "true"]);
    assert!(said.err.contains("such as `60s`"), "{said:?}");
}
