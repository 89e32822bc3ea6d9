//! `packaging/action/run_tests.sh` with a stand-in for the command, and what its neighbours name.

use crate::process::{self, Output};
use crate::project;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Says how it was called, then does what it was given.
const STAND_IN: &str =
    "#!/bin/sh\necho \"$@\" >&2\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A folder with an archive of the shape that the package has.
fn archive(name: &str) -> Folder {
    let folder =
        std::env::temp_dir().join(format!("lockstep-recipe-{}-{name}", std::process::id()));
    let bin = folder.join("lockstep-0-linux/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("lockstep"), STAND_IN).unwrap();
    process::run(
        process::command("chmod")
            .arg("+x")
            .arg(bin.join("lockstep")),
    )
    .unwrap();
    let mut tar = process::command("tar");
    tar.arg("-C").arg(&folder).arg("-czf");
    process::run(
        tar.arg(folder.join("archive.tar.gz"))
            .arg("lockstep-0-linux"),
    )
    .unwrap();
    Folder(folder)
}

fn run(folder: &Path, words: &[&str]) -> Output {
    let script = project::root().join("packaging/action/run_tests.sh");
    let mut command = process::command(script);
    command
        .args(words)
        .current_dir(folder)
        .env("TMPDIR", folder)
        .env("GITHUB_STEP_SUMMARY", folder.join("step.md"));
    process::capture(&mut command, Duration::from_secs(120)).unwrap()
}

#[test]
fn tests_run_from_an_archive_and_their_exit_code_is_passed_on() {
    let folder = archive("runs");
    let tests = ["--gpu", "a100", "--", "sh", "-c", "echo tested; exit 7"];
    let output = run(
        &folder.0,
        &[&["--archive", "archive.tar.gz", "--sha256", ""], &tests[..]].concat(),
    );
    assert_eq!((output.code, output.out.as_str()), (Some(7), "tested\n"));
    let called = "run --gpu a100 --mode functional --out lockstep-results --overwrite -- sh -c";
    assert!(output.err.starts_with(called), "{}", output.err);
    let told = std::fs::read_to_string(folder.0.join("step.md")).unwrap();
    assert!(
        told.contains("exit code 7") && told.contains(called),
        "{told}"
    );
    let left: Vec<_> = std::fs::read_dir(&folder.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("tmp."))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_cannot_be_run_is_refused_with_a_sentence() {
    let folder = archive("refuses");
    let wrong = "0000000000000000000000000000000000000000000000000000000000000000";
    for (words, sentence) in [
        (&["--", "true"][..], "--archive names no file"),
        (&["--archive", "archive.tar.gz"], "no tests after --"),
        (&["--archive", "absent", "--", "true"], "absent is no file"),
        (&["--archive"], "needs a value"),
        (&["--speed", "high", "--", "true"], "unknown option --speed"),
        (
            &["--archive", "https://example.org/a.tar.gz", "--", "true"],
            "needs its --sha256",
        ),
        (
            &["--archive", "http://example.org/a.tar.gz", "--", "true"],
            "by https",
        ),
        (
            &[
                "--archive",
                "archive.tar.gz",
                "--sha256",
                wrong,
                "--",
                "true",
            ],
            "not the archive that was meant",
        ),
    ] {
        let output = run(&folder.0, words);
        assert_eq!(output.code, Some(2), "{words:?}: {}", output.err);
        assert!(output.err.contains(sentence), "{words:?}: {}", output.err);
    }
}

/// The image and the action use options, files and names that there are.
#[test]
fn recipes_name_what_there_is() {
    let read = |name: &str| std::fs::read_to_string(project::root().join(name)).unwrap();
    let action = read("packaging/action/action.yml");
    for words in [
        "cargo xtask package --out",
        "run_tests.sh",
        "lockstep-*-linux.tar.gz",
    ] {
        assert!(action.contains(words), "{words}");
    }
    let image = read("packaging/Containerfile");
    assert!(image.contains("cargo xtask package --check"));
    assert!(image.contains("target/package/lockstep-*-linux /opt/lockstep"));
    let ignored = read(".dockerignore");
    for folder in read(".gitignore")
        .lines()
        .filter_map(|line| line.strip_prefix('/'))
    {
        assert!(ignored.lines().any(|line| line == folder), "{folder}");
    }
}
