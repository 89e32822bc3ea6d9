//! NVML of a simulated H200, beside CUDA in one program. Without the interposition libraries these
//! tests say so and pass.

mod support;

use std::path::Path;
use std::process::Command;
use support::{Folder, Said};

/// Opens both libraries as Python does, and needs no CUDA compiler.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *cuda, *nvml;
typedef int (*Function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t);
#define CUDA4(name, a, b, c, d) \
    ((Function)dlsym(cuda, name))((uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c), (uintptr_t)(d))
#define NVML4(name, a, b, c, d) \
    ((Function)dlsym(nvml, name))((uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c), (uintptr_t)(d))
#define CUDA(name, a, b, c) CUDA4(name, a, b, c, 0)
#define NVML(name, a, b, c) NVML4(name, a, b, c, 0)
static uint64_t used(uintptr_t device) {
    uint64_t memory[3] = {0};
    int outcome = NVML("nvmlDeviceGetMemoryInfo", device, memory, 0);
    if (outcome || memory[0] != memory[1] + memory[2]) printf("memory: %d\n", outcome);
    return memory[2];
}
static void processes(uintptr_t device) {
    struct { unsigned process; uint64_t bytes; unsigned instances[2]; } rows[4];
    unsigned count = 4;
    NVML("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, rows);
    printf("%u processes", count);
    for (unsigned i = 0; i < count; i++)
        printf(", %s with %lu MiB", rows[i].process == getpid() ? "this one" : "another", rows[i].bytes >> 20);
    printf("\n");
}
static void compute(int looks, uintptr_t device) {
    int number = 0;
    uintptr_t context = 0, address = 0;
    uint64_t before = 0;
    printf("init %d", CUDA("cuInit", 0, 0, 0));
    CUDA("cuDeviceGet", &number, 0, 0);
    printf(", context %d\n", CUDA("cuDevicePrimaryCtxRetain", &context, number, 0));
    CUDA("cuCtxSetCurrent", context, 0, 0);
    if (looks) { processes(device); before = used(device); }
    printf("allocated %d\n", CUDA("cuMemAlloc_v2", &address, 64 << 20, 0));
    if (looks) { processes(device); printf("%lu MiB taken\n", (used(device) - before) >> 20); }
    CUDA("cuMemsetD8_v2", address, 7, 1 << 20);
    if (looks) used(device);
    CUDA("cuCtxSynchronize", 0, 0, 0);
    CUDA("cuMemFree_v2", address, 0, 0);
    if (looks) printf("%lu MiB kept\n", (used(device) - before) >> 20);
}
static struct { uintptr_t context, device; int looks; volatile int over; } crowd;
static void *member(void *number) {
    uintptr_t address = 0, size = (uintptr_t)number;
    CUDA("cuCtxSetCurrent", crowd.context, 0, 0);
    for (int i = 0; i < 20; i++) {
        CUDA("cuMemAlloc_v2", &address, (1 + size) << 20, 0);
        if (crowd.looks) used(crowd.device);
        CUDA("cuMemsetD8_v2", address, 7 + i, 1 << (10 + size));
        if (crowd.looks) used(crowd.device);
        CUDA("cuCtxSynchronize", 0, 0, 0);
        if (i % 3 == 0) CUDA("cuMemFree_v2", address, 0, 0);
    }
    return NULL;
}
static void *monitor(void *unused) {
    while (!crowd.over) { used(crowd.device); usleep(2000); }
    return unused;
}
static void several(int looks, uintptr_t device) {
    pthread_t members[4], watcher;
    int number = 0;
    CUDA("cuInit", 0, 0, 0);
    CUDA("cuDeviceGet", &number, 0, 0);
    CUDA("cuDevicePrimaryCtxRetain", &crowd.context, number, 0);
    crowd.looks = looks;
    crowd.device = device;
    if (looks) pthread_create(&watcher, NULL, monitor, NULL);
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&members[i], NULL, member, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(members[i], NULL);
    crowd.over = 1;
    if (looks) pthread_join(watcher, NULL);
    printf("all done\n");
}
static void links(void) {
    uintptr_t devices[2];
    unsigned count = 0, state = 9, kind = 9, level = 9, linked = 9, atomics = 9, near = 8;
    uintptr_t others[8];
    char place[68] = "";
    int can = 9, native = 9;
    NVML("nvmlInit_v2", 0, 0, 0);
    for (int i = 0; i < 2; i++) NVML("nvmlDeviceGetHandleByIndex_v2", i, &devices[i], 0);
    while (NVML("nvmlDeviceGetNvLinkState", devices[0], count, &state) == 0) count++;
    int without = NVML("nvmlDeviceGetNvLinkRemoteDeviceType", devices[0], 0, &kind);
    NVML("nvmlDeviceGetNvLinkRemotePciInfo_v2", devices[0], 0, place);
    NVML("nvmlDeviceGetTopologyCommonAncestor", devices[0], devices[1], &level);
    NVML4("nvmlDeviceGetTopologyNearestGpus", devices[0], 10, &near, others);
    NVML4("nvmlDeviceGetP2PStatus", devices[0], devices[1], 2, &linked);
    NVML4("nvmlDeviceGetP2PStatus", devices[0], devices[1], 3, &atomics);
    CUDA("cuInit", 0, 0, 0);
    CUDA("cuDeviceCanAccessPeer", &can, 0, 1);
    CUDA4("cuDeviceGetP2PAttribute", &native, 3, 0, 1);
    printf("%u links (%d), up %u, to %u at %s; level %u, near %u; ", count, without, state, kind, place, level, near);
    printf("linked %u, atomics %u, access %d, native %d\n", linked, atomics, can, native);
    FILE *file = fopen(getenv("NCCL_TOPO_FILE"), "r");
    char line[256];
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, "nvlink") || strstr(line, "0x0604")) { printf("%s", line); break; }
}
int main(int count, char **words) {
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!cuda || !nvml) { printf("%s\n", dlerror()); return 1; }
    if (strcmp(words[1], "links") == 0) { links(); return 0; }
    uintptr_t device = 0;
    char name[96] = "";
    int looks = strncmp(words[1], "blind", 5) != 0;
    if (looks) {
        NVML("nvmlInit_v2", 0, 0, 0);
        NVML("nvmlDeviceGetHandleByIndex_v2", 0, &device, 0);
        NVML("nvmlDeviceGetName", device, name, 96);
        unsigned clock = 0, memory = 0;
        NVML("nvmlDeviceGetClockInfo", device, 1, &clock);
        NVML("nvmlDeviceGetClockInfo", device, 2, &memory);
        printf("%s at %u and %u MHz\n", name, clock, memory);
        processes(device);
    }
    fflush(stdout);
    if (strcmp(words[1], "fork") == 0) {
        pid_t child = fork();
        if (child == 0) { compute(1, device); fflush(stdout); _exit(0); }
        waitpid(child, NULL, 0);
        used(device);
    } else if (strstr(words[1], "crowd")) {
        several(looks, device);
    } else {
        compute(looks, device);
    }
    if (looks) printf("shutdown %d\n", NVML("nvmlShutdown", 0, 0, 0));
    return 0;
}
"#;

