//! `docs/status.toml`: what works and what does not, each line with what shows it.
//!
//! `docs/status.md` is made from it. A line that stops being true fails the test: something that is listed as lacking and runs,
//! or something that is listed as working and has no program that passes.

use crate::cuda::Toolkit;
use crate::{coverage, process, project, simulator, workloads};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Where the lines are.
const PATH: &str = "docs/status.toml";
/// Where kernels and programs are that must be refused.
const LIMITS: &str = "tests/limits";
/// How long a program may take; one that never ends is a limit, too.
const PATIENCE: Duration = Duration::from_secs(5);

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    works: Vec<Works>,
    lacks: Vec<Lacks>,
}

/// Something that works, and what shows it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Works {
    what: String,
    says: String,
    #[serde(default)]
    programs: Vec<String>,
    #[serde(default)]
    chapters: Vec<String>,
    #[serde(default)]
    tests: Vec<String>,
}

/// Something that is lacking, and what would show that it no longer is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lacks {
    what: String,
    says: String,
    #[serde(default)]
    kernels: Vec<(String, String)>,
    #[serde(default)]
    cuda: Vec<(String, String)>,
    #[serde(default)]
    calls: Vec<String>,
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    refused: Vec<(String, String)>,
    #[serde(default)]
    measured: Vec<String>,
    #[serde(default)]
    tests: Vec<String>,
}

/// Reads the file.
pub fn load() -> Result<Status> {
    let text = std::fs::read_to_string(project::root().join(PATH)).context(PATH)?;
    toml::from_str(&text).context(PATH)
}

impl Status {
    /// What works, as lines of a list.
    pub fn works(&self) -> String {
        let mut text = String::new();
        for line in &self.works {
            let mut shown: Vec<String> = line
                .programs
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            shown.extend(
                line.chapters
                    .iter()
                    .map(|name| format!("`conformance/{name}`")),
            );
            let shown = if shown.is_empty() {
                String::new()
            } else {
                format!(" ({})", shown.join(", "))
            };
            let _ = writeln!(text, "- **{}**: {}{shown}.", line.what, line.says);
        }
        text
    }

    /// What is lacking, as lines of a list.
    pub fn lacks(&self) -> String {
        let mut text = String::new();
        for line in &self.lacks {
            let _ = writeln!(text, "- **{}**: {}.", line.what, line.says);
        }
        text
    }

    /// Everything that needs no CUDA compiler; an error lists every line that is no longer true.
    pub fn check(&self) -> Result<()> {
        let mut troubles = Vec::new();
        let passing = passing_programs()?;
        let root = project::root();
        for line in &self.works {
            for name in &line.programs {
                if !passing.contains(name) {
                    troubles.push(format!(
                        "{}: `{name}` does not pass in validation/frontends.csv",
                        line.what
                    ));
                }
            }
            for chapter in &line.chapters {
                if !root
                    .join(format!("workloads/conformance/{chapter}.cu"))
                    .exists()
                {
                    troubles.push(format!("{}: there is no chapter `{chapter}`", line.what));
                }
            }
            if line.programs.len() + line.chapters.len() + line.tests.len() == 0 {
                troubles.push(format!("{}: nothing shows it", line.what));
            }
            check_tests(&line.what, &line.tests, &mut troubles);
        }
        let top = help()?;
        for line in &self.lacks {
            line.check(&top, &mut troubles)?;
        }
        if !troubles.is_empty() {
            bail!("{PATH} says what is not true:\n{}", troubles.join("\n"));
        }
        Ok(())
    }

    /// The CUDA programs of what is lacking: name, what is wrong with the line if it is no longer true, and the time.
    pub fn check_programs(&self, toolkit: &Toolkit) -> Vec<(String, String, Duration)> {
        let files = self.lacks.iter().flat_map(|line| &line.cuda);
        files
            .map(|(file, words)| {
                let begin = process::now();
                let trouble = match check_program(toolkit, file, words) {
                    Ok(trouble) => trouble,
                    Err(error) => format!("{error:#}"),
                };
                (format!("limits/{file}"), trouble, begin.elapsed())
            })
            .collect()
    }
}

