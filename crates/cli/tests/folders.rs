//! What a run leaves in its folder, however it ends, and where it leaves nothing.

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::{Folder, Said, eventually, signal};

const DISK_FULL: i32 = 74;
const OUT_OF_MEMORY: i32 = 71;

/// A script that says that it is there and then waits.
const WAITS: &str =
    "#!/bin/sh\necho ready > ready\nsleep 60 2> /dev/null & echo $! > sleeper\nwait\n";

fn summary(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("summary.json")).unwrap()
}

fn has(text: &str, field: &str, value: &str) -> bool {
    text.contains(&format!("\"{field}\": \"{value}\""))
}

#[test]
fn a_folder_that_holds_something_is_refused_unless_told() {
    let folder = Folder::new();
    let program = folder.script("program", "#!/bin/sh\nexit 0\n");
    let out = folder.0.join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("stats.csv"), "of another run").unwrap();
    std::fs::write(out.join("thesis.tex"), "years of work").unwrap();
    let said = folder.run(&["run", "--out", "out", "--", &program]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.err.contains("not empty") && said.err.contains("--overwrite"),
        "{said:?}"
    );
    assert!(!out.join("summary.json").exists());
    for word in ["--overwrite", "--force"] {
        let said = folder.run(&["run", word, "--out", "out", "--", &program]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_ne!(
            std::fs::read(out.join("stats.csv")).unwrap(),
            b"of another run"
        );
        assert_eq!(
            std::fs::read(out.join("thesis.tex")).unwrap(),
            b"years of work"
        );
    }
}

#[test]
fn results_are_not_written_through_links() {
    let folder = Folder::new();
    let program = folder.script("program", "#!/bin/sh\nexit 0\n");
    std::fs::create_dir(folder.0.join("elsewhere")).unwrap();
    symlink("elsewhere", folder.0.join("out")).unwrap();
    let said = folder.run(&["run", "--overwrite", "--out", "out", "--", &program]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("symbolic link"), "{said:?}");
    std::fs::write(folder.0.join("precious"), "precious").unwrap();
    std::fs::create_dir(folder.0.join("planted")).unwrap();
    for name in ["summary.json", ".summary.json.part", "calls.record"] {
        symlink("../precious", folder.0.join("planted").join(name)).unwrap();
    }
    let said = folder.run(&["run", "--overwrite", "--out", "planted", "--", &program]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let precious = std::fs::read_to_string(folder.0.join("precious")).unwrap();
    assert_eq!(precious, "precious");
    assert!(!folder.0.join("planted/summary.json").is_symlink());
}

#[test]
fn a_folder_is_for_its_owner_and_says_how_far_the_run_is() {
    let folder = Folder::new();
    let program = folder.script("program", "#!/bin/sh\numask 0\ncat out/summary.json\n");
    let said = folder.run(&["run", "--quiet", "--out", "out", "--", &program]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(has(&said.out, "state", "running"), "{said:?}");
    assert!(said.out.contains("\"configuration\""), "{said:?}");
    let out = folder.0.join("out");
    assert!(has(&summary(&out), "state", "finished"));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&out), 0o700);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&out).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.file_name());
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    let expected = [
        "calls.record",
        "copies.csv",
        "kernels.csv",
        "stats.csv",
        "summary.json",
    ];
    assert_eq!(names, expected, "nothing but results is left");
}

#[test]
fn a_program_that_does_not_start_leaves_a_summary_that_says_so() {
    let folder = Folder::new();
    let program = folder.script("program", "#!/no/such/interpreter\n");
    let said = folder.run(&["run", "--out", "out", "--", &program]);
    assert_eq!(said.code, Some(126), "{said:?}");
    let text = summary(&folder.0.join("out"));
    assert!(has(&text, "state", "failed"), "{text}");
    assert!(text.contains("does not exist"), "{text}");
}

/// A run whose program waits.
fn start_waiting(folder: &Folder) -> Child {
    let program = folder.script("program", WAITS);
    let child = folder
        .lockstep()
        .args(["run", "--out", "out", "--", &program])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(eventually(|| folder.0.join("sleeper").exists()));
    child
}

