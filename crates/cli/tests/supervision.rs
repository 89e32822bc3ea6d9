//! How programs start and end, and what is left when either side is killed.

mod support;

use lockstep_protocol::{
    ClientConnection, Copy, Extent, Hello, Place, Reply, Request, Rows, SOCKET_VARIABLE,
    StreamName, window,
};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{Folder, eventually};

const CLIENT: &str = "LOCKSTEP_TEST_CLIENT";

/// Not a test: what runs when this file is started as the program of a run.
#[test]
fn acts_as_a_program() {
    let (Some(socket), Some(part)) = (std::env::var_os(SOCKET_VARIABLE), std::env::var_os(CLIENT))
    else {
        return;
    };
    let hello = Hello {
        process: std::process::id(),
        thread: 1,
        name: "test".into(),
        node: Ok(0),
    };
    let (mut connection, welcome, file) =
        ClientConnection::connect(Path::new(&socket), &hello).unwrap();
    let mut ask = |request: Request| connection.call(&request).unwrap().result;
    let Ok(Reply::Context(context)) = ask(Request::PrimaryContextRetain { device: 0 }) else {
        panic!()
    };
    let Ok(Reply::Address(address)) = ask(Request::Allocate {
        context,
        bytes: 4096,
    }) else {
        panic!()
    };
    let copy = |destination, source| {
        Request::Copy(Copy {
            context,
            stream: StreamName::Legacy,
            destination,
            source,
            extent: Extent::linear(4096),
            blocking: true,
        })
    };
    let place = Place::Window(Rows::linear(address, 4096));
    assert_eq!(ask(copy(place, Place::Host)), Ok(Reply::Done));
    let memory = window::Window::map_anywhere(&file).unwrap();
    let offset = (address - welcome.window_base) as usize;
    // SAFETY: the allocation lies in the window, and only this program uses it.
    unsafe { memory.start().add(offset).write_bytes(7, 4096) };
    assert_eq!(ask(copy(Place::Host, place)), Ok(Reply::Done));
    println!("attached to {}", welcome.devices[0].name);
    match part.to_str() {
        Some("wait") => {
            println!("ready");
            std::thread::sleep(Duration::from_secs(60));
        }
        Some("die") => std::process::abort(),
        Some("fill") => {
            let bytes = 4 << 30;
            let Ok(Reply::Address(address)) = ask(Request::Allocate { context, bytes }) else {
                panic!()
            };
            let start = (address - welcome.window_base) as usize;
            for page in (0..bytes as usize).step_by(64 << 10) {
                // SAFETY: as above.
                unsafe { memory.start().add(start + page).write_bytes(1, 64 << 10) };
                std::thread::sleep(Duration::from_micros(300));
            }
        }
        _ => {}
    }
}

fn as_program(part: &str) -> (Vec<String>, (String, String)) {
    let program = std::env::current_exe().unwrap().display().to_string();
    let words = [
        "run",
        "--mode",
        "functional",
        "--",
        &program,
        "--exact",
        "acts_as_a_program",
        "--nocapture",
    ];
    (
        words.map(String::from).to_vec(),
        (CLIENT.into(), part.into()),
    )
}

#[test]
fn a_program_that_speaks_the_protocol_is_served_and_leaves_a_run_folder() {
    let folder = Folder::new();
    let (words, (name, value)) = as_program("end");
    let output = folder
        .lockstep()
        .args(words)
        .env(name, value)
        .output()
        .unwrap();
    let said = support::Said::from(output);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("attached to NVIDIA H200"), "{said:?}");
    let runs = std::fs::read_dir(folder.0.join("lockstep-out"))
        .unwrap()
        .map(|run| run.unwrap().path());
    let run = runs.collect::<Vec<_>>().pop().unwrap();
    let summary = std::fs::read_to_string(run.join("summary.json")).unwrap();
    for part in [
        "\"digest\": \"",
        "\"exit_code\": 0",
        "\"calls\": 4",
        "\"configuration\"",
    ] {
        assert!(summary.contains(part), "{part} in {summary}");
    }
    assert!(
        run.join("kernels.csv").exists()
            && run.join("stats.csv").exists()
            && run.join("calls.record").exists()
    );
    assert_eq!(folder.sockets(), Vec::<String>::new());
}

