//! Programs that cannot be served, and places where not everything is allowed: the user hears what
//! is wrong.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use support::{Folder, Said, eventually};

/// Any user but root.
const SOMEBODY: u32 = 65_534;

#[test]
fn a_setuid_program_is_told_that_the_loader_ignores_us() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can make a program of another user");
        return;
    }
    let folder = Folder::new();
    let program = folder.0.join("program");
    std::fs::copy("/bin/true", &program).unwrap();
    std::os::unix::fs::chown(&program, Some(SOMEBODY), None).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let said = folder.run(&["run", "--", "./program"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.err.contains("setuid") && said.err.contains("LD_PRELOAD"),
        "{said:?}"
    );
    assert!(!said.err.contains("made no CUDA call"), "{said:?}");
}

#[test]
fn a_static_program_and_its_scripts_are_told_so() {
    let folder = Folder::new();
    std::fs::write(folder.0.join("program.c"), "int main(void) { return 0; }\n").unwrap();
    let built = std::process::Command::new("cc")
        .current_dir(&folder.0)
        .args(["-static", "program.c", "-o", "program"])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no static C library is installed");
        return;
    }
    let said = folder.run(&["run", "--", "./program"]);
    assert!(said.err.contains("linked statically"), "{said:?}");
    let interpreter = folder.0.join("program");
    let script = folder.script("script", &format!("#!{}\n", interpreter.display()));
    let said = folder.run(&["run", "--", &script]);
    assert!(
        said.err.contains("its interpreter") && said.err.contains("linked statically"),
        "{said:?}"
    );
}

#[test]
fn a_program_that_fails_without_calls_is_told_what_may_hide_us() {
    let folder = Folder::new();
    let program = folder.script("program", "#!/bin/sh\nexec env -i false\n");
    let said = folder.run(&["run", "--", &program]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.err.contains("LOCKSTEP_SOCKET") && said.err.contains("sandbox"),
        "{said:?}"
    );
}

/// Forbids system calls to a command, as a sandbox does: they fail with `EPERM`.
fn forbid(command: &mut std::process::Command, calls: &[i64]) {
    let statement = |code: u32, yes: u8, no: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k,
    };
    let (load, equal, answer) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut program = vec![statement(load, 0, 0, 0)];
    for call in calls {
        program.push(statement(equal, 0, 1, *call as u32));
        program.push(statement(answer, 0, 0, refused));
    }
    program.push(statement(answer, 0, 0, libc::SECCOMP_RET_ALLOW));
    // SAFETY: between fork and exec only two system calls are made, on memory made before.
    unsafe {
        command.pre_exec(move || {
            let filter = libc::sock_fprog {
                len: program.len() as u16,
                filter: program.as_ptr().cast_mut(),
            };
            let mode = libc::SECCOMP_MODE_FILTER;
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) != 0
            {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

#[test]
fn a_sandbox_that_knows_no_new_calls_changes_nothing() {
    let folder = Folder::new();
    let program = folder.script("program", "#!/bin/sh\nexit 7\n");
    let mut command = folder.lockstep();
    command.args(["run", "--out", "out", "--", &program]);
    let calls = [
        libc::SYS_pidfd_open,
        libc::SYS_close_range,
        libc::SYS_renameat2,
        libc::SYS_userfaultfd,
        libc::SYS_fallocate,
    ];
    forbid(&mut command, &calls);
    let said = Said::from(command.output().unwrap());
    assert_eq!(said.code, Some(7), "{said:?}");
    let text = std::fs::read_to_string(folder.0.join("out/summary.json")).unwrap();
    assert!(text.contains("\"state\": \"finished\""), "{text}");
    assert_eq!(folder.sockets(), Vec::<String>::new());
}

#[test]
fn a_sandbox_that_forbids_fixed_addresses_is_told_of() {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let fixed = libc::ADDR_NO_RANDOMIZE as u32;
    let flags = u32::from_str_radix(read("/proc/self/personality").trim_end(), 16);
    let random = flags.is_ok_and(|flags| flags & fixed == 0);
    if !random || read("/proc/sys/kernel/randomize_va_space").trim_end() == "0" {
        eprintln!("skipped: addresses are fixed here, or the kernel does not say");
        return;
    }
    let folder = Folder::new();
    let program = folder.script("program", "#!/bin/sh\nexit 0\n");
    for forbidden in [true, false] {
        let mut command = folder.lockstep();
        command.args(["run", "--force", "--out", "out", "--", &program]);
        if forbidden {
            forbid(&mut command, &[libc::SYS_personality]);
        }
        let said = Said::from(command.output().unwrap());
        assert_eq!(said.code, Some(0), "{said:?}");
        let text = std::fs::read_to_string(folder.0.join("out/summary.json")).unwrap();
        assert_eq!(text.contains("fixed addresses"), forbidden, "{text}");
    }
}

#[test]
fn a_sandbox_without_shared_memory_is_named() {
    let folder = Folder::new();
    let program = folder.script("program", "#!/bin/sh\nexit 0\n");
    let mut command = folder.lockstep();
    command.args(["run", "--out", "out", "--", &program]);
    forbid(&mut command, &[libc::SYS_memfd_create]);
    let said = Said::from(command.output().unwrap());
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.err.contains("memfd_create") && said.err.contains("sandbox"),
        "{said:?}"
    );
}

/// A kernel that runs for minutes.
const LONG: &str = ".version 7.0\n.target sm_70\n.address_size 64\n\
    .visible .entry long_one()\n{\n.reg .pred %p;\n.reg .u32 %r;\nmov.u32 %r, 0;\n\
    again:\nadd.u32 %r, %r, 1;\nsetp.ne.u32 %p, %r, 0;\n@%p bra again;\nret;\n}\n";

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the test is about the time of the host"
)]
fn a_busy_simulator_hears_signals_within_a_second() {
    for (signal, code, mode) in [
        (rustix::process::Signal::INT, 130, "timing"),
        (rustix::process::Signal::TERM, 143, "functional"),
    ] {
        let folder = Folder::new();
        std::fs::write(folder.0.join("long.ptx"), LONG).unwrap();
        let mut child = folder
            .lockstep()
            .args(["kernel", "long.ptx", "--grid", "132", "--block", "1024"])
            .args(["--mode", mode, "--out", "out"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let summary = || std::fs::read_to_string(folder.0.join("out/summary.json"));
        assert!(eventually(|| {
            summary().is_ok_and(|text| text.contains("running the program"))
        }));
        std::thread::sleep(std::time::Duration::from_millis(500));
        let began = std::time::Instant::now();
        support::signal(&child, signal);
        let status = child.wait().unwrap();
        let took = began.elapsed();
        assert_eq!(status.code(), Some(code), "{mode}");
        assert!(took.as_millis() < 1500, "{mode}: it took {took:?}");
        let text = summary().unwrap();
        assert!(text.contains("\"state\": \"stopped\""), "{mode}: {text}");
    }
}