#[test]
fn a_run_that_is_stopped_says_so_and_leaves_no_process() {
    let folder = Folder::new();
    let child = start_waiting(&folder);
    signal(&child, rustix::process::Signal::INT);
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    let text = summary(&folder.0.join("out"));
    assert!(has(&text, "state", "stopped"), "{text}");
    assert!(folder.0.join("out/stats.csv").exists());
    let sleeper = std::fs::read_to_string(folder.0.join("sleeper")).unwrap();
    let sleeper = format!("/proc/{}", sleeper.trim());
    assert!(
        eventually(|| !Path::new(&sleeper).exists()),
        "what the program started is still there"
    );
    assert_eq!(folder.sockets(), Vec::<String>::new());
}

#[test]
fn a_simulator_that_is_killed_leaves_a_summary_that_says_so() {
    let folder = Folder::new();
    let child = start_waiting(&folder);
    signal(&child, rustix::process::Signal::KILL);
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, None);
    let out = folder.0.join("out");
    assert!(eventually(|| has(&summary(&out), "state", "failed")));
    assert!(summary(&out).contains("ended without warning"));
    assert!(said.err.contains("what was known is in out"), "{said:?}");
    assert!(eventually(|| folder.sockets().is_empty()));
}

/// Runs `lockstep` with a small disk at `disk`, which is copied to `kept` afterwards; `None` where
/// this machine lets nobody mount one.
fn on_small_disk(folder: &Folder, size: &str, program: &str) -> Option<Said> {
    let script = "mkdir disk && mount -t tmpfs -o size=$0 none disk || exit 99\n\
                  \"$@\"\ncode=$?\ncp -r disk kept\nexit $code\n";
    let lockstep = folder.lockstep();
    let mut command = Command::new("unshare");
    command
        .current_dir(&folder.0)
        .args(["-m", "sh", "-c", script, size])
        .arg(lockstep.get_program())
        .args([
            "run", "--record", "none", "--out", "disk/run", "--", program,
        ])
        .stdin(Stdio::null());
    for (name, value) in lockstep.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let said = Said::from(command.output().ok()?);
    if matches!(said.code, Some(1 | 99)) && !folder.0.join("kept").exists() {
        eprintln!("skipped: no file system can be mounted here: {}", said.err);
        return None;
    }
    Some(said)
}

#[test]
fn a_disk_that_is_too_small_is_found_before_the_program_runs() {
    let folder = Folder::new();
    let program = folder.script("program", "#!/bin/sh\necho it ran\n");
    let Some(said) = on_small_disk(&folder, "2m", &program) else {
        return;
    };
    assert_eq!(said.code, Some(DISK_FULL), "{said:?}");
    assert!(said.err.contains("disk is full"), "{said:?}");
    assert!(!said.out.contains("it ran"), "{said:?}");
}

#[test]
fn a_disk_that_others_fill_meanwhile_costs_nothing() {
    let folder = Folder::new();
    let fills = "#!/bin/sh\nhead -c 64M /dev/zero > disk/others 2> /dev/null\ndf disk\nexit 0\n";
    let program = folder.script("program", fills);
    let Some(said) = on_small_disk(&folder, "12m", &program) else {
        return;
    };
    assert!(said.out.contains("100%"), "the disk was filled: {said:?}");
    assert_eq!(said.code, Some(0), "{said:?}");
    let text = summary(&folder.0.join("kept/run"));
    assert!(has(&text, "state", "finished"), "{text}");
    let statistics = std::fs::read_to_string(folder.0.join("kept/run/stats.csv")).unwrap();
    assert!(statistics.lines().count() > 100);
}

#[test]
fn too_little_memory_is_found_before_the_program_runs() {
    let folder = Folder::new();
    let program = folder.script("program", "#!/bin/sh\necho it ran\n");
    let lockstep = folder.lockstep();
    let mut command = Command::new("sh");
    command
        .current_dir(&folder.0)
        .args(["-c", "ulimit -d 60000; exec \"$0\" \"$@\""])
        .arg(lockstep.get_program())
        .args(["run", "--out", "out", "--", &program])
        .envs(
            lockstep
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    let said = Said::from(command.output().unwrap());
    assert_eq!(said.code, Some(OUT_OF_MEMORY), "{said:?}");
    assert!(said.err.contains("ulimit -d"), "{said:?}");
    assert!(!said.out.contains("it ran") && !folder.0.join("out").exists());
}