#[test]
fn equal_calls_give_equal_digests_and_data_counts() {
    let folder = Folder::new();
    let digest = |out: &str| {
        let (mut words, (name, value)) = as_program("end");
        words.splice(1..1, ["--out".to_string(), out.to_string()]);
        folder
            .lockstep()
            .args(words)
            .env(name, value)
            .output()
            .unwrap();
        let summary = std::fs::read_to_string(folder.0.join(out).join("summary.json")).unwrap();
        summary
            .lines()
            .find(|line| line.contains("\"digest\""))
            .unwrap()
            .to_string()
    };
    assert_eq!(digest("one"), digest("two"));
}

#[test]
fn a_missing_program_is_said_to_be_missing() {
    let folder = Folder::new();
    let said = folder.run(&["run", "--", "./nothing"]);
    assert_eq!(
        (said.code, said.err.as_str()),
        (Some(127), "lockstep: ./nothing: no such program\n")
    );
    let said = folder.run(&["run", "--", "surely-not-in-path"]);
    assert_eq!(said.code, Some(127));
    assert!(said.err.contains("write ./ before its name"), "{said:?}");
    assert!(!folder.0.join("lockstep-out").exists());
}

#[test]
fn what_is_not_executable_is_refused() {
    let folder = Folder::new();
    std::fs::write(folder.0.join("data"), "x").unwrap();
    let said = folder.run(&["run", "--", "./data"]);
    assert_eq!(said.code, Some(126));
    assert!(said.err.contains("not executable"), "{said:?}");
    let said = folder.run(&["run", "--", "/tmp"]);
    assert!(
        said.code == Some(126) && said.err.contains("it is a directory"),
        "{said:?}"
    );
    let program = folder.script("nonsense", "#!/no/such/interpreter\n");
    let said = folder.run(&["run", "--", &program]);
    assert!(
        said.code == Some(126) && said.err.contains("interpreter"),
        "{said:?}"
    );
}

#[test]
fn a_script_without_cuda_keeps_its_exit_code_and_is_told_so() {
    let folder = Folder::new();
    let program = folder.script("program", "#!/bin/sh\necho \"$1\"\nexit 3\n");
    let said = folder.run(&["run", "--", &program, "hello"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(3), "hello\n"),
        "{said:?}"
    );
    assert!(
        said.err
            .contains("made no CUDA call; nothing was simulated"),
        "{said:?}"
    );
    assert_eq!(folder.sockets(), Vec::<String>::new());
}

#[test]
fn a_program_ended_by_a_signal_is_named() {
    let folder = Folder::new();
    let program = folder.script("program", "#!/bin/sh\nkill -SEGV $$\n");
    let said = folder.run(&["run", "--", &program]);
    assert_eq!(said.code, Some(128 + 11));
    assert!(
        said.err
            .contains("was ended by signal 11 (segmentation fault)"),
        "{said:?}"
    );
    let (words, (name, value)) = as_program("die");
    let said = support::Said::from(
        folder
            .lockstep()
            .args(words)
            .env(name, value)
            .output()
            .unwrap(),
    );
    assert_eq!(said.code, Some(128 + 6), "{said:?}");
    assert_eq!(folder.sockets(), Vec::<String>::new());
}

