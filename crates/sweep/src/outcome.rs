//! What became of a run, read from its folder.

use crate::Cell;
use serde_json::Value;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Summaries beyond this many bytes are none.
const MAXIMUM_SUMMARY: u64 = 64 << 20;

/// So much of the end of a log is looked at.
const TAIL: u64 = 4096;

/// What became of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was not started, or somebody stopped it: it can be run.
    Missing,
    /// Something was wrong, in a sentence; it is run again when the sweep is resumed.
    Failed(String),
    /// Its results, by column.
    Finished(Vec<(String, Cell)>),
}

/// What became of the run in `folder`, which said what is in `log`.
pub fn outcome(folder: &Path, log: &Path) -> Outcome {
    let path = folder.join("summary.json");
    let Some(summary) = read(&path) else {
        // It ended before there was a summary, or was never started.
        return last_words(log).map_or(Outcome::Missing, Outcome::Failed);
    };
    let code = summary["ending"]["exit_code"].as_i64();
    match summary["state"].as_str() {
        Some("finished") if code == Some(0) => Outcome::Finished(results(&summary)),
        Some("finished") => {
            let code = code.map_or("unknown".into(), |code| code.to_string());
            Outcome::Failed(format!("the program ended with exit code {code}"))
        }
        Some("running" | "stopped") => Outcome::Missing,
        _ => Outcome::Failed(problem(&summary, log)),
    }
}

fn read(path: &Path) -> Option<Value> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(MAXIMUM_SUMMARY).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn problem(summary: &Value, log: &Path) -> String {
    let said = summary["ending"]["problems"][0].as_str();
    said.map(one_line)
        .or_else(|| last_words(log))
        .unwrap_or_else(|| "it failed and said nothing".into())
}

/// The last line of a log, if it has any.
fn last_words(log: &Path) -> Option<String> {
    let mut file = std::fs::File::open(log).ok()?;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(str::trim);
    lines.rev().find(|line| !line.is_empty()).map(one_line)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Every total, then what tells runs apart, then what they cost.
fn results(summary: &Value) -> Vec<(String, Cell)> {
    let mut results = Vec::new();
    if let Some(totals) = summary["totals"].as_object() {
        for (name, value) in totals {
            results.push((name.clone(), number(value)));
        }
    }
    if let Some(digest) = summary["digest"].as_str() {
        results.push(("digest".into(), Cell::Text(digest.into())));
    }
    results.push(("host_seconds".into(), number(&summary["host"]["seconds"])));
    results.push((
        "host_peak_memory".into(),
        number(&summary["host"]["peak_memory"]),
    ));
    results
}

fn number(value: &Value) -> Cell {
    match (value.as_i64(), value.as_f64()) {
        (Some(integer), _) => Cell::Integer(integer),
        (None, Some(number)) => Cell::Number(number),
        (None, None) => Cell::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(summary: Option<&str>, log: Option<&str>) -> Outcome {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("lockstep-outcome-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("log.txt");
        if let Some(text) = summary {
            std::fs::write(folder.join("summary.json"), text).unwrap();
        }
        if let Some(text) = log {
            std::fs::write(&path, text).unwrap();
        }
        let seen = outcome(&folder, &path);
        std::fs::remove_dir_all(&folder).unwrap();
        seen
    }

    #[test]
    fn a_run_is_finished_when_its_summary_says_so() {
        let finished = r#"{"state":"finished","ending":{"exit_code":0},"totals":{"cycles":5,"kernel_ns":1.5},"digest":"ab","host":{"seconds":2.0,"peak_memory":7}}"#;
        let Outcome::Finished(results) = check(Some(finished), None) else {
            panic!("not finished");
        };
        assert!(results.contains(&("cycles".into(), Cell::Integer(5))));
        assert!(results.contains(&("kernel_ns".into(), Cell::Number(1.5))));
        assert!(results.contains(&("digest".into(), Cell::Text("ab".into()))));
    }

    #[test]
    fn what_was_stopped_or_never_began_can_be_run() {
        assert_eq!(check(None, None), Outcome::Missing);
        assert_eq!(check(None, Some("\n")), Outcome::Missing);
        assert_eq!(
            check(Some(r#"{"state":"running"}"#), Some("x")),
            Outcome::Missing
        );
        assert_eq!(
            check(Some(r#"{"state":"stopped"}"#), None),
            Outcome::Missing
        );
    }

    #[test]
    fn a_failure_has_a_reason() {
        let failed = r#"{"state":"failed","ending":{"exit_code":1,"problems":["it\nfell over"]}}"#;
        assert_eq!(
            check(Some(failed), None),
            Outcome::Failed("it fell over".into())
        );
        let wrong = r#"{"state":"finished","ending":{"exit_code":3}}"#;
        let said = Outcome::Failed("the program ended with exit code 3".into());
        assert_eq!(check(Some(wrong), None), said);
        let words = Outcome::Failed("no such file".into());
        assert_eq!(check(None, Some("lockstep 1\nno such file\n\n")), words);
        assert_eq!(
            check(Some("{"), Some("torn")),
            Outcome::Failed("torn".into())
        );
    }
}