impl Lacks {
    fn check(&self, top: &str, troubles: &mut Vec<String>) -> Result<()> {
        let what = &self.what;
        for (file, words) in &self.kernels {
            if let Some(trouble) = check_kernel(file, words)? {
                troubles.push(format!("{what}: {trouble}"));
            }
        }
        for call in &self.calls {
            match coverage::is_answered(call)? {
                Some(false) => {}
                Some(true) => troubles.push(format!("{what}: `{call}` is answered now")),
                None => troubles.push(format!("{what}: CUDA has no call `{call}`")),
            }
        }
        for command in &self.commands {
            if top
                .lines()
                .any(|line| line.split_whitespace().next() == Some(command))
            {
                troubles.push(format!("{what}: there is a command `{command}` now"));
            }
        }
        for (options, words) in &self.refused {
            let mut command = simulator::lockstep(&["run"]);
            command.args(options.split(' ')).args(["--", "true"]);
            let output = process::capture(&mut command, PATIENCE)?;
            if let Some(trouble) = verdict(options, words, &output) {
                troubles.push(format!("{what}: {trouble}"));
            }
        }
        if !self.measured.is_empty() {
            let found = folders(&project::root().join("validation/hardware"))?;
            let named: BTreeSet<String> = self.measured.iter().cloned().collect();
            if found != named {
                troubles.push(format!("{what}: measured are {found:?}"));
            }
        }
        check_tests(what, &self.tests, troubles);
        let checks = self.kernels.len()
            + self.cuda.len()
            + self.calls.len()
            + self.commands.len()
            + self.refused.len()
            + self.measured.len()
            + self.tests.len();
        if checks == 0 {
            troubles.push(format!(
                "{what}: nothing would show that it is no longer lacking"
            ));
        }
        Ok(())
    }
}

/// Programs that pass on every GPU that ran them, from machine code and from PTX if they carry any.
fn passing_programs() -> Result<BTreeSet<String>> {
    let path = project::root().join("validation/frontends.csv");
    let text = std::fs::read_to_string(&path).with_context(|| project::shown(&path))?;
    let mut passing: BTreeSet<String> = workloads::all()?
        .into_iter()
        .map(|program| program.name)
        .collect();
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [name, _, machine_code, ptx, ..] = cells[..] else {
            bail!("{}: `{line}` has too few cells", project::shown(&path));
        };
        seen.insert(name.to_string());
        if machine_code != "PASS" || !["PASS", "none"].contains(&ptx) {
            passing.remove(name);
        }
    }
    Ok(passing.intersection(&seen).cloned().collect())
}

/// Tests are named as "file: function".
fn check_tests(what: &str, tests: &[String], troubles: &mut Vec<String>) {
    for test in tests {
        let found = test.split_once(": ").is_some_and(|(file, function)| {
            std::fs::read_to_string(project::root().join(file))
                .is_ok_and(|text| text.contains(&format!("fn {function}(")))
        });
        if !found {
            troubles.push(format!("{what}: there is no test {test}"));
        }
    }
}

/// A kernel that must be refused, with these words.
fn check_kernel(file: &str, words: &str) -> Result<Option<String>> {
    let path = project::root().join(LIMITS).join(file);
    let text = std::fs::read_to_string(&path).with_context(|| project::shown(&path))?;
    let folder = simulator::scratch_folder();
    let mut command = simulator::lockstep(&["kernel"]);
    command
        .arg(&path)
        .args(["--entry", "limit", "--grid", "1", "--block", "32"]);
    command.args(["--mode", "functional", "--out"]).arg(&folder);
    if text.contains(".param") {
        command.args(["--arg", "f32[32]"]);
    }
    let output = process::capture(&mut command, PATIENCE)?;
    // Left behind, it would only cost space.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(verdict(file, words, &output))
}

