//! Every value of every shipped file says where it comes from.

use lockstep_config::{CATALOGUE, CHIPS, CatalogueEntry, DRAMS, FLOORSWEEPINGS};
use std::collections::BTreeSet;
use std::path::Path;

/// Tags that stand alone, perhaps with a remark behind them.
const PLAIN: &[&str] = &["spec", "compiler", "estimate"];

/// Tags that say what, where or why.
const EXPLAINED: &[&str] = &["measured", "fitted", "published", "derived", "choice"];

fn files() -> impl Iterator<Item = &'static CatalogueEntry> {
    let all = [CATALOGUE, CHIPS, DRAMS, FLOORSWEEPINGS];
    all.into_iter().flatten()
}

/// What is wrong with what stands behind a value.
fn complaint(source: &str) -> Option<&'static str> {
    let Some((tag, _)) = source
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    else {
        return Some("begins with no tag in brackets");
    };
    match tag.split_once(": ") {
        None if PLAIN.contains(&tag) => None,
        None if EXPLAINED.contains(&tag) => Some("has a tag that must say what"),
        Some((tag, what)) if EXPLAINED.contains(&tag) => {
            let absorbs = what.contains("absorbing ") && what.contains("to ");
            match what.trim().len() {
                0..3 => Some("has a tag that says too little"),
                _ if tag == "fitted" && !absorbs => Some("does not say to what, absorbing what"),
                _ => None,
            }
        }
        _ => Some("has a tag that nobody knows"),
    }
}

#[test]
fn every_value_says_where_it_comes_from() {
    let mut complaints = Vec::new();
    for entry in files() {
        let mut section = "";
        for line in entry.text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                section = name;
            }
            // `base` above all sections names a file and has no source.
            let Some((key, rest)) = line.split_once(" = ") else {
                continue;
            };
            if line.starts_with('#') || section.is_empty() {
                continue;
            }
            let source = rest.split_once("  # ").map_or("", |(_, source)| source);
            if let Some(because) = complaint(source) {
                complaints.push(format!("{}: {section}.{key} {because}: {line}", entry.name));
            }
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn a_source_that_says_too_little_is_noticed() {
    for wrong in [
        "",
        "as above",
        "[measured]",
        "[measured: ]",
        "[fitted: to a benchmark]",
        "[simulator] as GA102",
        "[guess]",
        "spec",
    ] {
        assert!(complaint(wrong).is_some(), "{wrong}");
    }
    for right in [
        "[spec]",
        "[estimate] as the V100",
        "[measured: l2_latency, 277 cycles]",
        "[fitted: to l2_latency; absorbing the split]",
    ] {
        assert_eq!(complaint(right), None, "{right}");
    }
}

#[test]
fn every_file_of_the_folders_is_part_of_the_binary() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let known: BTreeSet<String> = files()
        .map(|entry| format!("{}.toml", entry.name))
        .collect();
    for folder in ["gpus", "gpus/floorsweeping", "drams"] {
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(path.is_dir() || known.contains(&name), "{folder}/{name}");
        }
    }
}
