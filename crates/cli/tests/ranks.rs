//! Programs simulated by several processes: one answer for any number of them, an end for all if one of them
//! ends, and a sentence for what they cannot do. Without nvcc or the interposition libraries these tests say so and
//! pass.

mod support;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::process::{Child, Stdio};
use std::time::Duration;
use support::{Folder, Said, build_cuda, wait_until};

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Programs by name: sums, atomics, text of kernels, unified memory, several GPUs, several host threads, a fault, and
/// one that does not end.
const PROGRAM: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    printf("%s\n", cudaGetErrorString(e)); exit(3); } } while (0)
__global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
__global__ void reduce(const int *data, int n, unsigned long long *sum, int *order) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, (unsigned long long)data[i]);
    if (threadIdx.x == 0) order[atomicAdd(&order[gridDim.x], 1)] = blockIdx.x;
}
__global__ void say(int x) {
    if (threadIdx.x % 40 == 0) printf("block %d thread %d: %d\n", blockIdx.x, threadIdx.x, x * blockIdx.x);
}
__global__ void twice(int *data, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) data[i] *= 2;
}
__global__ void spin(volatile int *flag, long long turns) {
    for (long long i = 0; i < turns; i++) flag[threadIdx.x] = flag[threadIdx.x] * 5 + i;
}
static int sums() {
    const int n = 20000;
    std::vector<float> a(n, 1), b(n, 2), c(n);
    float *da, *db, *dc;
    CHECK(cudaMalloc(&da, n * 4)); CHECK(cudaMalloc(&db, n * 4)); CHECK(cudaMalloc(&dc, n * 4));
    for (int turn = 0; turn < 3; turn++) {
        CHECK(cudaMemcpy(da, a.data(), n * 4, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(db, b.data(), n * 4, cudaMemcpyHostToDevice));
        add<<<(n + 127) / 128, 128>>>(da, db, dc, n);
        CHECK(cudaMemcpy(c.data(), dc, n * 4, cudaMemcpyDeviceToHost));
        a = c;
    }
    for (float x : c) if (x != 7) return 1;
    return 0;
}
static int atomics() {
    const int n = 30000, blocks = (n + 255) / 256;
    std::vector<int> data(n);
    unsigned long long expected = 0, sum = 0;
    for (int i = 0; i < n; i++) expected += data[i] = i % 1000;
    int *d, *order; unsigned long long *s;
    CHECK(cudaMalloc(&d, n * 4)); CHECK(cudaMalloc(&s, 8)); CHECK(cudaMalloc(&order, (blocks + 1) * 4));
    CHECK(cudaMemset(s, 0, 8)); CHECK(cudaMemset(order, 0, (blocks + 1) * 4));
    CHECK(cudaMemcpy(d, data.data(), n * 4, cudaMemcpyHostToDevice));
    reduce<<<blocks, 256>>>(d, n, s, order);
    CHECK(cudaMemcpy(&sum, s, 8, cudaMemcpyDeviceToHost));
    // Which block came when is up to simulated time.
    std::vector<int> found(blocks);
    CHECK(cudaMemcpy(found.data(), order, blocks * 4, cudaMemcpyDeviceToHost));
    for (int block : found) printf("%d ", block);
    printf("\n");
    return sum != expected;
}
static int text() {
    say<<<20, 64>>>(3);
    CHECK(cudaDeviceSynchronize());
    say<<<3, 64>>>(5);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
static int managed() {
    const int n = 50000;
    int *data;
    CHECK(cudaMallocManaged(&data, n * 4));
    for (int i = 0; i < n; i++) data[i] = i;
    for (int turn = 0; turn < 2; turn++) {
        twice<<<30, 256>>>(data, n);
        CHECK(cudaDeviceSynchronize());
        data[turn] += 1;
    }
    for (int i = 2; i < n; i++) if (data[i] != 4 * i) return 1;
    return data[0] != 2 || data[1] != 5;
}
static int gpus() {
    int count = 0, wrong = 0;
    CHECK(cudaGetDeviceCount(&count));
    const int n = 12000;
    std::vector<int *> data(count);
    std::vector<int> host(n);
    for (int gpu = 0; gpu < count; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaMalloc(&data[gpu], n * 4));
        for (int i = 0; i < n; i++) host[i] = i + gpu;
        CHECK(cudaMemcpy(data[gpu], host.data(), n * 4, cudaMemcpyHostToDevice));
        twice<<<20, 128>>>(data[gpu], n);
    }
    for (int gpu = 0; gpu < count; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaMemcpy(host.data(), data[gpu], n * 4, cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; i++) wrong += host[i] != 2 * (i + gpu);
    }
    printf("%d GPUs\n", count);
    return wrong != 0;
}
static int threads() {
    std::vector<std::thread> all;
    int wrong = 0;
    for (int t = 0; t < 2; t++) all.emplace_back([t, &wrong] {
        const int n = 5000;
        std::vector<int> host(n, t + 1);
        int *data; cudaStream_t stream;
        CHECK(cudaStreamCreate(&stream));
        CHECK(cudaMalloc(&data, n * 4));
        for (int turn = 0; turn < 3; turn++) {
            CHECK(cudaMemcpyAsync(data, host.data(), n * 4, cudaMemcpyHostToDevice, stream));
            twice<<<10, 128, 0, stream>>>(data, n);
            CHECK(cudaStreamSynchronize(stream));
            CHECK(cudaMemcpy(host.data(), data, n * 4, cudaMemcpyDeviceToHost));
        }
        for (int x : host) wrong += x != 8 * (t + 1);
    });
    for (auto &thread : all) thread.join();
    return wrong != 0;
}
static int fault() {
    add<<<300, 64>>>((float *)0x10, nullptr, nullptr, 1 << 20);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(error));
    return error != cudaErrorIllegalAddress;
}
static int endless() {
    int *flag;
    CHECK(cudaMalloc(&flag, 4096));
    spin<<<64, 128>>>(flag, 1ll << 40);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
int main(int count, char **words) {
    const char *name = count > 1 ? words[1] : "";
    struct { const char *name; int (*run)(); } all[] = {{"sums", sums}, {"atomics", atomics}, {"text", text},
        {"managed", managed}, {"gpus", gpus}, {"threads", threads}, {"fault", fault}, {"endless", endless}};
    for (auto &one : all) if (!strcmp(one.name, name)) {
        int wrong = one.run();
        printf("%s\n", wrong ? "FAIL" : "PASS");
        return wrong;
    }
    return 2;
}
"#;

fn run(folder: &Folder, out: &str, options: &[&str], program: &str) -> Said {
    let mut all = vec!["run", "--quiet", "--out", out];
    all.extend(options);
    all.extend(["--", "./program", program]);
    folder.run(&all)
}

fn summary(folder: &Folder, out: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.0.join(out).join("summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn results_are_those_of_one_process() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90"]) {
        return;
    }
    let programs: [(&str, &[&str]); 8] = [
        ("sums", &[]),
        ("atomics", &[]),
        ("text", &[]),
        ("managed", &[]),
        ("gpus", &["--gpus", "2"]),
        ("threads", &[]),
        ("fault", &[]),
        ("sums", &["--mode", "functional"]),
    ];
    for (program, options) in programs {
        let mut expected = None;
        for (ranks, threads) in [("1", "1"), ("2", "1"), ("2", "2"), ("4", "1"), ("4", "2")] {
            let out = format!("{program}-{}-{ranks}-{threads}", options.len());
            let mut all = vec!["--ranks", ranks, "--threads", threads];
            all.extend(options);
            let said = run(&folder, &out, &all, program);
            let kernels = std::fs::read_to_string(folder.0.join(&out).join("kernels.csv")).unwrap();
            let statistics =
                std::fs::read_to_string(folder.0.join(&out).join("stats.csv")).unwrap();
            let summary = summary(&folder, &out);
            let found = (
                said.code,
                said.out.clone(),
                summary["digest"].to_string(),
                summary["ending"]["problems"].to_string(),
                kernels,
                statistics,
            );
            assert!(said.out.contains("PASS"), "{out}: {said:?}");
            assert!(summary["digest"].is_string(), "{out}: {said:?}");
            let expected = expected.get_or_insert_with(|| found.clone());
            assert!(*expected == found, "{out}: {said:?}");
        }
    }
}

