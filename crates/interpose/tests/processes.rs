//! Threads, exit handlers, children, and the end of a simulator.

mod support;

use lockstep_protocol::SOCKET_VARIABLE;
use lockstep_protocol::program::{ProgramKind, inspect};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::programs::{adder, check_status, command, compile, core_library, run, shims, text};
use support::{Knowledge, Simulator};

#[test]
fn threads_exit_handlers_and_children_are_served() {
    let Some(program) = compile("threads.cu", "threads", &["-std=c++17"]) else {
        return;
    };
    let simulator = adder();
    let output = run(&program, &simulator);
    check_status(&output, 5);
    assert_eq!(text(&output), "threads done\nat exit: 0\n");
    let log = simulator.log();
    let count = |line: &str| log.iter().filter(|other| *other == line).count();
    assert_eq!(count("Allocate 1024"), 160);
    assert_eq!(count("Allocate 77"), 1);
    assert_eq!(count("Allocate 8"), 8);
    // Every thread's last destructor ran: 160 in the loop, 8 at the end, 8 refused.
    assert_eq!(count("Free"), 176);
}

/// The simulator hangs up while the program waits; it must end at once, with a sentence.
fn check_end(manner: &str) {
    let Some(program) = compile("waits.cu", &format!("waits_{manner}"), &[]) else {
        return;
    };
    let knowledge = Knowledge {
        never_answers: Some("ContextSynchronize"),
        ..Default::default()
    };
    let simulator = Simulator::start(knowledge);
    let mut child = command(&program, &simulator)
        .arg(manner)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    std::thread::sleep(Duration::from_millis(100));
    simulator.hang_up();
    for _ in 0..100 {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = child.try_wait().unwrap();
    let _ = child.kill();
    assert_eq!(ended.and_then(|status| status.code()), Some(70), "{manner}");
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    let mut errors = String::new();
    child.stderr.unwrap().read_to_string(&mut errors).unwrap();
    assert!(errors.contains("the simulator is gone"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn a_program_inside_a_call_ends_with_its_simulator() {
    check_end("inside");
}

#[test]
fn a_program_outside_any_call_ends_with_its_simulator() {
    check_end("outside");
}

#[test]
fn without_a_simulator_there_is_no_device_and_one_sentence() {
    let Some(program) = compile("vector_add.cu", "vector_add_alone", &[]) else {
        return;
    };
    let output = Command::new(&program)
        .env("LD_PRELOAD", core_library())
        .env("LD_LIBRARY_PATH", shims())
        .env_remove(SOCKET_VARIABLE)
        .output()
        .unwrap();
    check_status(&output, 1);
    assert!(text(&output).starts_with("no CUDA-capable device is detected\n"));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("lockstep run"), "{errors}");
}

#[test]
fn a_program_without_cuda_is_left_alone() {
    let simulator = adder();
    let output = command("/bin/sh".as_ref(), &simulator)
        .args(["-c", "ls / | head -1; exit 3"])
        .output()
        .unwrap();
    check_status(&output, 3);
    assert!(output.stderr.is_empty());
    assert!(simulator.log().is_empty());
}

#[test]
fn programs_are_told_apart_before_they_run() {
    let Some(program) = compile("vector_add.cu", "vector_add_kinds", &[]) else {
        return;
    };
    assert_eq!(inspect(&program).unwrap(), ProgramKind::StaticRuntime);
    let stripped = program.with_extension("stripped");
    let strip = Command::new("strip")
        .arg("-o")
        .args([&stripped, &program])
        .status();
    if !strip.is_ok_and(|status| status.success()) {
        println!("skipped in part: no strip");
        return;
    }
    let kind = inspect(&stripped).unwrap();
    assert_eq!(kind, ProgramKind::StrippedStaticRuntime);
    let shared = compile(
        "vector_add.cu",
        "vector_add_kinds_shared",
        &["-cudart", "shared"],
    );
    let kind = inspect(&shared.unwrap()).unwrap();
    assert_eq!(kind, ProgramKind::SharedRuntime("libcudart.so.13".into()));
    let options = ["-cudart", "none", "-lcuda"];
    let driver = compile("driver_calls.cpp", "driver_calls_kinds", &options).unwrap();
    assert_eq!(inspect(&driver).unwrap(), ProgramKind::DriverApi);
}
