//! Shared objects that carry a CUDA runtime of their own.

mod support;

use support::programs::{adder, check_status, command, compile, nvcc, run, text};

const PLUGIN: &[&str] = &["-shared", "-Xcompiler", "-fPIC"];

#[test]
fn an_object_that_is_loaded_later_is_served_from_its_first_constructor_on() {
    let Some(plugin) = compile("plugin.cu", "libplugin_loaded.so", PLUGIN) else {
        return;
    };
    let program = compile("loads_plugin.cpp", "loads_plugin", &["-cudart", "none"]).unwrap();
    let simulator = adder();
    let output = command(&program, &simulator).arg(plugin).output().unwrap();
    check_status(&output, 0);
    assert_eq!(text(&output), "1 device, 131\n");
    assert!(simulator.log().contains(&"ModuleLoad of 1".to_string()));
}

#[test]
fn an_object_that_the_program_is_linked_with_is_served() {
    let Some(plugin) = compile("plugin.cu", "libplugin_linked.so", PLUGIN) else {
        return;
    };
    let directory = plugin.parent().unwrap().display().to_string();
    let options = [
        "-cudart",
        "none",
        "-L",
        &directory,
        "-lplugin_linked",
        "-Xlinker",
        &format!("-rpath={directory}"),
    ];
    let program = compile("linked_plugin.cpp", "linked_plugin", &options).unwrap();
    let output = run(&program, &adder());
    check_status(&output, 0);
    assert_eq!(text(&output), "1 device, 131\n");
}

#[test]
fn a_shared_runtime_that_the_program_insists_on_is_redirected() {
    let Some(compiler) = nvcc() else {
        println!("skipped: no nvcc in .lockstep/venv");
        return;
    };
    // The vendor's library, found by a path in the program that comes before the environment's.
    let libraries = compiler.ancestors().nth(2).unwrap().join("lib");
    let search = format!("-rpath={}", libraries.display());
    let options = [
        "-cudart",
        "shared",
        "-Xlinker",
        "--disable-new-dtags",
        "-Xlinker",
        &search,
    ];
    let program = compile("vector_add.cu", "vector_add_insisting", &options).unwrap();
    let loaded = std::process::Command::new("ldd").arg(&program).output();
    let loaded = String::from_utf8(loaded.unwrap().stdout).unwrap();
    assert!(
        loaded.contains(&libraries.display().to_string()),
        "{loaded}"
    );
    let simulator = adder();
    let output = run(&program, &simulator);
    check_status(&output, 0);
    assert_eq!(text(&output), "no error\n0 wrong\n");
    assert!(simulator.log().contains(&"ModuleLoad of 1".to_string()));
}

#[test]
fn the_oldest_launch_calls_still_launch() {
    let Some(program) = compile("legacy_launch.cu", "legacy_launch", &["-ldl"]) else {
        return;
    };
    let simulator = adder();
    check_status(&run(&program, &simulator), 0);
    let log = simulator.log();
    assert!(
        log.contains(&"Launch [4, 1, 1] [32, 1, 1] shared 0 Legacy".to_string()),
        "{log:?}"
    );
}
