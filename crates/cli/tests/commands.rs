//! What the command says when nothing is simulated.

mod support;

use support::Folder;

#[test]
fn help_names_every_command() {
    let said = Folder::new().run(&["--help"]);
    assert_eq!(said.code, Some(0));
    for command in [
        "run", "kernel", "verify", "sweep", "topology", "disasm", "gpus", "doctor",
    ] {
        assert!(
            said.out.contains(&format!("\n  {command} ")),
            "{command} in {}",
            said.out
        );
    }
}

#[test]
fn gpus_lists_the_catalogue_and_shows_sources() {
    let folder = Folder::new();
    let said = folder.run(&["gpus"]);
    for name in ["h200", "h100", "a100", "v100", "rtx2060"] {
        assert!(
            said.out.lines().any(|line| line.starts_with(name)),
            "{}",
            said.out
        );
    }
    let said = folder.run(&["gpus", "show", "a100"]);
    assert!(said.out.contains("sms = 108  # [spec]"), "{}", said.out);
    let said = folder.run(&["gpus", "show", "a1000"]);
    assert!(
        said.code == Some(2) && said.err.contains("did you mean `a100`?"),
        "{said:?}"
    );
}

/// Two files of another simulator.
const OTHERS: [(&str, &str); 2] = [
    (
        "gpgpusim.config",
        "-gpgpu_compute_capability_major 7\n-gpgpu_n_clusters 6 # few\n-gpgpu_clock_domains 1000.0:1000.0:1000.0:850.0\n-gpgpu_n_mem 4\n-gpgpu_n_sub_partition_per_mchannel 2\n-gpgpu_cache:dl2 S:32:128:24,L:B:m:L:P,A:192:4,32:0,32\n-gpgpu_num_reg_banks 16\n",
    ),
    ("trace.config", "-trace_opcode_latency_initiation_dp 8,4\n"),
];

#[test]
fn a_gpu_of_another_simulator_is_imported_shown_and_simulated() {
    let folder = Folder::new();
    for (name, text) in OTHERS {
        std::fs::write(folder.0.join(name), text).unwrap();
    }
    let import = [
        "gpus",
        "import",
        "gpgpusim.config",
        "trace.config",
        "--output",
        "mine.toml",
    ];
    let said = folder.run(&import);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
    assert!(
        said.err.contains("not used: -gpgpu_num_reg_banks ("),
        "{said:?}"
    );
    let said = folder.run(&import);
    assert_eq!(said.code, Some(2), "a file that is there stays: {said:?}");
    let said = folder.run(&["gpus", "show", "mine.toml"]);
    let sms = "sms = 6  # [derived: -gpgpu_n_clusters 6; clusters times cores]";
    assert!(said.out.contains(sms), "{}", said.out);
    let text =
        ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry empty()\n{\nret;\n}\n";
    std::fs::write(folder.0.join("empty.ptx"), text).unwrap();
    let said = folder.run(&["kernel", "empty.ptx", "--gpu", "mine.toml", "--out", "out"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let summary = std::fs::read_to_string(folder.0.join("out/summary.json")).unwrap();
    assert!(summary.contains("\"sms\": 6"), "{summary}");
}

#[test]
fn a_wrong_setting_is_refused_before_anything_runs() {
    let said = Folder::new().run(&["run", "--set", "l2.hitlatency=3", "--", "true"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.contains("did you mean `l2.hit-latency`?"),
        "{said:?}"
    );
}

#[test]
fn doctor_says_what_works_and_what_is_missing() {
    let said = Folder::new().run(&["doctor"]);
    assert!(said.out.contains("[ok  ] shared memory"), "{}", said.out);
    assert!(said.out.contains("nvcc"), "{}", said.out);
}

#[test]
fn topology_shows_parts_and_links() {
    let folder = Folder::new();
    let said = folder.run(&["topology", "--gpu", "h200"]);
    assert!(
        said.code == Some(0) && said.out.contains("dispatcher") && said.out.contains("132"),
        "{said:?}"
    );
    let said = folder.run(&["topology", "--dot"]);
    assert!(said.out.contains("digraph"), "{said:?}");
}

/// Runs a command whose outputs nobody reads; how it ended, and what it said on standard error if
/// that was left open.
fn unread(arguments: &[&str], close_errors: bool) -> (Option<i32>, String) {
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    let folder = Folder::new();
    let mut command = folder.lockstep();
    command.args(arguments).stdout(closed());
    if close_errors {
        command.stderr(closed());
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn a_reader_that_stops_early_is_no_fault() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/computes_correctly"
    );
    let mut kernels: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "ptx"))
        .collect();
    kernels.sort();
    let kernel = kernels.first().unwrap().to_str().unwrap();
    for arguments in [
        &["topology"][..],
        &["topology", "--dot"],
        &["gpus"],
        &["gpus", "show", "h200"],
        &["counters"],
        &["doctor"],
        &["disasm", kernel],
        &["--help"],
    ] {
        let (code, said) = unread(arguments, false);
        let doctor = arguments == ["doctor"] && code == Some(1);
        assert!(code == Some(0) || doctor, "{arguments:?}: {code:?} {said}");
        assert_eq!(said, "", "{arguments:?}");
    }
    // What is wrong is still told by the exit code, also where nobody hears the sentence.
    assert_eq!(unread(&["gpus", "show", "a1000"], true).0, Some(2));
    assert_eq!(unread(&["run", "--", "true"], true).0, Some(0));
}
