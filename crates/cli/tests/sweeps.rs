//! Sweeps over a kernel from PTX, without a host program and without nvcc.

mod support;

use rustix::process::Signal;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;
use support::{Folder, Said, wait_until};

/// Adds up a few words, so that clocks and caches matter little and time is short.
const KERNEL: &str = "\
.version 8.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 data)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [data];
    mov.u32 %r0, %tid.x;
    cvta.to.global.u64 %d1, %d0;
    mul.wide.u32 %d2, %r0, 4;
    add.s64 %d3, %d1, %d2;
    ld.global.u32 %r1, [%d3];
    add.u32 %r2, %r1, %r0;
    st.global.u32 [%d3], %r2;
    ret;
}
";

/// What every file here begins with.
const BEGIN: &str =
    "gpu = \"v100\"\nkernel = \"add.ptx\"\narguments = \"--block 32 --arg u32[32]\"\n";

/// Three clocks, one of them in two words.
const CLOCKS: &str =
    "[grid]\n\"device.clock\" = [\"1 GHz\", \"1.5 GHz\", \"1500 MHz\", \"2 GHz\"]\n";

fn folder(text: &str) -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.0.join("add.ptx"), KERNEL).unwrap();
    std::fs::write(folder.0.join("sweep.toml"), format!("{BEGIN}{text}")).unwrap();
    folder
}

fn sweep(folder: &Folder, more: &[&str]) -> Said {
    let mut words = vec!["sweep", "sweep.toml", "--workers", "2", "--out", "out"];
    words.extend_from_slice(more);
    folder.run(&words)
}

/// Cells of a column of `sweep.csv`.
fn column(folder: &Folder, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.0.join("out/sweep.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let place = head.iter().position(|column| *column == name);
    let place = place.unwrap_or_else(|| panic!("no column {name} in {head:?}"));
    lines.map(|line| line[place].to_string()).collect()
}

fn numbers(folder: &Folder, name: &str) -> Vec<f64> {
    let cells = column(folder, name);
    cells.iter().map(|cell| cell.parse().unwrap()).collect()
}

/// How long another process may take.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_grid_becomes_a_table_a_plot_and_a_front() {
    let pareto = "[pareto]\nminimize = [\"kernel_ns\", \"device.clock\"]\n";
    let folder = folder(&format!("{CLOCKS}{pareto}"));
    let said = sweep(&folder, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out
            .starts_with("4 points, 1 of them equal to others; 3 to simulate\n"),
        "{said:?}"
    );
    let clocks = column(&folder, "device.clock");
    assert!(
        clocks[1] == clocks[2] && clocks[0] != clocks[1],
        "{clocks:?}"
    );
    assert_eq!(column(&folder, "state"), ["finished"; 4]);
    let (runs, times) = (column(&folder, "run"), numbers(&folder, "kernel_ns"));
    assert_eq!(runs[1], runs[2]);
    assert!(
        times[0] > times[1] && times[1] == times[2] && times[2] > times[3],
        "{times:?}"
    );
    assert_eq!(column(&folder, "pareto"), ["1"; 4]);
    assert_eq!(
        std::fs::read_dir(folder.0.join("out/points"))
            .unwrap()
            .count(),
        3
    );
    for (name, begin) in [
        ("sweep.parquet", "PAR1"),
        ("sweep.svg", "<svg"),
        ("pareto.svg", "<svg"),
    ] {
        let bytes = std::fs::read(folder.0.join("out").join(name)).unwrap();
        assert!(bytes.starts_with(begin.as_bytes()), "{name}");
    }
    // The same as without a sweep.
    let alone = folder.run(&[
        "kernel",
        "add.ptx",
        "--block",
        "32",
        "--arg",
        "u32[32]",
        "--gpu",
        "v100",
        "--set",
        "device.clock=1 GHz",
        "--out",
        "alone",
    ]);
    assert_eq!(alone.code, Some(0), "{alone:?}");
    let summary = std::fs::read_to_string(folder.0.join("alone/summary.json")).unwrap();
    assert!(summary.contains(&column(&folder, "digest")[0]), "{summary}");
}

#[test]
fn nothing_runs_if_a_point_is_wrong() {
    let wrong = [
        (
            "[grid]\nsm.warpz = [64]\n",
            "no key is called `sm.warpz`; did you mean `sm.warps`?",
        ),
        ("options = \"--colder\"\n", "unexpected argument '--colder'"),
        (
            "[grid]\ngpu = [\"v100\", \"v1000\"]\n",
            "no GPU is called `v1000`; did you mean `v100`?",
        ),
    ];
    for (text, expected) in wrong {
        let folder = folder(text);
        let said = sweep(&folder, &[]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(expected), "{said:?}");
        assert!(!folder.0.join("out").exists());
    }
}

