//! Unmodified programs, with the runtime linked in and with the shared one.

mod support;

use support::programs::{adder, check_status, compile, run, text};

const VECTOR_ADD: &[&str] = &[
    "PrimaryContextRetain",
    "Allocate 4000",
    "Allocate 4000",
    "Allocate 4000",
    "Copy 4000 bytes host to window Legacy, blocking",
    "Copy 4000 bytes host to window Legacy, blocking",
    "ModuleLoad of 1",
    "ModuleFunction _Z3addPKfS0_Pfi",
    "Launch [4, 1, 1] [256, 1, 1] shared 0 Legacy",
    "Copy 4000 bytes window to host Legacy, blocking",
    "Free",
    "Free",
    "Free",
];

fn check(name: &str, options: &[&str], expected: &[&str]) {
    let Some(program) = compile("vector_add.cu", name, options) else {
        return;
    };
    let simulator = adder();
    let output = run(&program, &simulator);
    check_status(&output, 0);
    assert_eq!(text(&output), "no error\n0 wrong\n");
    assert_eq!(simulator.log(), expected);
}

#[test]
fn a_static_runtime_is_served() {
    check("vector_add_static", &[], VECTOR_ADD);
}

#[test]
fn a_shared_runtime_is_served() {
    check("vector_add_shared", &["-cudart", "shared"], VECTOR_ADD);
}
