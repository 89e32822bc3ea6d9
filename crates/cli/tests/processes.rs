//! Several processes of one run: what they share, in which order their calls count, and what is said of one
//! that dies. Without nvcc or the interposition libraries these tests say so and pass.

mod support;

use support::runs::assert_one;
use support::{Folder, Said, build_cuda};

const ENDS_IN_CALL: &str = include_str!("sources/ends_in_call.cu");
const HALVES: &str = include_str!("sources/process_halves.cu");
const RANK: &str = include_str!("sources/rank.cu");
const RELAY: &str = include_str!("sources/process_relay.cu");

/// Runs the halves so many times with each number of threads; all have one digest.
fn halves(folder: &Folder, options: &[&str], gpus: &str, times: u32) {
    let mut digests = Vec::new();
    for threads in ["1", "2", "4"] {
        for _ in 0..times {
            let all = [options, &["--threads", threads]].concat();
            let said = folder.run_program(&all, &["./program"]);
            assert_eq!(said.code, Some(0), "{said:?}");
            assert!(
                said.out.starts_with(&format!("PASS: {gpus} GPUs")),
                "{said:?}"
            );
            digests.push(folder.digest());
        }
    }
    assert_one(&digests);
    assert_eq!(folder.sockets(), Vec::<String>::new());
}

#[test]
fn two_processes_fill_the_halves_of_a_buffer_with_one_digest() {
    let folder = Folder::new();
    if !build_cuda(&folder, HALVES, &["-arch=sm_90"]) {
        return;
    }
    halves(&folder, &[], "1", 1);
    // Each with a GPU of its own, over a link.
    halves(&folder, &["--gpus", "2"], "2", 1);
}