const COMPUTED: &str = "init 0, context 0
1 processes, this one with 0 MiB
allocated 0
1 processes, this one with 64 MiB
64 MiB taken
0 MiB kept
";

fn build() -> Option<Folder> {
    let command = Path::new(env!("CARGO_BIN_EXE_lockstep"));
    if !command.with_file_name("liblockstep_interpose.so").exists() {
        eprintln!(
            "skipped: build the interposition libraries first (cargo build -p lockstep-interpose)"
        );
        return None;
    }
    let folder = Folder::new();
    std::fs::write(folder.0.join("program.c"), PROGRAM).unwrap();
    let made = Command::new("cc")
        .current_dir(&folder.0)
        .args(["program.c", "-o", "program", "-ldl", "-lpthread"])
        .status();
    assert!(
        made.is_ok_and(|status| status.success()),
        "a C compiler is needed: install gcc or clang"
    );
    Some(folder)
}

/// Runs the program in a manner, and answers what it said and the digest.
fn run(folder: &Folder, manner: &str) -> (Said, String) {
    let said = folder.run(&[
        "run",
        "--gpu",
        "h200",
        "--out",
        manner,
        "--",
        "./program",
        manner,
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let text = std::fs::read_to_string(folder.0.join(manner).join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(summary["reproducible"], true, "{text}");
    (said, summary["digest"].as_str().unwrap().to_owned())
}

#[test]
fn a_program_sees_its_gpu_and_looking_changes_no_digest() {
    let Some(folder) = build() else {
        return;
    };
    let (looks, digest) = run(&folder, "look");
    let head = "NVIDIA H200 at 1980 and 3201 MHz\n0 processes\n";
    assert_eq!(
        looks.out,
        format!("{head}{COMPUTED}shutdown 0\n"),
        "{looks:?}"
    );
    let (_, undisturbed) = run(&folder, "blind");
    assert_eq!(digest, undisturbed);
    let calls = |manner: &str| folder.run(&["calls", manner]).out;
    assert_eq!(calls("look"), calls("blind"));
}

#[test]
fn threads_that_look_and_one_that_does_so_by_the_clock_change_no_digest() {
    let Some(folder) = build() else {
        return;
    };
    let (looks, digest) = run(&folder, "crowd");
    assert!(looks.out.ends_with("all done\nshutdown 0\n"), "{looks:?}");
    assert_eq!(digest, run(&folder, "blind-crowd").1);
}

#[test]
fn a_process_that_only_looked_may_fork_and_compute_in_its_child() {
    let Some(folder) = build() else {
        return;
    };
    let (said, _) = run(&folder, "fork");
    assert!(said.out.contains(COMPUTED), "{said:?}");
    assert!(said.out.ends_with("shutdown 0\n"), "{said:?}");
}

/// The links of a node: how many NVLinks the first GPU has, where they lead, and how GPUs stand to each
/// other. A status of 0 is good, of 5 "not supported".
#[test]
fn gpus_of_a_node_know_their_links() {
    let Some(folder) = build() else {
        return;
    };
    let check = |node: &str, expected: [&str; 2]| {
        let program = ["--", "./program", "links"];
        let options = [
            "run", "--gpus", "2", "--quiet", "--node", node, "--out", node,
        ];
        let said = folder.run(&[&options[..], &program].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let lines: Vec<&str> = said.out.lines().map(str::trim).collect();
        assert_eq!(lines, expected, "{node}");
    };
    check(
        "hgx",
        [
            "18 links (0), up 1, to 2 at 0000:C0:00.0; level 30, near 0; linked 0, atomics 0, access 1, native 1",
            "<nvlink target=\"0000:c0:00.0\" count=\"18\" tclass=\"0x068000\"/>",
        ],
    );
    check(
        "nvlink-mesh",
        [
            "4 links (0), up 1, to 0 at 0000:02:00.0; level 30, near 0; linked 0, atomics 0, access 1, native 1",
            "<nvlink target=\"0000:02:00.0\" count=\"4\" tclass=\"0x030200\"/>",
        ],
    );
    check(
        "pcie",
        [
            "0 links (3), up 9, to 9 at ; level 10, near 1; linked 5, atomics 5, access 1, native 0",
            "<pci busid=\"0000:c0:00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">",
        ],
    );
    let drawn = folder.run(&["topology", "--gpus", "2", "--node", "hgx", "--nccl-xml"]);
    assert_eq!(drawn.out.matches("<nvlink").count(), 2, "{drawn:?}");
}
