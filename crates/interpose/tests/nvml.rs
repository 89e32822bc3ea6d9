//! NVML as monitoring programs see it: what is answered, byte by byte, and what is not known.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::programs::{check_status, core_library, run, shims, text};
use support::{Knowledge, Simulator};

/// Compiles the program that asks, with the C compiler that this crate is built with too. Each test
/// has its own: a file that is being written cannot be run.
fn compile(name: &str) -> PathBuf {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let result = Command::new(compiler)
        .args(["-Wall", "-Werror", "-o"])
        .arg(&output)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/nvml.c"))
        .arg("-ldl")
        .output()
        .unwrap();
    check_status(&result, 0);
    output
}

#[test]
fn a_program_that_opens_the_library_is_answered_byte_by_byte() {
    let program = compile("nvml_answers");
    let simulator = Simulator::start(Knowledge::default());
    let output = run(&program, &simulator);
    check_status(&output, 0);
    assert_eq!(text(&output), EXPECTED);
    // Nothing but looking: no context was made, and no thread began to make calls.
    let log = simulator.log();
    assert!(log.iter().all(|line| line == "DeviceState"), "{log:?}");
}

#[test]
fn without_a_simulator_there_is_no_driver() {
    let output = Command::new(compile("nvml_alone"))
        .env("LD_PRELOAD", core_library())
        .env("LD_LIBRARY_PATH", shims())
        .env_remove(lockstep_protocol::SOCKET_VARIABLE)
        .output()
        .unwrap();
    let (said, complained) = (text(&output), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("init: 9 9 2\n"), "{said}");
    assert!(
        complained.contains("start it with `lockstep run"),
        "{complained}"
    );
}

const EXPECTED: &str = "\
count before: 1 7
power before: 1
shutdown before: 1
errors: Success, Uninitialized, Insufficient Size, Unknown Error
init: 0 0 2
devices: 1, first: 0
CUDA 13030, capability 9.0, architecture 9, index 0
driver 580.159.04
nvml 13.580.159.04
name Stand-in GPU
name in 4 bytes: 7
name nowhere: 2
uuid GPU-7374616e-642d-696e-2d67-70752d303030
by uuid: 0 same
by no uuid: 6
by structure: 0 same
nvmlPciInfo_t has its bytes
bus 0000:41:00.0 = 00000000:41:00.0: 0 0x41 0, 0 0
by bus: 0 same
by wrong bus: 6 2
second nvmlPciInfo_t has its bytes
first nvmlPciInfo_t has its bytes
extended: 0
nvmlPciInfoExt_v1_t has its bytes
extended 0 0x41 0, class 3 2, 00000000:41:00.0
memory: 0
nvmlMemory_t has its bytes
total 80 free 79 used 1 GiB
memory 2: 0
nvmlMemory_v2_t has its bytes
total 80 reserved 1 free 79 used 0 GiB, version 0x2000028
memory 3: 25
bus width 6016
processes, no room: 7 2
processes: 0 2: 4711 has 0 in 0xffffffff 0xffffffff, 4712 has 5
two nvmlProcessInfo_t has its bytes
two nvmlProcessInfo_v1_t has its bytes
drawing: 0 0
details: 0 2: 4711 has 0 and 0 protected
two nvmlProcessDetail_v1_t has its bytes
clocks 1980 3201 1980
video clock 3, no clock 2
ECC 1, instances 0 0
errors 0 0, of no kind 2
link 0: state 0 1, version 0 6, leads 0 to 2, able 0:1 0:0 0:1 0:0 0:0 0:1 2:9, at 0 00000000:C0:00.0
nvmlPciInfo_t of a switch has its bytes
older nvmlPciInfo_t of a switch has its bytes
link 1: state 0 1, version 0 6, leads 0 to 0, able 0:1 0:0 0:1 0:0 0:0 0:1 2:9, at 0 00000000:41:00.0
link 2: state 2 9, version 2 9, leads 2 to 9, able 2:9 2:9 2:9 2:9 2:9 2:9 2:9, at 2 no place
fabric: 0 state 3
nvmlGpuFabricInfo_v2_t has its bytes
fabric 3: 0
nvmlGpuFabricInfo_v3_t has its bytes
field 91: 0 0 = 2
field 147: 0 0 = 1
field 84: 0 0 = 25000
field 85: 0 0 = 25000
field 86: 0 3
field 90: 0 0 = 25000
field 83: 0 3
fields of link 0: 0, 0 25000, 0 1, 0 6
fields of link 2: 0, 3 0, 3 0, 3 0
fields nowhere: 2, fewer than none: 2
level 0, others 0, with itself 0 0: 0 5, of no kind 2
power 3, temperature 3, fan 3, utilisation 3: 12345
set: 0, supported 0, register 3, wait 10, free 0, again 2
index 1: 2
bad handles: 2 2 2
null: 2 2
in a child: 0 80
in the parent: 0 80
shutdown: 0, still there: 0, shutdown: 0, no longer: 1
";
