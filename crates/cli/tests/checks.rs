//! Planted faults, one a kernel: each is found and named right, in both modes and for any number of threads; and what a
//! GPU lets pass is let pass, and said. Without nvcc or the interposition libraries these tests say so and pass.

mod support;

use support::{Folder, Said, build_cuda};

const PROGRAM: &str = include_str!("../../../workloads/checks/planted_faults.cu");

/// A planted fault.
struct Case {
    /// Its kernel, which is its name.
    name: &'static str,
    /// The check that finds it.
    check: &'static str,
    /// The first thread that does it.
    thread: &'static str,
    /// What is said of it.
    parts: &'static [&'static str],
}

const fn case(
    name: &'static str,
    check: &'static str,
    thread: &'static str,
    parts: &'static [&'static str],
) -> Case {
    Case {
        name,
        check,
        thread,
        parts,
    }
}

const CASES: &[Case] = &[
    case(
        "global_load_past_end",
        "memory",
        "(63,0,0)",
        &[
            "illegal global load of 4 bytes",
            "0 bytes past the end of",
            "(400 bytes)",
            "allocated by CUDA call",
        ],
    ),
    case(
        "global_store_before_start",
        "memory",
        "(0,0,0)",
        &["illegal global store of 4 bytes", "4 bytes before"],
    ),
    case(
        "global_load_before_start",
        "memory",
        "(0,0,0)",
        &["illegal global load of 4 bytes", "4 bytes before"],
    ),
    case(
        "global_store_far_away",
        "memory",
        "(33,0,0)",
        &["illegal global store of 4 bytes", "past the end of"],
    ),
    case(
        "global_load_null",
        "memory",
        "(5,0,0)",
        &["load of 4 bytes at 0x0"],
    ),
    case(
        "global_load_misaligned",
        "memory",
        "(9,0,0)",
        &["misaligned global load", "is not a multiple of 8"],
    ),
    case(
        "global_atomic_past_end",
        "memory",
        "(50,0,0)",
        &["illegal global", "of 4 bytes", "0 bytes past the end of"],
    ),
    case(
        "load_after_free",
        "memory",
        "(0,0,0)",
        &[
            "illegal global load of 4 bytes",
            "400 bytes at",
            "and freed by call",
        ],
    ),
    case(
        "async_copy_past_end",
        "memory",
        "(25,0,0)",
        &[
            "copy to shared memory of 16 bytes",
            "0 bytes past the end of",
        ],
    ),
    case(
        "shared_store_past_end",
        "memory",
        "(40,0,0)",
        &[
            "illegal shared store of 4 bytes",
            "bytes of shared memory of the block",
        ],
    ),
    case(
        "shared_load_past_end",
        "memory",
        "(50,0,0)",
        &[
            "illegal shared load of 4 bytes",
            "bytes of shared memory of the block",
        ],
    ),
    case(
        "shared_load_misaligned",
        "memory",
        "",
        &["misaligned shared load"],
    ),
    case(
        "local_store_past_end",
        "memory",
        "(0,0,0)",
        &["illegal local store of 4 bytes"],
    ),
    case(
        "heap_free_twice",
        "memory",
        "(0,0,0)",
        &["which is no allocation of the device heap"],
    ),
    case(
        "load_uninitialised",
        "initialised",
        "",
        &[
            "global load of 4 bytes",
            "never written",
            "64 threads in all",
        ],
    ),
    case(
        "load_uninitialised_tail",
        "initialised",
        "(32,0,0)",
        &["never written", "32 threads in all"],
    ),
    case(
        "load_other_half",
        "initialised",
        "(0,0,0)",
        &["never written", "32 threads in all"],
    ),
    case(
        "atomic_uninitialised",
        "initialised",
        "",
        &["never written"],
    ),
    case(
        "race_read_after_write",
        "race",
        "",
        &[
            "read-after-write hazard on 4 bytes",
            "nothing orders the two",
        ],
    ),
    case(
        "race_write_after_read",
        "race",
        "",
        &["write-after-read hazard on 4 bytes", "read at instruction"],
    ),
    case(
        "race_write_after_write",
        "race",
        "(32,0,0)",
        &[
            "write-after-write hazard on 4 bytes",
            "thread (0,0,0) wrote",
        ],
    ),
    case(
        "race_within_warp",
        "race",
        "(0,0,0)",
        &["read-after-write hazard on 4 bytes", "thread (1,0,0) wrote"],
    ),
    case(
        "race_async_copy",
        "race",
        "",
        &["read-after-write hazard", "its copy was not waited for"],
    ),
    case(
        "race_named_barrier",
        "race",
        "",
        &["read-after-write hazard on 4 bytes"],
    ),
    case(
        "barrier_in_branch",
        "barriers",
        "",
        &["reached by 16 of the 32 threads of a warp"],
    ),
    case(
        "barrier_count_wrong",
        "barriers",
        "",
        &["48 threads", "no number of whole warps"],
    ),
    case(
        "syncwarp_without_caller",
        "barriers",
        "(16,0,0)",
        &["by a thread that is not one of them"],
    ),
    case(
        "mbarrier_not_initialised",
        "barriers",
        "(0,0,0)",
        &["that nobody has initialised"],
    ),
];

