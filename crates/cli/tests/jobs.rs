//! `lockstep sample --job`: ranks of a parallel program in one folder. Plain processes with the variables of a launcher
//! stand for `mpirun`, and simulated GPUs for real ones.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;
use support::{Folder, Said, scale_run};

/// Ranks of the job.
const RANKS: usize = 3;

/// Starts a rank that runs a kernel `launches` times on a simulated GPU.
fn rank(folder: &Folder, number: usize, launches: usize) -> Child {
    let out = format!("alone-{number}");
    let repeat = launches.to_string();
    let mut words = vec!["sample", "--quiet", "--job", "job", "--"];
    let program = env!("CARGO_BIN_EXE_lockstep");
    words.push(program);
    let mut run: Vec<&str> = scale_run(folder, &out, &["--publish"]);
    let place = run.iter().position(|word| *word == "--repeat").unwrap();
    run[place + 1] = &repeat;
    words.extend(run);
    let mut command = folder.lockstep();
    command
        .env("LOCKSTEP_SAMPLE_BASE", folder.0.join("base"))
        .env("OMPI_COMM_WORLD_RANK", number.to_string())
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// A column of a table without quotes, as numbers.
fn column(folder: &Folder, path: &str, name: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(folder.0.join(path)).unwrap();
    let (head, rows) = text.split_once('\n').unwrap();
    let place = head.split(',').position(|one| one == name);
    let place = place.unwrap_or_else(|| panic!("{path} has no `{name}`: {head}"));
    let cell = |row: &str| row.split(',').nth(place).unwrap().parse().unwrap();
    rows.lines().map(cell).collect()
}

/// What `lockstep view` answers over HTTP.
fn ask(url: &str, question: &str) -> Value {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let head =
        format!("GET /{path}api/{question} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).unwrap()
}

#[test]
fn ranks_leave_one_folder_that_report_and_view_open() {
    let folder = Folder::new();
    let ranks: Vec<Child> = (0..RANKS).map(|one| rank(&folder, one, one + 2)).collect();
    for rank in ranks {
        let said = Said::from(rank.wait_with_output().unwrap());
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let text = std::fs::read_to_string(folder.0.join("job/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(summary["state"], "finished", "{summary}");
    let ranks = summary["ranks"].as_array().unwrap();
    assert_eq!(ranks.len(), RANKS, "{summary}");
    for (number, rank) in ranks.iter().enumerate() {
        assert_eq!(rank["rank"], number, "{rank}");
        assert_eq!(rank["ended"], true, "{rank}");
        // All ranks of one node have one clock.
        assert_eq!(rank["aligned_by_ns"], ranks[0]["aligned_by_ns"], "{rank}");
    }

    // Every launch is there with its rank, in the order of time, counted from the beginning of the job.
    let of_rank = column(&folder, "job/kernels.csv", "rank");
    let starts = column(&folder, "job/kernels.csv", "start_ns");
    for rank in 0..RANKS {
        let launches = of_rank.iter().filter(|one| **one == rank as u64).count();
        assert_eq!(launches, rank + 2, "rank {rank}");
    }
    assert!(starts.is_sorted(), "{starts:?}");
    assert!(starts[0] < 600_000_000_000, "{starts:?}");

    let said = folder.run(&["report", "job"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("scale"), "{said:?}");

    // Counters over time by rank; together they are what the ranks counted.
    let mut command = folder.lockstep();
    let mut view = command
        .args(["view", "job"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    let mut out = BufReader::new(view.stdout.take().unwrap());
    out.read_line(&mut url).unwrap();
    let url = url.trim().to_string();
    let runs = ask(&url, "runs");
    assert_eq!(runs["runs"][0]["ranks"], RANKS, "{runs}");
    let heat = ask(
        &url,
        "heat?run=0&part=gpu&counter=inst_executed&columns=1&from=0&to=1e15",
    );
    let series = ask(
        &url,
        "series?run=0&counters=inst_executed&columns=1&from=0&to=1e15",
    );
    view.kill().unwrap();
    view.wait().unwrap();
    let mut whole = 0;
    for rank in 0..RANKS {
        let path = format!("alone-{rank}/kernels.csv");
        let counted: u64 = column(&folder, &path, "inst_executed").iter().sum();
        let shown = heat["cells"][rank].as_f64().unwrap().round() as u64;
        assert_eq!(shown, counted, "rank {rank}: {heat}");
        whole += counted;
    }
    let shown = series["values"]["inst_executed"][0].as_f64().unwrap();
    assert_eq!(shown.round() as u64, whole, "{series}");

    // A second job has a folder of its own.
    let again = rank(&folder, 1, 1).wait_with_output().unwrap();
    let said = Said::from(again);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("rank 1 was sampled"), "{said:?}");
}

#[test]
fn a_process_that_no_launcher_numbered_is_refused() {
    let folder = Folder::new();
    let mut command = folder.lockstep();
    for name in lockstep_segment::RANK_VARIABLES {
        command.env_remove(name);
    }
    let output = command
        .args(["sample", "--job", "job", "--", "true"])
        .output();
    let said = Said::from(output.unwrap());
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("mpirun -n N"), "{said:?}");
    assert!(!folder.0.join("job").exists(), "nothing is made");
}
