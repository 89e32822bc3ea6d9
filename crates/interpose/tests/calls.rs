//! Programs that check the answers of many calls, and what the simulator is asked.

mod support;

use lockstep_protocol::{CuResult, ImageKind, ImageRole};
use std::sync::Arc;
use support::programs::{check_status, command, compile, run, text, vector_add};
use support::{Kernel, Knowledge, Simulator};

fn knowledge() -> Knowledge {
    let mut knowledge = Knowledge::default();
    knowledge.kernels.insert("add", vector_add());
    knowledge.globals = vec![
        ("table", 64, false),
        ("counter", 4, false),
        ("shared_number", 4, true),
    ];
    knowledge
}

fn check_runtime_calls(name: &str, options: &[&str]) {
    let Some(program) = compile("runtime_calls.cu", name, options) else {
        return;
    };
    let simulator = Simulator::start(knowledge());
    let output = run(&program, &simulator);
    check_status(&output, 0);
    assert_eq!(text(&output), "all calls answered\n");
    let log = simulator.log();
    let unsupported: Vec<&String> = log
        .iter()
        .filter(|line| line.starts_with("Unsupported"))
        .collect();
    assert_eq!(
        unsupported,
        [
            "Unsupported cuTexRefCreate AskedFor",
            "Unsupported cudaHostRegisterDefault Accepted",
            "Unsupported cudaEventBlockingSync Accepted",
            "Unsupported cudaGraphicsUnregisterResource Called"
        ]
    );
    let cooperative = log.iter().filter(|line| line.ends_with("cooperative"));
    assert_eq!(cooperative.count(), 1);
}

#[test]
fn calls_of_the_runtime_api_are_answered_in_a_static_program() {
    check_runtime_calls("runtime_calls_static", &[]);
}

#[test]
fn calls_of_the_runtime_api_are_answered_in_a_shared_program() {
    check_runtime_calls("runtime_calls_shared", &["-cudart", "shared"]);
}

#[test]
fn calls_of_the_driver_api_are_answered() {
    let options = ["-cudart", "none", "-lcuda"];
    let Some(program) = compile("driver_calls.cpp", "driver_calls", &options) else {
        return;
    };
    let cubin = compile("vector_add.cu", "vector_add.cubin", &["-cubin"]).unwrap();
    let simulator = Simulator::start(knowledge());
    let output = command(&program, &simulator).arg(&cubin).output().unwrap();
    check_status(&output, 0);
    assert_eq!(text(&output), "all calls answered\n");
    let images = simulator.images();
    assert_eq!(images[0].kind, ImageKind::Ptx);
    assert!(images[0].bytes.ends_with(b"{ ret; }\n"));
    assert_eq!(images[1].kind, ImageKind::Cubin);
    assert_eq!(images[1].bytes, std::fs::read(cubin).unwrap());
}

#[test]
fn relocatable_code_brings_its_images_from_before_linking() {
    let Some(program) = compile("vector_add.cu", "vector_add_rdc", &["-rdc=true"]) else {
        return;
    };
    let simulator = Simulator::start(knowledge());
    check_status(&run(&program, &simulator), 0);
    let images = simulator.images();
    assert!(images.len() >= 2, "{} images", images.len());
    assert_eq!(images[0].role, ImageRole::Main);
    assert!(
        images[1..]
            .iter()
            .all(|image| image.role == ImageRole::BeforeLinking)
    );
    assert!(
        images
            .iter()
            .all(|image| image.kind == ImageKind::FatBinary)
    );
}

#[test]
fn the_per_thread_default_stream_is_passed_on() {
    let options = ["--default-stream", "per-thread"];
    let Some(program) = compile("per_thread.cu", "per_thread", &options) else {
        return;
    };
    let simulator = Simulator::start(knowledge());
    check_status(&run(&program, &simulator), 0);
    let log = simulator.log();
    assert!(
        log.contains(&"Launch [1, 1, 1] [1, 1, 1] shared 0 PerThread".to_string()),
        "{log:?}"
    );
    assert!(
        log.contains(&"Copy 4 bytes window to window PerThread, blocking".to_string()),
        "{log:?}"
    );
}

#[test]
fn output_of_kernels_keeps_its_place_and_errors_stick() {
    let Some(program) = compile("prints.cu", "prints", &[]) else {
        return;
    };
    let mut knowledge = Knowledge::default();
    let talk = Kernel {
        parameters: vec![4],
        body: Arc::new(|_, launch| Ok(format!("kernel {}\n", launch.parameters[0]))),
    };
    let fault = Kernel {
        parameters: vec![],
        body: Arc::new(|_, _| Err(CuResult::ILLEGAL_ADDRESS)),
    };
    knowledge.kernels.insert("talk", talk);
    knowledge.kernels.insert("fault", fault);
    let output = run(&program, &Simulator::start(knowledge));
    check_status(&output, 0);
    assert_eq!(text(&output), "before\nkernel 7\nbetween\nafter\n");
}

#[test]
fn a_call_that_asks_costs_microseconds() {
    let Some(program) = compile("round_trip.cu", "round_trip", &["-O2"]) else {
        return;
    };
    let output = run(&program, &Simulator::start(Knowledge::default()));
    check_status(&output, 0);
    // The figures depend on the machine; they are shown, not judged.
    println!("{}", text(&output));
}
