//! CUDA programs built by nvcc, end to end. Without nvcc or the interposition libraries these
//! tests say so and pass.

mod support;

use support::{Folder, Said, build_cuda};

const PROGRAM: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
__constant__ float offset;
__device__ int visits;
__global__ void add(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * 2 + offset;
    if (i == 0) { visits = 1; printf("device says %d\n", n); }
}
__global__ void wild(int* p) { p[threadIdx.x] = 1; }
int main(int argc, char** argv) {
    const int n = 5000;
    float *a, *b, *h = (float*)malloc(n * 4), o = 7;
    for (int i = 0; i < n; i++) h[i] = i;
    if (cudaMalloc(&a, n * 4) || cudaMalloc(&b, n * 4)) return 10;
    cudaMemcpy(a, h, n * 4, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(offset, &o, 4);
    cudaEvent_t start, end;
    cudaEventCreate(&start); cudaEventCreate(&end);
    cudaEventRecord(start);
    add<<<(n + 255) / 256, 256>>>(a, b, n);
    cudaEventRecord(end);
    while (cudaEventQuery(end) == cudaErrorNotReady)
        if (cudaPeekAtLastError() != cudaSuccess) return 12; // that it is not ready is no error
    cudaMemcpy(h, b, n * 4, cudaMemcpyDeviceToHost);
    float ms = 0; cudaEventElapsedTime(&ms, start, end);
    int v = 0; cudaMemcpyFromSymbol(&v, visits, 4);
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += h[i] != i * 2.0f + 7;
    printf("wrong %d, visits %d, time %s\n", wrong, v, ms > 0 ? "passed" : "stood still");
    if (argc > 1) {
        wild<<<1, 32>>>((int*)0x10);
        cudaError_t error = cudaDeviceSynchronize();
        printf("error %d %s\n", (int)error, cudaGetErrorName(error));
        printf("then %d\n", (int)cudaMalloc(&a, 4));
        return 0;
    }
    return wrong || v != 1 ? 1 : 0;
}
"#;

/// Builds the program in a folder; none if this machine cannot.
fn build(options: &[&str]) -> Option<Folder> {
    let folder = Folder::new();
    build_cuda(&folder, PROGRAM, options).then_some(folder)
}

fn run(folder: &Folder, options: &[&str], arguments: &[&str]) -> Said {
    let words = [&["run"], options, &["--", "./program"], arguments].concat();
    folder.run(&words)
}

const GOOD: &str = "device says 5000\nwrong 0, visits 1, time passed\n";

#[test]
fn a_program_verifies_from_ptx_and_machine_code_in_both_modes() {
    let Some(folder) = build(&["-arch=sm_90"]) else {
        return;
    };
    for frontend in ["ptx", "auto"] {
        for mode in ["functional", "timing"] {
            let said = run(&folder, &["--frontend", frontend, "--mode", mode], &[]);
            assert_eq!(
                (said.code, said.out.as_str()),
                (Some(0), GOOD),
                "{frontend} {mode}: {said:?}"
            );
        }
    }
    let said = run(&folder, &["--gpu", "a100", "--mode", "functional"], &[]);
    assert!(
        said.out == GOOD && said.err.contains("would refuse"),
        "{said:?}"
    );
    let said = run(&folder, &["--gpu", "a100", "--strict-image"], &[]);
    assert_ne!(said.code, Some(0), "{said:?}");
}

#[test]
fn an_illegal_access_is_cudas_error_and_the_program_ends_as_it_likes() {
    let Some(folder) = build(&["-arch=sm_90", "-lineinfo"]) else {
        return;
    };
    let said = run(
        &folder,
        &["--mode", "functional", "--frontend", "ptx"],
        &["wild"],
    );
    assert!(
        said.out
            .contains("error 700 cudaErrorIllegalAddress\nthen 700\n"),
        "{said:?}"
    );
    assert_eq!(said.code, Some(0), "it was told: {said:?}");
    assert!(
        said.err.contains("kernel `wild`") && said.err.contains("illegal global store"),
        "{said:?}"
    );
}

#[test]
fn a_stripped_program_is_told_how_to_rebuild() {
    let Some(folder) = build(&["-arch=sm_90", "-Xlinker", "-s"]) else {
        return;
    };
    let said = run(&folder, &[], &[]);
    assert!(said.err.contains("-cudart shared"), "{said:?}");
    assert_ne!(said.code, Some(0), "{said:?}");
}

#[test]
fn every_way_to_simulate_gives_one_answer() {
    let Some(folder) = build(&["-arch=sm_90"]) else {
        return;
    };
    for mode in ["functional", "timing"] {
        let said = folder.run(&[
            "verify",
            "--mode",
            mode,
            "--reloads",
            "3",
            "--",
            "./program",
        ]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("all 28 ways gave the digest"), "{said:?}");
    }
}

const SELECTED: &str = r#"
#include <cstdio>
#include <cuda_runtime.h>
__device__ int* cell;
__global__ void grow(int* words, int add) {
    words[blockIdx.x * blockDim.x + threadIdx.x] += add;
    if (threadIdx.x == 0 && blockIdx.x == 0 && cell == nullptr) cell = (int*)malloc(4);
}
__global__ void fold(const int* words, int* sum, int count) {
    int own = 0;
    for (int index = threadIdx.x; index < count; index += blockDim.x) own += words[index];
    atomicAdd(sum, own);
    if (threadIdx.x == 0) { *cell = 7; atomicAdd(sum, *cell); }
}
int main() {
    const int count = 4096;
    int *words, *sum, result = 0;
    cudaMalloc(&words, count * 4); cudaMalloc(&sum, 4);
    cudaMemset(words, 0, count * 4); cudaMemset(sum, 0, 4);
    cudaStream_t one, two;
    cudaStreamCreate(&one); cudaStreamCreate(&two);
    for (int round = 0; round < 3; round++) {
        grow<<<16, 256, 0, one>>>(words, round);
        cudaStreamSynchronize(one);
        fold<<<1, 256, 0, one>>>(words, sum, count);
        fold<<<1, 256, 0, two>>>(words, sum, count);
    }
    cudaDeviceSynchronize();
    cudaMemcpy(&result, sum, 4, cudaMemcpyDeviceToHost);
    printf("sum %d\n", result);
    return result != 2 * (0 + 1 + 3) * count + 6 * 7;
}
"#;

/// The columns `launch`, `kernel`, `cycles` and `mode` of a run.
fn modes(folder: &Folder, options: &[&str]) -> Vec<String> {
    let _ = std::fs::remove_dir_all(folder.0.join("results"));
    let options = [options, &["--quiet", "--out", "results"]].concat();
    let said = run(folder, &options, &[]);
    assert_eq!(said.code, Some(0), "{options:?}: {said:?}");
    let text = std::fs::read_to_string(folder.0.join("results/kernels.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let column = |name| head.iter().position(|found| *found == name).unwrap();
    let (kernel, cycles, mode) = (column("kernel"), column("cycles"), column("mode"));
    lines
        .map(|line| {
            let timed = if line[cycles].is_empty() {
                "-"
            } else {
                "cycles"
            };
            format!("{} {} {timed} {}", line[0], &line[kernel][2..7], line[mode])
        })
        .collect()
}

#[test]
fn chosen_launches_take_their_time_and_the_others_only_their_values() {
    let folder = Folder::new();
    if !build_cuda(&folder, SELECTED, &["-arch=sm_90"]) {
        return;
    }
    let expected = |chosen: &[usize]| -> Vec<String> {
        (0..9)
            .map(|launch| {
                let name = if launch % 3 == 0 { "4grow" } else { "4fold" };
                let mode = if chosen.contains(&launch) {
                    "cycles timing"
                } else {
                    "- functional"
                };
                format!("{launch} {name} {mode}")
            })
            .collect()
    };
    let all: Vec<usize> = (0..9).collect();
    assert_eq!(modes(&folder, &[]), expected(&all));
    assert_eq!(modes(&folder, &["--mode", "functional"]), expected(&[]));
    assert_eq!(
        modes(&folder, &["--kernels", "^grow"]),
        expected(&[0, 3, 6])
    );
    assert_eq!(
        modes(&folder, &["--kernels", "fold", "--launches", "2,4-5"]),
        expected(&[2, 4, 5])
    );
    assert_eq!(modes(&folder, &["--launches", "8-"]), expected(&[8]));
    for options in [
        &["--kernels", "("][..],
        &["--launches", "x"],
        &["--kernels", "a", "--mode", "functional"],
    ] {
        let said = run(&folder, options, &[]);
        assert_ne!(said.code, Some(0), "{options:?}: {said:?}");
        assert!(said.err.contains("--"), "{said:?}");
    }
    // Modes alternate while kernels of both streams wait: still one answer, however it is run.
    let said = folder.run(&[
        "verify",
        "--kernels",
        "fold",
        "--launches",
        "1,5,7",
        "--reloads",
        "2",
        "--",
        "./program",
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("ways gave the digest"), "{said:?}");
}

/// Pages of pinned and managed memory that only the program writes: in the live run nobody tells
/// the simulator of them, in a replay the record does.
const PINNED: &str = r#"
#include <cuda_runtime.h>
__global__ void twice(const int* in, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] * 2;
}
int main() {
    const int n = 8192;
    int *in, *out, *kept, *managed, *device;
    if (cudaMallocHost(&in, n * 4) || cudaMallocHost(&out, n * 4) || cudaMallocHost(&kept, n * 4)) return 10;
    if (cudaMallocManaged(&managed, n * 4) || cudaMalloc(&device, n * 4)) return 11;
    cudaStream_t stream;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) return 12;
    for (int i = 0; i < n; i++) in[i] = managed[i] = kept[i] = i;
    cudaMemcpyAsync(device, in, n * 4, cudaMemcpyHostToDevice, stream);
    twice<<<n / 256, 256, 0, stream>>>(device, device);
    cudaMemcpyAsync(out, device, n * 4, cudaMemcpyDeviceToHost, stream);
    if (cudaStreamSynchronize(stream)) return 13;
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += out[i] != i * 2;
    cudaFreeHost(in);
    cudaFreeHost(out);
    for (int i = 0; i < n; i++) kept[i] = 3 * i;
    return wrong != 0;
}
"#;

#[test]
fn a_replay_writes_what_the_program_wrote_into_pinned_memory() {
    let folder = Folder::new();
    if !build_cuda(&folder, PINNED, &["-arch=sm_90"]) {
        return;
    }
    let said = folder.run(&["verify", "--mode", "functional", "--", "./program"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("ways gave the digest"), "{said:?}");
}

/// Two units that need each other: a function of the other, a variable of the other.
const FIRST_UNIT: &str = r#"
#include <cstdio>
__device__ int twice(int x);
extern __device__ int table[4];
__global__ void use(int* out) { out[threadIdx.x] = twice(threadIdx.x) + table[threadIdx.x % 4]; }
int main() {
    int *device, host[64], wrong = 0;
    cudaMalloc(&device, sizeof host);
    use<<<1, 64>>>(device);
    if (cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
    for (int i = 0; i < 64; ++i) wrong += host[i] != 2 * i + 10 * (i % 4 + 1);
    printf("wrong %d\n", wrong);
    return wrong != 0;
}
"#;
const SECOND_UNIT: &str = "
__device__ int table[4] = {10, 20, 30, 40};
__device__ __noinline__ int twice(int x) { return 2 * x; }
";

/// `-rdc=true` without machine code leaves the linking to the driver, which is ours.
#[test]
fn ptx_of_several_units_is_assembled_and_linked() {
    let Some(compiler) = support::compiler() else {
        return;
    };
    let folder = Folder::new();
    std::fs::write(folder.0.join("second.cu"), SECOND_UNIT).unwrap();
    let code = "-gencode=arch=compute_75,code=compute_75";
    if !build_cuda(&folder, FIRST_UNIT, &["-rdc=true", code, "second.cu"]) {
        return;
    }
    let assembler = compiler.with_file_name("ptxas");
    for gpu in ["rtx2060", "h200"] {
        let mut command = folder.lockstep();
        command.env("LOCKSTEP_PTXAS", &assembler).args([
            "run",
            "--mode",
            "functional",
            "--frontend",
            "sass",
            "--assemble",
            "--check",
            "control-bits",
            "--gpu",
            gpu,
            "--",
            "./program",
        ]);
        let said = Said::from(command.output().unwrap());
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(0), "wrong 0\n"),
            "{gpu}: {said:?}"
        );
        assert!(said.err.contains("2 units"), "{gpu}: {said:?}");
    }
}

/// Allocates, with addresses that are the same in every run, and tells where and what it finds there.
const ALLOCATES: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/personality.h>
#include <unistd.h>
#ifdef CUDA
#include <cuda_runtime.h>
__global__ void set(int* p) { p[threadIdx.x] = threadIdx.x; }
#endif
int main(int argc, char** argv) {
    if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
        personality(ADDR_NO_RANDOMIZE);
        execv("/proc/self/exe", argv);
    }
#ifdef CUDA
    int *device, host[32];
    for (int round = 0; round < 20; round++) {
        if (cudaMalloc(&device, 128 << round % 8)) return 1;
        set<<<1, 32>>>(device);
        cudaMemcpy(host, device, 128, cudaMemcpyDeviceToHost);
        cudaStream_t stream;
        cudaStreamCreate(&stream);
        cudaMemcpyAsync(device, host, 128, cudaMemcpyHostToDevice, stream);
        cudaStreamDestroy(stream);
        if (cudaDeviceSynchronize()) return 2;
        cudaFree(device);
    }
#endif
    long found = 0;
    for (int round = 0; round < 400; round++) {
        size_t bytes = 8 + round * 37 % 5000;
        unsigned char* block = (unsigned char*)malloc(bytes);
        for (size_t at = 0; at < bytes; at++) found += block[at] != 0;
        if (round % 40 == 0) printf("%p\n", block);
    }
    printf("set by others %ld\n", found);
}
"#;

#[test]
fn the_heap_of_a_program_is_its_own() {
    let folder = Folder::new();
    if !build_cuda(&folder, ALLOCATES, &["-x", "c++", "-cudart", "none"]) {
        return;
    }
    let alone = std::process::Command::new(folder.0.join("program"))
        .output()
        .unwrap();
    let alone = String::from_utf8(alone.stdout).unwrap();
    let said = run(&folder, &[], &[]);
    assert_eq!(said.out, alone, "{said:?}");

    // What a CUDA program finds in memory that it never set is what the kernel put there: zeros.
    assert!(build_cuda(&folder, ALLOCATES, &["-arch=sm_90", "-DCUDA"]));
    let said = run(&folder, &[], &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.ends_with("set by others 0\n"), "{said:?}");
}

/// Threads of one warp that come to the barrier of the grid at several places, or one after the other.
const DIVERGED_BARRIER: &str = r#"
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;
__global__ void meets(int* cell, int* out, int how) {
    auto grid = cg::this_grid();
    int lane = threadIdx.x & 31;
    atomicAdd(cell, 1);
    if (how == 0) {
        for (int i = 0; i < 32; i++) if (i == lane) grid.sync();
    } else if (lane < 7) {
        grid.sync();
    } else if (lane % 3 == 0) {
        for (int i = 0; i < lane; i++) atomicAdd(cell + 1, 1);
        grid.sync();
    } else {
        grid.sync();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = *(volatile int*)cell;
}
int main() {
    for (int how = 0; how < 2; how++) {
        int *cell, *out, host[256], wrong = 0;
        cudaMalloc(&cell, 8);
        cudaMemset(cell, 0, 8);
        cudaMalloc(&out, sizeof host);
        void* arguments[] = {&cell, &out, &how};
        cudaLaunchCooperativeKernel((void*)meets, 4, 64, arguments, 0, 0);
        cudaError_t error = cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
        for (int i = 0; i < 256; i++) wrong += host[i] != 256;
        printf("%s wrong %d\n", cudaGetErrorName(error), wrong);
    }
}
"#;

#[test]
fn threads_of_a_warp_may_come_to_a_grid_barrier_one_after_the_other() {
    let folder = Folder::new();
    if !build_cuda(&folder, DIVERGED_BARRIER, &["-arch=sm_90"]) {
        return;
    }
    let good = "cudaSuccess wrong 0\n".repeat(2);
    for frontend in ["sass", "ptx"] {
        for mode in ["functional", "timing"] {
            let said = run(&folder, &["--frontend", frontend, "--mode", mode], &[]);
            assert_eq!(
                (said.code, &said.out),
                (Some(0), &good),
                "{frontend} {mode}: {said:?}"
            );
        }
    }
}

/// Texture references, which CUDA 12 took away: bound through the driver, and as programs of CUDA 11 register them.
#[test]
fn texture_references_are_bound_and_fetched_through() {
    let folder = Folder::new();
    let source = include_str!("sources/texture_references.cu");
    if !build_cuda(&folder, source, &[]) {
        return;
    }
    let expected = "init 0\nload 0\nunknown 500\nfound 0 0\nsame 1\nformat 0\naddress 0\n\
        first: 1 2 3 4 5 6 7 8\nsecond: 20 21 22 23 24 25 26 27\noffset 0, bound to the second 1\n\
        symbol 0 1\nstranger 18\nplane 0 0\nlaunch 0\nplane: 5 5.5 6.5 7.5 8.5 9.5 10.5 11.5\n\
        unaligned 1\nbytes 0 16, asked 0 16\nbytes: 0 0.2 0.4 0.6 0.8 1 0 1\nunbound 0, asked 19\nstranger 18\n";
    for options in [&["--mode", "functional"][..], &["--frontend", "ptx"], &[]] {
        let said = run(&folder, &[options, &["-q"]].concat(), &[]);
        assert_eq!(said.code, Some(0), "{options:?}: {}", said.err);
        assert_eq!(said.out, expected, "{options:?}: {}", said.err);
    }
}

/// The barrier of a grid as a call of the device runtime, which leaves it to the driver.
const GRID_BARRIER: &str = r#"
#include <cstdio>
#include <cuda_device_runtime_api.h>
__global__ void sweep(int *rows, int columns, int count, int *failures) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    auto grid = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
    for (int row = 1; row < count; row++) {
        rows[row * columns + column] = rows[(row - 1) * columns + columns - column - 1] + 1;
        if (cudaCGSynchronize(grid, 0) != cudaSuccess) atomicAdd(failures, 1);
    }
}
int main() {
    int columns = 512, count = 8, *rows, *failures, wrong = 0;
    cudaMallocManaged(&rows, columns * count * sizeof(int));
    cudaMallocManaged(&failures, sizeof(int));
    for (int i = 0; i < columns * count; i++) rows[i] = 0;
    *failures = 0;
    void *arguments[] = {&rows, &columns, &count, &failures};
    int error = cudaLaunchCooperativeKernel((void *)sweep, dim3(8), dim3(64), arguments, 0, 0);
    if (!error) error = cudaDeviceSynchronize();
    for (int i = 0; i < columns * count; i++) wrong += rows[i] != i / columns;
    printf("error %d, wrong %d, failures %d\n", error, wrong, *failures);
}
"#;

#[test]
fn the_device_runtime_has_a_barrier_of_the_grid() {
    let folder = Folder::new();
    let options = ["-rdc=true", "-lcudadevrt", "-arch=sm_90"];
    if !build_cuda(&folder, GRID_BARRIER, &options) {
        return;
    }
    for options in [&["--mode", "functional"][..], &["--threads", "2"]] {
        let said = run(&folder, &[options, &["-q"]].concat(), &[]);
        assert_eq!(said.out, "error 0, wrong 0, failures 0\n", "{}", said.err);
    }
}
