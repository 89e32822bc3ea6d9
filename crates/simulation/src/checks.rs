//! What checks of a run found, as rows and in words.

use crate::node::Node;
use lockstep_gpu::{Check, Finding};
use lockstep_run_folder::CheckRow;
use lockstep_runtime::Runtime;

/// Findings that are put in words at the end of a run; the table has them all.
const MOST_LINES: usize = 50;

/// What programs are checked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// What happens on the GPU.
    pub gpu: lockstep_gpu::Checks,
    /// Memory that the program does not free.
    pub leaks: bool,
}

/// What was found, and how it is said.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// A row for each instruction that did something wrong.
    pub rows: Vec<CheckRow>,
    /// What a real GPU lets pass, and nobody asked for.
    pub warnings: Vec<String>,
    /// What a check that was asked for has found.
    pub problems: Vec<String>,
}

/// Collects what checks found. `gpu` is the name of the GPU, for people.
pub fn collect(runtime: &mut Runtime<Node>, checks: Checks, gpu: &str) -> Found {
    let findings = runtime.device_mut().findings();
    let mut found = Found::default();
    for finding in findings {
        let places = [finding.address, finding.nearest].into_iter().flatten();
        let story = places.filter_map(|place| runtime.story_of(place)).next();
        let row = row(finding, story);
        let place = sentence(&row);
        match row.check {
            "outside" => found.warnings.push(format!(
                "an {gpu} lets this pass: {place}; `--check memory` stops there"
            )),
            check => found.problems.push(format!("check {check}: {place}")),
        }
        found.rows.push(row);
    }
    if checks.leaks {
        for (base, bytes, call) in runtime.leaks() {
            let what = format!(
                "{bytes} bytes at {base:#x}, allocated by CUDA call {call}, were never freed"
            );
            found.problems.push(format!("check leaks: {what}"));
            found.rows.push(CheckRow {
                check: "leaks",
                what,
                count: 1,
                ..CheckRow::default()
            });
        }
    }
    for lines in [&mut found.warnings, &mut found.problems] {
        let more = lines.len().saturating_sub(MOST_LINES);
        lines.truncate(MOST_LINES);
        if more > 0 {
            lines.push(format!("and {more} more findings, in checks.csv"));
        }
    }
    found
}

fn row(finding: Finding, story: Option<String>) -> CheckRow {
    let Finding {
        check,
        kernel,
        launch,
        place,
        mut what,
        count,
        ..
    } = finding;
    if let (Some(story), Check::Outside | Check::Initialised) = (story, check) {
        what.push_str("; ");
        what.push_str(&story);
    }
    CheckRow {
        check: check.name(),
        kernel,
        launch: Some(launch.into()),
        block: Some(place.block),
        thread: Some(place.thread),
        instruction: Some(place.pc),
        text: words(&place.instruction),
        line: place.line,
        what,
        count,
    }
}

/// The text of an instruction on one line: that of PTX may have several.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where something happened, and what.
fn sentence(row: &CheckRow) -> String {
    let mut text = format!("kernel `{}`", demangled(&row.kernel));
    for (name, index) in [("block", row.block), ("thread", row.thread)] {
        if let Some([x, y, z]) = index {
            text.push_str(&format!(", {name} ({x},{y},{z})"));
        }
    }
    if let Some(pc) = row.instruction {
        text.push_str(&format!(", instruction {pc}"));
    }
    for (part, open, close) in [(&row.text, " `", "`"), (&row.line, " (", ")")] {
        if !part.is_empty() {
            text.push_str(&format!("{open}{part}{close}"));
        }
    }
    let threads = match row.count {
        1 => "1 thread".to_string(),
        count => format!("{count} threads"),
    };
    format!("{text}: {}; {threads} in all", row.what)
}

/// A name for people.
fn demangled(name: &str) -> String {
    let symbol = cpp_demangle::Symbol::new(name).ok();
    let text = symbol.and_then(|symbol| symbol.demangle().ok());
    text.unwrap_or_else(|| name.to_string())
}