/// A program that must run as these words say.
fn check_program(toolkit: &Toolkit, file: &str, words: &str) -> Result<String> {
    let source = project::root().join(LIMITS).join(file);
    let folder = project::local().join("limits");
    std::fs::create_dir_all(&folder)?;
    let executable = folder.join(Path::new(file).with_extension("").as_os_str());
    let mut nvcc = process::command(toolkit.nvcc());
    nvcc.args(["-O3", "-std=c++17", "-arch=sm_90"]);
    // Kernels that launch kernels are linked with the device runtime.
    nvcc.arg("-rdc=true")
        .arg(&source)
        .arg("-o")
        .arg(&executable);
    let built = process::capture(&mut nvcc, Duration::from_secs(300))?;
    if !built.success() {
        bail!(
            "nvcc refuses {}:\n{}",
            project::shown(&source),
            built.tail(12)
        );
    }
    let options = ["--mode", "functional"];
    let run = simulator::run(&options, &executable, &[], PATIENCE)?;
    Ok(verdict(file, words, &run.output).unwrap_or_default())
}

/// What is wrong with a line whose program said this.
fn verdict(file: &str, words: &str, output: &process::Output) -> Option<String> {
    let said = format!("{}{}", output.out, output.err);
    if output.success() {
        return Some(format!("{file} runs now: take it out of {PATH}"));
    }
    (!said.contains(words)).then(|| format!("{file} does not say `{words}`:\n{}", output.tail(4)))
}

/// The commands that there are.
fn help() -> Result<String> {
    let mut command = simulator::lockstep(&["--help"]);
    let output = process::capture(&mut command, Duration::from_secs(30))?;
    if !output.success() {
        bail!("`lockstep --help` failed: {}", output.tail(3));
    }
    Ok(output.out)
}

fn folders(path: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(path).with_context(|| project::shown(path))? {
        let entry = entry?;
        if entry.path().is_dir() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: i32, err: &str) -> process::Output {
        process::Output {
            code: Some(code),
            out: String::new(),
            err: err.into(),
            processor: Duration::ZERO,
        }
    }

    #[test]
    fn a_limit_that_is_gone_or_speaks_otherwise_is_noticed() {
        assert_eq!(
            verdict("a.ptx", "a texture", &said(1, "reads a texture")),
            None
        );
        let gone = verdict("a.ptx", "a texture", &said(0, "")).expect("it runs");
        assert!(gone.contains("runs now"), "{gone}");
        let other = verdict("a.ptx", "a texture", &said(1, "crash")).expect("other words");
        assert!(other.contains("crash"), "{other}");
    }

    #[test]
    fn the_file_can_be_read_and_every_limit_has_its_file() {
        let status = load().expect("status");
        let mut used = BTreeSet::new();
        for line in &status.lacks {
            for (file, _) in line.kernels.iter().chain(&line.cuda) {
                assert!(project::root().join(LIMITS).join(file).exists(), "{file}");
                used.insert(file.clone());
            }
        }
        for entry in std::fs::read_dir(project::root().join(LIMITS)).expect("limits") {
            let name = entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("name");
            assert!(used.contains(&name), "{name} is in no line of {PATH}");
        }
    }

    #[test]
    fn a_test_that_does_not_exist_is_noticed() {
        let mut troubles = Vec::new();
        check_tests(
            "x",
            &["xtask/src/status.rs: no_such_test".into()],
            &mut troubles,
        );
        assert_eq!(troubles.len(), 1);
        let this = "xtask/src/status.rs: a_test_that_does_not_exist_is_noticed";
        check_tests("x", &[this.into()], &mut troubles);
        assert_eq!(troubles.len(), 1);
    }

    #[test]
    fn what_passes_is_in_the_table_of_front_ends() {
        let passing = passing_programs().expect("table");
        assert!(passing.contains("vector_add"));
        assert!(!passing.contains("no_such_program"));
    }
}