#[test]
fn what_two_processes_called_is_replayed_saved_and_loaded() {
    let folder = Folder::new();
    if !build_cuda(&folder, HALVES, &["-arch=sm_90"]) {
        return;
    }
    let said = folder.run(&["verify", "--quick", "--", "./program"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("all 3 ways gave the digest"), "{said:?}");
}

#[test]
#[ignore = "minutes: 20 runs for each number of threads, to be started while the machine is busy"]
fn sixty_runs_of_two_processes_have_one_digest() {
    let folder = Folder::new();
    if build_cuda(&folder, HALVES, &["-arch=sm_90"]) {
        halves(&folder, &[], "1", 20);
    }
}

#[test]
fn ranks_decide_on_the_order_and_not_who_was_started_first() {
    let folder = Folder::new();
    if !build_cuda(&folder, RANK, &["-arch=sm_90"]) {
        return;
    }
    let digests = ["0 1 2", "2 1 0", "1 2 0"].map(|order| {
        let script =
            format!("for rank in {order}; do LOCAL_RANK=$rank ./program $rank & done; wait");
        let said = folder.run_program(&[], &["sh", "-c", &script]);
        assert_eq!(said.code, Some(0), "{said:?}");
        folder.digest()
    });
    assert_one(&digests);
}

#[test]
fn a_process_that_is_killed_is_named_and_the_others_go_on() {
    let folder = Folder::new();
    if !build_cuda(&folder, RANK, &["-arch=sm_90"]) {
        return;
    }
    let script = "./program 1 9 & ./program 0; echo ended with $?; wait";
    let said = folder.run_program(&[], &["sh", "-c", script]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("ended with 0\n"), "{said:?}");
    assert!(
        said.err.contains("(./program) was ended by signal 9"),
        "{said:?}"
    );
    assert_eq!(folder.sockets(), Vec::<String>::new());
}

#[test]
fn a_process_that_ends_while_one_of_its_threads_waits_lets_the_others_go_on() {
    let folder = Folder::new();
    if !build_cuda(&folder, ENDS_IN_CALL, &["-arch=sm_90", "-std=c++20"]) {
        return;
    }
    let digests = ["1", "2"].map(|threads| {
        let said = folder.run_program(&["--threads", threads], &["./program"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("PASS: kernel 1"), "{said:?}");
        folder.digest()
    });
    assert_one(&digests);
}

#[test]
fn a_process_whose_work_is_lost_by_the_fault_of_another_hears_of_it() {
    let folder = Folder::new();
    if !build_cuda(&folder, HALVES, &["-arch=sm_90"]) {
        return;
    }
    let said = folder.run_program(&[], &["./program", "fault"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(
        said.out
            .contains("rank 1: cudaDeviceSynchronize(): cudaErrorIllegalAddress"),
        "{said:?}"
    );
    assert!(
        said.out
            .contains("rank 0: cudaDeviceSynchronize(): cudaErrorLaunchFailure"),
        "{said:?}"
    );
    // With a GPU of its own nothing of the first one is lost; it finds out that the other is not done.
    let said = folder.run_program(&["--gpus", "2"], &["./program", "fault"]);
    assert!(!said.out.contains("rank 0:"), "{said:?}");
}

#[test]
fn a_process_that_comes_when_the_clock_says_so_makes_the_run_depend_on_it() {
    let folder = Folder::new();
    if !build_cuda(&folder, RANK, &["-arch=sm_90"]) {
        return;
    }
    let script = "(while [ ! -e done ]; do sleep 0.1; done; exec ./program 1) & ./program 0; touch done; wait";
    let said = folder.run_program(&[], &["sh", "-c", script]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let text = std::fs::read_to_string(folder.0.join("out/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(summary["reproducible"], false, "{text}");
    assert!(
        summary["depends_on_host"][0]
            .to_string()
            .contains("(sleep)"),
        "{text}"
    );
}

/// Runs processes whose kernels wait for each other.
fn relay(folder: &Folder, options: &[&str], processes: &str, mode: &str) -> Said {
    let said = folder.run_program(options, &["./program", processes, mode]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("PASS: 0 of"), "{said:?}");
    assert_eq!(folder.sockets(), Vec::<String>::new());
    said
}

#[test]
fn kernels_that_wait_for_those_of_other_processes_end_with_one_digest() {
    let folder = Folder::new();
    if !build_cuda(&folder, RELAY, &["-arch=sm_90"]) {
        return;
    }
    for (gpus, processes) in [("1", "2"), ("2", "2"), ("4", "4")] {
        let digests = ["1", "2", "4"].map(|threads| {
            let options = ["--gpus", gpus, "--threads", threads];
            relay(&folder, &options, processes, "");
            folder.digest()
        });
        assert_one(&digests);
    }
}

#[test]
fn a_call_that_comes_while_time_passes_for_another_process_is_served() {
    let folder = Folder::new();
    if !build_cuda(&folder, RELAY, &["-arch=sm_90"]) {
        return;
    }
    relay(&folder, &["--gpus", "2"], "3", "sleep");
    dependences(&folder);
    // When it came is in the record.
    let said = folder.run(&["verify", "--quick", "--", "./program", "2", "sleep"]);
    assert!(said.out.contains("all 3 ways gave the digest"), "{said:?}");
}

/// Why the last run depends on the host.
fn dependences(folder: &Folder) -> String {
    let text = std::fs::read_to_string(folder.0.join("out/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(summary["reproducible"], false, "{text}");
    summary["depends_on_host"].to_string()
}

#[test]
fn a_process_that_computes_for_long_is_waited_for_and_given_up_where_that_is_said() {
    let folder = Folder::new();
    if !build_cuda(&folder, RELAY, &["-arch=sm_90"]) {
        return;
    }
    let digests = ["1", "2"].map(|threads| {
        let options = ["--gpus", "4", "--threads", threads];
        relay(&folder, &options, "4", "compute");
        folder.digest()
    });
    assert_eq!(digests[0], digests[1]);
    let impatient = ["--gpus", "4", "--patience", "100ms"];
    relay(&folder, &impatient, "4", "compute");
    let said = dependences(&folder);
    assert!(said.contains("computing for longer"), "{said}");
}

#[test]
fn processes_that_spin_until_another_has_waited_do_not_hang() {
    let folder = Folder::new();
    if !build_cuda(&folder, RELAY, &["-arch=sm_90"]) {
        return;
    }
    relay(&folder, &["--patience", "200ms"], "3", "spin");
    let said = dependences(&folder);
    assert!(said.contains("computing for longer"), "{said}");
}

#[test]
fn a_process_that_is_killed_ends_those_that_wait_for_it() {
    let folder = Folder::new();
    if !build_cuda(&folder, RELAY, &["-arch=sm_90"]) {
        return;
    }
    for (gpus, processes) in [("1", "2"), ("4", "4")] {
        let said = folder.run_program(&["--gpus", gpus], &["./program", processes, "die"]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(
            said.err.contains("(./program) was ended by signal 9"),
            "{said:?}"
        );
        let told = said.out.matches("cudaErrorMpsClientTerminated").count();
        assert_eq!(told + 1, processes.parse::<usize>().unwrap(), "{said:?}");
        assert_eq!(folder.sockets(), Vec::<String>::new());
    }
}
