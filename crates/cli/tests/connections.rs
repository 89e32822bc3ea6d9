//! Who may attach to a simulator, how often, and what those hear who may not.

mod support;

use lockstep_protocol::{
    ClientConnection, ConnectionError, ContextHandle, Hello, PROTOCOL_VERSION, Reply, Request,
    SOCKET_VARIABLE,
};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use support::{Folder, Said};

const CLIENT: &str = "LOCKSTEP_TEST_CONNECTIONS";
/// More host threads than the simulator may have descriptors.
const THREADS: u32 = 1_000;
const DESCRIPTORS: u32 = 64;
/// Processes that end one after the other, and the threads of each.
const PROCESSES: u32 = 30;
const TOGETHER: u32 = 24;
/// Who is refused must hear it at once, and not when the handshake's time is up.
const PATIENCE: Duration = Duration::from_secs(3);
/// `nobody`, nearly everywhere; any number but ours would do.
const SOMEBODY: u32 = 65_534;

fn hello(thread: u32) -> Hello {
    Hello {
        process: std::process::id(),
        thread,
        name: "test".into(),
        node: Ok(0),
    }
}

/// Not a test: what runs when this file is started as the program of a run.
#[test]
fn acts_as_a_program() {
    let (Some(socket), Ok(part)) = (std::env::var_os(SOCKET_VARIABLE), std::env::var(CLIENT))
    else {
        return;
    };
    let socket = Path::new(&socket);
    // The first connection of a process stays open.
    let (mut first, _, _) = ClientConnection::connect(socket, &hello(1)).unwrap();
    first.call(&Request::Profiler { start: true }).unwrap();
    match part.as_str() {
        "threads" => come_and_go(socket),
        "wrong" => say_wrong_things(socket),
        "processes" => see_processes_end(socket, &mut first),
        _ => come_as_somebody_else(socket),
    }
    first.call(&Request::Profiler { start: false }).unwrap();
    println!("all was well");
}

fn come_and_go(socket: &Path) {
    for thread in 2..THREADS {
        let (mut connection, _, _) = ClientConnection::connect(socket, &hello(thread))
            .unwrap_or_else(|error| panic!("thread {thread}: {error}"));
        let response = connection.call(&Request::Profiler { start: true }).unwrap();
        assert!(response.result.is_ok());
    }
}

/// What a process held is free again before the next call of another one.
fn see_processes_end(socket: &Path, first: &mut ClientConnection) {
    let mut addresses = BTreeSet::new();
    let own = context(first);
    for number in 0..PROCESSES {
        // Above all numbers that a system gives. Its threads end together, which takes a while to be noticed.
        let process = u32::MAX - number;
        let threads: Vec<_> = (1..=TOGETHER)
            .map(|thread| {
                let hello = Hello {
                    process,
                    ..hello(thread)
                };
                let (mut one, _, _) = ClientConnection::connect(socket, &hello).unwrap();
                let context = context(&mut one);
                allocate(&mut one, context);
                one
            })
            .collect();
        drop(threads);
        let address = allocate(first, own);
        addresses.insert(address);
        let context = own;
        let request = Request::Free { context, address };
        assert!(first.call(&request).unwrap().result.is_ok());
    }
    assert_eq!(addresses.len(), 1, "{addresses:x?}");
}

/// The primary context of the process.
fn context(connection: &mut ClientConnection) -> ContextHandle {
    let retain = Request::PrimaryContextRetain { device: 0 };
    match connection.call(&retain).unwrap().result {
        Ok(Reply::Context(context)) => context,
        other => panic!("no context: {other:?}"),
    }
}

/// The address of some memory.
fn allocate(connection: &mut ClientConnection, context: ContextHandle) -> u64 {
    let bytes = 1 << 20;
    let allocate = Request::Allocate { context, bytes };
    match connection.call(&allocate).unwrap().result {
        Ok(Reply::Address(address)) => address,
        other => panic!("no memory: {other:?}"),
    }
}

fn say_wrong_things(socket: &Path) {
    let preamble = |version: u32| [&b"LKST"[..], &version.to_le_bytes()].concat();
    let ours = preamble(PROTOCOL_VERSION);
    let wrong: [(Vec<u8>, &str); 4] = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "does not speak"),
        (preamble(99), "version 99"),
        ([&ours[..], &[255; 4]].concat(), "exceeds the limit"),
        ([&ours[..], &[1, 0, 0, 0, 255]].concat(), "is not a"),
    ];
    for (bytes, expected) in wrong {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&bytes).unwrap();
        // To its end: whoever is refused is not left waiting.
        let answer = read_all(&mut stream);
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains(expected), "{expected}: {text:?}");
    }
}

fn read_all(stream: &mut UnixStream) -> Vec<u8> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // What was said and not read makes the end a reset.
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => {
            panic!("the connection was not closed: {error}")
        }
        _ => answer,
    }
}

fn come_as_somebody_else(socket: &Path) {
    // Let everybody in as far as the socket: the directory alone must not be what protects it.
    for path in [socket.parent().unwrap(), socket] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let path = socket.to_path_buf();
    let refused = std::thread::spawn(move || {
        // SAFETY: the bare system call changes the user of this thread only.
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, -1, SOMEBODY, -1) };
        assert_eq!(changed, 0);
        ClientConnection::connect(&path, &hello(2)).unwrap_err()
    });
    let error = refused.join().unwrap();
    assert!(
        matches!(&error, ConnectionError::Refused(reason) if reason.contains("only the same user")),
        "{error}"
    );
}

fn run_as_program(part: &str) -> Said {
    let folder = Folder::new();
    let program = std::env::current_exe().unwrap();
    let lockstep = folder.lockstep();
    let mut command = std::process::Command::new("sh");
    command
        .current_dir(&folder.0)
        .args([
            "-c",
            &format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\""),
        ])
        .arg(lockstep.get_program())
        .args(["run", "--quiet", "--mode", "functional", "--"])
        .arg(program)
        .args(["--exact", "acts_as_a_program", "--nocapture"])
        .env(CLIENT, part);
    for (name, value) in lockstep.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let said = Said::from(command.output().unwrap());
    assert!(said.out.contains("all was well"), "{said:?}");
    said
}

#[test]
fn a_thousand_threads_one_after_the_other_are_served() {
    let said = run_as_program("threads");
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_process_that_ended_has_left_before_the_next_call_of_another() {
    let said = run_as_program("processes");
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn who_is_refused_hears_why_and_is_not_left_waiting() {
    let said = run_as_program("wrong");
    // Something of this program did not attach, which is told; others who came by are not.
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("protocol version 99"), "{said:?}");
    assert!(!said.err.contains("does not speak"), "{said:?}");
}

#[test]
fn another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be somebody else");
        return;
    }
    let said = run_as_program("somebody");
    assert_eq!(said.code, Some(0), "{said:?}");
}
