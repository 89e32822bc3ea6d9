//! The committed measurements are complete: every launch of every workload, in every table, with five
//! repetitions of every counter.

use lockstep_correlation::Measurements;
use lockstep_correlation::hardware::Case;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Tables with a row for each launch.
const TABLES: [&str; 5] = ["cold", "warm", "traffic", "pipes", "stalls"];
const REPETITIONS: usize = 5;
/// Stalls of Hopper's programs, and of those that came last, were measured when time on the device was short.
const FEWER: (&str, usize, &[&str]) = (
    "stalls",
    3,
    &[
        "clusters",
        "tensor_pipeline",
        "warp_specialised_gemm",
        "warp_specialised_attention",
        "cluster_reduction",
        "cold_code",
        "neighbour_gathers",
        "binned_search",
        "constant_tables",
        "narrow_stores",
        "coarsened_stencil",
        "graph_colouring",
        "orbits",
        "column_dots",
        "tree_walks",
        "ray_traversal",
        "dependency_chains",
        "read_write_mix",
        "level_solves",
        "concurrent_kernels",
        "automata",
        "bytecode",
        "bit_packing",
        "particle_deposit",
        "number_theory",
    ],
);

/// How many repetitions a program has in a table.
fn repetitions(table: &str, program: &str) -> usize {
    let (fewer, count, programs) = FEWER;
    if table == fewer && programs.contains(&program) {
        count
    } else {
        REPETITIONS
    }
}

/// The one program that is measured at its full size too: 26 kernels, 50 iterations.
const LARGE: (&str, usize) = ("hydrodynamics", 1400);

/// Programs that are in no table: a profiler books what kernels launch to the host's launches.
const UNMEASURED: [&str; 1] = ["dynamic_parallelism"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn case(program: &str, size: &str) -> Case {
    Case {
        program: program.into(),
        size: size.into(),
    }
}

/// Every program at every size that is measured.
fn cases() -> BTreeSet<Case> {
    let text = std::fs::read_to_string(root().join("workloads/workloads.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let mut cases = BTreeSet::from([case(LARGE.0, "large")]);
    for program in table["program"].as_array().unwrap() {
        let name = program["name"].as_str().unwrap();
        // A GPU was measured, not a node of several.
        if UNMEASURED.contains(&name) || program.get("gpus").is_some() {
            continue;
        }
        cases.insert(case(name, "default"));
        if program.get("medium").is_some() {
            cases.insert(case(name, "medium"));
        }
    }
    cases
}

fn table(name: &str) -> Measurements {
    Measurements::load(&root().join(format!("validation/hardware/h200/{name}.csv"))).unwrap()
}

/// What a table lacks, each in a sentence.
fn lacks(name: &str, table: &Measurements, cold: &Measurements) -> Vec<String> {
    let mut lacks = Vec::new();
    let columns: BTreeSet<&String> = table
        .launches
        .values()
        .flat_map(|launches| launches.values())
        .flat_map(|launch| launch.counters.keys())
        .collect();
    for (case, launches) in &cold.launches {
        for (number, launch) in launches {
            let place = format!("{name}: {}/{} launch {number}", case.program, case.size);
            let Some(found) = table.launches.get(case).and_then(|one| one.get(number)) else {
                lacks.push(format!("{place} is not there"));
                continue;
            };
            if found.kernel != launch.kernel {
                lacks.push(format!("{place} is another kernel: {}", found.kernel));
            }
            for column in &columns {
                let count = found.counters.get(*column);
                let count = count.map_or(0, |values| values.values().len());
                if count < repetitions(name, &case.program) {
                    lacks.push(format!("{place}: {column} has {count} repetitions"));
                }
            }
        }
    }
    for (case, launches) in &table.launches {
        let known = cold.launches.get(case);
        let known = |number: &&u64| !known.is_some_and(|one| one.contains_key(*number));
        if launches.keys().any(|number| known(&number)) {
            lacks.push(format!(
                "{name}: {}/{} has launches that cold.csv has not",
                case.program, case.size
            ));
        }
    }
    lacks
}

#[test]
fn every_launch_of_every_workload_is_in_every_table_five_times() {
    let cold = table("cold");
    assert_eq!(
        cold.launches.keys().cloned().collect::<BTreeSet<_>>(),
        cases(),
        "programs and sizes of cold.csv"
    );
    for (case, launches) in &cold.launches {
        let numbers: Vec<u64> = launches.keys().copied().collect();
        let expected: Vec<u64> = (0..launches.len() as u64).collect();
        assert_eq!(numbers, expected, "{}/{}", case.program, case.size);
    }
    assert_eq!(cold.launches[&case(LARGE.0, "large")].len(), LARGE.1);
    // Who asks L2 was not asked at the full size.
    let mut asked = cold.clone();
    asked.launches.remove(&case(LARGE.0, "large"));
    let tables = TABLES.map(|name| (name, &cold));
    for (name, cold) in tables.into_iter().chain([("sources", &asked)]) {
        let lacks = lacks(name, &table(name), cold);
        let first = lacks.iter().take(10).cloned().collect::<Vec<_>>();
        assert!(
            lacks.is_empty(),
            "{} places, first:\n{}",
            lacks.len(),
            first.join("\n")
        );
    }
}

#[test]
fn a_missing_launch_and_a_missing_repetition_are_noticed() {
    const HEAD: &str = "program,size,launch,kernel,grid,block,registers,shared,cycles\n";
    let parse = |rows: &str| Measurements::parse(&format!("{HEAD}{rows}")).unwrap();
    let cold = parse("a,default,0,k,1,1,16,0,1 2 3 4 5\na,default,1,k,1,1,16,0,1 2 3 4 5\n");
    assert!(lacks("t", &cold, &cold).is_empty());
    let short = parse("a,default,0,k,1,1,16,0,1 2 3 4\na,default,1,k,1,1,16,0,1 2 3 4 5\n");
    assert_eq!(
        lacks("t", &short, &cold),
        ["t: a/default launch 0: cycles has 4 repetitions"]
    );
    let other = parse("a,default,0,j,1,1,16,0,1 2 3 4 5\na,default,7,k,1,1,16,0,1 2 3 4 5\n");
    assert_eq!(
        lacks("t", &other, &cold),
        [
            "t: a/default launch 0 is another kernel: j",
            "t: a/default launch 1 is not there",
            "t: a/default has launches that cold.csv has not",
        ]
    );
}
