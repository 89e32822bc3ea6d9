//! What is said of kernels that go wrong: the report names the line, from PTX and from machine
//! code. Without nvcc or the interposition libraries these tests say so and pass.

mod support;

use support::{Folder, build_cuda};

const PROGRAM: &str = r#"#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
__global__ void wild(int* p) {
    p[threadIdx.x + 100000000] = 1;  // 5
}
__global__ void crooked(char* p) {
    *(int*)(p + 2 + threadIdx.x * 4) = 1;  // 8
}
__global__ void waits(volatile int* p) {
    if (threadIdx.x < 32) __syncthreads();  // 11
    else while (p[0] == 0) {}  // 12
    p[1] = 1;
}
__global__ void spins(volatile int* p) {
    while (p[0] == 0) {}  // 16
    p[1] = 1;
}
int main(int argc, char** argv) {
    int* p;
    cudaMalloc(&p, 4096);
    cudaMemset(p, 0, 4096);
    switch (atoi(argv[1])) {
        case 0: wild<<<2, 64>>>(p); break;
        case 1: crooked<<<1, 32>>>((char*)p); break;
        case 2: waits<<<1, 64>>>(p); break;
        case 3: spins<<<2, 32>>>(p); break;
    }
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"#;

/// Runs a case with both front ends; the report must say all of `parts`.
fn check(folder: &Folder, case: &str, name: &str, parts: &[&str]) {
    for frontend in ["ptx", "sass"] {
        let said = folder.run(&[
            "run",
            "--quiet",
            "--frontend",
            frontend,
            "--set",
            "launch.watchdog=\"200000 cycles\"",
            "--",
            "./program",
            case,
        ]);
        assert_eq!(said.out, format!("{name}\n"), "{frontend}: {said:?}");
        assert_ne!(said.code, Some(0));
        for part in parts {
            assert!(
                said.err.contains(part),
                "{frontend} {case}: no `{part}` in {said:?}"
            );
        }
    }
}

#[test]
fn a_report_names_kernel_thread_and_line() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90", "-lineinfo"]) {
        return;
    }
    check(
        &folder,
        "0",
        "cudaErrorIllegalAddress",
        &[
            "kernel `_Z4wildPi`",
            "block (0,0,0), thread (0,0,0)",
            "program.cu:5",
            "illegal global store of 4 bytes",
            "nearest allocation",
        ],
    );
    check(
        &folder,
        "1",
        "cudaErrorMisalignedAddress",
        &["kernel `_Z7crookedPc`", "program.cu:8", "misaligned"],
    );
    check(
        &folder,
        "2",
        "cudaErrorLaunchTimeout",
        &[
            "kernel `_Z5waitsPVi`",
            "hangs",
            "barrier 0 has 32 threads",
            "wait at",
            "program.cu:11",
            "spin at",
            "program.cu:12",
        ],
    );
    check(
        &folder,
        "3",
        "cudaErrorLaunchTimeout",
        &["kernel `_Z5spinsPVi`", "hangs", "spin at", "program.cu:16"],
    );
}
