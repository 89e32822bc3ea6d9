//! The element library for the Structural Simulation Toolkit, built and run where SST is found (`SST_HOME` or `PATH`).

use std::path::Path;
use std::process::Command;

/// What the check ends with where something that it needs is missing.
const MISSING: i32 = 77;

#[test]
fn inside_sst_every_cycle_is_that_of_lockstep_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let test = std::env::current_exe().unwrap();
    let library = test.parent().unwrap();
    let checked = Command::new("python3")
        .arg(root.join("sst/check.py"))
        .arg("--embed")
        .arg(library)
        .output()
        .expect("python3");
    let out = String::from_utf8_lossy(&checked.stdout);
    let err = String::from_utf8_lossy(&checked.stderr);
    match checked.status.code() {
        Some(MISSING) => assert!(out.starts_with("skipped: "), "{out}{err}"),
        code => assert_eq!(code, Some(0), "{out}{err}"),
    }
    // Shown with --nocapture: what was compared, or why nothing was.
    print!("{out}");
}
