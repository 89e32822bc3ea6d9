//! `lockstep correlate` on programs made to crash, hang and compute wrongly.
//!
//! Scripts stand in for programs: what is tested is how a run is judged, not what a GPU does.

mod support;

use support::{Folder, Said};

const SETS: &str =
    "[[family]]\nname = \"all\"\nset = \"development\"\nprograms = [\"good\", \"bad\"]\n";
const WORKLOADS: &str = "[[program]]\nname = \"good\"\n[[program]]\nname = \"bad\"\n";
const COLD: &str =
    "# date: 2026-11-15\nprogram,size,launch,kernel,grid,block,registers,shared,cycles\n";

/// A program that passes and launches nothing, beside one with this script.
fn correlate(script: &str, options: &[&str]) -> (Folder, Said) {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.0.join("bin")).expect("folder");
    folder.script("bin/good", "#!/bin/sh\necho PASS good all well\n");
    folder.script("bin/bad", script);
    for (name, text) in [
        ("sets.toml", SETS),
        ("workloads.toml", WORKLOADS),
        ("cold.csv", COLD),
    ] {
        std::fs::write(folder.0.join(name), text).expect("file");
    }
    let mut arguments = vec![
        "correlate",
        "--gpu",
        "h200",
        "--hardware",
        "cold.csv",
        "--sets",
        "sets.toml",
        "--workloads",
        "workloads.toml",
        "--binaries",
        "bin",
        "--quick",
        "--jobs",
        "1",
        "--only",
        "bad",
    ];
    arguments.extend(options);
    let said = folder.run(&arguments);
    (folder, said)
}

fn check(script: &str, options: &[&str], wanted: &str) {
    let (folder, said) = correlate(script, options);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out
            .contains("no headline: 1 of 1 programs cannot be compared"),
        "{said:?}"
    );
    assert!(said.out.contains(wanted), "{said:?}");
    assert!(!said.out.contains("\nheadline:"), "{said:?}");
    let page = std::fs::read_to_string(folder.0.join("lockstep-out/correlate-h200/index.html"))
        .expect("page");
    assert!(page.contains("No headline"), "{page}");
}

#[test]
fn a_crash_voids_the_headline() {
    check("#!/bin/sh\nkill -SEGV $$\n", &[], "bad/default crashed: ");
}

#[test]
fn an_exit_code_voids_the_headline() {
    check(
        "#!/bin/sh\necho PASS bad so it says\nexit 3\n",
        &[],
        "bad/default crashed: exit code 3",
    );
}

#[test]
fn a_hang_voids_the_headline() {
    check(
        "#!/bin/sh\nwhile :; do sleep 1; done\n",
        &["--limit", "2"],
        "bad/default no end after 2 s",
    );
}

#[test]
fn a_wrong_result_voids_the_headline() {
    check(
        "#!/bin/sh\necho FAIL bad 3 wrong\nexit 1\n",
        &[],
        "bad/default computed wrongly: FAIL bad 3 wrong",
    );
}

#[test]
fn silence_voids_the_headline() {
    check(
        "#!/bin/sh\ntrue\n",
        &[],
        "bad/default computed wrongly: it gave no verdict",
    );
}

#[test]
fn other_launches_than_hardwares_void_the_headline() {
    check(
        "#!/bin/sh\necho PASS bad all well\n",
        &[],
        "bad/default launches differ: hardware has no measurement of it",
    );
}

#[test]
fn a_program_that_is_not_built_voids_the_headline() {
    let folder = Folder::new();
    for (name, text) in [
        ("sets.toml", SETS),
        ("workloads.toml", WORKLOADS),
        ("cold.csv", COLD),
    ] {
        std::fs::write(folder.0.join(name), text).expect("file");
    }
    let said = folder.run(&[
        "correlate",
        "--hardware",
        "cold.csv",
        "--sets",
        "sets.toml",
        "--workloads",
        "workloads.toml",
        "--binaries",
        "nowhere",
        "--quick",
    ]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("bad/default not built"), "{said:?}");
}

#[test]
fn counts_alone_are_compared_without_time() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.0.join("bin")).expect("folder");
    folder.script("bin/good", "#!/bin/sh\necho PASS good all well\n");
    let launch = "good,large,0,add,\"(1, 1, 1)\",\"(32, 1, 1)\",16,0,100\n";
    for (name, text) in [
        ("sets.toml", SETS),
        (
            "workloads.toml",
            "[[program]]\nname = \"good\"\nlarge = [\"9\"]\n",
        ),
        ("cold.csv", &format!("{COLD}{launch}")),
    ] {
        std::fs::write(folder.0.join(name), text).expect("file");
    }
    let said = folder.run(&[
        "correlate",
        "--counts",
        "--hardware",
        "cold.csv",
        "--sets",
        "sets.toml",
        "--workloads",
        "workloads.toml",
        "--binaries",
        "bin",
    ]);
    assert_eq!(said.code, Some(1), "{said:?}");
    // What hardware did not run (`bad`, other sizes) is not asked for.
    let row = "good,large,false,0,0,0,\"launches differ: 1 on hardware, 0 simulated\"";
    let table = std::fs::read_to_string(folder.0.join("lockstep-out/counts-h200/counts.csv"))
        .expect("table");
    assert_eq!(table.lines().skip(1).collect::<Vec<_>>(), [row], "{said:?}");
    assert!(said.out.contains("1 programs differ"), "{said:?}");
}

#[test]
fn scripts_ask_for_the_rules_of_the_protocol() {
    let folder = Folder::new();
    let ask = |question: &str, text: &str| {
        use std::io::Write;
        use std::process::Stdio;
        let mut child = folder
            .lockstep()
            .args(["figures", question])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("lockstep");
        let mut input = child.stdin.take().expect("standard input");
        input.write_all(text.as_bytes()).expect("written");
        drop(input);
        let output = child.wait_with_output().expect("output");
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (good, out, _) = ask("errors", "name,simulated,hardware\nadd,150,100\n");
    assert!(good && out.contains("\"error\": 0.5"), "{out}");
    let (good, _, err) = ask("errors", "name,simulated,hardware\nadd,150,\n");
    assert!(!good, "{err}");
    assert!(
        err.contains("standard input: line 2: hardware has no value of `add`"),
        "{err}"
    );
    let (good, out, _) = ask("kernel-names", "_Z9vectorAddPKfS0_Pfi\nadd(int)\n");
    assert!(good);
    assert_eq!(out, "vectorAdd\nadd\n");
}