/// Starts a run whose program waits, hands over the simulator's and the program's numbers, and
/// checks that both are gone within a second of `act`, with nothing left.
#[allow(
    clippy::disallowed_methods,
    reason = "the test is about the time of the host"
)]
fn ends_within_a_second(act: impl FnOnce(i32, i32)) -> Option<i32> {
    let folder = Folder::new();
    let (words, (name, value)) = as_program("wait");
    let mut simulator = folder
        .lockstep()
        .args(words)
        .env(name, value)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = simulator.stdout.take().unwrap();
    let mut text = String::new();
    let mut bytes = [0; 256];
    while !text.contains("ready") {
        let count = out.read(&mut bytes).unwrap();
        assert!(count > 0, "the program ended early: {text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let number = simulator.id() as i32;
    let children =
        std::fs::read_to_string(format!("/proc/{number}/task/{number}/children")).unwrap();
    let is_program = |child: &&str| {
        let name = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        !name.starts_with("lockstep-guard")
    };
    let program: i32 = children
        .split_whitespace()
        .find(is_program)
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(folder.sockets().len(), 1);
    let began = Instant::now();
    act(number, program);
    let status = simulator.wait().unwrap();
    let alive = || Path::new(&format!("/proc/{program}")).exists() && !is_zombie(program);
    assert!(eventually(|| !alive()), "the program is still there");
    assert!(
        eventually(|| folder.sockets().is_empty()),
        "left behind: {:?}",
        folder.sockets()
    );
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "it took {:?}",
        began.elapsed()
    );
    status.code().or(status.signal().map(|signal| -signal))
}

fn is_zombie(process: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|text| text.contains(") Z "))
}

fn kill(process: i32, signal: rustix::process::Signal) {
    let process = rustix::process::Pid::from_raw(process).unwrap();
    rustix::process::kill_process(process, signal).unwrap();
}

#[test]
fn killing_the_program_ends_the_simulator() {
    let code = ends_within_a_second(|_, program| kill(program, rustix::process::Signal::KILL));
    assert_eq!(code, Some(128 + 9));
}

#[test]
fn ending_the_simulator_ends_the_program() {
    let code = ends_within_a_second(|simulator, _| kill(simulator, rustix::process::Signal::TERM));
    assert_eq!(code, Some(128 + 15));
}

#[test]
fn killing_the_simulator_ends_the_program_and_leaves_nothing() {
    let code = ends_within_a_second(|simulator, _| kill(simulator, rustix::process::Signal::KILL));
    assert_eq!(code, Some(-9));
}

/// A control group of its own that may have so many bytes; `None` where this machine lets nobody
/// make one.
struct MemoryGroup(std::path::PathBuf);

impl MemoryGroup {
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("lockstep-test-{}", std::process::id());
        for (root, limit) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let group = Self(Path::new(root).join(&name));
            let limited = std::fs::create_dir(&group.0)
                .and_then(|()| std::fs::write(group.0.join(limit), bytes.to_string()));
            if limited.is_ok() {
                return Some(group);
            }
        }
        eprintln!("skipped: no control group can be made here");
        None
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        eventually(|| std::fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_run_stops_in_order_before_its_memory_is_used_up() {
    let Some(group) = MemoryGroup::new(400 << 20) else {
        return;
    };
    let folder = Folder::new();
    let (words, (name, value)) = as_program("fill");
    let lockstep = folder.lockstep();
    let script = format!(
        "echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"",
        group.0.display()
    );
    let mut command = std::process::Command::new("sh");
    command
        .current_dir(&folder.0)
        .args(["-c", &script])
        .arg(lockstep.get_program())
        .args(words)
        .env(name, value);
    for (name, value) in lockstep.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let said = support::Said::from(command.output().unwrap());
    assert_eq!(said.code, Some(71), "{said:?}");
    assert!(said.err.contains("memory is used up"), "{said:?}");
    let runs = std::fs::read_dir(folder.0.join("lockstep-out")).unwrap();
    let run = runs.map(|run| run.unwrap().path()).next().unwrap();
    let summary = std::fs::read_to_string(run.join("summary.json")).unwrap();
    assert!(summary.contains("\"state\": \"stopped\""), "{summary}");
    assert!(summary.contains("400 MiB that its control group may have"));
    assert!(run.join("stats.csv").exists());
}
