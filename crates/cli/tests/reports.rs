//! What is said of kernels that go wrong: the report names the line, from PTX and from machine
//! code. Without nvcc or the interposition libraries these tests say so and pass.

mod support;

use support::{Folder, build_cuda};

const PROGRAM: &str = r#"#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
__global__ void wild(int* p) {
    p[threadIdx.x + 100000000] = 1;  // far away
}
__device__ __noinline__ int fetch(const int* p, int index) {
    return p[index];  // in a function
}
__global__ void reads(int* p) { p[0] = fetch(p, (int)threadIdx.x - 500000000); }
__global__ void adds(int* p) {
    atomicAdd(p + 50000000, 1);  // an atomic
}
__global__ void crooked(char* p) {
    *(int*)(p + 2 + threadIdx.x * 4) = 1;  // crooked
}
__global__ void shares(int* p, int offset) {
    extern __shared__ int words[];
    words[threadIdx.x + offset] = p[0];  // past shared memory
    __syncthreads();
    p[1] = words[threadIdx.x];
}
__global__ void crooked_shared(int* p, int offset) {
    extern __shared__ char bytes[];
    p[0] = *(int*)(bytes + offset + threadIdx.x * 4);  // crooked in shared memory
}
__device__ __noinline__ int deep(int count, volatile int* p) {
    volatile int frame[32];
    frame[count % 32] = p[0];  // the stack ends
    int sum = count > 0 ? deep(count - 1, p) : 0;
    return sum + frame[(count + 1) % 32];
}
__global__ void recurses(int* p, int count) { p[1] = deep(count, p); }
__global__ void asserts(int* p) {
    assert(p[threadIdx.x] != 0);  // asserted
    p[1] = 1;
}
__global__ void traps(int* p) {
    if (p[0] == 0) __trap();  // a trap
    p[1] = 1;
}
__global__ void waits(volatile int* p) {
    if (threadIdx.x < 32) __syncthreads();  // waits at a barrier
    else while (p[0] == 0) {}  // spins beside it
    p[1] = 1;
}
__global__ void lacks(int* p) {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");  // nobody else comes
    p[1] = 1;
}
__global__ void spins(volatile int* p) {
    while (p[0] == 0) {}  // spins
    p[1] = 1;
}
__global__ void locks(int* p) {
    while (atomicCAS(p, 1, 0) == 0) {}  // a lock
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
        case 4: reads<<<1, 32>>>(p); break;
        case 5: adds<<<1, 32>>>(p); break;
        case 6: shares<<<1, 32, 1024>>>(p, 1 << 20); break;
        case 7: crooked_shared<<<1, 32, 1024>>>(p, 1); break;
        case 8: recurses<<<1, 32>>>(p, 1 << 20); break;
        case 9: asserts<<<1, 32>>>(p); break;
        case 10: traps<<<1, 32>>>(p); break;
        case 11: lacks<<<1, 64>>>(p); break;
        case 12: locks<<<1, 32>>>(p); break;
    }
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"#;

/// The line of the program that a comment marks, as reports write it.
fn line(comment: &str) -> String {
    let comment = format!("// {comment}");
    let number = PROGRAM.lines().position(|line| line.ends_with(&comment));
    let number = number.unwrap_or_else(|| panic!("no line ends with `{comment}`"));
    format!("program.cu:{}", number + 1)
}

/// A way to go wrong, and what is said of it.
struct Case {
    number: &'static str,
    error: &'static str,
    /// Comments at the lines that the report must name.
    lines: &'static [&'static str],
    parts: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        number: "0",
        error: "cudaErrorIllegalAddress",
        lines: &["far away"],
        parts: &[
            "kernel `wild`",
            "block (0,0,0), thread (0,0,0)",
            "illegal global store of 4 bytes",
            "nearest allocation",
        ],
    },
    Case {
        number: "1",
        error: "cudaErrorMisalignedAddress",
        lines: &["crooked"],
        parts: &["kernel `crooked`", "misaligned"],
    },
    Case {
        number: "2",
        error: "cudaErrorLaunchTimeout",
        lines: &["waits at a barrier", "spins beside it"],
        parts: &[
            "kernel `waits`",
            "hangs",
            "barrier 0 has 32 threads",
            "wait at",
            "spin at",
        ],
    },
    Case {
        number: "3",
        error: "cudaErrorLaunchTimeout",
        lines: &["spins"],
        parts: &["kernel `spins`", "hangs", "spin at"],
    },
    Case {
        number: "4",
        error: "cudaErrorIllegalAddress",
        lines: &["in a function"],
        parts: &["kernel `reads`", "illegal global load", "fetch"],
    },
    Case {
        number: "5",
        error: "cudaErrorIllegalAddress",
        lines: &["an atomic"],
        parts: &["kernel `adds`", "illegal global", ", inlined at "],
    },
    Case {
        number: "6",
        error: "cudaErrorIllegalAddress",
        lines: &["past shared memory"],
        parts: &["kernel `shares`", "illegal shared store"],
    },
    Case {
        number: "7",
        error: "cudaErrorMisalignedAddress",
        lines: &["crooked in shared memory"],
        parts: &["misaligned shared load"],
    },
    Case {
        number: "8",
        error: "cudaErrorIllegalAddress",
        lines: &[],
        parts: &["kernel `recurses`", "of `deep`", "cudaLimitStackSize"],
    },
    Case {
        number: "9",
        error: "cudaErrorAssert",
        lines: &["asserted"],
        parts: &["kernel `asserts`", "Assertion `p[threadIdx.x] != 0` failed"],
    },
    Case {
        number: "10",
        error: "cudaErrorLaunchFailure",
        lines: &["a trap"],
        parts: &["kernel `traps`", "trap"],
    },
    Case {
        number: "11",
        error: "cudaErrorLaunchTimeout",
        lines: &["nobody else comes"],
        parts: &["hangs", "barrier 1 has 32 of 64 threads", "wait at"],
    },
    Case {
        number: "12",
        error: "cudaErrorLaunchTimeout",
        lines: &["a lock"],
        parts: &["hangs", "spin at"],
    },
];

/// Runs a case; the report must name its lines and say all of its parts.
fn check(folder: &Folder, frontend: &str, mode: &str, case: &Case) -> Vec<String> {
    let said = folder.run(&[
        "run",
        "--quiet",
        "--frontend",
        frontend,
        "--mode",
        mode,
        "--set",
        "launch.watchdog=\"200000 cycles\"",
        "--",
        "./program",
        case.number,
    ]);
    let Case { number, error, .. } = case;
    let place = format!("case {number}, {frontend}, {mode}");
    let mut wrong = Vec::new();
    // The program is told, and ends with 0; a kernel that hangs is given up by the simulator alone.
    let code = i32::from(*error == "cudaErrorLaunchTimeout");
    if !said.out.ends_with(&format!("{error}\n")) || said.code != Some(code) {
        wrong.push(format!("{place}: not {error}: {said:?}"));
    }
    let lines = case.lines.iter().map(|comment| line(comment));
    for part in lines.chain(case.parts.iter().map(|part| part.to_string())) {
        if !said.err.contains(&part) {
            wrong.push(format!("{place}: no `{part}` in {}", said.err));
        }
    }
    wrong
}

#[test]
fn a_report_names_kernel_thread_and_line_for_every_cause() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90", "-lineinfo"]) {
        return;
    }
    let mut wrong = Vec::new();
    for case in CASES {
        wrong.extend(check(&folder, "ptx", "timing", case));
        wrong.extend(check(&folder, "sass", "timing", case));
        wrong.extend(check(&folder, "sass", "functional", case));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
