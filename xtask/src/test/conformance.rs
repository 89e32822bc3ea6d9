//! Conformance: what calls answer under the simulator, against what they answered on a real GPU.
//!
//! Every program of `workloads/conformance` prints its calls and their answers. Recordings of a
//! real GPU are in `validation/conformance`, with a list of lines that differ on purpose.

use super::programs::{Check, Tally};
use crate::cuda::Toolkit;
use crate::workloads::{Program, Runtime};
use crate::{process, project, simulator};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(180);
/// What a program says when all it could judge by itself was right.
const VERDICT: &str = "== all as expected";

/// A line that differs on purpose.
struct Difference {
    chapter: String,
    real: String,
    simulated: String,
}

/// Builds and runs every chapter with both runtimes, prints a line for each, and counts.
pub fn check_all(toolkit: &Toolkit) -> Result<Tally> {
    let chapters = chapters()?;
    let differences = differences(&project::root().join("validation/conformance/differences.txt"))?;
    println!("{} chapters of the CUDA API", chapters.len());
    let mut tally = Tally {
        passed: 0,
        failed: 0,
    };
    let all = process::in_parallel(&chapters, |chapter| {
        check_chapter(toolkit, chapter, &differences)
    });
    for (chapter, checks) in chapters.iter().zip(all) {
        for check in checks {
            tally.add(chapter, &check);
        }
    }
    Ok(tally)
}

fn chapters() -> Result<Vec<String>> {
    let folder = project::root().join("workloads/conformance");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cu") {
            let name = path.file_stem().and_then(|stem| stem.to_str());
            names.push(name.context("a name that is no text")?.to_string());
        }
    }
    names.sort();
    ensure!(
        names.len() >= 10,
        "chapters are missing in {}",
        folder.display()
    );
    Ok(names)
}

fn check_chapter(toolkit: &Toolkit, chapter: &str, differences: &[Difference]) -> Vec<Check> {
    let program = Program {
        name: format!("conformance-{chapter}"),
        source: format!("conformance/{chapter}.cu"),
        small: Vec::new(),
        medium: Default::default(),
        large: Vec::new(),
        tags: Vec::new(),
        architecture: "sm_90".into(),
        relocatable: chapter == "dynamic_parallelism",
        links: vec!["cuda".into()],
        gpus: None,
        kernels: Vec::new(),
    };
    let recording = project::root().join(format!("validation/conformance/h200/{chapter}.txt"));
    let recorded = std::fs::read_to_string(recording).ok();
    [Runtime::Static, Runtime::Shared]
        .into_iter()
        .map(|runtime| {
            let begin = process::now();
            let run = program.build(toolkit, runtime).and_then(|executable| {
                let options = ["--mode", "functional", "--record", "none"];
                simulator::run(&options, &executable, &[], LIMIT)
            });
            let trouble = match run {
                Ok(run) => judge(chapter, &run.output.out, recorded.as_deref(), differences),
                Err(error) => format!("{error:#}"),
            };
            Check {
                what: format!("conformance {runtime:?}").to_lowercase(),
                seconds: begin.elapsed().as_secs_f64(),
                trouble,
            }
        })
        .collect()
}

/// What went wrong, or nothing.
fn judge(chapter: &str, said: &str, recorded: Option<&str>, differences: &[Difference]) -> String {
    if said.lines().last() != Some(VERDICT) {
        let wrong: Vec<&str> = said.lines().filter(|line| line.ends_with(": NO")).collect();
        return format!("it does not end with `{VERDICT}`; {}", wrong.join("; "));
    }
    let Some(recorded) = recorded else {
        return String::new();
    };
    first_difference(recorded, said, |real, simulated| {
        differences.iter().any(|known| {
            known.chapter == chapter && known.real == real && known.simulated == simulated
        })
    })
}

/// The first line that is another one than recorded and no accepted one, or nothing.
pub fn first_difference(
    recorded: &str,
    said: &str,
    accepted: impl Fn(&str, &str) -> bool,
) -> String {
    let (mut real, mut simulated) = (recorded.lines(), said.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (real.next(), simulated.next()) {
            (None, None) => return String::new(),
            (expected, found) if expected == found => {}
            (Some(expected), Some(found)) if accepted(expected, found) => {}
            (expected, found) => {
                let text = |line: Option<&str>| line.unwrap_or("(nothing)").to_string();
                return format!(
                    "line {number}: a real GPU says\n  {}\nthe simulator says\n  {}",
                    text(expected),
                    text(found)
                );
            }
        }
    }
}

fn differences(path: &Path) -> Result<Vec<Difference>> {
    let text = std::fs::read_to_string(path).with_context(|| project::shown(path))?;
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    ensure!(
        lines.len().is_multiple_of(4),
        "{}: four lines a difference",
        project::shown(path)
    );
    Ok(lines
        .chunks(4)
        .map(|four| Difference {
            chapter: four[0].into(),
            real: four[1].into(),
            simulated: four[2].into(),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_must_be_the_recorded_one_but_for_known_differences() {
        let known = [Difference {
            chapter: "devices".into(),
            real: "x = 1".into(),
            simulated: "x = 0".into(),
        }];
        let real = "a: ok\nx = 1\n== all as expected\n";
        let check = |chapter: &str, said: &str| judge(chapter, said, Some(real), &known);
        assert_eq!(check("devices", real), "");
        assert_eq!(check("devices", "a: ok\nx = 0\n== all as expected\n"), "");
        assert!(check("memory", "a: ok\nx = 0\n== all as expected\n").contains("line 2"));
        assert!(check("devices", "a: ok\n== all as expected\n").contains("line 2"));
        assert!(check("devices", "a: ok\nx = 1\n").contains("does not end"));
        assert_ne!(
            judge("new", "x: NO\n== something is wrong\n", None, &known),
            ""
        );
    }

    #[test]
    fn the_list_of_differences_can_be_read_and_names_chapters() {
        let path = project::root().join("validation/conformance/differences.txt");
        let chapters = chapters().expect("chapters");
        for difference in differences(&path).expect("differences") {
            assert!(chapters.contains(&difference.chapter));
        }
    }
}