#[test]
fn a_point_that_fails_is_named_and_the_others_go_on() {
    let folder = folder(
        "[grid]\narguments = [\"--block 32 --arg u32[32]\", \"--block 32 --arg u32[1]=0 --arg u32:1\", \"--block 16 --arg u32[32]\"]\n",
    );
    let said = sweep(&folder, &[]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(column(&folder, "state"), ["finished", "failed", "finished"]);
    assert!(said.err.contains("lockstep: point 2 failed: "), "{said:?}");
    // It is tried again, and only it.
    let said = sweep(&folder, &["--resume"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("; 1 to simulate"), "{said:?}");
}

#[test]
fn a_folder_with_results_is_only_continued_when_asked() {
    let folder = folder("[set]\nsm.warps = 32\n");
    assert_eq!(sweep(&folder, &[]).code, Some(0));
    let said = sweep(&folder, &[]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("--resume continues a sweep"), "{said:?}");
    let said = sweep(&folder, &["--resume"]);
    assert!(
        said.code == Some(0) && said.out.contains("; 0 to simulate"),
        "{said:?}"
    );
    std::fs::write(
        folder.0.join("add.ptx"),
        KERNEL.replace("%r1, %r0;", "%r1, %r1;"),
    )
    .unwrap();
    let said = sweep(&folder, &["--resume"]);
    assert!(
        said.code == Some(0) && said.out.contains("; 1 to simulate"),
        "{said:?}"
    );
}

/// Starts a sweep that stands still at its second point, and waits until it does.
fn stuck(folder: &Folder) -> Child {
    let template = "if [ {point} = 2 ]; then echo $$ >stuck; exec sleep 600; fi; exec {command}";
    let child = folder
        .lockstep()
        .args([
            "sweep",
            "sweep.toml",
            "--out",
            "out",
            "--workers",
            "1",
            "--launcher",
            template,
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the second point", PATIENCE, || {
        std::fs::read_to_string(folder.0.join("stuck")).is_ok_and(|text| text.ends_with('\n'))
    });
    child
}

#[test]
fn a_sweep_that_is_stopped_or_killed_goes_on_where_it_was() {
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let folder = folder(CLOCKS);
        let mut child = stuck(&folder);
        support::signal(&child, signal);
        assert_eq!(child.wait().unwrap().code(), code);
        let pid = std::fs::read_to_string(folder.0.join("stuck")).unwrap();
        let process = Path::new("/proc").join(pid.trim());
        // Whoever inherits it may leave it unburied.
        wait_until("the end of the point", PATIENCE, || {
            let state = std::fs::read_to_string(process.join("stat"));
            state.is_err() || state.is_ok_and(|state| state.contains(") Z "))
        });
        let said = sweep(&folder, &["--resume"]);
        assert_eq!(said.code, Some(0), "{signal:?}: {said:?}");
        assert!(said.out.contains("; 2 to simulate"), "{signal:?}: {said:?}");
        assert_eq!(column(&folder, "state"), ["finished"; 4]);
    }
}

#[test]
fn a_launcher_starts_every_point() {
    let folder = folder(
        "[[list]]\ndevice.clock = [\"1 GHz\", \"2 GHz\"]\nl2.clock = [\"1 GHz\", \"2 GHz\"]\n",
    );
    let said = sweep(
        &folder,
        &["--launcher", "echo {point} {worker} >>started; {command}"],
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    let started = std::fs::read_to_string(folder.0.join("started")).unwrap();
    assert_eq!(started.lines().count(), 2, "{started}");
    let said = sweep(&folder, &["--resume", "--launcher", "true"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.err
            .contains("write `{command}` where the command belongs"),
        "{said:?}"
    );
}

/// A stand-in for Slurm's `sbatch`: runs the tasks of the array one after the other.
const SBATCH: &str = "#!/bin/sh
for word in \"$@\"; do
  case $word in
    --array=1-*) tasks=${word#--array=1-}; tasks=${tasks%\\%*} ;;
    --export=ALL,*) export \"${word#--export=ALL,}\" ;;
  esac
done
for script; do :; done
echo Submitted batch job 7
task=1
while [ $task -le $tasks ]; do SLURM_ARRAY_TASK_ID=$task sh \"$script\"; task=$((task + 1)); done
";

#[test]
fn points_go_to_slurm_as_an_array() {
    let folder = folder(CLOCKS);
    let tools = folder.0.join("tools");
    std::fs::create_dir(&tools).unwrap();
    let path = std::env::var("PATH").unwrap();
    let slurm = |path: String| {
        let mut command = folder.lockstep();
        command.env("PATH", path).args([
            "sweep",
            "sweep.toml",
            "--out",
            "out",
            "--resume",
            "--slurm",
        ]);
        Said::from(command.output().unwrap())
    };
    let without = slurm(tools.display().to_string());
    assert_eq!(without.code, Some(2), "{without:?}");
    assert!(
        without.err.contains("--slurm needs Slurm's commands"),
        "{without:?}"
    );
    folder.script("tools/sbatch", SBATCH);
    let said = slurm(format!("{}:{path}", tools.display()));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(column(&folder, "state"), ["finished"; 4]);
}