#[test]
fn what_needs_one_process_is_refused() {
    let folder = Folder::new();
    let refused: [&[&str]; 6] = [
        &["--series", "1000 cycles"],
        &["--lines"],
        &["--check", "memory"],
        &["--checkpoint-every", "1s"],
        &["--detail", "sampled"],
        &["--debug", "sm 0,0,10"],
    ];
    for options in refused {
        let mut all = vec!["run", "--ranks", "2"];
        all.extend(options);
        all.extend(["--", "true"]);
        let said = folder.run(&all);
        assert!(
            said.code != Some(0) && said.err.contains("--ranks"),
            "{options:?}: {said:?}"
        );
    }
    for count in ["0", "65", "many"] {
        let said = folder.run(&["run", "--ranks", count, "--", "true"]);
        assert!(
            said.code != Some(0) && said.err.contains("from 1 to 64"),
            "{said:?}"
        );
    }
    // Somebody who is no rank is not taken for one.
    let mut command = folder.lockstep();
    command
        .env("LOCKSTEP_RANK", "1 of 2")
        .args(["run", "--", "true"]);
    let said = Said::from(command.output().unwrap());
    assert!(
        said.code != Some(0) && said.err.contains("LOCKSTEP_RANK"),
        "{said:?}"
    );
}

#[test]
fn managed_memory_of_several_gpus_is_refused_where_ranks_would_page_it_differently() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90"]) {
        return;
    }
    let options = ["--gpus", "2", "--ranks", "2"];
    let said = run(&folder, "refused", &options, "managed");
    let warnings = summary(&folder, "refused")["warnings"].to_string();
    assert!(!said.out.contains("PASS"), "{said:?}");
    assert!(warnings.contains("run it with --ranks 1"), "{warnings}");
}

