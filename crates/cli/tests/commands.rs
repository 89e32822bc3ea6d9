//! What the command says when nothing is simulated.

mod support;

use support::Folder;

#[test]
fn help_names_every_command() {
    let said = Folder::new().run(&["--help"]);
    assert_eq!(said.code, Some(0));
    for command in [
        "run", "kernel", "verify", "topology", "disasm", "gpus", "doctor",
    ] {
        assert!(
            said.out.contains(&format!("\n  {command} ")),
            "{command} in {}",
            said.out
        );
    }
}

#[test]
fn gpus_lists_the_catalogue_and_shows_sources() {
    let folder = Folder::new();
    let said = folder.run(&["gpus"]);
    for name in ["h200", "h100", "a100", "v100", "rtx2060"] {
        assert!(
            said.out.lines().any(|line| line.starts_with(name)),
            "{}",
            said.out
        );
    }
    let said = folder.run(&["gpus", "show", "a100"]);
    assert!(said.out.contains("sms = 108  # [spec]"), "{}", said.out);
    let said = folder.run(&["gpus", "show", "a1000"]);
    assert!(
        said.code == Some(2) && said.err.contains("did you mean `a100`?"),
        "{said:?}"
    );
}

#[test]
fn a_wrong_setting_is_refused_before_anything_runs() {
    let said = Folder::new().run(&["run", "--set", "l2.hitlatency=3", "--", "true"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.contains("did you mean `l2.hit-latency`?"),
        "{said:?}"
    );
}

#[test]
fn doctor_says_what_works_and_what_is_missing() {
    let said = Folder::new().run(&["doctor"]);
    assert!(said.out.contains("[ok  ] shared memory"), "{}", said.out);
    assert!(said.out.contains("nvcc"), "{}", said.out);
}

#[test]
fn topology_shows_parts_and_links() {
    let folder = Folder::new();
    let said = folder.run(&["topology", "--gpu", "h200"]);
    assert!(
        said.code == Some(0) && said.out.contains("dispatcher") && said.out.contains("132"),
        "{said:?}"
    );
    let said = folder.run(&["topology", "--dot"]);
    assert!(said.out.contains("digraph"), "{said:?}");
}

/// Runs a command whose outputs nobody reads; how it ended, and what it said on standard error if
/// that was left open.
fn unread(arguments: &[&str], close_errors: bool) -> (Option<i32>, String) {
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    let folder = Folder::new();
    let mut command = folder.lockstep();
    command.args(arguments).stdout(closed());
    if close_errors {
        command.stderr(closed());
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn a_reader_that_stops_early_is_no_fault() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/computes_correctly"
    );
    let mut kernels: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "ptx"))
        .collect();
    kernels.sort();
    let kernel = kernels.first().unwrap().to_str().unwrap();
    for arguments in [
        &["topology"][..],
        &["topology", "--dot"],
        &["gpus"],
        &["gpus", "show", "h200"],
        &["counters"],
        &["doctor"],
        &["disasm", kernel],
        &["--help"],
    ] {
        let (code, said) = unread(arguments, false);
        let doctor = arguments == ["doctor"] && code == Some(1);
        assert!(code == Some(0) || doctor, "{arguments:?}: {code:?} {said}");
        assert_eq!(said, "", "{arguments:?}");
    }
    // What is wrong is still told by the exit code, also where nobody hears the sentence.
    assert_eq!(unread(&["gpus", "show", "a1000"], true).0, Some(2));
    assert_eq!(unread(&["run", "--", "true"], true).0, Some(0));
}
