//! Walks the table of options: each is used by a CUDA program, and what becomes of it is what the
//! table says.

mod support;

use lockstep_protocol::options::{OPTIONS, Treatment};
use std::collections::BTreeSet;
use support::{Folder, Said, build_with_driver};

const PROGRAM: &str = include_str!("sources/options.cu");

fn run(folder: &Folder, rows: &[String]) -> Said {
    let mut words = vec![
        "run",
        "--mode",
        "functional",
        "--out",
        "out",
        "--",
        "./program",
    ];
    words.extend(rows.iter().map(String::as_str));
    folder.run(&words)
}

/// Names in the summary that the program came to in a manner.
fn noted(folder: &Folder, manner: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(folder.0.join("out/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = summary["unsupported"].as_array().unwrap();
    rows.iter()
        .filter(|row| row["manner"] == manner)
        .map(|row| row["name"].as_str().unwrap().to_string())
        .collect()
}

#[test]
fn every_option_is_treated_as_the_table_says() {
    let Some(folder) = build_with_driver(PROGRAM) else {
        return;
    };
    let rows: Vec<String> = OPTIONS
        .iter()
        .map(|option| format!("{:?}:{}", option.group, option.number))
        .collect();
    let said = run(&folder, &rows);
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut answers = said.out.lines();
    let mut wrong = Vec::new();
    for (option, row) in OPTIONS.iter().zip(&rows) {
        let expected = match option.treatment {
            Treatment::Refused(code) => code.0,
            Treatment::Obeyed(_) | Treatment::Listed => 0,
        };
        let answer = answers.next().unwrap_or("nothing");
        if answer != format!("{row} {expected}") {
            wrong.push(format!(
                "{} answers `{answer}`, not {expected}",
                option.name
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let listed: BTreeSet<String> = OPTIONS
        .iter()
        .filter(|option| option.treatment == Treatment::Listed)
        .map(|option| option.name.to_string())
        .collect();
    assert_eq!(noted(&folder, "accepted"), listed);
    let line = said
        .err
        .lines()
        .find(|line| line.starts_with("accepted but not modelled: "));
    assert!(
        line.is_some_and(|line| listed.iter().all(|name| line.contains(name.as_str()))),
        "{said:?}"
    );
}

#[test]
fn a_program_without_options_is_told_of_none() {
    let Some(folder) = build_with_driver(PROGRAM) else {
        return;
    };
    let said = run(&folder, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.err.contains("not modelled"), "{said:?}");
    assert_eq!(noted(&folder, "accepted"), BTreeSet::new());
}
