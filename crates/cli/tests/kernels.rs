//! Kernels from PTX, without a host program and without nvcc.

mod support;

use support::{Folder, SCALE, Said};

fn scale(arguments: &[&str]) -> (Folder, Said) {
    let folder = Folder::new();
    std::fs::write(folder.0.join("scale.ptx"), SCALE).unwrap();
    let mut words = vec!["kernel", "scale.ptx"];
    words.extend_from_slice(arguments);
    let said = folder.run(&words);
    (folder, said)
}

const GOOD: &[&str] = &[
    "--grid",
    "4",
    "--block",
    "64",
    "--arg",
    "f32[256]=iota",
    "--arg",
    "f32:2.5",
    "--arg",
    "u32:200",
    "--print",
    "0:4",
];

fn with<'word>(more: &[&'word str]) -> Vec<&'word str> {
    GOOD.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn a_kernel_runs_in_both_modes_and_its_result_is_printed() {
    for mode in ["functional", "timing"] {
        let (folder, said) = scale(&with(&["--mode", mode]));
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(0), "argument 0 (f32): 0 2.5 5 7.5\n"),
            "{said:?}"
        );
        let rows =
            std::fs::read_to_string(folder.0.join("lockstep-out/scale.ptx-1/kernels.csv")).unwrap();
        let row = rows.lines().nth(1).unwrap();
        assert!(row.starts_with("0,scale,0,"), "{row}");
        let cycles = row.split(',').nth(9).unwrap();
        assert_eq!(cycles.is_empty(), mode == "functional", "{row}");
    }
}

#[test]
fn threads_change_no_digest() {
    let digest = |threads: &str| {
        let (_, said) = scale(&with(&["--threads", threads]));
        said.err
            .lines()
            .find(|line| line.starts_with("digest "))
            .unwrap()
            .to_string()
    };
    assert_eq!(digest("1"), digest("3"));
}

#[test]
fn watching_a_part_writes_its_lines_and_changes_nothing() {
    let watch = |threads: &str, more: &[&str]| {
        let mut words = vec!["--threads", threads];
        words.extend_from_slice(more);
        let (folder, said) = scale(&with(&words));
        assert_eq!(said.code, Some(0), "{said:?}");
        let run = folder.0.join("lockstep-out/scale.ptx-1");
        let lines = std::fs::read_to_string(run.join("debug.txt")).unwrap_or_default();
        let digest = said.err.lines().find(|line| line.starts_with("digest "));
        (digest.unwrap().to_string(), lines)
    };
    // Which SM gets a block is the GPU's affair: the dispatcher tells.
    let (_, sent) = watch("1", &["--debug", "dispatcher,0,100000000"]);
    let chosen = sent
        .split_once("sends block 1 of launch 0 to sm ")
        .and_then(|(_, rest)| rest.lines().next())
        .unwrap_or_else(|| panic!("{sent}"));
    let sm = format!("sm {chosen},0,100000000,30");
    let watches = ["--debug", &sm, "--debug", "dispatcher,0,100000000"];
    let (digest, lines) = watch("1", &watches);
    assert_eq!(watch("3", &watches), (digest.clone(), lines.clone()));
    assert_eq!(watch("1", &[]), (digest, String::new()));
    let head = format!("# sm {chosen}, cycles 0 to 100000000: 30 of ");
    assert!(lines.contains(&head), "{lines}");
    assert!(lines.contains("receives block 1 of launch 0"), "{lines}");
    assert!(lines.contains("ld.param.u64 %d0, [data]"), "{lines}");
    assert!(
        lines.contains("launch 0 starts: scale, 4 blocks"),
        "{lines}"
    );
    assert!(lines.contains("launch 0 is complete"), "{lines}");
}

#[test]
fn a_watch_of_nothing_is_refused_with_what_there_is() {
    for (watch, reason) in [
        ("smm 3,0,1", "did you mean `sm`?"),
        ("sm 132,0,1", "this GPU has 132, from 0 to 131"),
        ("sm,5,5", "from cycle 5 to cycle 5 there is none"),
        ("sm 1", "write COMPONENT,FROM,TO[,LIMIT]"),
        ("network,0,1", "neither `mesh` nor `switched`"),
    ] {
        let (_, said) = scale(&with(&["--debug", watch]));
        assert!(said.code == Some(2) || said.code == Some(1), "{said:?}");
        assert!(said.err.contains(reason), "{watch}: {said:?}");
    }
}

#[test]
fn what_warps_wait_for_adds_up_to_their_cycles() {
    let (folder, said) = scale(&with(&[]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let run = folder.0.join("lockstep-out/scale.ptx-1");
    let text = std::fs::read_to_string(run.join("kernels.csv")).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (head, row) = (rows.next().unwrap(), rows.next().unwrap());
    let of = |name: &str| {
        let column = head.iter().position(|column| *column == name).unwrap();
        row[column].parse::<u64>().unwrap()
    };
    assert_eq!(of("stalled_selected"), of("inst_issued"));
    let waits = head.iter().filter(|column| column.starts_with("stalled_"));
    let all: u64 = waits.map(|column| of(column)).sum();
    // 8 warps that live for at most as long as their kernel.
    assert!(all > of("inst_issued") && all <= 8 * of("cycles"), "{all}");
    assert!(of("stalled_long_scoreboard") > 8 * 200, "{text}");
    assert!(said.err.contains("cycles of warps: "), "{said:?}");
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_what_would() {
    let (_, said) = scale(&["--arg", "u32:1"]);
    assert!(
        said.code == Some(2)
            && said
                .err
                .contains("`scale` takes 3 arguments (of 8, 4, 4 bytes)"),
        "{said:?}"
    );
    let (_, said) = scale(&["--arg", "f32[4]", "--arg", "f64:1", "--arg", "u32:4"]);
    assert!(
        said.err
            .contains("argument 1 of `scale` has 4 bytes, not 8"),
        "{said:?}"
    );
    let (_, said) = scale(&["--entry", "other"]);
    assert!(
        said.err
            .contains("no kernel called `other`; its kernels: scale"),
        "{said:?}"
    );
}

#[test]
fn an_illegal_access_names_its_place_and_fails_the_run() {
    let (_, said) = scale(&[
        "--arg", "u64:4096", "--arg", "f32:1", "--arg", "u32:8", "--block", "8",
    ]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.err.contains("kernel `scale`") && said.err.contains("illegal global load"),
        "{said:?}"
    );
}

#[test]
fn broken_ptx_names_its_line() {
    let folder = Folder::new();
    std::fs::write(
        folder.0.join("bad.ptx"),
        SCALE.replace("mul.f32 %f2", "multiply.f32 %f2"),
    )
    .unwrap();
    let said = folder.run(&["kernel", "bad.ptx"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.contains(
            "CUDA_ERROR_INVALID_PTX (218): PTX 23:5: no instruction is spelled `multiply.f32`"
        ),
        "{said:?}"
    );
}

#[test]
fn device_code_is_shown_as_text() {
    let folder = Folder::new();
    std::fs::write(folder.0.join("scale.ptx"), SCALE).unwrap();
    let said = folder.run(&["disasm", "scale.ptx"]);
    assert!(
        said.code == Some(0) && said.out.contains("scale:") && said.out.contains("PTX for sm_70"),
        "{said:?}"
    );
    let said = folder.run(&["disasm", "scale.ptx", "--entry", "none"]);
    assert!(
        said.code == Some(2) && said.err.contains("no function called `none`"),
        "{said:?}"
    );
}