/// A run of three ranks that does not end, once it simulates.
fn endless(folder: &Folder) -> Child {
    let words = "run --ranks 3 --threads 1 --out out -- ./program endless";
    let mut command = folder.lockstep();
    command.args(words.split_whitespace());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until("two other ranks", PATIENCE, || ranks_of(&child).len() == 2);
    child
}

/// The processes of a run that are ranks.
fn ranks_of(child: &Child) -> Vec<Pid> {
    let path = format!("/proc/{0}/task/{0}/children", child.id());
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let named = children.split_whitespace().filter(|process| {
        let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
        name.is_ok_and(|name| name.trim_end() == "lockstep-rank")
    });
    named
        .filter_map(|process| Pid::from_raw(process.parse().ok()?))
        .collect()
}

#[test]
fn a_rank_that_dies_ends_the_run_with_its_name() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90"]) {
        return;
    }
    let child = endless(&folder);
    let ranks = ranks_of(&child);
    kill_process(ranks[1], Signal::KILL).unwrap();
    let said = Said::from(child.wait_with_output().unwrap());
    assert!(said.code.is_some_and(|code| code != 0), "{said:?}");
    let sentence = format!(
        "rank 2 (process {}) was ended by signal 9",
        ranks[1].as_raw_nonzero()
    );
    assert!(said.err.contains(&sentence), "{said:?}");
    let summary = summary(&folder, "out");
    assert_eq!(summary["state"], "failed");
    assert!(summary["digest"].is_null(), "half a run has no digest");
    assert!(test_kill_process(ranks[0]).is_err(), "no rank is left");
    assert_eq!(folder.sockets(), Vec::<String>::new());
}

#[test]
fn other_ranks_end_with_the_first() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90"]) {
        return;
    }
    // However it ends: asked to, or without warning.
    for signal in [Signal::INT, Signal::KILL] {
        let mut child = endless(&folder);
        let ranks = ranks_of(&child);
        support::signal(&child, signal);
        assert!(!child.wait().unwrap().success());
        wait_until("no rank is left", PATIENCE, || {
            ranks.iter().all(|rank| test_kill_process(*rank).is_err())
        });
        wait_until("no socket is left", PATIENCE, || {
            folder.sockets().is_empty()
        });
        std::fs::remove_dir_all(folder.0.join("out")).unwrap();
    }
}
