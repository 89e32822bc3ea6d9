//! Threads of one process that wait for each other as libraries of collectives do: one digest, and what is said where
//! the host decides. Without nvcc or the interposition libraries these tests say so and pass.

mod support;

use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;
use support::runs::assert_one;
use support::{Folder, build_cuda, wait_until};

const LIBRARY: &str = include_str!("sources/threads_share_library.cu");
const MEET: &str = include_str!("sources/threads_meet.cu");

/// The command of a run on two GPUs with so many threads.
fn run_with(threads: &str) -> [&str; 10] {
    let options = ["run", "--quiet", "--force", "--out", "out", "--gpus", "2"];
    let [run, quiet, force, out, folder, gpus, two] = options;
    [
        run,
        quiet,
        force,
        out,
        folder,
        gpus,
        two,
        "--threads",
        threads,
        "--",
    ]
}

#[test]
fn threads_that_meet_over_sockets_with_short_time_outs_have_one_digest() {
    let folder = Folder::new();
    if !build_cuda(&folder, MEET, &["-arch=sm_90"]) {
        return;
    }
    let digests = ["1", "2"].map(|threads| {
        let said = folder.run(&[&run_with(threads)[..], &["./program"]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("PASS: met"), "{said:?}");
        folder.digest()
    });
    assert_one(&digests);
}

#[test]
fn who_connects_from_outside_the_run_is_told_of() {
    let folder = Folder::new();
    if !build_cuda(&folder, MEET, &["-arch=sm_90"]) {
        return;
    }
    let port = folder.0.join("port");
    let mut run = folder.lockstep();
    let stranger = ["./program", "stranger", "port"];
    run.args([&run_with("1")[..], &stranger].concat());
    let mut run = run.spawn().unwrap();
    let read = || {
        let text = std::fs::read_to_string(&port).ok()?;
        text.strip_suffix('\n')?.parse::<u16>().ok()
    };
    wait_until("it listens", Duration::from_secs(120), || read().is_some());
    let mut stream = TcpStream::connect(("127.0.0.1", read().unwrap())).unwrap();
    // Until the program has done what it came for.
    let _ = stream.read(&mut [0]);
    assert!(run.wait().unwrap().success());
    let depends = folder.summary()["depends_on_host"].to_string();
    assert!(
        depends
            .contains("somebody outside the run has one (a TCP socket that listens at 127.0.0.1:"),
        "{depends}"
    );
}

#[test]
fn threads_that_wait_for_a_lock_of_the_library_call_in_one_order() {
    let folder = Folder::new();
    if !build_cuda(&folder, LIBRARY, &["-arch=sm_90", "-std=c++17"]) {
        return;
    }
    let said: Vec<String> = ["1", "2", "4", "1"]
        .iter()
        .map(|threads| {
            let said = folder.run_program(&["--threads", threads], &["./program"]);
            assert_eq!(said.code, Some(0), "{said:?}");
            folder.digest();
            said.out
        })
        .collect();
    assert_one(&said);
}