/// The line of the program that a kernel's fault is at, as reports write it.
fn line(kernel: &str) -> String {
    let begins = format!("__global__ void {kernel}(");
    let mut lines = PROGRAM.lines().enumerate();
    lines.find(|(_, line)| line.starts_with(&begins));
    let (number, _) = lines.find(|(_, line)| line.contains("// fault")).unwrap();
    format!("program.cu:{}", number + 1)
}

fn build() -> Option<Folder> {
    let folder = Folder::new();
    build_cuda(&folder, PROGRAM, &["-arch=sm_90", "-lineinfo"]).then_some(folder)
}

fn run(folder: &Folder, options: &[&str], name: &str) -> Said {
    let mut arguments = vec!["run", "--quiet", "--out", "results", "--overwrite"];
    arguments.extend(options);
    arguments.extend(["--", "./program", name]);
    folder.run(&arguments)
}

/// What is wrong with what is said of a case.
fn check(folder: &Folder, case: &Case, options: &[&str]) -> Vec<String> {
    let Case {
        name,
        check,
        thread,
        parts,
    } = case;
    let all = [&["--check", "all"], options].concat();
    let said = run(folder, &all, name);
    let table = std::fs::read_to_string(folder.0.join("results/checks.csv")).unwrap_or_default();
    let place = format!("{name} {options:?}");
    let mut wrong = Vec::new();
    if said.code == Some(0) {
        wrong.push(format!("{place}: exit code 0"));
    }
    let mut wanted = vec![format!("check {check}: kernel `{name}(")];
    // What frees is a function of the system, without lines.
    if *name != "heap_free_twice" {
        wanted.push(line(name));
    }
    if !thread.is_empty() {
        wanted.push(format!("thread {thread}"));
    }
    wanted.extend(parts.iter().map(|part| part.to_string()));
    for part in wanted {
        if !said.err.contains(&part) {
            wrong.push(format!("{place}: no `{part}` in {}", said.err));
        }
    }
    let rows: Vec<&str> = table.lines().skip(1).collect();
    // A race may be met from both of its sides, and a barrier in both branches.
    let sides = if matches!(*check, "race" | "barriers") {
        2
    } else {
        1
    };
    let mut found = rows.iter().map(|row| row.starts_with(&format!("{check},")));
    if rows.is_empty() || rows.len() > sides || !found.all(|of_check| of_check) {
        wrong.push(format!("{place}: not only `{check}` in {table}"));
    }
    wrong
}

