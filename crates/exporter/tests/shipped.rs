//! The files that sites copy name what is exported, and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lockstep_exporter::families;
use serde_json::Value;

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../configs/monitoring")
        .join(name)
}

/// Every text under a key of that name, at any depth.
fn texts<'a>(value: &'a Value, keys: &[&str], found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if keys.contains(&name.as_str()) => found.push(text),
                    field => texts(field, keys, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, keys, found)),
        _ => {}
    }
}

/// Names of metrics in a query.
fn names(query: &str) -> impl Iterator<Item = &str> {
    query
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("lockstep_") || word.starts_with("DCGM_"))
}

#[test]
fn the_dashboard_asks_for_what_is_exported() {
    let text = std::fs::read_to_string(shipped("grafana.json")).unwrap();
    let board: Value = serde_json::from_str(&text).unwrap();
    let exported: BTreeSet<String> = families().iter().map(|one| one.query_name()).collect();
    let mut queries = Vec::new();
    texts(&board, &["expr", "query"], &mut queries);
    let asked: BTreeSet<&str> = queries.iter().flat_map(|query| names(query)).collect();
    assert!(asked.len() >= 15, "{asked:?}");
    for name in asked {
        assert!(exported.contains(name), "{name} is not exported");
    }
    let panels = board["panels"].as_array().unwrap();
    let every = panels.iter().all(|panel| {
        let targets = panel["targets"].as_array().unwrap();
        !targets.is_empty()
            && targets
                .iter()
                .all(|one| names(one["expr"].as_str().unwrap()).count() > 0)
    });
    assert!(every, "a panel that shows nothing");
}

#[test]
fn the_dashboard_shows_every_loss_and_every_gauge() {
    let text = std::fs::read_to_string(shipped("grafana.json")).unwrap();
    let shown: BTreeSet<&str> = names(&text).collect();
    for family in families() {
        let name = family.query_name();
        let matters = !name.starts_with("lockstep_gpu_");
        assert!(
            !matters || shown.contains(name.as_str()),
            "{name} is not shown"
        );
    }
}

#[test]
fn the_unit_starts_a_command_that_exists() {
    let unit = std::fs::read_to_string(shipped("lockstep-sampled@.service")).unwrap();
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    assert_eq!(start, Some("/usr/bin/lockstep sampled $LOCKSTEP_SAMPLED"));
    assert!(unit.contains("Environment=LOCKSTEP_SAMPLED=--prometheus\n"));
    let settings = std::fs::read_to_string(shipped("prometheus.yml")).unwrap();
    assert!(settings.contains("127.0.0.1:9400"), "the default address");
}