#[test]
fn every_planted_fault_is_found_in_both_modes() {
    let Some(folder) = build() else { return };
    let mut wrong = Vec::new();
    for case in CASES {
        wrong.extend(check(&folder, case, &["--mode", "functional"]));
        wrong.extend(check(&folder, case, &["--mode", "timing"]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What cannot be found in PTX: it does not say which copies are waited for, where lanes come together again is for a
/// compiler to say, and `cp.async` may lie in a function without the line of its caller.
const NOT_IN_PTX: &[&str] = &[
    "race_async_copy",
    "barrier_in_branch",
    "syncwarp_without_caller",
    "async_copy_past_end",
];

#[test]
fn planted_faults_are_found_in_ptx() {
    let Some(folder) = build() else { return };
    let mut wrong = Vec::new();
    for case in CASES.iter().filter(|case| !NOT_IN_PTX.contains(&case.name)) {
        let options = ["--mode", "functional", "--frontend", "ptx"];
        wrong.extend(check(&folder, case, &options));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn threads_of_the_host_do_not_show_in_what_is_found() {
    let Some(folder) = build() else { return };
    for name in ["load_uninitialised", "race_named_barrier"] {
        let tables = ["1", "2", "5"].map(|threads| {
            let options = ["--check", "all", "--threads", threads];
            run(&folder, &options, name);
            std::fs::read_to_string(folder.0.join("results/checks.csv")).unwrap()
        });
        assert!(tables[0].lines().count() > 1, "{}", tables[0]);
        assert!(
            tables[1] == tables[0] && tables[2] == tables[0],
            "{tables:?}"
        );
    }
}

#[test]
fn a_program_without_faults_is_left_alone() {
    let Some(folder) = build() else { return };
    let said = run(&folder, &["--check", "all,leaks"], "nothing");
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let said = run(&folder, &["--check", "all,leaks"], "barrier_after_exit");
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert!(!folder.0.join("results/checks.csv").exists());
    let said = run(&folder, &["--check", "leaks"], "leak");
    assert_ne!(said.code, Some(0));
    assert!(
        said.err.contains("check leaks: 400 bytes at"),
        "{}",
        said.err
    );
}

/// Code is loaded after a kernel has ended the context.
#[test]
fn a_fault_is_said_once() {
    let folder = Folder::new();
    let program = r#"#include <cstdio>
#include <cuda_runtime.h>
__global__ void wild(int* p) { p[1ull << 36] = 1; }
int main() {
    int* p;
    cudaMalloc(&p, 4);
    wild<<<1, 1>>>(p);
    printf("%d", cudaDeviceSynchronize());
    cudaLibrary_t library;
    cudaKernel_t kernel;
    const char* ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
    printf(" %d", cudaLibraryLoadData(&library, ptx, 0, 0, 0, 0, 0, 0));
    cudaLibraryGetKernel(&kernel, library, "k");
    printf(" %d\n", cudaLaunchKernel((void*)kernel, 1, 1, nullptr));
}
"#;
    if !build_cuda(&folder, program, &["-arch=sm_90"]) {
        return;
    }
    let said = folder.run(&["run", "--quiet", "--", "./program"]);
    assert!(said.out.starts_with("700 "), "{said:?}");
    let times = said.err.matches("lockstep: kernel `wild`").count();
    assert_eq!(times, 1, "{}", said.err);
    assert!(!said.err.contains("cannot be loaded"), "{}", said.err);
}

/// What an H200 and compute-sanitizer said of the faults.
const RECORDED: &str = include_str!("../../../validation/checks/h200.csv");

/// The recorded rows: fault, result without a tool, and what memcheck, initcheck, racecheck and synccheck said.
fn recorded() -> Vec<Vec<String>> {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let cells = |line: &str| {
        let mut cells = vec![String::new()];
        let mut quoted = false;
        for letter in line.chars() {
            match letter {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                letter => cells.last_mut().unwrap().push(letter),
            }
        }
        cells
    };
    lines.skip(1).map(cells).collect()
}

/// Where the simulator differs on purpose, with the reason.
const DIFFERENCES: &[(&str, &str)] = &[(
    "mbarrier_not_initialised",
    "a barrier of zeros expects no arrival",
)];

#[test]
fn without_a_check_every_fault_ends_as_on_an_h200() {
    let Some(folder) = build() else { return };
    let mut wrong = Vec::new();
    for row in recorded() {
        let (name, result) = (&row[0], &row[1]);
        let differs = DIFFERENCES.iter().any(|(other, _)| other == name);
        let said = run(&folder, &["--mode", "functional"], name);
        if (said.out == format!("{name}: {result}\n")) == differs {
            wrong.push(format!("{name}: {result} on an H200, here {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// compute-sanitizer finds the same faults, by the same threads.
#[test]
fn compute_sanitizer_agrees() {
    let recorded = recorded();
    for Case {
        name,
        check,
        thread,
        ..
    } in CASES
    {
        let Some(row) = recorded.iter().find(|row| row[0] == *name) else {
            continue;
        };
        let tools = ["memory", "initialised", "race", "barriers"];
        for (tool, said) in tools.into_iter().zip(&row[2..]) {
            // A barrier of 48 threads is an illegal instruction, which memcheck reports and synccheck does not.
            let expected = if *name == "barrier_count_wrong" {
                "memory"
            } else {
                check
            };
            // An illegal instruction is one for memcheck too.
            let illegal = said.starts_with("Illegal instruction");
            assert!(
                illegal || said.is_empty() == (tool != expected),
                "{name}: {tool}: {said}"
            );
            if tool == *check && said.contains("by thread") && tool != "barriers" {
                assert!(thread.is_empty() || said.contains(thread), "{name}: {said}");
            }
        }
    }
}

#[test]
fn what_a_gpu_lets_pass_passes_and_is_said() {
    let Some(folder) = build() else { return };
    for name in [
        "global_load_past_end",
        "global_atomic_past_end",
        "load_after_free",
    ] {
        let said = run(&folder, &["--mode", "functional"], name);
        assert_eq!(said.out, format!("{name}: cudaSuccess\n"), "{said:?}");
        assert_eq!(said.code, Some(0), "{said:?}");
        let parts = [
            "lets this pass: kernel",
            &line(name),
            "nearest allocation",
            "allocated by CUDA call",
            "--check memory",
        ];
        for part in parts {
            assert!(
                said.err.contains(part),
                "{name}: no `{part}` in {}",
                said.err
            );
        }
    }
}
